//! A device that is a state in memory: for trying routines, and for things without electronics.

use core::future::Future;
use core::time::Duration;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::time::sleep;

use super::Device;

/// A device in memory that takes a while and carries out each command.
#[derive(Clone, Debug)]
pub struct Dummy {
    state: State,
    takes: Duration,
}

impl Dummy {
    /// A device in this state, with this duration of a command.
    #[must_use]
    pub const fn new(state: State, takes: Duration) -> Self {
        Self { state, takes }
    }
}

impl Device for Dummy {
    fn lateness(&self) -> Span {
        Span::ZERO // A command that is given up before it is done is not done.
    }

    fn set(&mut self, state: &State, _: Instant) -> impl Future<Output = Outcome> + Send {
        let state = state.clone();
        async move {
            sleep(self.takes).await;
            self.state = state;
            Outcome::Done
        }
    }

    fn ask(&mut self) -> impl Future<Output = Option<State>> + Send {
        core::future::ready(Some(self.state.clone()))
    }
}

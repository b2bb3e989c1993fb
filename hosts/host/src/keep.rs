//! The storage of facts, or none.

use core::future::Future;

use selvedge_core::{Effect, Member};

use crate::{HostError, Hosted, RunError};

/// The step between the inputs of a round and its effects.
pub(crate) trait Keep<M: Hosted>: Send + 'static {
    /// Stores the first base.
    fn start(&mut self, machine: &M) -> Result<(), HostError>;

    /// Begins to store the facts among `effects`. `machine` has taken the steps that caused them.
    fn begin(&mut self, machine: &M, effects: &[(Member, Effect<M>)]);

    /// Waits until they are stored.
    fn end(&mut self) -> impl Future<Output = Result<(), RunError>> + Send;
}

/// No storage.
#[derive(Debug)]
pub(crate) struct Volatile;

impl<M: Hosted> Keep<M> for Volatile {
    fn start(&mut self, _: &M) -> Result<(), HostError> {
        Ok(())
    }

    fn begin(&mut self, _: &M, _: &[(Member, Effect<M>)]) {}

    async fn end(&mut self) -> Result<(), RunError> {
        Ok(())
    }
}

#[cfg(feature = "store")]
pub(crate) use disk::Disk;

#[cfg(feature = "store")]
mod disk {
    use std::sync::Arc;

    use selvedge_core::durable::Durable;
    use selvedge_core::{Effect, Member};
    use selvedge_store::{Store, StoreError};
    use serde::Serialize;
    use tokio::task::{JoinHandle, spawn_blocking};

    use super::Keep;
    use crate::{HostError, Hosted, RunError};

    type Written = (Store, Result<(), StoreError>);

    /// A store, and the function that makes a base.
    pub(crate) struct Disk<F> {
        state: State,
        base: F,
    }

    enum State {
        Free(Store),
        Writes(JoinHandle<Written>),
        Failed,
    }

    impl<F> Disk<F> {
        pub(crate) const fn new(store: Store, base: F) -> Self {
            let state = State::Free(store);
            Self { state, base }
        }
    }

    impl<M, B, F> Keep<M> for Disk<F>
    where
        M: Hosted + Durable<Fact: Serialize + Send>,
        B: Serialize + Send + 'static,
        F: Fn(&M) -> B + Send + 'static,
    {
        fn start(&mut self, machine: &M) -> Result<(), HostError> {
            if let State::Free(store) = &mut self.state {
                store.rebase(&(self.base)(machine), |_| Ok(()))?;
            }
            Ok(())
        }

        fn begin(&mut self, machine: &M, effects: &[(Member, Effect<M>)]) {
            let facts: Vec<_> = effects
                .iter()
                .filter_map(|it| fact(&it.1))
                .cloned()
                .collect();
            if facts.is_empty() {
                return;
            }
            let State::Free(mut store) = core::mem::replace(&mut self.state, State::Failed) else {
                return;
            };
            let base = store.is_due(facts.len()).then(|| (self.base)(machine));
            // A thread of its own: a disk may be slow, and other tasks share this one.
            self.state = State::Writes(spawn_blocking(move || {
                let done = match &base {
                    Some(base) => store.rebase(base, |_| Ok(())),
                    None => store.append(&facts),
                };
                (store, done)
            }));
        }

        async fn end(&mut self) -> Result<(), RunError> {
            let writes = match &mut self.state {
                State::Free(_) => return Ok(()),
                State::Writes(writes) => writes,
                State::Failed => return Err(RunError::Aborted),
            };
            let written = writes.await;
            self.state = State::Failed;
            let (store, done) = written.map_err(|_aborted| RunError::Aborted)?;
            done.map_err(|error| RunError::Store(Arc::new(error)))?;
            self.state = State::Free(store);
            Ok(())
        }
    }

    fn fact<M: Durable>(effect: &Effect<M>) -> Option<&M::Fact> {
        match effect {
            Effect::Event(event) => M::fact(event),
            Effect::Send { .. } | Effect::Multicast { .. } => None,
        }
    }
}

//! Facts that a host stores and a later life folds.

use selvedge_core::durable::Durable;

use crate::{Damage, Event, Fact, Replica, State};

impl<S: State> Durable for Replica<S> {
    type Fact = Fact<S>;
    type Damage = Damage;

    fn fact(event: &Event<S>) -> Option<&Fact<S>> {
        if let Event::Fact(fact) = event {
            return Some(fact);
        }
        None
    }

    fn fold(&mut self, fact: &Fact<S>) -> Result<(), Damage> {
        self.acceptor.fold(fact)?;
        self.is_restored = true;
        Ok(())
    }
}

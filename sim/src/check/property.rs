//! Properties to check, and observers of runs.

use alloc::sync::Arc;
use core::fmt::Debug;
use core::hash::Hash;

use selvedge_core::Machine;

use super::State;

/// Watches events and remembers the past that a property needs. It becomes part of the state, so it
/// should remember little.
pub trait Observer<M: Machine>: Clone + Eq + Hash + Debug {
    /// A node sent its application an event.
    fn event(&mut self, node: usize, event: &M::Event);

    /// A node took a command; events that it led to follow.
    fn commanded(&mut self, _node: usize, _command: &M::Command) {}

    /// A node crashed.
    fn crashed(&mut self, _node: usize) {}

    /// A node came back.
    fn restarted(&mut self, _node: usize) {}
}

/// Watches nothing.
impl<M: Machine> Observer<M> for () {
    fn event(&mut self, _: usize, _: &M::Event) {}
}

pub(super) type Condition<M, O> = Arc<dyn Fn(&State<M, O>) -> bool + Send + Sync>;

pub(super) enum Kind<M: Machine, O> {
    Always(Condition<M, O>),
    Sometimes(Condition<M, O>),
    Progress {
        from: Condition<M, O>,
        goal: Condition<M, O>,
    },
    NeverRejects,
}

pub(super) struct Property<M: Machine, O> {
    pub(super) name: &'static str,
    pub(super) kind: Kind<M, O>,
}

impl<M: Machine, O> Clone for Property<M, O> {
    fn clone(&self) -> Self {
        let kind = match &self.kind {
            Kind::Always(condition) => Kind::Always(Arc::clone(condition)),
            Kind::Sometimes(condition) => Kind::Sometimes(Arc::clone(condition)),
            Kind::Progress { from, goal } => Kind::Progress {
                from: Arc::clone(from),
                goal: Arc::clone(goal),
            },
            Kind::NeverRejects => Kind::NeverRejects,
        };
        Self {
            name: self.name,
            kind,
        }
    }
}

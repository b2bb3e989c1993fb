//! A state as stateright keeps it.

use alloc::sync::Arc;
use core::fmt;
use core::hash::{Hash, Hasher};

use selvedge_core::Machine;

use super::super::{Incomplete, Model, Observer, State};

/// The target of a transition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place<M: Machine, O> {
    State(State<M, O>),
    /// A step out of the state before was refused, which the model forbids.
    Refused(String),
    /// A machine panicked in a step out of the state before.
    Panicked(String),
    /// A step out of the state before could not be explored.
    Stuck(Incomplete),
}

/// A [`State`] in stateright's form, or the reason why a step has no state.
///
/// It is hashed from the machines' `Hash` output, and not from the fingerprints that [`State`]
/// keeps: equal counts of both engines are confirmed by two hash functions.
pub struct Reached<M: Machine, O = ()> {
    /// For the texts.
    model: Arc<Model<M, O>>,
    place: Place<M, O>,
}

impl<M: Machine, O> Reached<M, O> {
    pub(super) const fn new(model: Arc<Model<M, O>>, place: Place<M, O>) -> Self {
        Self { model, place }
    }

    pub(super) fn model(&self) -> &Model<M, O> {
        &self.model
    }

    pub(super) const fn place(&self) -> &Place<M, O> {
        &self.place
    }

    /// The state; `None` behind a step that was refused, panicked, or could not be explored.
    #[must_use]
    pub const fn state(&self) -> Option<&State<M, O>> {
        match &self.place {
            Place::State(state) => Some(state),
            Place::Refused(_) | Place::Panicked(_) | Place::Stuck(_) => None,
        }
    }

    /// The reason why the step before could not be explored.
    pub(super) const fn stuck(&self) -> Option<&Incomplete> {
        match &self.place {
            Place::Stuck(why) => Some(why),
            Place::State(_) | Place::Refused(_) | Place::Panicked(_) => None,
        }
    }
}

impl<M: Machine, O: Clone> Clone for Reached<M, O> {
    fn clone(&self) -> Self {
        Self {
            model: Arc::clone(&self.model),
            place: self.place.clone(),
        }
    }
}

impl<M: Machine, O: PartialEq> PartialEq for Reached<M, O> {
    fn eq(&self, other: &Self) -> bool {
        self.place == other.place
    }
}

impl<M: Machine, O: Hash> Hash for Reached<M, O> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match &self.place {
            Place::State(state) => {
                hasher.write_u8(0);
                for node in state.nodes() {
                    (node.machine(), node.member(), &node.host, node.storage()).hash(hasher);
                }
                hasher.write_usize(state.letters().len());
                for letter in state.letters() {
                    (letter.from(), letter.to(), letter.message()).hash(hasher);
                }
                (state.left(), state.observer()).hash(hasher);
            }
            Place::Refused(reject) => (1_u8, reject).hash(hasher),
            Place::Stuck(why) => (2_u8, why.to_string()).hash(hasher),
            Place::Panicked(panic) => (3_u8, panic).hash(hasher),
        }
    }
}

/// Prints one line for each node, and one for each message in flight, as a trace shows them.
impl<M: Machine, O: Observer<M>> fmt::Debug for Reached<M, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.place {
            Place::State(state) => state,
            Place::Refused(reject) => return write!(f, "refused: {reject}"),
            Place::Panicked(panic) => return f.write_str(panic),
            Place::Stuck(why) => return write!(f, "{why}"),
        };
        for node in state.nodes() {
            writeln!(f, "{}", self.model.picture(node))?;
        }
        for letter in state.letters() {
            writeln!(f, "on its way: {letter:?}")?;
        }
        writeln!(f, "observed: {:?}", state.observer())?;
        write!(f, "left: {}", state.left())
    }
}

//! The trait of a replicated state.

use core::fmt::Debug;
use core::hash::Hash;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A state that a group holds.
///
/// Every member applies the same updates in the same order, so `apply` is deterministic: it reads
/// no clock, draws no random number, and walks no collection in an order that differs from node to
/// node.
///
/// ```
/// use selvedge_replica::State;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
/// struct Counter(u64);
///
/// impl State for Counter {
///     type Update = u64;
///     type Outcome = u64;
///     fn apply(&mut self, add: &u64) -> u64 {
///         self.0 = self.0.saturating_add(*add);
///         self.0
///     }
/// }
/// ```
pub trait State: Clone + Eq + Hash + Debug + Serialize + DeserializeOwned {
    /// A change of the state. Its encoding must fit into a frame, see
    /// [`Configuration::frame_budget`](crate::Configuration::frame_budget).
    type Update: Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned;
    /// The result of an update: each member reports it to its application.
    type Outcome: Clone + Eq + Hash + Debug;

    /// Applies an update. Deterministic, and total: an update that cannot be applied changes
    /// nothing, and its outcome shows that.
    fn apply(&mut self, update: &Self::Update) -> Self::Outcome;
}

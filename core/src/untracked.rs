//! Values that a machine carries and that are not part of its state.

use core::hash::{Hash, Hasher};
use core::ops::{Deref, DerefMut};

/// A value that comparison and hashing of a machine ignore: counters and reused buffers.
///
/// A value that influences what the machine does must not be in here. A model checker treats two
/// states that differ only in here as one and visits only the first, so it may report that a
/// property holds though it breaks behind the second. This is not checked: every "holds" assumes
/// it.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Untracked<T>(pub T);

impl<T> PartialEq for Untracked<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Untracked<T> {}

impl<T> Hash for Untracked<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<T> Deref for Untracked<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Untracked<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

//! The transfer of a state from one member to another, page by page.

use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::Member;

use crate::SnapshotId;

/// A state that this member receives, page by page.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fetching {
    pub(crate) from: Member,
    pub(crate) snapshot: SnapshotId,
    /// The bytes that have arrived.
    pub(crate) bytes: Vec<u8>,
    pub(crate) attempts: u8,
}

/// A state that others fetch from this member: it does not change meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Serving {
    pub(crate) snapshot: SnapshotId,
    pub(crate) bytes: Arc<[u8]>,
}

//! The systems that PCM is compared with: servers that mostly sleep, and agree on the result of a
//! function by Raft or by Pirogue. A broker that is always on keeps a mailbox for each (section
//! 5e).
//!
//! Nothing here knows PCM, or the laboratory: `verify/peers/` includes these files, and has raft-rs go
//! through the same mailboxes.

pub(crate) mod awake;
pub(crate) mod broker;
pub(crate) mod raft;
pub(crate) mod voters;

// Not raft-rs itself: Pirogue is this code with other quorums (dynamic-linear voting and a witness), which
// raft-rs does not have, and the tests of the workspace would wait for raft-rs to build.

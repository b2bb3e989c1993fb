//! Recipes of coordination, each a page of code on [`Map`](crate::Map): sessions, transactions and watches of prefixes. Use
//! them as they are, or copy one and change it.
//!
//! | recipe | promise | assumption |
//! |---|---|---|
//! | [`Lock`](lock::Lock) | one holder at a time, in the order of the requests; later holders have greater tokens | the holder heeds [`lapsed`](lock::Guard::lapsed), or the resource checks tokens |
//! | [`Lock::all`](lock::Lock::all) | a holder has all of several names, or none; no order of names is needed | the same, and a holder asks for no further name |
//! | [`Lock::acquire_shared`](lock::Lock::acquire_shared) | shared and exclusive holders of a lock exclude each other | the same |
//! | [`RwLock`](rw_lock::RwLock) | readers share, a writer is alone, in the order of the requests; a later writer has a greater token | the same |
//! | [`Election`](election::Election) | one leader at a time, the candidate that waits longest; all nodes see its value | the same |
//! | [`PriorityElection`](priority_election::PriorityElection) | one leader at a time, the candidate of the smallest priority that waits; or the one that the leader hands over to; later leaders have greater tokens | the same |
//! | [`Semaphore`](semaphore::Semaphore) | no more than n permits at a time, in the order of the requests | the same, and all nodes give one n |
//! | [`Queue`](queue::Queue) | an item is taken once, and the oldest first | a node that fails may have taken one without a trace |
//! | [`PriorityQueue`](priority_queue::PriorityQueue) | an item is taken once, the smallest priority first, and the oldest among equal ones | the same |
//! | [`Registry`](registry::Registry) | an address is listed while the node that registered it is here | a session outlives its node by its time to live |
//! | [`Barrier`](barrier::Barrier) | no one passes before n have arrived | |
//! | [`Counter`](counter::Counter) | each sum is returned once | an answer that is lost may have counted |
//!
//! A change is done once where no more than [64](selvedge_groups::store::CLIENTS_MAX) nodes change the map between its
//! first request and its answer. The entries of one map are changed by one group of nodes, one after another. Give recipes that are busy maps
//! of their own.

pub mod barrier;
pub mod counter;
pub mod election;
mod line;
pub mod lock;
mod outcome;
pub mod priority_election;
pub mod priority_queue;
pub mod queue;
pub mod registry;
pub mod rw_lock;
pub mod semaphore;

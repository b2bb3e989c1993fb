//! One node of a mesh as one machine: membership, and beside it the sections of Camera, the
//! estimator and elections, which learn from it who is here.
//!
//! ```text
//!                     ┌───────────────────────────── Mesh ─┐
//!  Command, Message ->│ Membership --Delta--> Sections     │-> Event, Send
//!                     │      |                   ^         │
//!                     │      +--Delta--> Estimator         │
//!                     │      |             upper bound     │
//!                     │      +--Delta--> Celect            │
//!                     └────────────────────────────────────┘
//! ```
//!
//! | promise | under which assumption |
//! |---|---|
//! | sections, estimator and elections hear every delta, in order, and first of all who is on the list already | |
//! | membership is asked after whoever a section waits for, or gave its OK, and of which it says neither that it is here nor that it is over ([`Inquire`](selvedge_membership::Command::Inquire)) | one at a time, each [`resend`](selvedge_camera::Config::resend) while a section waits, and each [`refresh`](selvedge_camera::Config::refresh) |
//! | they belong to one life: when membership takes a later one they begin anew ([`Event::Present`]), and what was held is lost | |
//! | a node does not say good-bye while it waits for a section or is inside | it is asked to by [`Command::Membership`] |
//! | estimates raise the bound of all sections and never lower it | [`Counting`] |
//! | a node that hears of no leader gets one without being asked: see [`Election::patience`] | it is not zero |
//! | each part of a mesh that was cut in two gets a leader, and one of the two leads all when they meet | the same; few elections |
//! | frames of each protocol are as without the others, under their own kinds | |

mod event;
mod inquiry;
mod machine;
mod message;

pub use event::{Command, Event, Reject, Timer};
pub use machine::{ConfigError, Counting, Election, Exclusion, Mesh};
pub use message::{Message, decode, encode};

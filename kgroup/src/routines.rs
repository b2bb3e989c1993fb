//! Routines: each routine's group watches the devices of its clause, gets its devices, has its
//! commands done one by one, and gives the devices back (section 4.2).
//!
//! | promise | under which assumption |
//! |---|---|
//! | no two routines that share a device execute at once, and no device gets a command of a routine that does not hold it (theorem 3) | a command whose outcome did not arrive in time may be done later, as long as the routine holds the device |
//! | routines with [sequential](Locking::Sequential) locks never wait for each other in a circle (theorem 4) | |
//! | a run that was triggered ends (theorem 5) | the groups of its devices have quorums, and their answers arrive infinitely often; [optimistic](Locking::Optimistic) runs that meet again and again may hold each other up |
//! | another leader goes on from exactly the state that the group has decided (lemmas 1 and 2): it repeats no step that is over, and leaves none out | a step that was under way is asked for again: its [`Delivery`](crate::Delivery) defines the effect of that |
//! | a clause that becomes true triggers, whichever node leads: a status counts as seen when the group has decided it | it is true when it is observed; states of a device between two observations are passed over |
//! | a trigger that is asked twice starts one run | no more than [`TRIGGERS_MAX`] others came between |
//! | an occurrence of a [trigger of time](Definition::triggers) starts one run at most, for any leaders and any clocks | |
//! | it starts one as soon as it has come by the clocks of a quorum of the group's members, and is not later than [`Definition::lateness`]; no earlier than by the clock of some node that shows the right time | of 2f + 1 members at most f have a wrong clock or are away; right clocks differ by less than the lateness, and than the time between two occurrences of the trigger; a quorum decides, in some time of that length |
//! | an occurrence that was too late, or that the next one followed before it was decided, is counted ([`RoutineEvent::LeftOut`]) | the leader that decided it does not fail before its application has the event |
//! | the report has the outcome of each step of the last run | |
//! | memory is bounded, nothing panics | [`STEPS_MAX`], [`DEVICES_MAX`], [`CLAUSE_MAX`] |
//!
//! Not promised:
//!
//! - Atomicity: nothing is undone. The report of a run that ends early has the outcome of each
//!   step.
//! - That each trigger leads to a run of its own: see [`Retrigger`].
//! - Occurrences of triggers of time from before the group first decided on its time, and while more
//!   clocks than f are wrong: where these are ahead, an occurrence starts early, and none follows
//!   until right clocks have come there as well. Another
//!   [origin](crate::Site::with_origin) of the site ends that.
//! - The order of commands at a device after one of them got no answer in time.

mod clause;
mod config;
mod define;
mod definition;
mod event;
mod execute;
mod locks;
pub(crate) mod machine;
mod progress;
mod published;
mod report;
mod state;
mod times;
mod update;

pub use config::RoutineConfig;
pub use definition::{
    CLAUSE_MAX, ConfigError, DEVICES_MAX, Definition, INTERVAL_LEAST, Locking, Retrigger,
    STEPS_MAX, TIMES_MAX,
};
pub use event::{RoutineEvent, RoutineTimer};
pub(crate) use machine::RoutineLeader;
#[cfg(feature = "check")]
pub use published::Published;
pub use report::{End, Report, StepOutcome};
pub use state::{RoutineState, Stage, TRIGGERS_MAX};
pub use times::WallClock;
pub use update::{Decided, Taken, Update};

//! Clusters of devices, each held by a group of its own: the claim that may use a device, the
//! commands to it, its known status, and the routines that watch it (sections 4.1 and 4.2).
//!
//! | promise | under which assumption |
//! |---|---|
//! | one claim at most holds a device (theorem 3) | the group decides one history |
//! | claims that wait get a device in the order in which the group took them | |
//! | a claim that was released, or is earlier than another one of its routine, never holds or waits again, however late its request comes (errata G5 and G6) | no more than [`Limits::routines`] routines ever ask for the device; the others are refused |
//! | a device does nothing for a claim that does not hold it, and is not passed on before its host has ended the last command, or the time for that is over | the host carries no command out after [`Config::act_timeout`], which is alike on all nodes; no message is under way for longer |
//! | a command with [`Delivery::AtMostOnce`] is given to the host once at most | node ids are unique, and a node that restarts has a new incarnation |
//! | a command whose claim is released before its outcome is decided ends as unknown: it is not given again, and the device is held until no host can execute it | the same |
//! | a device that all routines have released is free, and no claim waits for it (theorem 5) | the leader receives the outcome of each command, or its time ends; leaders may change as often as they like, if they lead long enough to decide something |
//! | a routine that watches a device receives its latest status in the end (erratum G8) | the cluster has a leader, and messages get through infinitely often |
//! | a device that sleeps is pinged by no leader, and each command to it is given behind a report that it sent to the leader that gives it | its site is the one of the leader's node |
//! | a command waits for a device that sleeps, and is given once it reports | the routine repeats its request; what is proposed behind the report is decided |
//! | a device that sleeps is up while it reports in time, and down after so many intervals without a report (below) | each leader leads for ten seconds, or a 32nd of the interval if that is less |
//! | memory is bounded: [`Limits`]; a claim, a routine or a watch beyond them is refused | |
//!
//! Not promised:
//!
//! - That a command is done exactly once: see [`Delivery`]. A device that remembers the highest
//!   [`Ticket`] that it took, and passes over it and lower ones, does no command twice, so a command
//!   that ended as done was done exactly once.
//! - That a device soon gets its next holder after its leader was replaced during a command: that
//!   takes twice [`Config::act_timeout`] from the last decision to give the command, of which there
//!   are three at most. The routine receives the outcome of the command before that, as soon as it
//!   is decided.
//! - The above where messages are later than [`Config::act_timeout`]: a leader that was cut off may
//!   learn then that its command was decided, and give it after another leader has passed the
//!   device on. A device that remembers tickets ignores such a command after the next holder's
//!   first command; before that it has seen no higher ticket, and executes it.
//! - That a routine receives each status: of reports in close succession only the last one is certain to
//!   arrive.
//!
//! - That a command to a device that sleeps is given behind the next report: where the leader changes between the
//!   report and the decision, it waits for the one after that. Meanwhile its routine holds all its devices.
//! - That a device listens until the command is decided. Its host reports a failure if it does not.
//!
//! # Devices that sleep
//!
//! A device on a battery, such as a radiator valve, sleeps most of the time: an intermittently connected device. It
//! wakes at an interval, reports, and listens for a short time. The site has the interval
//! ([`Site::with_wake_interval`](crate::Site::with_wake_interval)).
//!
//! | subject | for such a device |
//! |---|---|
//! | up or down | down when it has not reported for [`misses`](Config::misses) + 1 intervals, and up again with its next report. The timers of leaders count, and the group decides the sum ([`Devices::silent`]), which is never more than the time that has passed; a leader that stops loses the interval that it has not finished |
//! | a command | proposed when the device reports, and given when it is decided. One command for each report: a device that listens for longer reports again after each command. While it waits, each request of the routine's leader is answered by [`Answer::Asleep`](crate::Answer::Asleep), and the leader waits for another whole timeout |
//! | a command to a device that is down | fails at once, and so does one that waited. So a routine waits for `misses` + 1 intervals at most, and twice as long where leaders change |
//! | a command of a former leader | taken over, and given again where its [`Delivery`] allows, when the device reports |
//! | a state that a condition asks for | that of the last report |
//! | a run that [restarts](crate::routines::Retrigger::Restart) | does not wait for the device: the step ends as unknown, and its command is not given any more |
//!
//! # Why a device is held
//!
//! A leader may learn up to `act_timeout` late that its command was decided, and its host may carry the
//! command out another `act_timeout` later. While one leader alone had the command, the answer of its host or
//! its own timeout settles it. After another leader takes over, the host of the former leader may still
//! carry the command out, and a device without memory cannot distinguish a late command from a new one. So
//! the device gets no other command and no other claim for twice `act_timeout`, counted from the last
//! decision after which a leader may give the command.
//!
//! Leaders have no common clock, and each may lead for a short time only. So the group decides how long
//! the device was held ([`Act::waited`]). A leader starts its clock when it applies the decision that the
//! turn is its own, adds the time that was decided before, and proposes the sum after intervals that
//! double. The sum is never more than the time that has passed, and a leader that stops loses the interval that it
//! has not finished. A command is given again in its first two turns only, and never after its
//! outcome is decided, so the hold restarts at most twice.
//!
//! # Clusters that begin anew
//!
//! The memory of a cluster may be lost ([groups](selvedge_groups#groups-that-begin-anew)), while runs that
//! hold its devices go on. So its devices are closed at first ([`Devices::is_open`]): no claim gets one, and
//! none gets a command. The leader asks each routine of the device for its run. A claim that executes holds
//! the device again, and a command of it that is given at most once, and may have been given, ends as unknown. A
//! run that was about to get its devices tries again. When all routines have answered, and a host of
//! a former leader can carry out no command any more, the device opens.

mod act;
#[cfg(feature = "check")]
pub mod check;
mod commands;
mod config;
mod decision;
mod device;
pub(crate) mod edits;
mod event;
mod lock;
pub(crate) mod machine;
mod probe;
mod published;
mod reclaim;
mod reports;
mod state;
mod update;
mod wake;

pub use act::{Act, Ticket};
pub use config::{Config, ConfigError, Limits};
pub use decision::{Decision, Verdict};
pub(crate) use edits::Listed;
pub use event::{Event, Reject, Timer};
pub(crate) use lock::RESTS;
pub(crate) use machine::DeviceLeader;
#[cfg(feature = "check")]
pub use published::Published;
pub use state::Devices;
pub use update::Update;

#[cfg(doc)]
use crate::Delivery;

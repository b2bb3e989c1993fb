//! Atomic, serializable routines at a hub.
//!
//! A routine is a list of commands to devices: close the window, then switch on the heating. Most
//! hubs send such commands in the order of their arrival. Two routines that run at the same time
//! can leave the home in a state that neither wanted; a routine that fails in the middle leaves
//! half of its work done. This hub decides when each command is sent, so that the final state is as
//! if the routines had run one by one, and undoes routines that fail ("Home, SafeHome: Smart Home
//! Reliability with Visibility and Atomicity" by S. B. Ahsan and others, EuroSys 2021). The paper's
//! rules break in many places; the rules of this crate do not. `docs/errata.md` lists the
//! differences and the reasons.
//!
//! A setting, [`Visibility`], decides how many routines run at a time: any number under `Eventual`,
//! the default, and fewer under the strict models, where more failures abort them. A host that must
//! resume after a power cut runs a [`DurableHub`], which emits the data to store before its
//! commands are carried out.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | when all routines are finished the devices are as if the committed routines had run one by one, in the order that [`Event::Ordered`] reports, without their skipped commands | every [`Visibility`] but `Weak`; devices change by the hub's commands only, or report a change ([`Command::Observed`]); an [outcome](Outcome) is true: a command with the outcome `Unknown` may have been done, and will not be done later than the device's [lateness](Command::SetLateness) |
//! | a condition sees the state that it would see in that order | the same |
//! | a routine is committed, or all its changes are undone, except where a later routine has changed the device since, where the state before is unknown, or where the command has an [undo handler](Step::undo) | the same; a device that is up obeys one of [`Config::undo_attempts`] attempts at a rollback |
//! | a rollback of a device that is down is done when the device is up again, and no routine commands the device before | except a run that supersedes others, or is urgent, and does not ask for the device's state: its command makes the rollback void, or fails, and then the rollback is done |
//! | a device has one command in flight at a time | |
//! | an urgent routine waits for no less urgent routine, except for a command in flight, and for that at most its timeout | it has been admitted (a [queued](Mode::Queued) run waits for equally urgent runs of its key); a rollback or a [late](Command::SetLateness) command is not a routine; not under `Weak` |
//! | of the runs with one key whose modes are [`Single`](Mode::Single), [`Restart`](Mode::Restart) or [`Queued`](Mode::Queued) at most one is admitted at a time; a superseded or preempted run waits for its command in flight and is undone | |
//! | a device that a superseded run changed goes directly to the state into which the new run sets it | the new run is next on the device, and does not ask for its state before; while it waits for a place, the device is restored |
//! | a committed routine is never superseded nor preempted | |
//! | no two routines wait for each other, and every routine is finished | outcomes are reported, or [`Config::timeout`] passes; the host ticks |
//! | under `GlobalStrict` one routine runs at a time; under `PartitionedStrict` routines that run at the same time have no device in common | |
//! | of routines that set the same devices and ask for no state, the one submitted last is last in the order: it wins, even if an earlier one is held back | every [`Visibility`] but `Weak`; at least one device did commands of both: if too many were skipped for that, either may be first, and the final state is the same |
//! | a routine that has not begun, or waits for a device, can be overtaken there for [`Config::patience`] at most | [`Scheduler::JustInTime`] |
//! | a hub that is restored from its [saved state](Saved) loses no command and does none twice | the state was stored before its events were carried out; the device answers [`Event::Ask`]; a device that cannot be asked counts as one with an unknown state, and is restored; under `Weak`, no command acts [late](Command::SetLateness) |
//! | memory is bounded; nothing panics | [`Config::routine_limit`], [`Config::order_limit`], [`Config::device_limit`], [`Config::step_limit`] |
//!
//! A device is down when the membership service reports that it failed or left; [`Command::RemoveDevice`]
//! removes it.
//!
//! *Not* promised:
//!
//! - The states that people see in the meantime: under `Eventual` a later routine may change a
//!   device that an earlier, unfinished one has changed. [`Event::Incongruent`] reports it.
//! - Anything under [`Visibility::Weak`], which exists for comparison.
//! - That an undone command leaves no trace in the world: an alarm that has rung has rung.
//! - The order in which devices are restored: several are restored at the same time.
//!
//! # Which failures end a routine
//!
//! | a device that it must command fails | `Eventual` | `PartitionedStrict` | `GlobalStrict` | `Strong…` |
//! |---|---|---|---|---|
//! | and is up again before the first command to it | goes on | goes on | aborted | aborted |
//! | and is down at a command to it | aborted | aborted | aborted | aborted |
//! | between two commands to it | aborted | aborted | aborted | aborted |
//! | after the last one, and is up again at the end | goes on | goes on | aborted | aborted |
//! | after the last one, and is down at the end | goes on | aborted | aborted | aborted |
//! | any other device fails or restarts | goes on | goes on | goes on | aborted |
//!
//! (Section 3, figure 3.) A device that has only [best-effort](Priority::BestEffort) commands
//! aborts a routine only under `StrongGlobalStrict`. A [condition](Step::condition) counts as a
//! command to each device that it reads, from the moment when it is evaluated until the end of its
//! step; under `Eventual` it does so only on a device for which the routine also has a command that
//! must succeed.
//!
//! A condition on several devices is evaluated when the routine is first on all of them, so its
//! states belong to one moment of the serial order. A part of it that is unknown, or is about a
//! device that is down, is a failure only if the answer depends on it.
//!
//! # States of a routine
//!
//! ```text
//!           Submit                    a place                  Issue
//!  ┌──────────┐ ────────> ┌─────────┐ ──────> ┌────────┐ ────────────> ┌─────────┐
//!  │ (nothing)│  Accepted │ waiting │         │ placed │    Started    │ running │
//!  └──────────┘           └─────────┘         └────────┘               └─────────┘
//!                              │ Cancel            │ Cancel, failure        │   │ last step done
//!                              v                   v                        │   v
//!                          Aborted             ┌──────────┐  failure, Cancel│ ┌───────────┐
//!                                  Aborted <── │ aborting │ <───────────────┘ │ committed │
//!                                              └──────────┘                   └───────────┘
//!                     its command in flight has an outcome       no unfinished one is │
//!                                                                 before it any more   v
//!                                                                                   Ordered
//! ```
//!
//! A run that is [queued](Mode::Queued) is held back before it waits: it has no place, and waits
//! only for the runs before it.
//!
//! # Runs of one routine, and urgency
//!
//! [`Command::SubmitAs`] submits a routine with [`Terms`]. Runs with the same [key](Series::key)
//! belong together, and a [`Mode`] decides the effect of a new run on the unfinished runs of its
//! key. An [`Urgency`] preempts. An unfinished, less urgent routine conflicts with an urgent one if
//! it still needs a device that the urgent routine needs, keeps one from it, or has changed a
//! device whose state the urgent routine asks for and may still be undone. If such a routine holds
//! a device by a [preemptible](Step::preemptible) command and does not conflict without that hold,
//! the hold ends and the routine continues ([`Event::CutShort`]); otherwise it is aborted
//! ([`AbortReason::Preempted`]). The hub decides this when it admits the urgent routine: at once,
//! or when the runs of its key before it are finished. Less urgent routines that are submitted
//! later get no place before it.
//!
//! | | `Eventual` | `PartitionedStrict` | `GlobalStrict`, `Strong…` | `Weak` |
//! |---|---|---|---|---|
//! | aborted or cut short | routines that still need a common device, that changed a device whose state the urgent one asks for, or, without post-leases, that keep a common device | the same, and routines that used a common device: they keep it to their end | the running routine, whatever devices it needs; of the waiting routines, those with a common device | routines that still need a common device, when the urgent one is submitted and again at each of its commands |
//! | waiting routines without a common device | go on | go on | start after it | go on |
//! | changes of an aborted routine | undone | undone | undone | left as they are |
//!
//! With every scheduler the place of an urgent routine is behind all routines that have used its
//! devices and before all less urgent ones. `FirstCome` places it behind equally urgent routines;
//! `Timeline` and `JustInTime` may place it before them, as they do with any routine, with one
//! exception: while it waits for a place under `JustInTime` no later routine overtakes it.
//!
//! A preempted or superseded routine is aborted like any other. So [`Event::Ordered`] does not name
//! it, but reports the effects of its undo handler and its changes that cannot be undone
//! ([`Placed::Set`]). A routine with a hold that was cut short did all its commands: it is
//! committed, and is in the order before the urgent routine, if they have a device in common.
//!
//! [`Hub::wait`] returns the reason why a routine waits, and [`Hub::preview`] predicts the effects
//! of submitting one.
//!
//! # Example: three concurrent routines
//!
//! A host with its devices in memory. One of them refuses all commands.
//!
//! ```
//! use std::collections::{BTreeMap, VecDeque};
//!
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Driver, Effect, Input, NodeId, Span, Time};
//! use selvedge_safehome::{Command, Config, Event, Hub, Outcome, Placed, Routine, Step};
//!
//! let [window, heating, lock] = [NodeId(1), NodeId(2), NodeId(3)];
//! let open = Step { hold: Span::secs(600), ..Step::new(window, "open") };
//! let air = [Step::new(heating, "off"), open];
//! let warm = [Step::new(window, "shut"), Step::new(heating, "on")];
//! let leave = [Step::new(heating, "low"), Step::new(lock, "locked")];
//!
//! let mut home = BTreeMap::from([(window, "shut"), (heating, "on"), (lock, "open")]);
//! let mut commands = Vec::new();
//! for (&device, &state) in &home {
//!     commands.push(Command::AddDevice { device, state: Some(state) });
//! }
//! for steps in [air, warm, leave] {
//!     commands.push(Command::Submit(Routine { steps: steps.into() }));
//! }
//!
//! // A host seeds it at random, and reads a clock.
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let mut now = Time::ZERO;
//! let mut hub = Driver::new(Hub::new(Config::default())?);
//! let mut effects = VecDeque::new();
//! for command in commands {
//!     hub.step(now, &mut rng, Input::Command(command), |it| effects.push_back(it))?;
//! }
//! let (mut order, mut undone) = (Vec::new(), Vec::new());
//! loop {
//!     let Some(Effect::Event(event)) = effects.pop_front() else {
//!         // Nothing is left to be carried out: time passes.
//!         let Some(due) = hub.deadline() else { break };
//!         now = due;
//!         hub.expire(now, &mut rng, |it| effects.push_back(it));
//!         continue;
//!     };
//!     match event {
//!         Event::Issue { device, token, value, .. } => {
//!             let outcome = if device == lock { Outcome::Refused } else { Outcome::Done };
//!             if outcome == Outcome::Done {
//!                 home.insert(device, value);
//!             }
//!             let report = Command::Acted { device, token, outcome };
//!             hub.step(now, &mut rng, Input::Command(report), |it| effects.push_back(it))?;
//!         }
//!         Event::Ordered(Placed::Routine(id)) => order.push(id.0),
//!         Event::Aborted { routine, .. } => undone.push(routine.0),
//!         _ => {}
//!     }
//! }
//! // The final state is as if the first two had run one by one, in the order that was reported.
//! assert_eq!((order.len(), undone), (2, vec![3]));
//! let ends = [home[&window], home[&heating], home[&lock]];
//! match order[..] {
//!     [.., 1] => assert_eq!(ends, ["open", "off", "open"]),
//!     _ => assert_eq!(ends, ["shut", "on", "open"]),
//! }
//! assert!(hub.machine().is_quiet());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Time
//!
//! The hub plans by estimates: [`Config::short`] for a short command, plus [`Step::hold`] for a
//! long one. Its promises do not depend on them; a bad estimate costs time. Moving the clock's
//! start changes nothing.
//!
//! # Features
//!
//! `serde` for routines, settings and [`Saved`]; `std`; `arbitrary`; `check` for the promises as
//! properties of the model checker and the published rules that break them. Routine files, triggers
//! and file states are in `selvedge-routine`; those of its types that appear in signatures of this
//! crate are re-exported.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "unit tests are built without the scenarios of `check`, which take long"
    )
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod abort;
mod audit;
#[cfg(all(feature = "check", not(test)))]
pub mod check;
mod config;
mod counters;
mod devices;
mod difference;
mod durable;
mod event;
mod execute;
mod explain;
mod failure;
mod finish;
mod id;
mod join;
mod late;
mod lineage;
mod machine;
mod mode;
mod place;
mod preempt;
mod preview;
mod published;
mod resume;
mod run;
mod runs;
mod save;
mod schedule;
mod state;
mod turn;
mod why;
mod work;

pub use config::{Config, ConfigError, Scheduler, Visibility};
pub use counters::Counters;
pub use difference::Difference;
pub use durable::{DurableEvent, DurableHub};
pub use event::{
    AbortReason, Command, Event, Outcome, Placed, Reject, SkipReason, Timer, UndoStatus,
};
pub use id::RoutineId;
pub use place::{Place, PlaceStage};
pub use preview::Preview;
#[cfg(feature = "check")]
pub use published::Published;
pub use save::{Damage, Flaw, Saved};
pub use selvedge_routine::{
    Catalogue, Clause, Comparison, Condition, LONGEST_KEY, LONGEST_LATENESS, Mode, Priority,
    Routine, Series, Step, Terms, Urgency, Value,
};
pub use state::Hub;
pub use why::{Wait, WaitCause};

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

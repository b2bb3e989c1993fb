//! Atomic, serializable routines at a hub.
//!
//! A routine is a list of commands to devices: close the window, then switch on the heating. Hubs
//! of today send such commands as they come. Two routines that meet leave the home in a state that
//! neither wanted; one that fails in the middle leaves half of it done. This hub decides which
//! command goes to which device when, so that the end is as if the routines had run one by one, and
//! undoes those that fail ("Home, SafeHome: Smart Home Reliability with Visibility and Atomicity"
//! by S. B. Ahsan and others, EuroSys 2021). The paper's rules break in many places; ours do not.
//! What differs and why is said in `docs/errata.md`.
//!
//! How many routines run at a time is a setting, a [`Visibility`]: any under `Eventual`, the default,
//! and fewer under the strict ones, where more failures end them. A host that is to go on after a
//! power cut runs a [`DurableHub`], which says what to store before anything is carried out.
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | when all routines are finished the devices are as if those that were committed had run one by one, in the order that [`Event::Ordered`] tells; what was skipped left out | every [`Visibility`] but `Weak`; devices change by the hub's commands, or tell it ([`Command::Observed`]); an [outcome](Outcome) is what it says: `Unknown` may have happened, and will not happen later than the device's [lateness](Command::Lateness) |
//! | a condition sees the state that it would see in that order | the same |
//! | a routine is committed, or everything that it did is undone, unless a later routine has changed it since, or the state before is unknown, or has an [undo handler](Step::undo) | the same; a device obeys [`Config::undo_attempts`] times sooner or later |
//! | a rollback to a device that is down is done when it is back, and nothing else touches the device before | but a run that supersedes others, or is urgent, and does not ask for the device's state: its command makes the rollback void, or fails, and then the rollback is done |
//! | a device has one command on its way at a time | |
//! | an urgent routine waits for no less urgent one, but for a command on its way: at most its timeout | it has been let in (a [queued](Mode::Queued) run waits for those of its key that are as urgent); a rollback or a [late](Command::Lateness) command is no routine; not under `Weak` |
//! | of runs with one key whose modes are [`Single`](Mode::Single), [`Restart`](Mode::Restart) or [`Queued`](Mode::Queued) one at most is let in; another that was superseded or preempted waits for its command on the way and is undone | |
//! | a device that a superseded run changed goes straight to the state into which the new run sets it | the new run is next on the device, and does not ask for its state before; where it has to wait for a place, the device is brought back meanwhile |
//! | a committed routine is never superseded nor preempted | |
//! | no two routines wait for each other, and every routine is finished | outcomes are reported, or [`Config::timeout`] passes; the host ticks |
//! | under `GlobalStrict` one routine runs at a time; under `PartitionedStrict` those that run at a time use no device in common | |
//! | of routines that set the same devices and ask for no state, one that was submitted later comes later: the last one wins, also where the first one is held back | every [`Visibility`] but `Weak`; some device did commands of both: where so many were passed over that none did, either may come first, and the end is the same |
//! | a routine that has not begun, or waits for a device, is overtaken there for [`Config::patience`] at most | [`Scheduler::JustInTime`] |
//! | a hub that comes back from what it [saved](Saved) loses no command and does none twice | it was saved before its events were carried out; the device can be asked ([`Event::Ask`]), else what is unknown is restored; under `Weak`, no command acts [late](Command::Lateness) |
//! | memory is bounded; nothing panics | [`Config::routine_limit`], [`Config::order_limit`], [`Config::device_limit`], [`Config::step_limit`] |
//!
//! A device is down when the membership service says that it failed or left; it is taken out by
//! [`Command::Remove`].
//!
//! What is *not* promised:
//!
//! - What people see meanwhile: under `Eventual` a later routine may change what an earlier one
//!   has just done. [`Event::Incongruent`] says so.
//! - Anything under [`Visibility::Weak`], which is there for comparison.
//! - That an undone command leaves no trace in the world: an alarm that has rung has rung.
//! - What is undone in which order: devices are restored side by side.
//!
//! # Which failures end a routine
//!
//! | a device that it must command fails | `Eventual` | `PartitionedStrict` | `GlobalStrict` | `Strong…` |
//! |---|---|---|---|---|
//! | and is back before the first command to it | goes on | goes on | aborted | aborted |
//! | and is down at a command to it | aborted | aborted | aborted | aborted |
//! | between two commands to it | aborted | aborted | aborted | aborted |
//! | after the last one, and is back at the end | goes on | goes on | aborted | aborted |
//! | after the last one, and is down at the end | goes on | aborted | aborted | aborted |
//! | any other device fails or restarts | goes on | goes on | goes on | aborted |
//!
//! (Section 3, figure 3.) A device that has only commands that [may fail](Priority::BestEffort)
//! ends no routine but under `StrongGlobalStrict`. A question that a [condition](Step::condition)
//! asks counts as a command to each device that it asks about, from when it has its answer until the
//! step is over; under `Eventual` it does so only on a device that the routine must command, too.
//!
//! A condition about several devices is asked when the routine comes first on all of them, so its
//! states are those of one moment of the order. A part of it that is unknown, or about a device that
//! is down, is a failure only where the answer depends on it.
//!
//! # Where a routine stands
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
//!                     its command on the way has an outcome      no unfinished one is │
//!                                                                 before it any more   v
//!                                                                                   Ordered
//! ```
//!
//! A run that is [queued](Mode::Queued) is held back before it waits: it has no place, and waits for
//! nothing but the runs before it.
//!
//! # Runs of one routine, and what is urgent
//!
//! [`Command::SubmitAs`] takes a routine on [`Terms`]. A [key](Series::key) says which runs belong
//! together, and a [`Mode`] what the new one does about those that are unfinished. An [`Urgency`]
//! preempts: whatever is less urgent and unfinished, and still needs a device that the urgent routine
//! needs, keeps one from it, or has changed one about which it asks and may be undone, gives way.
//! If it holds a device by a [preemptible](Step::preemptible) command and is in nobody's way
//! without that hold, the hold ends and it goes on ([`Event::CutShort`]); else it is aborted
//! ([`AbortReason::Preempted`]). That is decided when the urgent routine is let in: at once, or when
//! those of its key before it are finished. Later ones that are less urgent get no place before it.
//!
//! | | `Eventual` | `PartitionedStrict` | `GlobalStrict`, `Strong…` | `Weak` |
//! |---|---|---|---|---|
//! | gives way | those that still need a common device, that changed one about which the urgent one asks, or, without post-leases, that keep one | the same, and those that used a common device: they keep it to their end | the one that runs, whatever it needs; of those that wait, those with a common device | those that still need a common device, when the urgent one is submitted and again at each of its commands |
//! | those that wait and have no common device | go on | go on | come after it | go on |
//! | what gave way is | undone | undone | undone | left as it is |
//!
//! With every scheduler an urgent routine comes behind all that has used its devices and before all
//! that is less urgent. `FirstCome` puts it behind those that are as urgent; `Timeline` and
//! `JustInTime` may put it before them, as ever, but for one: while it waits for a place just in
//! time no later routine overtakes it.
//!
//! What was preempted or superseded is aborted like any other. So [`Event::Ordered`] does not name
//! it, but for what its undo handler did and what cannot be undone ([`Placed::Set`]). A routine with
//! a hold that was cut short did all its commands: it is committed, and in the order before the one
//! for which it made room, if they have a device in common.
//!
//! [`Hub::wait`] says for what a routine waits, and [`Hub::preview`] what would become of one.
//!
//! # Three routines that meet
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
//!     commands.push(Command::Device { device, state: Some(state) });
//! }
//! for steps in [air, warm, leave] {
//!     commands.push(Command::Submit(Routine { steps: steps.into() }));
//! }
//!
//! // A host seeds it by chance, and reads a clock.
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
//!             let report = Command::Outcome { device, token, outcome };
//!             hub.step(now, &mut rng, Input::Command(report), |it| effects.push_back(it))?;
//!         }
//!         Event::Ordered(Placed::Routine(id)) => order.push(id.0),
//!         Event::Aborted { routine, .. } => undone.push(routine.0),
//!         _ => {}
//!     }
//! }
//! // The end is as if the first two had run one by one, in the order that was told.
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
//! The hub plans by estimates: [`Config::short`] for a short command, and [`Step::hold`] besides
//! for a long one. What it promises does not depend on them; a bad estimate costs time. Moving the
//! clock's start changes nothing.
//!
//! # Features
//!
//! `serde` for routines, settings and [`Saved`]; `std`; `arbitrary`; `check` for the promises as
//! properties of the model checker and the published rules that break them. Routine files, triggers
//! and the states of files are in `selvedge-routine`; those of its types that stand in signatures
//! of this crate are re-exported.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod abort;
mod audit;
#[cfg(feature = "check")]
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
pub use difference::{Difference, DifferenceError};
pub use durable::{Damage, DurableEvent, DurableHub};
pub use event::{
    AbortReason, Command, Event, Outcome, Placed, Reject, SkipReason, Timer, UndoStatus,
};
pub use id::RoutineId;
pub use place::{Place, PlaceStage};
pub use preview::Preview;
#[cfg(feature = "check")]
pub use published::Published;
pub use save::{Flaw, RestoreError, Saved};
pub use selvedge_routine::{
    Catalogue, Clause, Comparison, Condition, LONGEST_KEY, LONGEST_LATENESS, Mode, Priority,
    Routine, Series, Step, Terms, Urgency, Value,
};
pub use state::Hub;
pub use why::{Wait, WaitCause};

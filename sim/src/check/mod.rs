//! Any machine, checked in every order of events.

mod action;
mod bounds;
mod explore;
mod fingerprint;
mod model;
mod odometer;
mod progress;
mod property;
mod report;
mod run;
mod scenario;
mod state;
mod stateright;
mod step;
mod successors;
mod tell;
mod trace;

pub use self::stateright::{COMPLETE, Step};
pub use action::Action;
pub use bounds::{Bounds, Limits};
pub use model::Model;
pub use odometer::{Asked, Choice, Odometer};
pub use property::Observer;
pub use report::{Expected, Incomplete, Outcome, Report, Rules, Surprise};
pub use scenario::Scenario;
pub use state::{Letter, Node, State};

pub use trace::{Trace, TraceStep};

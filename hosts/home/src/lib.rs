//! A virtual home: devices, arriving routines and failures in virtual time, and a picture of the
//! run.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

mod colour;
mod page;
mod picture;
mod report;
mod run;
mod scenario;
pub mod term;
mod trace;

pub use page::page;
pub use picture::picture;
pub use report::{Report, RoutineReport, write_report};
pub use run::{Outage, Plan, Watch, run};
pub use scenario::{Arrivals, Scenario};
pub use scenario::{ITEMS, STAGES, item};
pub use trace::{Access, End, Happened, Lease, Occurrence, Restore, Trace};

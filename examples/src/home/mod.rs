//! A virtual home: devices, routines that arrive, failures; in virtual time, and what happened as
//! a picture.

mod colour;
mod page;
mod picture;
mod report;
mod run;
mod scenario;
mod trace;

pub use page::{page, section, style};
pub use picture::picture;
pub use report::{Report, RoutineReport, write_report};
pub use run::{Outage, Plan, Watch, run};
pub use scenario::{Arrivals, Scenario};
pub(crate) use scenario::{ITEMS, STAGES, item};
pub use trace::{Access, End, Happened, Lease, Occurrence, Restore, Trace};

//! `selvedge demo`: a live mesh on loopback, in real time, that runs a script of faults and is
//! judged by its promises. `selvedge demo building` does the same to routines without a hub, and
//! `selvedge demo ledger` to a replicated state.

mod building;
mod desk;
mod ground;
mod history;
mod leaders;
mod ledger;
mod narrator;
mod pace;
mod page;
mod plan;
mod promises;
mod run;
mod stage;
mod svg;
mod table;
mod trace;
mod turns;

pub use building::{
    Addition, Arrival, Blackout, Building, Course, Darkness, Low, Run, Tenure, Which, building,
    building_page, domain, floor_over_time, groups_over_time, judge_building,
};
pub use ground::{Ground, Loopback};
pub use history::{Opinion, Stretch, histories};
pub use leaders::{Leaders, Reign};
pub use ledger::ledger;
pub use narrator::Narrator;
pub use pace::{Pace, Watch};
pub use page::{page, picture};
pub use plan::{Bound, Bounds, LOSS, Plan, Times, tolerated};
pub use promises::{Evidence, Promise, judge};
pub use run::{Options, Outcome, run, run_on};
pub use stage::Stage;
pub use svg::timeline;
pub use table::write_table;
pub use trace::{Belief, Fact, Mark, Trace, Views};
pub use turns::{Turns, Waiting, Write};

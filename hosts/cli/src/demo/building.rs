//! The demo of k-groups: a building without a hub. Ten nodes in five power domains manage devices,
//! routines and a map, over sockets that lose packets, while a lamp is added, a power domain fails and
//! comes back, all nodes lose power at once, and epochs begin.

mod course;
mod floor;
mod judge;
mod limits;
mod requests;
mod rooms;
mod run;
mod site;
mod stage;
mod svg;

pub use course::{Addition, Arrival, Blackout, Course, Darkness, Low, Run, Tenure};
pub use floor::floor_over_time;
pub use judge::judge_building;
pub use run::{Building, building};
pub use site::{Which, domain};
pub use svg::{building_page, groups_over_time};

//! The demo of k-groups: a building without a hub. Ten nodes in five power domains manage six
//! devices, three routines and a map, over sockets that lose packets, while a power domain fails
//! and comes back without its memory, and epochs begin.

mod course;
mod judge;
mod limits;
mod rooms;
mod run;
mod site;
mod stage;
mod svg;

pub use course::{Arrival, Blackout, Course, Darkness, Lead, Run};
pub use judge::judge_building;
pub use run::{Building, building};
pub use site::{Which, domain};
pub use svg::{building_page, groups_over_time};

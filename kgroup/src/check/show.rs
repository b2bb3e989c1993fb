//! A world in a line.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use super::world::World;

pub(super) fn show(world: &World) -> String {
    let routines = world.routines.iter().map(|group| {
        let state = &group.state;
        let seat = group.present;
        format!("run {} {:?} led by {seat}", state.instance(), state.stage())
    });
    let devices = (0..world.setup.devices).map(NodeId).map(|device| {
        let holder = world.holder(device);
        holder.map_or_else(
            || format!("{} free", device.0),
            |it| {
                let (routine, run, attempt) = (it.routine.0, it.instance, it.attempt);
                format!("{} held by {routine}.{run}.{attempt}", device.0)
            },
        )
    });
    let all: Vec<String> = routines.chain(devices).collect();
    let last = match &*world.last {
        Some((action, Some(letter))) => format!("{action:?} {letter:?}"),
        Some((action, None)) => format!("{action:?}"),
        None => String::new(),
    };
    format!("{last} | {}", all.join("; "))
}

//! Epochs that are shorter than the timeouts of devices, or than an election: runs end all the same.

use selvedge_core::Span;
use selvedge_groups as groups;
use selvedge_kgroup::routines::{Definition, StepOutcome};
use selvedge_kgroup::{Command, Config, GroupState};
use selvedge_sim::network::Link;

use crate::building::{Building, device, switching};

/// Runs a routine while epochs begin, the first one just after its first command was given. Returns
/// the time until its device was free again.
fn run(seed: u64, epoch: Span, takes: Span, routine: Definition) -> (Span, Building) {
    // Groups change at the beginning of an epoch at once.
    let groups = groups::Config::new().with_stagger(Span::ZERO);
    let config = Config::new().with_groups(groups);
    let mut house = Building::with_config(config, seed, (5, 2, 1), Link::default(), [routine]);
    house.takes = takes;
    house.run(Span::secs(5));
    house.trigger(0, 0, 1);
    let began = house.net.now();
    while house.done.is_empty() {
        house.run(Span::millis(1));
    }
    house.run(Span(takes.0 / 2));
    let mut number = 1;
    loop {
        number += 1;
        for at in 0..5 {
            house.net.command(at, Command::SetEpoch(number)).unwrap();
        }
        let next = house.net.now() + epoch;
        while house.net.now() < next {
            house.run(epoch.min(Span::millis(10)));
            if house.routine(0).report().is_some() && is_free(&house) {
                return (house.net.now().since(began), house);
            }
        }
        let took = house.net.now().since(began);
        assert!(
            took < Span::secs(60),
            "seed {seed}, epochs of {epoch:?}: not over after {took:?}; given {} times",
            house.done.len()
        );
    }
}

/// Returns true if no routine holds the device, and no host can be at a command.
fn is_free(house: &Building) -> bool {
    let cluster = house.site.cluster_of(device(1)).unwrap();
    let latest = house.net.machines().filter_map(|(_, node)| {
        let version = node.groups().replica(cluster)?.version();
        Some((version, node.held(cluster)?))
    });
    let Some((_, GroupState::Devices(held))) = latest.max_by_key(|it| it.0) else {
        return false;
    };
    let is_settled = held.act(device(1)).is_some_and(|it| it.is_settled);
    held.holder(device(1)).is_none() && is_settled
}

#[test]
fn a_run_ends_however_short_epochs_are() {
    for seed in 1..=3 {
        for epoch in [5, 100, 1_000, 3_000, 5_000, 7_000] {
            for takes in [100, 1_300, 2_700] {
                let (epoch, takes) = (Span::millis(epoch), Span::millis(takes));
                let (took, house) = run(seed, epoch, takes, switching(&[1], "on"));
                eprintln!("seed {seed}, epochs of {epoch:?}, {takes:?}: {took:?}");
                assert!(house.done.len() <= 3, "given {} times", house.done.len());
                let outcome = house.routine(0).report().unwrap().steps[0];
                assert!(takes > epoch || outcome == StepOutcome::Done, "{outcome:?}");
            }
        }
    }
}

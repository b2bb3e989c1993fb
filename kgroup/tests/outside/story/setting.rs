//! The choices of a history.

use selvedge_core::Span;
use selvedge_groups as groups;
use selvedge_groups::store::StoreConfig;
use selvedge_kgroup::Config;
use selvedge_kgroup::devices::{self, Limits};
use selvedge_kgroup::routines::RoutineConfig;

use super::SECOND;
use crate::world::{Dice, Faults, MS};

/// An assumption of the promises that the world breaks, or a lie to the oracle: to see it fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Nodes begin again without their memory as if they were new.
    Memory,
    /// Hosts carry commands out long after they may.
    LateHosts,
    /// Hosts report what they have not done.
    LyingHosts,
    /// The oracle knows of no proposal, no trigger and no beginning anew.
    Unheard,
    /// The oracle expects shorter frames.
    ShortFrames,
    /// A node stays cut off for ever.
    Cut,
    /// Outcomes of proposals, and answers of maps, are turned around.
    Answers,
}

/// The faults and settings of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disks {
    All,
    None,
    Some,
}

/// The choices of a history.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) failures: u8,
    pub(crate) nodes: u64,
    pub(crate) devices: u64,
    pub(crate) cluster: usize,
    pub(crate) routines: u64,
    pub(crate) budget: u16,
    pub(crate) disks: Disks,
    pub(crate) has_places: bool,
    pub(crate) limits: Option<Limits>,
    pub(crate) groups: u16,
    pub(crate) pending: u16,
    pub(crate) epoch: u64,
    pub(crate) act_timeout: u64,
    pub(crate) faults: Faults,
    pub(crate) length: u64,
    pub(crate) loses: bool,
    pub(crate) is_busy: bool,
    pub(crate) broken: Option<Break>,
}

impl Setting {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let failures = u8::from(dice.percent(70));
        let most = if dice.percent(20) { 9 } else { 6 };
        let nodes = dice.range(3, most);
        let act_timeout = dice.range(300, 2_000) * MS;
        let is_low = dice.percent(12);
        let low = Limits::new().with_queue(dice.range(0, 2) as u16);
        let low = low
            .with_routines(dice.range(1, 3) as u16)
            .with_watchers(dice.range(0, 2) as u16);
        let is_calm = dice.percent(15);
        let faults = Faults {
            loss: if is_calm {
                0
            } else {
                dice.pick(&[0, 2, 5, 15, 30]).unwrap()
            },
            double: dice.pick(&[0, 5, 25]).unwrap(),
            delay: dice.pick(&[1, 10, 50, 150]).unwrap() * MS,
            slow: if is_calm {
                0
            } else {
                dice.pick(&[0, 2, 10]).unwrap()
            },
            longest: act_timeout,
            ages: dice.pick(&[0, 0, 20]).unwrap() * SECOND,
            storage: dice.pick(&[0, 0, 2, 30]).unwrap() * MS,
            act: dice.pick(&[0, 10, 30]).unwrap(),
            detection: dice.pick(&[200, 1_000, 3_000]).unwrap() * MS,
        };
        let disks = dice.pick(&[Disks::All, Disks::All, Disks::All, Disks::None, Disks::Some]);
        Self {
            failures,
            nodes,
            devices: dice.range(2, 5),
            cluster: dice.range(1, 3) as usize,
            routines: dice.range(1, 4),
            budget: dice.pick(&[1_400, 1_400, 400, 200, 150]).unwrap(),
            disks: disks.unwrap(),
            has_places: dice.percent(70),
            limits: is_low.then_some(low),
            groups: if dice.percent(6) {
                dice.range(1, 4) as u16
            } else {
                1_024
            },
            pending: if dice.percent(10) {
                dice.range(1, 2) as u16
            } else {
                256
            },
            epoch: dice.pick(&[300, 1_000, 4_000, 10_000, 30_000]).unwrap() * MS,
            act_timeout,
            faults,
            length: dice.range(10, 40) * SECOND,
            loses: dice.percent(15),
            is_busy: dice.percent(50),
            broken: None,
        }
    }

    /// Returns true if all promises of progress hold.
    pub(super) fn is_roomy(&self) -> bool {
        self.limits.is_none() && self.groups > 4
    }

    pub(super) fn config(&self, dice: &mut Dice) -> Config {
        let replica = groups::Config::new().replica;
        let replica = replica.with_window(dice.pick(&[1, 4, 256]).unwrap());
        let delay = dice.pick(&[1_000, 2_000]).unwrap();
        let own = groups::Config::new()
            .with_replica(replica)
            .with_change_delay(Span::millis(delay))
            .with_stagger(Span::millis(dice.pick(&[0, 500, 2_000]).unwrap()))
            .with_patience(Span::millis(dice.pick(&[500, 1_000]).unwrap()))
            .with_groups(self.groups);
        Config::new()
            .with_groups(own)
            .with_devices(devices::Config::new().with_act_timeout(Span::micros(self.act_timeout)))
            // Longer than an epoch, a wait would begin anew with each leader.
            .with_routines(RoutineConfig::new().with_backoff_most(Span::secs(1)))
            .with_maps(StoreConfig::new().with_pending(self.pending))
    }
}

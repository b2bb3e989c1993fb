//! The end of a run, when faults are over.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Choose, Ratio, Span, Weights};
use selvedge_groups::{GroupId, store::StoreCommand};
use selvedge_sim::operations::{Operation, Seat};

use super::limits::sketch;
use super::{ROUND, World};
use crate::routines::Stage;
use crate::{Command, GroupState, Kgroup};

/// The time in which all promises of progress are kept.
const PATIENCE: Span = Span::secs(240);

impl World {
    /// All nodes and devices run and reach each other, and messages arrive in time.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let mut rng = Xorshift(0x5e1f_ed6e);
        self.watch.home.heal();
        let seats = 0..self.mesh.seats().len();
        for at in seats.clone() {
            self.play(Operation::Resume(at), &mut rng)?;
            if !self.mesh.seat(at).is_some_and(Seat::is_up) {
                self.start(at, &mut rng)?;
            }
        }
        self.epoch += 20;
        for at in seats.clone() {
            self.play(Operation::Introduce(at), &mut rng)?;
            for other in seats.clone() {
                self.play(Operation::Refute(at, other), &mut rng)?;
            }
            let epoch = Command::SetEpoch(self.epoch);
            self.play(Operation::Command(at, epoch), &mut rng)?;
        }
        self.settle(&mut rng)?;
        self.run_again(&mut rng)?;
        self.check_quiet(&mut rng)?;
        self.watch.summary.healed += 1;
        Ok(())
    }

    fn settle(&mut self, rng: &mut Xorshift) -> Result<(), String> {
        let mut why = String::new();
        for _ in 0..PATIENCE.0 / ROUND.0 / ROUNDS {
            self.rounds(ROUNDS, rng)?;
            match self.what_is_missing() {
                None => return Ok(()),
                Some(it) => why = it,
            }
        }
        let sent = self.sent_in(2 * ROUNDS, rng)?;
        Err(format!("{why}: {} sent {sent}", self.sketches()))
    }

    fn sketches(&self) -> String {
        let machines = self.mesh.seats().iter().filter_map(Seat::machine);
        machines.map(sketch).collect()
    }

    /// Each routine runs a last time.
    fn run_again(&mut self, rng: &mut Xorshift) -> Result<(), String> {
        self.triggers += 1;
        let routines: Vec<GroupId> = self.watch.settings.routines().collect();
        let runs = |world: &Self, it: &GroupId| world.watch.oracle.runs(*it);
        let before: Vec<usize> = routines.iter().map(|it| runs(self, it)).collect();
        for (at, &routine) in routines.iter().enumerate() {
            let seat = at % self.mesh.seats().len().max(1);
            self.ask_for_run(seat, routine, rng)?;
        }
        self.settle(rng)?;
        let mut both = routines.iter().zip(before);
        match both.find(|(it, before)| runs(self, it) <= *before) {
            Some((it, _)) => Err(format!("{it:?} does not run: {}", self.sketches())),
            None => Ok(()),
        }
    }

    /// While nothing is watched and nothing happens, nodes fall silent in the end.
    fn check_quiet(&mut self, rng: &mut Xorshift) -> Result<(), String> {
        for (seat, key) in core::mem::take(&mut self.watch.asked.watches) {
            self.command_map(seat, StoreCommand::Unwatch(key), rng)?;
        }
        for _ in 0..20 {
            let before = self.mesh.delivered();
            self.rounds(4 * ROUNDS, rng)?;
            if self.mesh.delivered() == before {
                return Ok(());
            }
        }
        let sent = self.sent_in(4 * ROUNDS, rng)?;
        Err(format!("idle nodes send {sent}: {}", self.sketches()))
    }

    /// The messages that nodes send in a number of rounds, for a report.
    fn sent_in(&mut self, rounds: u64, rng: &mut Xorshift) -> Result<String, String> {
        let mut sent = String::new();
        for _ in 0..rounds {
            for it in self.mesh.in_flight() {
                let (from, to, items) = (it.from, it.to, &it.message.items);
                sent += &format!("\n    {from:?} to {to:?}: {items:?}");
            }
            self.rounds(1, rng)?;
        }
        Ok(sent)
    }

    fn what_is_missing(&self) -> Option<String> {
        let oracle = &self.watch.oracle;
        let groups = self.watch.settings.groups();
        let of_groups = groups.filter_map(|group| {
            let of_it = self.what_is_missing_in(group);
            of_it.map(|it| format!("{group:?}: {it}"))
        });
        let of_groups = { of_groups }.next();
        of_groups.or_else(|| self.watch.asked.what_is_missing(oracle.map()))
    }

    fn what_is_missing_in(&self, group: GroupId) -> Option<String> {
        let machines = || self.mesh.seats().iter().filter_map(Seat::machine);
        let leads = |it: &&Kgroup| it.leads().any(|it| it == group);
        let leaders: Vec<_> = machines().filter(leads).map(Kgroup::me).collect();
        if leaders.len() != 1 {
            return Some(format!("it is led by {leaders:?}"));
        }
        let newest = self.watch.oracle.configuration(group);
        let has_it = |at| {
            let replica = self.mesh.machine(at)?.groups().replica(group)?;
            let is_there = Some(replica.configuration()) == newest && replica.state().is_some();
            is_there.then_some(())
        };
        let mut members = newest.into_iter().flat_map(|it| it.members());
        let lacks = |id| self.mesh.position(id).and_then(has_it).is_none();
        if let Some(it) = members.find(|it| lacks(it.member.id)) {
            return Some(format!("{it:?} has not installed {newest:?}"));
        }
        match self.watch.oracle.held(group) {
            Some(GroupState::Devices(held)) => held.ids().find_map(|device| {
                let waits = held.queue(device).next().is_some();
                let acts = held.act(device).is_some_and(|it| it.is_under_way());
                if waits || acts || held.holder(device).is_some() {
                    return Some(format!("{device:?} is not free: {held:?}"));
                }
                let value = self.watch.home.devices.get(&device).map(|it| &it.value);
                let status = held.status(device);
                let is_known = status.is_some_and(|it| it.is_up && it.value.as_ref() == value);
                (!is_known).then(|| format!("{device:?} is {value:?}, not {status:?}"))
            }),
            Some(GroupState::Routine(routine)) if *routine.stage() != Stage::NotTriggered => {
                Some(format!("it is {:?}", routine.stage()))
            }
            // It has the latest status of each device that it watches (erratum G8).
            Some(GroupState::Routine(routine)) => {
                let watches = routine.definition().watches();
                watches.into_iter().find_map(|device| {
                    let status = self.watch.oracle.status(device);
                    let observed = routine.observed(device);
                    let is_latest = observed == status;
                    (!is_latest).then(|| format!("{device:?} is {status:?}, seen {observed:?}"))
                })
            }
            Some(GroupState::Map(_) | GroupState::Registry(_)) => None,
            None => Some("no node holds it".into()),
        }
    }
}

/// The number of rounds between two looks.
const ROUNDS: u64 = 20;

/// A generator (G. Marsaglia, "Xorshift RNGs", 2003): the bytes have run out, and nodes that back off
/// by chance must differ.
struct Xorshift(u64);

impl Choose for Xorshift {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.checked_rem(bound).unwrap_or_default()
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        self.below(ratio.denominator.into()) < ratio.numerator.into()
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        match weights.total() {
            0 => None,
            total => Some(weights.locate(self.below(total))),
        }
    }
}

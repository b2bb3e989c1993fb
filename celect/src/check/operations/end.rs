//! The end of a run, and its leader.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::Delta;
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation;

use super::settings::Order;
use super::{ROUND, World};
use crate::{Celect, Command};

/// The number of rounds without a fault after which all follow the same leader. A round lasts a
/// [`ROUND`].
const ROUNDS: usize = 800;
/// The number of rounds without a change: longer than any node waits before it begins.
const CALM: usize = 40;

impl World {
    /// Ends all faults, lets all nodes know each other, and checks that all follow the same leader.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let none = &mut Bytes::new(&[]);
        let seats = 0..self.mesh.seats().len();
        let up: Vec<usize> = seats.clone().filter(|&at| self.is_up(at)).collect();
        let (Some(&first), Some(&last)) = (up.first(), up.last()) else {
            return Ok(());
        };
        for &at in &up {
            let (c, f) = self.watch.settings.tolerance(0);
            let c = c.min(up.len() as u16 - 1);
            self.play(
                Operation::Command(
                    at,
                    Command::SetBounds {
                        missing_from: c,
                        failures: f,
                    },
                ),
                none,
            )?;
        }
        for at in seats.clone() {
            self.play(Operation::Announce(at), none)?;
        }
        for ended in self.watch.ended.clone() {
            for &at in &up {
                self.play(Operation::Learn(at, Delta::Failed(ended)), none)?;
            }
        }
        // If more nodes were believed alive than are remembered, a live node may be forgotten.
        if self.watch.ended.len() >= self.watch.settings.nodes {
            for at in seats {
                self.play(Operation::Announce(at), none)?;
            }
        }
        let has_begun = |at: &usize| {
            let machine = self.mesh.machine(*at);
            machine
                .is_some_and(|it| it.run.is_some() || it.leader.is_some() || it.awaited.is_some())
        };
        let is_asked = !self.watch.settings.is_mended() || !up.iter().any(has_begun);
        if is_asked {
            // A node that runs an election refuses.
            self.play(Operation::Command(last, Command::Elect), none)?;
        }
        self.settle(&up, none)?;
        self.watch.summary.by_itself += u64::from(!is_asked);
        // Again, and now the test knows which node must win.
        for at in [first, last] {
            let epoch = self.mesh.machine(at).map(|it| it.epoch);
            self.play(Operation::Command(at, Command::Elect), none)?;
            self.settle(&up, none)?;
            let Some(machine) = self.mesh.machine(at) else {
                continue;
            };
            if Some(machine.epoch) == epoch {
                return Err(format!("{:?} began no election", machine.me));
            }
            let members = up.iter().filter_map(|&it| self.mesh.machine(it));
            let lowest = members.map(|it| it.me).min_by_key(|&it| machine.key_of(it));
            let leader = machine.leader().map(|(leader, _)| leader);
            if !machine.config.protocol.prefers() && leader != lowest {
                return Err(format!("{leader:?} leads, and {lowest:?} is the lowest"));
            }
        }
        self.watch.summary.agreed += 1;
        Ok(())
    }

    fn settle(&mut self, up: &[usize], bytes: &mut Bytes<'_>) -> Result<(), String> {
        let mut calm = 0;
        for round in 0..ROUNDS {
            // If nodes do not replace leaders by themselves, the application asks, repeatedly.
            if round % CALM == CALM - 1
                && !self.watch.settings.is_mended()
                && calm == 0
                && let Some(&at) = up.last()
            {
                self.play(Operation::Command(at, Command::Elect), bytes)?;
            }
            // An answer takes no time.
            for _ in 0..4 {
                self.play(Operation::DeliverAll, bytes)?;
            }
            self.play(Operation::Wait(ROUND), bytes)?;
            calm = if self.follow_one(up) { calm + 1 } else { 0 };
            if calm == CALM {
                return Ok(());
            }
        }
        let mut text = String::from("they do not agree");
        for machine in up.iter().filter_map(|&at| self.mesh.machine(at)) {
            let (leader, run) = (machine.leader, &machine.run);
            text += &format!(
                "\n  {:?} follows {leader:?}, awaits {:?}, runs {run:?}",
                machine.me, machine.awaited
            );
        }
        Err(text)
    }

    /// Returns true if all follow the same leader, by the same ballot, it is up and leads, and no node
    /// runs an election.
    fn follow_one(&self, up: &[usize]) -> bool {
        let mut machines = up.iter().filter_map(|&at| self.mesh.machine(at));
        let Some(first) = machines.next().and_then(Celect::leader) else {
            return false;
        };
        let mut all = up.iter().filter_map(|&at| self.mesh.machine(at));
        let leads = |it: &Celect<Order>| it.me == first.0 && it.leads() == Some(first.1);
        machines.all(|it| it.leader() == Some(first))
            && all.clone().all(|it| it.run.is_none())
            && all.any(leads)
    }
}

//! Checks of the promises against the steps of all nodes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Driver, Effect, Member};
use selvedge_sim::operations::{Letter, Mesh, Seat, Step, Watch};

use super::Summary;
use super::limits::{check_frame, check_limits};
use super::oracle::Oracle;
use super::settings::{Order, Settings};
use crate::published::Rules;
use crate::run::Run;
use crate::{Celect, Event, Message, Published};

/// The settings, and the checks of the promises against the steps of all nodes.
pub(super) struct Watcher {
    pub(super) settings: Settings,
    rules: Rules,
    oracle: Oracle,
    pub(super) summary: Summary,
    /// The nodes that died with an id that does not come back, in order.
    pub(super) ended: Vec<Member>,
    /// True if the current operation delivers messages that nodes sent.
    pub(super) is_delivering: bool,
    /// The next node that comes back has another id.
    pub(super) is_renamed: bool,
    /// The election that the node ran before its step.
    before: Option<Run>,
}

impl Watcher {
    pub(super) fn new(settings: Settings, rules: &[Published]) -> Self {
        Self {
            settings,
            rules: Rules::published(rules),
            oracle: Oracle::default(),
            summary: Summary::default(),
            ended: Vec::new(),
            is_delivering: false,
            is_renamed: false,
            before: None,
        }
    }

    /// Returns the summary of the run.
    pub(super) fn summarize(mut self, mesh: &Mesh<Celect<Order>>) -> Summary {
        for machine in mesh.seats().iter().filter_map(Seat::machine) {
            self.count(machine);
        }
        self.oracle.report(&mut self.summary);
        Summary {
            delivered: mesh.delivered(),
            refused: mesh.refused(),
            ..self.summary
        }
    }

    /// Returns a node at the beginning of a life.
    pub(super) fn machine(&self, node: usize, me: Member) -> Celect<Order> {
        let config = self.settings.config(node);
        Celect::unchecked(me, config, self.settings.order, self.rules)
    }

    /// Adds the counters of a node's present life.
    fn count(&mut self, machine: &Celect<Order>) {
        let counters = machine.counters();
        self.summary.no_room += counters.no_room;
        self.summary.rounds += counters.rounds;
    }

    /// Records which nodes lack which others.
    fn look(&mut self, seats: &[Seat<Celect<Order>>]) {
        self.oracle.look(seats.iter().filter_map(Seat::machine));
    }

    fn measure(&mut self, machine: &Celect<Order>, message: &Message) -> Result<(), String> {
        let len = check_frame(machine, message)?;
        self.summary.longest_frame = self.summary.longest_frame.max(len);
        Ok(())
    }

    /// Checks that no node lets a leader's lease run out while its acknowledgement still supports that
    /// lease.
    fn check_given_up(&mut self, step: &Step<'_, Celect<Order>>) -> Result<(), String> {
        let me = step.me;
        for effect in step.effects {
            let Effect::Event(Event::LeaseExpired { leader, ballot }) = effect else {
                continue;
            };
            let seat = step.seats.iter().find(|it| it.me() == *leader);
            let leads = |it: &&Celect<Order>| it.leads() == Some(*ballot);
            let Some((now, machine)) =
                seat.and_then(|it| Some((it.now(), it.machine().filter(leads)?)))
            else {
                continue;
            };
            let until = machine.leads_until().filter(|&until| until > now);
            let rests_on_us = machine.lease.as_ref().is_some_and(|it| it.rests_on(me));
            if let Some(until) = until.filter(|_| rests_on_us) {
                return Err(format!(
                    "{me:?} gave {leader:?} up at {now:?}, which rests on it until {until:?}"
                ));
            }
            self.summary.given_up_early += 1;
        }
        Ok(())
    }
}

impl Watch<Celect<Order>> for Watcher {
    fn before(&mut self, _: usize, driver: &Driver<Celect<Order>>) {
        self.before = driver.machine().run.clone();
    }

    fn after(&mut self, step: &Step<'_, Celect<Order>>) -> Result<(), String> {
        check_limits(step.driver)?;
        let machine = step.machine();
        if !self.settings.is_hostile {
            self.look(step.seats);
            let before = self.before.as_ref();
            self.oracle.step(before, machine, step.effects)?;
            self.check_given_up(step)?;
            if let Some(refusal) = step.refusal.filter(|_| self.is_delivering) {
                return Err(format!("{:?} refused a message: {refusal}", step.me));
            }
        }
        for effect in step.effects {
            match effect {
                Effect::Event(_) => {}
                Effect::Send { message, .. } | Effect::Multicast { message } => {
                    self.measure(machine, message)?;
                }
            }
        }
        Ok(())
    }

    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, Celect<Order>)> {
        let incarnation = before.incarnation.next();
        let id = if self.is_renamed {
            let id = self.settings.next_id(self.ended.len());
            self.ended.push(before);
            id
        } else {
            before.id
        };
        self.summary.restarts += 1;
        self.summary.renamed += u64::from(self.is_renamed);
        let me = Member { id, incarnation };
        Some((me, self.machine(seat, me)))
    }

    fn crashed(&mut self, _: usize, me: Member, machine: &Celect<Order>) {
        self.count(machine);
        self.summary.leaders_died += u64::from(machine.leads().is_some());
        self.summary.initiators_died += u64::from(machine.is_electing());
        self.oracle.dies(me);
    }

    fn restarted(&mut self, _: usize, seats: &[Seat<Celect<Order>>]) {
        self.look(seats);
    }

    /// Returns false for a multicast: without acknowledgements the promises assume that it arrives.
    fn may_lose(&self, letter: &Letter<Celect<Order>>) -> bool {
        !letter.is_multicast
    }
}

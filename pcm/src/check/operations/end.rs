//! The end of a run: faults have ended, and all nodes recover.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Span, Time};
use selvedge_sim::histories::Choices;
use selvedge_sim::operations::{Operation, Seat};

use super::World;
use super::hosts::value;
use super::limits::sketch;
use super::settings::Honesty;
use crate::gateway::Gateway;
use crate::node::Node;
use crate::{Answer, Function, TaskId};

/// The time within which all nodes must recover.
const PATIENCE: Span = Span::secs(400);

/// The code of the last functions. No other function has it.
const LAST: [u8; 3] = [101, 102, 103];

impl World {
    /// Restarts all nodes and runs them without faults, with prompt hosts, until all have recovered.
    pub(super) fn end(&mut self) -> Result<(), String> {
        // The bytes have run out, and gateways that back off by chance must differ.
        let mut rng = Choices::seed(0x5e1f_ed6e);
        self.watch.settings.is_prompt = true;
        let seats = 0..self.mesh.seats().len();
        for seat in seats {
            self.play(Operation::Resume(seat), &mut rng)?;
            if !self.mesh.seat(seat).is_some_and(Seat::is_up) {
                self.restart(seat, &mut rng)?;
            }
        }
        if self.watch.settings.has_membership() {
            for at in 0..self.watch.settings.gateways {
                self.play(Operation::Announce(at), &mut rng)?;
                for about in 0..self.watch.settings.gateways {
                    self.play(Operation::Refute(at, about), &mut rng)?;
                }
            }
        }
        self.settle(&mut rng)?;
        self.run_last(&mut rng)?;
        self.watch.summary.healed += 1;
        Ok(())
    }

    fn settle(&mut self, rng: &mut Choices) -> Result<(), String> {
        let end = Time(self.mesh.now().0 + PATIENCE.0);
        loop {
            self.rounds(4, rng)?;
            let Some(why) = self.what_is_missing() else {
                return Ok(());
            };
            if self.mesh.now() > end {
                return Err(format!("{why}: {}", self.sketch()));
            }
        }
    }

    /// A client submits one function more. If all nodes are honest it returns its value, though perhaps not at
    /// the first attempt: followers that hold as many jobs as they may forget one only when they learn that its
    /// task has ended, or have repeated its result as often as they may. If the tables forget clients,
    /// followers never learn of the end of a forgotten client's tasks, so the value is not checked.
    fn run_last(&mut self, rng: &mut Choices) -> Result<(), String> {
        let seat = self.watch.settings.first_client();
        for code in LAST {
            let function = Function::new(&[code]);
            self.watch.last = None;
            self.submit_function(seat, function.clone(), rng)?;
            self.settle(rng)?;
            let last = self.watch.last.as_ref().map(|it| &it.1);
            let is_right = last == Some(&Answer::Value(value(&function)));
            let settings = &self.watch.settings;
            if is_right || settings.honesty != Honesty::Honest || !settings.remembers() {
                return Ok(());
            }
            self.rounds(u8::MAX, rng)?;
        }
        let last = self.watch.last.take();
        Err(format!("the last task is {last:?}: {}", self.sketch()))
    }

    fn what_is_missing(&self) -> Option<String> {
        let clients = self.mesh.seats().iter().filter_map(Seat::machine);
        let waiting = clients.filter_map(Node::client).flat_map(|it| {
            let client = it.me();
            it.waiting().map(move |number| TaskId { client, number })
        });
        let waiting: Vec<TaskId> = waiting.collect();
        if !waiting.is_empty() {
            return Some(format!("{waiting:?} wait"));
        }
        let gateways = || self.mesh.seats().iter().filter_map(Seat::machine);
        let gateways = || gateways().filter_map(Node::gateway);
        let managers = gateways().filter(|it| it.manages()).map(Gateway::me);
        let managers: Vec<_> = managers.collect();
        if managers.len() != 1 {
            return Some(format!("{managers:?} manage"));
        }
        if self.watch.oracle.tables.open().next().is_some() {
            return Some("tasks are open".into());
        }
        let version = gateways().map(|it| it.replica().version()).max();
        // A follower that finds no room reports itself in each period, and may attach at any moment.
        let has_room = self.watch.settings.has_room();
        if has_room && gateways().any(|it| Some(it.replica().version()) != version) {
            return Some("gateways have different versions".into());
        }
        self.what_followers_miss()
    }

    fn what_followers_miss(&self) -> Option<String> {
        let tables = &self.watch.oracle.tables;
        for node in self.mesh.seats().iter().filter_map(Seat::machine) {
            let Some(follower) = node.follower() else {
                continue;
            };
            let me = follower.me();
            if !self.watch.settings.is_believed(me.id) || !self.watch.settings.has_room() {
                continue;
            }
            let known = tables.follower(me.id);
            let is_known =
                known.is_some_and(|it| it.member == me && it.gateway == follower.attached_to());
            if !is_known {
                return Some(format!("{me} is known as {known:?}"));
            }
            if tables.unit_of(me.id).is_none() {
                return Some(format!("{me} has no unit"));
            }
        }
        None
    }

    fn sketch(&self) -> String {
        let machines = self.mesh.seats().iter().filter_map(Seat::machine);
        machines.map(sketch).collect()
    }
}

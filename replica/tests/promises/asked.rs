//! Commands of applications at a node.

use selvedge_core::Input;
use selvedge_replica::{Command, Configuration};
use selvedge_sim::histories::History;

use crate::oracle::Op;
use crate::world::World;

impl World {
    pub(crate) fn op(&mut self) -> Op {
        self.next_op += 1;
        let pad = if self.percent(10) { 40 } else { self.below(3) };
        Op {
            id: self.next_op,
            pad: vec![1; pad as usize],
        }
    }

    pub(crate) fn propose(&mut self, id: u64) -> bool {
        if !self.is_running(id) {
            return false;
        }
        let op = self.op();
        let machine = self.machine(id).unwrap();
        let (me, number) = (machine.me(), machine.next_number());
        // The effects come within the step: the proposal is asked before it.
        let floor = op.id;
        let input = Input::Command(Command::Propose(op));
        self.oracle.ask(me, number, floor);
        let outcome = self.step(id, Some(input));
        if outcome.is_err() {
            self.oracle.unask(me, number);
        }
        outcome.is_ok()
    }

    pub(crate) fn read(&mut self, id: u64) {
        if !self.is_running(id) {
            return;
        }
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        host.own.last_read += 1;
        let (me, number) = (host.me, host.own.last_read);
        self.oracle.read(me, number);
        let input = Input::Command(Command::Read(number));
        if self.step(id, Some(input)).is_err() {
            self.oracle.unreadable(me, number);
        }
    }

    pub(crate) fn command(&mut self, id: u64, command: Command<Op>) -> bool {
        if !self.is_running(id) {
            return false;
        }
        if let (Command::Configure(next), Some(machine)) = (&command, self.machine(id)) {
            // It may be decided before anything is sent.
            let number = machine.configuration().number + 1;
            let next = Configuration {
                number,
                ..next.clone()
            };
            if machine.leads() {
                self.configurations.entry(number).or_default().insert(next);
            }
        }
        self.step(id, Some(Input::Command(command))).is_ok()
    }
}

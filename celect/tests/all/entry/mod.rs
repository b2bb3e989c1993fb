//! Elections by hand: messages, leaders and ends.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod asked;
mod edges;
mod lease;
use crate::mesh;
mod notified;
mod quiet;
mod refused;
mod room;
mod takeover;

use alloc::rc::Rc;
use core::cell::RefCell;

use mesh::{Letter, Mesh, member};
use selvedge_celect::check::ById;
use selvedge_celect::{
    Ballot, Celect, Command, Config, Event, Message, Misbehaviour, Protocol, Reject, Timer,
};
use selvedge_core::{Delta, Driver, Input, Member, Span};

impl Mesh {
    fn new(nodes: u64, config: Config) -> Self {
        let lists: Vec<Vec<u64>> = (1..=nodes).map(|_| (1..=nodes).collect()).collect();
        Self::with_lists(&lists, config)
    }

    fn elect(&mut self, id: u64) {
        self.command(id, Command::Elect);
    }

    /// Loses the first LEADER between each two nodes from now on, and returns the lost ones.
    fn lose_first_leaders(&mut self) -> Rc<RefCell<Vec<(u64, u64)>>> {
        let lost = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&lost);
        self.fate = Box::new(move |(from, to, message): &Letter, _| {
            let pair = (from.id.0, to.id.0);
            let is_leader = matches!(message, Message::Leader { .. });
            let mut lost = noted.borrow_mut();
            if is_leader && !lost.contains(&pair) {
                lost.push(pair);
                return 0;
            }
            1
        });
        lost
    }

    fn leader(&self, id: u64) -> Option<u64> {
        let leader = self.nodes[id as usize - 1].machine().leader();
        leader.map(|(leader, _)| leader.id.0)
    }

    fn leaders(&self) -> Vec<Option<u64>> {
        let ids = 1..=self.nodes.len() as u64;
        ids.filter(|id| !self.cut.contains(id))
            .map(|id| self.leader(id))
            .collect()
    }
}

/// The host's multicast is reliable.
fn multicast(protocol: Protocol, c: u16, f: u16) -> Config {
    Config::new(c, f).with_protocol(protocol).with_retries(0)
}

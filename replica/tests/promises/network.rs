//! The network: messages, news of members, and requests of clients outside.

use selvedge_core::{Delta, Input, Member};
use selvedge_replica::{Body, Command, Entry, Message, Proposal};
use selvedge_sim::histories::{History, What};

use crate::oracle::Op;
use crate::world::{Relay, World};

impl World {
    pub(crate) fn dispatch(&mut self, from: Member, to: u64, message: &Message<Op>) {
        self.count_second(from.id.0, to, message);
        self.say(|| format!("{from:?} -> {to} {message:?}"));
        self.note_configurations(message);
        if self.echoes || self.liars {
            self.remember(from, to, message);
        }
        let brings_state = matches!(message.body, Body::Page { snapshot, .. } if !snapshot.is_bare);
        if !(brings_state && self.stateless == Some(to)) {
            self.carry(from, to, message);
        }
    }

    /// Counts the messages of each second, and at how many moments of it a question is sent that is the
    /// same. A host that slept may send it many times at once; later only timers and other nodes cause it
    /// again.
    fn count_second(&mut self, from: u64, to: u64, message: &Message<Op>) {
        let in_second = self.count();
        assert!(
            in_second < 20_000,
            "a storm: five times the busiest second of 60,000 histories"
        );
        if in_second == 1 {
            self.asked.clear();
        }
        if let Body::Missing { committed, .. } = message.body
            && !self.liars
        {
            let now = self.now;
            let (times, last) = self.asked.entry((from, to, committed)).or_default();
            *times += u64::from(*last != now);
            *last = now;
            let times = *times;
            self.most_asked = self.most_asked.max(times);
            // Timers of 20 ms at nine nodes cause up to 450, and each read that waits 50 more; a circle grows
            // with each copy of a message.
            let most = 1_000 + 50 * self.machine(from).map_or(0, |it| it.waiting() as u64);
            assert!(times < most, "{from} asks {to} the same again and again");
        }
    }

    /// Adds other nodes to the mesh, which come and go.
    pub(crate) fn meet_strangers(&mut self, id: u64) {
        for nth in 0..self.strangers {
            let member = Member::new(1_000 + nth, self.below(2) as u32);
            let delta = match self.below(4) {
                0 => Delta::Failed(member),
                1 => Delta::Left(member),
                _ => Delta::Joined(member),
            };
            self.input(id, Input::Membership(delta));
        }
    }

    /// Keeps each configuration in flight.
    pub(crate) fn note_configurations(&mut self, message: &Message<Op>) {
        if self.liars {
            return;
        }
        let mut found = Vec::new();
        match &message.body {
            Body::Accept { entries, .. } | Body::Learn { entries, .. } => {
                found.extend(entries.iter().filter_map(|it| match it {
                    Entry::Configure(next) => Some((**next).clone()),
                    _ => None,
                }));
            }
            Body::Promise { tail, .. } => {
                found.extend(tail.iter().filter_map(|it| match it {
                    Entry::Configure(next) => Some((**next).clone()),
                    _ => None,
                }));
            }
            Body::Current { configuration, .. } => found.push((**configuration).clone()),
            _ => {}
        }
        for it in found {
            self.configurations.entry(it.number).or_default().insert(it);
        }
    }

    /// An outside proposer tries on, or begins.
    pub(crate) fn relay(&mut self, nth: usize) {
        if self.clients[nth].op.is_none() {
            let op = self.op();
            let client = &mut self.clients[nth];
            client.op = Some(op);
            client.number += 1;
            client.tries = 8;
        }
        let client = &mut self.clients[nth];
        if client.tries == 0 {
            return;
        }
        client.tries -= 1;
        let proposal = Proposal {
            by: client.me,
            number: client.number,
            first: 1,
            since: client.since,
            update: client.op.clone().unwrap(),
        };
        let (by, number, op) = (proposal.by, proposal.number, proposal.update.id);
        self.oracle.ask(by, number, op);
        let to = self.a_node();
        self.command(to, Command::Relay(proposal));
        let after = 20_000 + self.below(400_000);
        self.after(after, What::Own(Relay(nth)));
    }

    pub(crate) fn client_ends(&mut self, by: Member, number: u64, well: bool) {
        let seen = self.oracle.seen();
        for client in &mut self.clients {
            if client.me == by && client.number == number && client.op.is_some() {
                client.op = None;
                if !well {
                    // A new life, with the knowledge of this one.
                    client.me = Member::new(by.id.0, by.incarnation.0 + 1);
                    client.number = 0;
                    client.since = seen;
                }
            }
        }
    }
}

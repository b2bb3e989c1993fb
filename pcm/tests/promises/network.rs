//! The traffic between nodes: frames between gateways and clients, mailboxes for followers.

use selvedge_core::wire::{Envelope, HEADER_LEN};
use selvedge_core::{Input, Member};
use selvedge_pcm::follower::{self, Phase};
use selvedge_pcm::{Message, TaskId};

use selvedge_replica::{Body, Entry};
use selvedge_sim::histories::{History, What};

use crate::node::{Part, Role, to_follower};
use crate::world::{Then, World};

/// The most messages in a mailbox.
const MAILBOX: usize = 300;

/// The most messages a second and node. A client repeats 64 requests every 0.3 s at most, with an answer for
/// each: 430. A follower or a gateway repeats a tenth of that.
const SECOND_MOST: u64 = 500;

/// The longest row of messages, each caused by the one before; a circle has no end.
const DEPTH_MOST: u32 = 100;

/// The hop count of a message that is not forwarded.
const HERE: u8 = u8::MAX;

pub(crate) fn kind(message: &Message) -> String {
    let text = format!("{message:?}");
    let end = text.find(|it: char| !it.is_alphanumeric());
    text[..end.unwrap_or(text.len())].to_owned()
}

impl World {
    pub(crate) fn dispatch(&mut self, from: Member, to: Member, message: Message) {
        self.check_frame(from, &message);
        let in_second = self.count();
        let most = SECOND_MOST * self.nodes.len() as u64;
        assert!(in_second <= most, "a storm: {:?}", self.sent_by_kind);
        assert!(self.depth < DEPTH_MOST, "a circle: {message:?}");
        if matches!(message, Message::Tables(_)) {
            *self.sent_tables.entry((from.id.0, to.id.0)).or_default() += 1;
        }
        *self.sent_by_kind.entry(kind(&message)).or_default() += 1;
        self.note(from, to, &message);
        let node = &self.nodes[&from.id.0];
        if let (Role::Follower { .. }, Some(work)) = (&node.own.role, &node.host) {
            let asleep = work.own.work.phase == Some(Phase::Asleep);
            assert!(!asleep, "{from:?} sleeps, and sends {message:?}");
        }
        if self.habits.echoes && self.old.len() < 400 {
            self.old.push((from, to.id.0, message.clone()));
        }
        self.travel(from, to, message);
    }

    /// Sends a message on its way, from a node that is up.
    pub(crate) fn travel(&mut self, from: Member, to: Member, message: Message) {
        let is = |world: &Self, id: u64| world.nodes.get(&id).map(|it| it.own.role.clone());
        let to_follower = matches!(is(self, to.id.0), Some(Role::Follower { .. }));
        match is(self, from.id.0) {
            Some(Role::Gateway { .. }) if to_follower => {
                // It stays here: the follower fetches from this gateway, even if the tables name another.
                self.post(from.id.0, from, to.id.0, message, HERE);
            }
            Some(Role::Follower { .. }) if to_follower => {
                let Some(at) = self.nodes[&from.id.0].follower() else {
                    return;
                };
                let at = at.attached_to().0;
                self.go(from.id.0, at, || {
                    What::Own(Then::Post {
                        at,
                        from,
                        to: to.id.0,
                        message: message.clone(),
                        hops: 0,
                    })
                });
            }
            _ => self.carry(from, to.id.0, &message),
        }
    }

    /// A gateway's host puts something into a mailbox, here or at the gateway that its tables name.
    pub(crate) fn post(&mut self, at: u64, from: Member, to: u64, message: Message, hops: u8) {
        let Some(node) = self.nodes.get(&at).filter(|it| !it.asleep) else {
            return;
        };
        let Some(gateway) = node.gateway() else {
            return;
        };
        let known = gateway
            .tables()
            .and_then(|it| it.follower(selvedge_core::NodeId(to)));
        if known.is_none() && hops != HERE && self.habits.drops_unknown {
            return;
        }
        let there = known.map_or(at, |it| it.gateway.0);
        if there != at && hops < 3 {
            self.go(at, there, || {
                What::Own(Then::Post {
                    at: there,
                    from,
                    to,
                    message: message.clone(),
                    hops: hops + 1,
                })
            });
            return;
        }
        let depth = self.depth + 1;
        let node = self.nodes.get_mut(&at).unwrap();
        let mailbox = node.own.mailboxes.entry(to).or_default();
        mailbox.push_back((from, message, depth));
        if mailbox.len() > MAILBOX {
            mailbox.pop_front();
        }
        let follower = self.nodes.get(&to).and_then(|it| it.host.as_ref());
        let active = follower.filter(|it| it.own.work.phase == Some(Phase::Active));
        if let (true, Some(host)) = (self.habits.pushes, active) {
            let me = host.me;
            let is_here = self.nodes[&to]
                .follower()
                .is_some_and(|it| it.attached_to().0 == at);
            if is_here && !self.is_cut(at, to) {
                self.empty(me, at);
            }
        }
    }

    pub(crate) fn is_cut(&self, one: u64, other: u64) -> bool {
        self.cuts.contains(&(one, other)) || self.cuts.contains(&(other, one))
    }

    /// A follower's host looks into its mailbox.
    pub(crate) fn fetch(&mut self, follower: Member, gateway: u64) {
        let node = self.nodes.get(&gateway);
        let is_up = node.is_some_and(|it| it.host.is_some() && !it.asleep);
        if is_up && !self.is_cut(gateway, follower.id.0) {
            self.empty(follower, gateway);
            return;
        }
        let input = to_follower(follower::Command::Unreachable);
        self.then(1_000, Then::Hand(follower, input));
    }

    fn empty(&mut self, follower: Member, gateway: u64) {
        let node = self.nodes.get_mut(&gateway).unwrap();
        let mail = node
            .own
            .mailboxes
            .remove(&follower.id.0)
            .unwrap_or_default();
        let mut when = self.now + 50;
        let mut all = Vec::new();
        for it in mail {
            if self.percent(self.habits.torn) {
                match self.below(3) {
                    0 => {}
                    1 => all.extend([it.clone(), it]),
                    _ => all.insert(0, it),
                }
            } else {
                all.push(it);
            }
        }
        when += self.below(self.weather.delay);
        let before = self.depth;
        for (from, message, depth) in all {
            when += 1;
            self.depth = depth;
            let input = Input::Message { from, message };
            self.at(when, What::Own(Then::Hand(follower, input)));
        }
        self.depth = before;
    }

    /// Each message fits into a frame, and is equal to itself after it is decoded.
    fn check_frame(&mut self, from: Member, message: &Message) {
        let envelope = Envelope {
            from,
            message: message.clone(),
        };
        let bytes = postcard::to_allocvec(&envelope).unwrap();
        let len = HEADER_LEN + bytes.len();
        let back: Envelope<Message> = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(back, envelope);
        let longest = self.longest.entry(kind(message)).or_default();
        *longest = len.max(*longest);
        let budget = usize::from(self.first.frame_budget);
        let is_own = !matches!(message, Message::Submit { .. } | Message::Vote { .. });
        assert!(
            len <= budget || !is_own || self.oracle.is_wide,
            "{len} of {budget} bytes: {message:?}"
        );
    }

    /// The facts that the oracle takes from messages.
    fn note(&mut self, from: Member, to: Member, message: &Message) {
        match message {
            Message::Run(run) if self.gateways().contains(&from.id.0) => self.oracle.assigned(
                run.task,
                run.attempt,
                run.term,
                run.electors.iter().copied().collect(),
            ),
            Message::Answer {
                task,
                answer,
                voters,
            } if self.gateways().contains(&from.id.0) => {
                assert_eq!(task.client, to);
                self.oracle.claim(*task, &(answer.clone(), voters.clone()));
            }
            Message::Refused { task, why } if self.gateways().contains(&from.id.0) => {
                assert_eq!(task.client, to);
                self.oracle.refuses(*task, *why);
            }
            Message::Submit { number, function } => {
                let task = TaskId {
                    client: from,
                    number: *number,
                };
                self.oracle.submitted.insert(task, function.clone());
            }
            Message::Tables(message) => {
                let entries = match &message.body {
                    Body::Accept { entries, .. } | Body::Learn { entries, .. } => entries,
                    Body::Promise { tail, .. } => tail,
                    _ => return,
                };
                for entry in entries.iter() {
                    if let Entry::Configure(next) = entry {
                        self.highest = self.highest.max(next.number);
                    }
                }
            }
            Message::Cancel { number } => {
                let task = TaskId {
                    client: from,
                    number: *number,
                };
                self.oracle.cancelled.insert(task);
            }
            _ => {}
        }
    }
}

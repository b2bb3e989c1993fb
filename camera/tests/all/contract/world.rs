//! Nodes, their hosts, and the messages under way between them.

use alloc::collections::BTreeMap;

use selvedge_camera::{Camera, Command, Message};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, Span, Time};
use selvedge_sim::histories::Choices;

use crate::contract::plan::Plan;
use crate::contract::watch::{Stand, Watch};

/// The reports of a node's membership about a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Listed,
    Failed,
    Over,
}

/// The key of a request: its sender, the receiver's place, its number, and the part of the list.
type Question = (Member, usize, u64, Option<Member>);

/// The most messages in a second from a node to another, if there are five or more: three times the
/// busiest of 20,000 histories. Where answers take seconds, eight copies of a request get eight copies
/// of an OK each.
const SECOND_MOST: u64 = 3_000;

/// The number of moments in a second at which the same request is sent: a clock of twice the pace
/// asks every 50 ms.
const ASKED_MOST: u64 = 40;

pub(crate) struct Node {
    /// Its index among the watched lives.
    pub(crate) life: usize,
    pub(crate) driver: Driver<Camera>,
    pub(crate) sleeps: bool,
    inbox: Vec<Packet>,
    pub(crate) notified: BTreeMap<Member, View>,
    began: Time,
    /// The time of its application's next command, after the trouble.
    pub(crate) acts_at: Option<Time>,
}

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    from: Member,
    pub(crate) source: usize,
    pub(crate) target: usize,
    message: Message,
}

pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) rng: Choices,
    /// True time.
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Option<Node>>,
    /// The life that the next node at a place begins.
    lives: Vec<u32>,
    /// The messages under way that arrive on demand.
    pub(crate) wire: Vec<Packet>,
    /// The messages under way that arrive by themselves, by time of arrival and order of sending.
    pub(crate) mail: BTreeMap<(Time, u64), Packet>,
    /// True if messages arrive by themselves, and the number of losses among 1,000.
    pub(crate) flows: Option<u64>,
    pub(crate) sent: u64,
    /// The present second, and the number of messages sent in it.
    second: (u64, u64),
    /// The number of moments of it at which the same request was sent, and the last of them.
    asked: BTreeMap<Question, (u64, Time)>,
    pub(crate) watch: Watch,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, rng: Choices) -> Self {
        let count = plan.settings.len();
        let mut world = Self {
            plan,
            rng,
            now: Time(1),
            nodes: (0..count).map(|_| None).collect(),
            lives: vec![0; count],
            wire: Vec::new(),
            mail: BTreeMap::new(),
            flows: None,
            sent: 0,
            second: (0, 0),
            asked: BTreeMap::new(),
            watch: Watch::new(plan.bound),
        };
        for place in 0..count {
            world.start(place);
        }
        for place in 0..count {
            for other in 0..count {
                let knows = plan.know_all.0 || world.rng.below(3) > 0;
                if let (true, Some(whom)) = (knows, world.member(other)) {
                    world.membership(place, Delta::Joined(whom));
                }
            }
        }
        world
    }

    /// Starts a node, if the bound allows one more life.
    pub(crate) fn start(&mut self, place: usize) {
        if self.nodes[place].is_some() || !self.watch.has_room() {
            return;
        }
        let me = Member::new(place as u64 + 1, self.lives[place]);
        self.lives[place] += 1;
        let config = self.plan.settings[place];
        self.nodes[place] = Some(Node {
            life: self.watch.begin(me, config),
            driver: Driver::new(Camera::new(me, config).unwrap()),
            sleeps: false,
            inbox: Vec::new(),
            notified: BTreeMap::new(),
            began: self.now,
            acts_at: None,
        });
    }

    pub(crate) fn crash(&mut self, place: usize) {
        if let Some(node) = self.nodes[place].take() {
            self.watch.counts(node.driver.machine());
            self.watch.end(node.life);
        }
    }

    pub(crate) fn member(&self, place: usize) -> Option<Member> {
        let node = self.nodes[place].as_ref()?;
        Some(self.watch.lives[node.life].me)
    }

    pub(crate) fn stand(&self, place: usize) -> Option<Stand> {
        let node = self.nodes[place].as_ref()?;
        Some(self.watch.lives[node.life].stand)
    }

    pub(crate) fn command(&mut self, place: usize, command: Command) {
        let Some(life) = self.nodes[place].as_ref().map(|node| node.life) else {
            return;
        };
        let refused = self.watch.command(life, command);
        let reject = self.take(place, Input::Command(command)).err();
        assert_eq!(reject, refused, "{command:?}");
    }

    /// Reports a delta to a node, if core's contract allows it.
    pub(crate) fn membership(&mut self, place: usize, delta: Delta) {
        let whom = delta.member();
        let is_alive = self.watch.is_alive(whom);
        let Some(node) = &mut self.nodes[place] else {
            return;
        };
        let me = self.watch.lives[node.life].me;
        let notified = node.notified.get(&whom).copied();
        let knows_later = node.notified.keys().any(|it| it.supersedes(whom));
        let is_sound = match delta {
            Delta::Joined(_) => {
                whom.id != me.id && matches!(notified, None | Some(View::Failed)) && !knows_later
            }
            Delta::Refuted(_) => matches!(notified, Some(View::Listed | View::Failed)),
            Delta::Suspected(_) | Delta::Failed(_) => whom != me,
            Delta::Left(_) | Delta::Confirmed(_) => !is_alive && notified != Some(View::Over),
        };
        if !is_sound {
            return;
        }
        if matches!(delta, Delta::Failed(_)) {
            self.watch.is_failed(whom);
        }
        let view = match delta {
            Delta::Joined(_) | Delta::Refuted(_) => Some(View::Listed),
            Delta::Failed(_) if notified == Some(View::Listed) => Some(View::Failed),
            Delta::Failed(_) | Delta::Suspected(_) => notified,
            Delta::Left(_) | Delta::Confirmed(_) => Some(View::Over),
        };
        if let Some(view) = view {
            node.notified.insert(whom, view);
        }
        self.take(place, Input::Membership(delta)).unwrap();
    }

    /// Delivers a message to a node in its present life.
    pub(crate) fn arrive(&mut self, packet: Packet) {
        let place = packet.target;
        let Some(node) = &mut self.nodes[place] else {
            return;
        };
        if node.sleeps {
            node.inbox.push(packet);
            return;
        }
        let Packet { from, message, .. } = packet;
        self.watch.receives(node.life, from, &message);
        // No message of a correct peer is refused.
        self.take(place, Input::Message { from, message }).unwrap();
    }

    pub(crate) fn expire(&mut self, place: usize) {
        let now = self.clock(place);
        let Some(node) = &mut self.nodes[place] else {
            return;
        };
        let mut effects = Vec::new();
        node.driver.expire_into(now, &mut self.rng, &mut effects);
        assert_eq!(node.driver.refused_ticks(), 0);
        self.carry_out(place, effects);
    }

    /// Handles late timers, and all messages that arrived meanwhile, in either order.
    pub(crate) fn wake(&mut self, place: usize) {
        let Some(node) = &mut self.nodes[place] else {
            return;
        };
        if !core::mem::take(&mut node.sleeps) {
            return;
        }
        let inbox = core::mem::take(&mut node.inbox);
        self.watch.tally.slept += 1;
        if self.rng.below(2) == 0 {
            self.expire(place);
        }
        for packet in inbox {
            self.arrive(packet);
        }
        self.expire(place);
    }

    /// A node's own clock.
    fn clock(&self, place: usize) -> Time {
        let (units, of) = self.plan.paces[place];
        let began = self.nodes[place].as_ref().map_or(self.now, |it| it.began);
        Time(self.now.since(began).0 * units / of)
    }

    /// The time at which a node's timer is due, in true time.
    pub(crate) fn due(&self, place: usize) -> Option<Time> {
        let node = self.nodes[place].as_ref()?;
        let (units, of) = self.plan.paces[place];
        let deadline = node.driver.deadline()?;
        Some(node.began + Span((deadline.0 * of).div_ceil(units)))
    }

    fn take(&mut self, place: usize, input: Input<Camera>) -> Result<(), selvedge_camera::Reject> {
        let now = self.clock(place);
        let Some(node) = &mut self.nodes[place] else {
            return Ok(());
        };
        let mut effects = Vec::new();
        node.driver
            .step_into(now, &mut self.rng, input, &mut effects)?;
        self.carry_out(place, effects);
        Ok(())
    }

    fn carry_out(&mut self, place: usize, effects: Vec<Effect<Camera>>) {
        let Some(life) = self.nodes[place].as_ref().map(|node| node.life) else {
            return;
        };
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    let target = (to.id.0 - 1) as usize;
                    assert_ne!(target, place);
                    self.send(life, (place, target), message);
                }
                Effect::Multicast { message } => {
                    for target in (0..self.nodes.len()).filter(|&it| it != place) {
                        self.send(life, (place, target), message.clone());
                    }
                }
                Effect::Event(event) => self.watch.notifies(life, event),
            }
        }
        if let Some(node) = &self.nodes[place] {
            self.watch.looks(life, node.driver.machine());
        }
    }

    fn send(&mut self, life: usize, (source, target): (usize, usize), message: Message) {
        self.watch.sends(life, &message);
        self.sent += 1;
        self.count_second(life, target, &message);
        let packet = Packet {
            from: self.watch.lives[life].me,
            source,
            target,
            message,
        };
        match self.flows {
            None => self.wire.push(packet),
            Some(loss) => {
                if self.rng.below(1_000) >= loss {
                    let delay = Span(1 + self.rng.below(self.plan.delay.0));
                    self.post(delay, packet);
                }
            }
        }
    }

    /// Counts the messages of each second, and the moments of it at which the same request is
    /// sent: only timers send a request again, and no answer does.
    fn count_second(&mut self, life: usize, target: usize, message: &Message) {
        let second = self.now.0 / Span::secs(1).0;
        if self.second.0 != second {
            self.second = (second, 0);
            self.asked.clear();
        }
        self.second.1 += 1;
        let busiest = &mut self.watch.tally.busiest;
        *busiest = self.second.1.max(*busiest);
        let nodes = self.nodes.len().max(5) as u64;
        let most = SECOND_MOST * nodes * (nodes - 1);
        assert!(self.second.1 < most, "a storm: {message:?}");
        if let Message::Request { request, after } = message {
            let from = self.watch.lives[life].me;
            let now = self.now;
            let asked = self.asked.entry((from, target, request.number, *after));
            let (times, last) = asked.or_insert((0, Time::ZERO));
            *times += u64::from(*last != now);
            *last = now;
            let most = &mut self.watch.tally.most_asked;
            *most = (*times).max(*most);
            assert!(*times < ASKED_MOST, "{from} asks the same again and again");
        }
    }

    pub(crate) fn post(&mut self, delay: Span, packet: Packet) {
        self.sent += 1;
        self.mail.insert((self.now + delay, self.sent), packet);
    }
}

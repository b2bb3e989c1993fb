//! One node, by hand, among members that exist on its list only and always answer.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Time};
use selvedge_membership::{
    Body, Claim, Command, Config, Digest, Membership, Message, Metadata, Record,
};

/// A node with neighbours that exist in its list only.
pub(crate) struct Lone {
    pub(crate) driver: Driver<Membership>,
    rng: ChaCha8Rng,
    pub(crate) effects: Vec<Effect<Membership>>,
}

#[allow(dead_code, reason = "each test file uses a part")]
impl Lone {
    /// A node with one neighbour at each of `distances`; their ids are 2, 3 and so on.
    pub(crate) fn new(config: Config, distances: &[u32]) -> Self {
        let machine = Membership::new(Member::new(1, 0), config).unwrap();
        let mut lone = Self {
            driver: Driver::new(machine),
            rng: ChaCha8Rng::seed_from_u64(5),
            effects: Vec::new(),
        };
        lone.command(Command::Join { seeds: vec![] });
        for (id, &distance) in (2..).zip(distances) {
            let member = Member::new(id, 0);
            lone.receive(member, says_that_it_lives(id));
            let id = member.id;
            lone.command(Command::SetDistance { id, distance });
        }
        lone.effects.clear();
        lone
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.step(Input::Command(command));
    }

    pub(crate) fn receive(&mut self, from: Member, message: Message) {
        self.step(Input::Message { from, message });
    }

    pub(crate) fn receive_at(&mut self, now: Time, from: Member, message: Message) {
        self.step_at(now, Input::Message { from, message });
    }

    fn step(&mut self, input: Input<Membership>) {
        self.step_at(Time::ZERO, input);
    }

    fn step_at(&mut self, now: Time, input: Input<Membership>) {
        let effects = &mut self.effects;
        self.driver
            .step_into(now, &mut self.rng, input, effects)
            .unwrap();
    }

    /// Lets a period pass in which every probe is answered, and no node probes except `pinger`.
    pub(crate) fn period(&mut self, pinger: Option<Member>) {
        let until = self.driver.deadline().unwrap() + self.driver.machine().config().period;
        while let Some(now) = self.driver.deadline().filter(|&at| at < until) {
            let start = self.effects.len();
            let effects = &mut self.effects;
            self.driver.expire_into(now, &mut self.rng, effects);
            let probed: Vec<Member> = pings(&self.effects[start..]);
            for target in probed {
                self.receive(target, Message::bare(Body::Ack { origin: None }));
            }
        }
        if let Some(pinger) = pinger {
            let digest = Digest::default();
            self.receive(
                pinger,
                Message::bare(Body::Ping {
                    digest,
                    origin: None,
                }),
            );
        }
    }

    /// Ticks the timers that are due; no member answers.
    pub(crate) fn silence(&mut self, now: Time) {
        let effects = &mut self.effects;
        self.driver.expire_into(now, &mut self.rng, effects);
    }

    pub(crate) fn shares(&self, count: u64) -> Vec<f64> {
        (2..2 + count)
            .map(|id| {
                let (weight, total) = self.driver.machine().member(NodeId(id)).unwrap().share();
                weight as f64 / total as f64
            })
            .collect()
    }

    pub(crate) fn reported_to(&self) -> Vec<u64> {
        self.effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Send { to, message } if message.body == Body::Unlucky => Some(to.id.0),
                _ => None,
            })
            .collect()
    }
}

/// A member's record about itself.
pub(crate) fn says_that_it_lives(id: u64) -> Message {
    let mut message = Message::bare(Body::Ack { origin: None });
    message.records.push(Record {
        member: Member::new(id, 0),
        revision: 0,
        claim: Claim::Alive(Metadata::default()),
    });
    message
}

/// The members that were pinged, in order.
pub(crate) fn pings(effects: &[Effect<Membership>]) -> Vec<Member> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Send { to, message } if matches!(message.body, Body::Ping { .. }) => Some(*to),
            _ => None,
        })
        .collect()
}

/// Settings without chance and other traffic, so that only the tested behaviour remains.
pub(crate) fn quiet() -> Config {
    Config::default()
        .with_passive(None)
        .with_suppress_probes(false)
        .with_reconnect_every(0)
        // The test's claims are all to be believed.
        .with_hearsay_limit(0)
        .with_sync_after(0)
}

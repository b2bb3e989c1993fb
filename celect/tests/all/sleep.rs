//! A host that sleeps while its node leads, and wakes when another node may lead: its timers tick
//! late and in any order, and it reads the messages that arrived meanwhile in any order.
//!
//! `SELVEDGE_HISTORIES` sets the number of histories; `SELVEDGE_SEED` runs one alone.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{Celect, Command, Config, Event, Message, Timer};
use selvedge_core::{Choose, Context, Delta, Effect, Input, Machine, Member, Outbox, Span, Time};

const LEASE: Span = Span::secs(3);

fn member(seat: usize) -> Member {
    Member::new(seat as u64 + 1, 0)
}

/// A node and its host, which runs the timers itself.
struct Seat {
    machine: Celect<ById>,
    outbox: Outbox<Celect<ById>>,
    timers: BTreeMap<Timer, Time>,
    sleeps: bool,
    /// The messages that arrived while it slept.
    inbox: Vec<(Member, Message)>,
}

/// The order of a host's steps when it wakes.
#[derive(Clone, Copy, Debug)]
enum Waking {
    Tick(Timer),
    Read(usize),
}

struct World {
    now: Time,
    seats: Vec<Seat>,
    wire: Vec<(Time, Member, usize, Message)>,
    /// True if all messages are lost.
    is_deaf: bool,
    rng: ChaCha8Rng,
    /// The number of times that a node took the lead.
    led: u32,
}

impl World {
    fn new(seed: u64, nodes: usize, c: u16) -> Self {
        let config = Config::new(c, 1)
            .with_lease(Some(LEASE))
            .with_timeout(Span::millis(200))
            .with_resend(Span::millis(200))
            .with_patience(Span::secs(2));
        let seat = |seat: usize| Seat {
            machine: Celect::new(member(seat), config, ById).unwrap(),
            outbox: Outbox::new(),
            timers: BTreeMap::new(),
            sleeps: false,
            inbox: Vec::new(),
        };
        let mut world = Self {
            now: Time::ZERO,
            seats: (0..nodes).map(seat).collect(),
            wire: Vec::new(),
            is_deaf: false,
            rng: ChaCha8Rng::seed_from_u64(seed),
            led: 0,
        };
        for seat in 0..nodes {
            for other in (0..nodes).filter(|&other| other != seat) {
                let joined = Delta::Joined(member(other));
                world.step(seat, Input::Membership(joined));
            }
        }
        world
    }

    fn step(&mut self, at: usize, input: Input<Celect<ById>>) {
        let seat = &mut self.seats[at];
        let mut cx = Context::new(self.now, &mut self.rng, &mut seat.outbox);
        seat.machine.handle(input, &mut cx).unwrap();
        for (timer, after) in seat.outbox.drain_timers() {
            match after {
                Some(after) => drop(seat.timers.insert(timer, self.now + after)),
                None => drop(seat.timers.remove(&timer)),
            }
        }
        for effect in seat.outbox.drain_effects() {
            match effect {
                Effect::Send { to, message } => {
                    let due = self.now + Span::millis(1 + self.rng.below(40));
                    if !self.is_deaf {
                        let to = to.id.0 as usize - 1;
                        self.wire.push((due, member(at), to, message));
                    }
                }
                Effect::Multicast { .. } => panic!("announcements are acknowledged"),
                Effect::Event(Event::Elected { leader, .. }) => {
                    self.led += u32::from(leader == member(at));
                }
                Effect::Event(_) => {}
            }
        }
        let leads = |seat: &Seat| seat.machine.leads();
        let (first, others) = self.seats.split_first().unwrap();
        assert!(
            !self.believes(0) || others.iter().all(|it| leads(it) < leads(first)),
            "two lead at {:?}: {:?} and {:?}",
            self.now,
            leads(first),
            others.iter().map(leads).collect::<Vec<_>>()
        );
    }

    /// Returns true if the host of this node may write as the leader.
    fn believes(&self, seat: usize) -> bool {
        let until = self.seats[seat].machine.leads_until();
        until.is_some_and(|until| self.now < until)
    }

    /// Returns the time of the next event at a host that is awake.
    fn next(&self) -> Option<Time> {
        let awake = self.seats.iter().filter(|it| !it.sleeps);
        let ticks = awake.flat_map(|it| it.timers.values().copied());
        ticks.chain(self.wire.iter().map(|it| it.0)).min()
    }

    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(next) = self.next().filter(|&it| it <= end) {
            self.now = self.now.max(next);
            let now = self.now;
            let arrived = self.wire.iter().position(|it| it.0 <= now);
            if let Some((_, from, to, message)) = arrived.map(|at| self.wire.remove(at)) {
                if self.seats[to].sleeps {
                    self.seats[to].inbox.push((from, message));
                } else {
                    self.step(to, Input::Message { from, message });
                }
                continue;
            }
            for at in 0..self.seats.len() {
                if !self.seats[at].sleeps {
                    for timer in self.due(at) {
                        self.tick(at, timer);
                    }
                }
            }
        }
        self.now = end;
    }

    fn due(&self, at: usize) -> Vec<Timer> {
        let timers = self.seats[at].timers.iter();
        let due = timers.filter(|(_, due)| **due <= self.now);
        due.map(|(&timer, _)| timer).collect()
    }

    /// Ticks, unless the timer was disarmed meanwhile, or armed again for later.
    fn tick(&mut self, at: usize, timer: Timer) {
        let timers = &mut self.seats[at].timers;
        if timers.get(&timer).is_some_and(|due| *due <= self.now) {
            timers.remove(&timer);
            self.step(at, Input::Tick(timer));
        }
    }

    /// Wakes the host: due timers tick, in any order, before or between the messages that arrived.
    /// Some messages found no room and are lost.
    fn wake(&mut self, at: usize, is_mixed: bool) {
        self.seats[at].sleeps = false;
        let inbox = core::mem::take(&mut self.seats[at].inbox);
        let mut first: Vec<Waking> = self.due(at).into_iter().map(Waking::Tick).collect();
        let mut then: Vec<Waking> = (0..inbox.len()).map(Waking::Read).collect();
        then.retain(|_| self.rng.below(4) > 0);
        if is_mixed {
            first.append(&mut then);
        }
        self.catch_up(at, first, &inbox);
        if !is_mixed {
            assert_eq!(self.seats[at].machine.leads(), None);
        }
        self.catch_up(at, then, &inbox);
    }

    fn catch_up(&mut self, at: usize, mut rest: Vec<Waking>, inbox: &[(Member, Message)]) {
        while !rest.is_empty() {
            let next = self.rng.below(rest.len() as u64) as usize;
            match rest.swap_remove(next) {
                Waking::Tick(timer) => self.tick(at, timer),
                Waking::Read(nth) => {
                    let (from, message) = inbox[nth].clone();
                    self.step(at, Input::Message { from, message });
                }
            }
        }
    }

    fn leaders(&self) -> Vec<Option<Member>> {
        let leader = |it: &Seat| it.machine.leader().map(|(leader, _)| leader);
        self.seats.iter().map(leader).collect()
    }
}

/// Node 1 leads, sleeps for `asleep`, and wakes; then all messages are lost for `deaf`.
fn sleeps(seed: u64, (nodes, c): (usize, u16), asleep: Span, deaf: Span) {
    let mut world = World::new(seed, nodes, c);
    world.step(nodes - 1, Input::Command(Command::Elect));
    let awake = Span::secs(5) + Span(world.rng.below(2_000_000));
    world.pass(awake);
    assert_eq!(world.leaders(), vec![Some(member(0)); nodes]);
    assert!(world.believes(0), "it is renewed");
    let led = world.led;
    world.seats[0].sleeps = true;
    world.pass(asleep);
    assert!(world.led > led, "nobody took its place");
    world.wake(0, seed.is_multiple_of(2));
    world.is_deaf = true;
    world.pass(deaf);
    world.is_deaf = false;
    world.pass(Span::secs(30));
    let leaders = world.leaders();
    let leader = leaders[0].unwrap();
    assert_eq!(leaders, vec![Some(leader); nodes]);
    assert!(world.believes(leader.id.0 as usize - 1));
}

#[test]
fn a_host_that_slept_never_believes_that_its_node_leads_after_another_one_does() {
    let _ran = selvedge_sim::histories(selvedge_sim::histories::seeds(300), |seed| {
        for asleep in [Span::secs(4), Span::secs(60)] {
            for deaf in [Span::ZERO, Span::secs(1)] {
                sleeps(seed, (2, 0), asleep, deaf);
                sleeps(seed, (3, 1), asleep, deaf);
            }
        }
    });
}

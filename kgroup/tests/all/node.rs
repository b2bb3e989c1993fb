//! A node's part for the leaders of its groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_groups::{GroupId, Item, Node, Place, Selection, Start};
use selvedge_kgroup::devices::Limits;
use selvedge_kgroup::routines::{Locking, RoutineConfig, RoutineTimer};
use selvedge_kgroup::{
    Answer, Command, Config, Kgroup, LeaderTimer, Message, Payload, Request, Site, Timer,
    TriggerId, Update,
};

use crate::building::{device, switching};

const ME: Member = Member::new(1, 0);

/// The first of a number of nodes, with these devices, each in a cluster of its own.
fn node(nodes: u64, failures: u8, devices: u64) -> Kgroup {
    let place = Place([0; 3]);
    let nodes = (1..=nodes).map(|id| Node::new(id, place));
    let devices = (1..=devices).map(|it| (device(it), place));
    let selection = Selection::new().with_failures(failures);
    let site = Site::new(selection, nodes, devices, 1).unwrap();
    let routine = switching(&[1], "on").with_locking(Locking::Optimistic);
    let clusters = site.clusters().len();
    let site = (0..2 * clusters).fold(site, |site, _| site.with_routine(routine.clone()).unwrap());
    Kgroup::new(ME, Config::new(), Arc::new(site), Start::Fresh).unwrap()
}

/// The second of two optimistic routines finds the device taken, and tries again after a random
/// time.
#[test]
fn a_time_by_chance_lies_between_the_time_and_twice_the_time() {
    let mut seen = BTreeSet::new();
    for seed in 0..400 {
        let mut node = Alone::of(node(1, 0, 1), seed);
        node.lead();
        for number in [0, 1] {
            node.trigger_of(Site::routine(number), TRIGGER);
        }
        let backoff = LeaderTimer::Routine(RoutineTimer::Backoff);
        let due = node.due(Timer::Leader(Site::routine(1), backoff)).unwrap();
        seen.insert(due.since(node.now));
    }
    let after = RoutineConfig::new().backoff;
    assert_eq!(seen.first(), Some(&after));
    assert_eq!(seen.last(), Some(&Span(after.0 * 2)));
    assert_eq!(seen.len(), 9);
}

/// A node, by hand. The others are silent.
struct Alone {
    driver: Driver<Kgroup>,
    rng: ChaCha8Rng,
    now: Time,
    sent: Vec<(Member, Message)>,
}

const ROUTINE: GroupId = Site::routine(0);
const TRIGGER: TriggerId = TriggerId(7);

impl Alone {
    fn of(node: Kgroup, seed: u64) -> Self {
        Self {
            driver: Driver::new(node),
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: Time::ZERO,
            sent: Vec::new(),
        }
    }

    /// A node of three.
    fn new() -> Self {
        Self::of(node(3, 1, 0), 1)
    }

    fn input(&mut self, input: Input<Kgroup>) {
        let sent = &mut self.sent;
        let take = |effect| {
            if let Effect::Send { to, message } = effect {
                sent.push((to, message));
            }
        };
        let taken = self.driver.step(self.now, &mut self.rng, input, take);
        taken.unwrap();
    }

    fn receive(&mut self, from: Member, item: Item<Update, Payload>) {
        let plan = self.driver.machine().groups().plan().digest();
        let items = [item].into_iter().collect();
        let message = Message {
            plan,
            generation: 0,
            items,
        };
        self.input(Input::Message { from, message });
    }

    fn trigger(&mut self) {
        self.trigger_of(ROUTINE, TRIGGER);
    }

    fn trigger_of(&mut self, routine: GroupId, id: TriggerId) {
        self.input(Input::Command(Command::Trigger { routine, id }));
    }

    fn due(&self, timer: Timer) -> Option<Time> {
        let mut timers = self.driver.timers();
        timers.find(|it| it.0 == timer).map(|it| it.1)
    }

    fn expire(&mut self, now: Time) {
        self.now = now;
        let sent = &mut self.sent;
        self.driver.expire(now, &mut self.rng, |effect| {
            if let Effect::Send { to, message } = effect {
                sent.push((to, message));
            }
        });
    }

    /// Leads all groups that it founds: it is their only member.
    fn lead(&mut self) {
        self.input(Input::Command(Command::SetEpoch(1)));
        while !(self.driver.machine().groups().groups())
            .all(|it| self.driver.machine().groups().leads(it))
        {
            self.expire(self.driver.deadline().unwrap());
        }
    }

    /// The nodes that were asked for a run of any routine since the last call.
    fn asked(&mut self) -> BTreeSet<u64> {
        let is_ask = |it: &Item<Update, Payload>| {
            let trigger = |it: &Payload| matches!(it, Payload::Request(Request::Trigger(_)));
            matches!(it, Item::Ask { asked, .. } if trigger(asked))
        };
        let sent = core::mem::take(&mut self.sent).into_iter();
        let asked = sent.filter(|it| it.1.items.iter().any(is_ask));
        asked.map(|it| it.0.id.0).collect()
    }
}

#[test]
fn a_trigger_is_asked_again_and_again_until_it_is_answered() {
    let mut node = Alone::new();
    node.trigger();
    for _ in 0..5 {
        assert!(!node.asked().is_empty());
        let due = node.due(Timer::Trigger).unwrap();
        node.expire(due);
    }
    let answer = Answer::Triggered(TRIGGER);
    let notified = Payload::Answer {
        of: ROUTINE,
        answer,
    };
    node.receive(
        Member::new(2, 0),
        Item::Answer {
            group: ROUTINE,
            life: 0,
            notified,
        },
    );
    node.asked();
    let due = node.due(Timer::Trigger).unwrap();
    node.expire(due);
    assert_eq!(
        (node.asked(), node.due(Timer::Trigger)),
        (BTreeSet::new(), None)
    );
}

#[test]
fn a_routine_whose_leader_asks_something_is_asked_where_that_leader_is() {
    // Each group has one member. This node leads the cluster, and node 2 has founded the routine's group.
    let mut node = Alone::of(node(3, 0, 8), 1);
    node.lead();
    let mut routines = (0..16).map(Site::routine);
    let routine = routines.find(|it| {
        node.trigger_of(*it, TRIGGER);
        node.asked() == BTreeSet::from([2])
    });
    let routine = routine.unwrap();
    let cluster = node.driver.machine().leads().find(|it| it.0 & 3 == 0);
    let group = cluster.unwrap();
    let request = Request::Watch {
        generation: 0,
        device: NodeId(100),
        routine,
    };
    let asked = Payload::Request(request);
    node.receive(Member::new(3, 0), Item::Ask { group, asked });
    node.sent.clear();
    node.trigger_of(routine, TRIGGER);
    assert_eq!(node.asked(), BTreeSet::from([3]));
}

/// A node that waits for many answers asks for all of them in few frames.
#[test]
fn questions_of_one_step_share_frames() {
    let mut node = Alone::new();
    (0..20).for_each(|it| node.trigger_of(ROUTINE, TriggerId(it)));
    node.sent.clear();
    node.expire(node.due(Timer::Trigger).unwrap());
    let sent = (node.sent.iter()).map(|(to, it)| (to.id.0, it.items.len()));
    assert_eq!(sent.collect::<Vec<_>>(), [(2, 20), (3, 20)]);
}

#[test]
fn a_proposal_that_is_too_long_is_counted() {
    let nodes = [Node::new(1, Place([0; 3]))];
    let lamp = NodeId(7);
    let selection = Selection::new().with_failures(0);
    let site = Site::new(selection, nodes, [(lamp, Place([0; 3]))], 1).unwrap();
    let site = site.with_frame_budget(150).unwrap();
    let site = Arc::new(site.with_limits(Limits::new().with_word(200)));
    let me = Member::new(1, 0);
    let node = Kgroup::new(me, Config::new(), site, Start::Fresh).unwrap();
    let mut driver = Driver::new(node);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut now = Time::ZERO;
    let input = Input::Command(Command::SetEpoch(1));
    driver.step(now, &mut rng, input, |_| ()).unwrap();
    while driver.machine().leads().next().is_none() {
        now = driver.deadline().unwrap();
        driver.expire(now, &mut rng, |_| ());
    }
    for (len, too_long) in [(60, 0), (120, 1)] {
        let value = Some("x".repeat(len).as_str().into());
        let device = lamp;
        let input = Input::Command(Command::Reported { device, value });
        driver.step(now, &mut rng, input, |_| ()).unwrap();
        let counters = driver.machine().groups().counters();
        assert_eq!(counters.too_long, too_long, "{len}");
    }
}

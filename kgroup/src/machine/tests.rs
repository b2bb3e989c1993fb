//! What a node does for the leaders of its groups.

use alloc::collections::BTreeSet;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Time};
use selvedge_groups::{Node, Place, Selection};

use super::*;
use crate::routines::RoutineTimer;

fn node() -> Kgroup {
    let nodes = (1..=3).map(|id| Node::new(id, Place([0; 3])));
    let selection = Selection::new().with_failures(1);
    let site = Arc::new(Site::new(selection, nodes, [], 1).unwrap());
    let begin = groups::Begin::First;
    Kgroup::new(Member::new(1, 0), Config::new(), site, begin).unwrap()
}

#[test]
fn a_time_by_chance_lies_between_the_time_and_twice_the_time() {
    let group = Site::routine(0);
    let timer = LeaderTimer::Routine(RoutineTimer::Backoff);
    let after = Span::millis(800);
    let mut driver = Driver::new(node());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut seen = BTreeSet::new();
    for _ in 0..400 {
        let call = |node: &mut Kgroup, cx: &mut Context<'_, Kgroup>| {
            node.carry_out(group, Effect::ArmAbout { timer, after }, cx);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = driver.with(Time::ZERO, &mut rng, call, |_| ());
        let (armed, at) = driver.timers().next().unwrap();
        assert_eq!(armed, Timer::Leader(group, timer));
        seen.insert(at.since(Time::ZERO));
    }
    assert_eq!(seen.first(), Some(&after));
    assert_eq!(seen.last(), Some(&Span(after.0 * 2)));
    assert_eq!(seen.len() as u64, SLOTS + 1);
}

/// One node of three, by hand. The others are silent.
struct Alone {
    driver: Driver<Kgroup>,
    rng: ChaCha8Rng,
    sent: Vec<(Member, Message)>,
}

const ROUTINE: GroupId = Site::routine(0);
const TRIGGER: TriggerId = TriggerId(7);

impl Alone {
    fn new() -> Self {
        Self {
            driver: Driver::new(node()),
            rng: ChaCha8Rng::seed_from_u64(1),
            sent: Vec::new(),
        }
    }

    fn trigger(&mut self) {
        self.trigger_as(TRIGGER);
    }

    fn trigger_as(&mut self, id: TriggerId) {
        let routine = ROUTINE;
        let input = Input::Command(Command::Trigger { routine, id });
        let sent = &mut self.sent;
        let take = |effect| {
            if let Effect::Send { to, message } = effect {
                sent.push((to, message));
            }
        };
        let taken = self.driver.step(Time::ZERO, &mut self.rng, input, take);
        taken.unwrap();
    }

    /// When it asks again.
    fn due(&self) -> Option<Time> {
        let mut timers = self.driver.timers();
        timers.find(|it| it.0 == Timer::Trigger).map(|it| it.1)
    }

    fn expire(&mut self, now: Time) {
        let sent = &mut self.sent;
        self.driver.expire(now, &mut self.rng, |effect| {
            if let Effect::Send { to, message } = effect {
                sent.push((to, message));
            }
        });
    }

    fn with(&mut self, call: impl FnOnce(&mut Kgroup, &mut Context<'_, Kgroup>)) {
        let call = |node: &mut Kgroup, cx: &mut Context<'_, Kgroup>| {
            call(node, cx);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = self.driver.with(Time::ZERO, &mut self.rng, call, |_| ());
    }

    /// The nodes that were asked for a run since this was called last.
    fn asked(&mut self) -> BTreeSet<u64> {
        let is_ask = |it: &groups::Item<Update, Parcel>| {
            matches!(it, groups::Item::Ask { group: ROUTINE, .. })
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
        let due = node.due().unwrap();
        node.expire(due);
    }
    node.with(|node, cx| node.on_told(ROUTINE, &Answer::Triggered(TRIGGER), cx));
    node.asked();
    let due = node.due().unwrap();
    node.expire(due);
    assert_eq!((node.asked(), node.due()), (BTreeSet::new(), None));
}

#[test]
fn a_routine_whose_leader_asks_something_is_asked_where_that_leader_is() {
    let mut node = Alone::new();
    node.trigger();
    assert_eq!(node.asked(), BTreeSet::from([2, 3]));
    let request = Request::Watch {
        device: NodeId(100),
        routine: ROUTINE,
    };
    let said = groups::Event::Asked {
        group: Site::cluster(0),
        from: Member::new(3, 0),
        parcel: Parcel::Request(request),
    };
    node.with(|node, cx| node.on_said(said, cx));
    node.trigger();
    assert_eq!(node.asked(), BTreeSet::from([3]));
}

/// A node that waits for many answers asks for all of them in few frames.
#[test]
fn questions_of_one_step_share_frames() {
    let mut node = Alone::new();
    (0..20).for_each(|it| node.trigger_as(TriggerId(it)));
    node.sent.clear();
    node.expire(node.due().unwrap());
    let sent = (node.sent.iter()).map(|(to, it)| (to.id.0, it.items.len()));
    assert_eq!(sent.collect::<Vec<_>>(), [(2, 20), (3, 20)]);
}

#[test]
fn a_proposal_that_is_too_long_is_counted() {
    let nodes = [Node::new(1, Place([0; 3]))];
    let lamp = NodeId(7);
    let selection = Selection::new().with_failures(0);
    let site = Site::new(selection, nodes, [(lamp, Place([0; 3]))], 1).unwrap();
    let site = site.with_frame_budget(145).unwrap();
    let site = Arc::new(site.with_limits(crate::devices::Limits::new().with_word(200)));
    let me = Member::new(1, 0);
    let node = Kgroup::new(me, Config::new(), site, groups::Begin::First).unwrap();
    let mut driver = Driver::new(node);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut now = Time::ZERO;
    let input = Input::Command(Command::Epoch(1));
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

//! Elections by hand: what is sent, who leads, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::check::ById;
use selvedge_celect::{
    Ballot, Celect, Command, Config, ConfigError, Event, Message, Misbehaviour, Protocol, Reject,
    Timer,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};

/// Nodes 1 to n, whose messages arrive in the order in which they were sent.
struct Mesh {
    nodes: Vec<Driver<Celect<ById>>>,
    rng: ChaCha8Rng,
    now: Time,
    wire: Vec<(Member, Member, Message)>,
    events: Vec<(u64, Event)>,
    unicasts: usize,
    multicasts: usize,
    /// Whom no message reaches.
    cut: Vec<u64>,
    /// Whether the first LEADER from each to each is lost.
    lossy: bool,
    lost: Vec<(u64, u64)>,
}

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

impl Mesh {
    fn new(nodes: u64, config: Config) -> Self {
        let lists: Vec<Vec<u64>> = (1..=nodes).map(|_| (1..=nodes).collect()).collect();
        Self::with_lists(&lists, config)
    }

    fn with_lists(lists: &[Vec<u64>], config: Config) -> Self {
        let node =
            |nth: usize| Driver::new(Celect::new(member(nth as u64 + 1), config, ById).unwrap());
        let mut mesh = Self {
            nodes: (0..lists.len()).map(node).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            now: Time::ZERO,
            wire: Vec::new(),
            events: Vec::new(),
            unicasts: 0,
            multicasts: 0,
            cut: Vec::new(),
            lossy: false,
            lost: Vec::new(),
        };
        for (nth, list) in lists.iter().enumerate() {
            for &id in list.iter().filter(|&&id| id != nth as u64 + 1) {
                mesh.tell(nth as u64 + 1, Delta::Joined(member(id)));
            }
        }
        mesh
    }

    fn step(&mut self, id: u64, input: Input<Celect<ById>>) -> Result<(), Reject> {
        let mut effects = Vec::new();
        let node = &mut self.nodes[id as usize - 1];
        let outcome = node.step(self.now, &mut self.rng, input, |it| effects.push(it));
        self.carry_out(id, effects);
        outcome
    }

    fn carry_out(&mut self, id: u64, effects: Vec<Effect<Celect<ById>>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.unicasts += 1;
                    let pair = (id, to.id.0);
                    let is_leader = matches!(message, Message::Leader { .. });
                    if self.lossy && is_leader && !self.lost.contains(&pair) {
                        self.lost.push(pair);
                        continue;
                    }
                    self.wire.push((member(id), to, message));
                }
                Effect::Multicast { message } => {
                    self.multicasts += 1;
                    for to in (1..=self.nodes.len() as u64).filter(|&to| to != id) {
                        self.wire.push((member(id), member(to), message.clone()));
                    }
                }
                Effect::Event(event) => self.events.push((id, event)),
            }
        }
    }

    fn tell(&mut self, id: u64, delta: Delta) {
        self.step(id, Input::Membership(delta)).unwrap();
    }

    fn elect(&mut self, id: u64) {
        self.step(id, Input::Command(Command::Elect)).unwrap();
    }

    fn deliver(&mut self) {
        while !self.wire.is_empty() {
            let (from, to, message) = self.wire.remove(0);
            if !self.cut.contains(&from.id.0) && !self.cut.contains(&to.id.0) {
                self.step(to.id.0, Input::Message { from, message })
                    .unwrap();
            }
        }
    }

    /// Lets time pass, message by message and timer by timer.
    fn pass(&mut self, span: Span) {
        let end = self.now + span;
        self.deliver();
        while let Some(due) = self.nodes.iter().filter_map(Driver::deadline).min() {
            if due > end {
                break;
            }
            self.now = due;
            for nth in 0..self.nodes.len() {
                let mut effects = Vec::new();
                let (node, rng) = (&mut self.nodes[nth], &mut self.rng);
                node.expire(self.now, rng, |it| effects.push(it));
                self.carry_out(nth as u64 + 1, effects);
            }
            self.deliver();
        }
        self.now = end;
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
    Config {
        protocol,
        retries: 0,
        ..Config::new(c, f)
    }
}

#[test]
fn base_sends_as_many_messages_as_lemma_1_says_and_lean_fewer() {
    for (c, f) in [(0, 0), (1, 0), (2, 1), (4, 3), (9, 0)] {
        for (protocol, expected) in [
            (Protocol::Base, 2 * (c + f + 1) + 1),
            (Protocol::Lean, 2 * (c + f) + 1),
        ] {
            let mut mesh = Mesh::new(12, multicast(protocol, c, f));
            mesh.elect(12);
            mesh.deliver();
            assert_eq!(mesh.leaders(), [Some(1); 12]);
            let sent = (mesh.unicasts, mesh.multicasts);
            assert_eq!(sent, (usize::from(expected), 1), "{protocol:?} {c} {f}");
        }
    }
}

/// Section 5.2.4, with ids one higher: the nodes 1, 2 and 5 answer, and 3 leads.
#[test]
fn the_worked_example_of_hybrid_ends_with_its_leader() {
    let suspicions: [&[(u64, usize)]; 5] = [
        &[(2, 2), (3, 1), (4, 4)],
        &[(1, 5), (4, 2), (5, 1)],
        &[(1, 2), (2, 2), (4, 3), (5, 1)],
        &[(1, 3), (3, 2), (5, 1)],
        &[(2, 1), (4, 2)],
    ];
    let config = Config {
        x: 2,
        y: 2,
        ..multicast(Protocol::Hybrid, 2, 0)
    };
    // Node 5 asks whom it knows: itself is one of three.
    let mut lists: Vec<Vec<u64>> = (1..=5).map(|_| (1..=5).collect()).collect();
    lists[4] = vec![1, 2];
    let mut mesh = Mesh::with_lists(&lists, config);
    for (nth, suspicions) in suspicions.iter().enumerate() {
        for &(id, count) in *suspicions {
            for _ in 0..count {
                mesh.tell(nth as u64 + 1, Delta::Suspected(member(id)));
            }
        }
    }
    mesh.elect(5);
    // The lowest x of its own list are 1 and 5, for it suspects 2 and does not know 3.
    assert!(matches!(mesh.wire.last(), Some((_, to, Message::Notify { .. })) if *to == member(1)));
    mesh.deliver();
    assert_eq!(mesh.leaders(), [Some(3); 5]);
    // Node 1 led for a moment: ballots, and not ranks, say that 3 leads.
    assert!(
        mesh.events
            .iter()
            .any(|(id, event)| { *id == 1 && matches!(event, Event::Deposed { .. }) })
    );
}

#[test]
fn too_few_nodes_are_a_typed_error_and_then_an_event() {
    let mut alone = Mesh::with_lists(&[vec![], vec![]], Config::new(2, 0));
    let refused = alone.step(1, Input::Command(Command::Elect));
    assert_eq!(
        refused,
        Err(Reject::TooFew {
            known: 1,
            needed: 3
        })
    );
    // One more is known, and knows nobody else.
    alone.tell(1, Delta::Joined(member(2)));
    alone.elect(1);
    alone.pass(Span::secs(3));
    let starved = |(_, event): &&(u64, Event)| {
        matches!(
            event,
            Event::TooFew {
                known: 2,
                needed: 3,
                ..
            }
        )
    };
    assert_eq!(alone.events.iter().filter(starved).count(), 1);
    assert!(alone.nodes[0].machine().is_electing());
    // It goes on asking, so a node that joins is enough, whoever of them hears of it.
    let mut more = Mesh::with_lists(&[vec![2], vec![], vec![]], Config::new(2, 0));
    more.elect(1);
    more.pass(Span::secs(1));
    more.tell(2, Delta::Joined(member(3)));
    more.pass(Span::secs(2));
    assert_eq!(more.leaders(), [Some(1); 3]);
}

#[test]
fn a_new_leader_is_elected_when_the_leader_fails() {
    let mut mesh = Mesh::new(5, Config::new(1, 1));
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 5]);
    mesh.cut.push(1);
    for id in 2..=5 {
        mesh.tell(id, Delta::Failed(member(1)));
        assert_eq!(mesh.leader(id), None);
        mesh.pass(Span::millis(10));
    }
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leaders(), [Some(2); 4]);
    // Who comes back hears that it was replaced, and stops.
    mesh.cut.clear();
    mesh.tell(2, Delta::Refuted(member(1)));
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(2); 5]);
    let deposed = |(id, event): &(u64, Event)| *id == 1 && matches!(event, Event::Deposed { .. });
    assert!(mesh.events.iter().any(deposed));
}

/// The others list the dead leader still, and name it. It is told in vain, as often as usual, but
/// within one timeout: who is declared failed is hardly alive.
#[test]
fn a_leader_that_failed_holds_up_the_next_election_for_one_timeout() {
    let config = Config {
        spread: Span::ZERO,
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(5, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 5]);
    mesh.cut.push(1);
    mesh.tell(2, Delta::Failed(member(1)));
    mesh.pass(config.timeout - Span::millis(10));
    let follows_two = |mesh: &Mesh| (2..=5).all(|id| mesh.leader(id) == Some(2));
    assert!(!follows_two(&mesh));
    mesh.pass(Span::millis(20));
    assert!(follows_two(&mesh), "{:?}", mesh.leaders());
    // So is one whose lease ran out, of which membership knows nothing yet.
    let leased = Config {
        lease: Some(Span::secs(9)),
        ..config
    };
    let mut other = Mesh::new(5, leased);
    other.elect(3);
    other.pass(Span::secs(1));
    other.cut.push(1);
    let given_up = |mesh: &Mesh| {
        let it = |it: &(u64, Event)| matches!(it, (_, Event::LeaseOver { .. }));
        mesh.events.iter().any(it)
    };
    while !given_up(&other) {
        other.pass(Span::millis(1));
    }
    other.pass(config.timeout + Span::millis(10));
    assert!(follows_two(&other), "{:?}", other.leaders());
    // Who was not declared failed has its time.
    mesh.cut.push(2);
    mesh.elect(5);
    mesh.pass(config.timeout * u64::from(config.attempts) - Span::millis(10));
    assert!(follows_two(&mesh));
    // And so has the other dead one, which is named next.
    mesh.pass(config.timeout * 10);
    assert!(
        (3..=5).all(|id| mesh.leader(id) == Some(3)),
        "{:?}",
        mesh.leaders()
    );
}

#[test]
fn who_gave_way_begins_again_when_no_leader_comes() {
    let mut mesh = Mesh::new(3, Config::new(1, 1));
    mesh.elect(1);
    mesh.elect(2);
    // The query of 1 reaches 2, and nothing else of it does: nobody tells that it crashed.
    let is_meant = |it: &&(Member, Member, Message)| (it.0, it.1) == (member(1), member(2));
    let (from, _, message) = mesh.wire.iter().find(is_meant).unwrap().clone();
    mesh.wire.clear();
    mesh.step(2, Input::Message { from, message }).unwrap();
    let yielded = |it: &(u64, Event)| matches!(it, (2, Event::Yielded { .. }));
    assert!(mesh.events.iter().any(yielded) && !mesh.nodes[1].machine().is_electing());
    mesh.cut.push(1);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// The list of 1, who leads, names 2 alone; 3 is on no list but 2's, and 4 on no list but 3's. The
/// first LEADER from each to each is lost.
#[test]
fn leader_reaches_all_from_list_to_list_in_spite_of_loss() {
    let lists = [vec![2], vec![1, 3], vec![1, 4], vec![1]];
    let mut mesh = Mesh::with_lists(&lists, Config::new(3, 0));
    mesh.lossy = true;
    mesh.elect(2);
    mesh.pass(Span::secs(5));
    assert_eq!(mesh.leaders(), [Some(1); 4]);
    let path = [(1, 2), (2, 3), (3, 4)];
    assert!(
        path.iter().all(|it| mesh.lost.contains(it)),
        "{:?}",
        mesh.lost
    );
    assert!(
        mesh.nodes
            .iter()
            .all(|it| it.machine().counters().unheard == 0)
    );
}

#[test]
fn a_leader_that_is_cut_off_ends_before_those_who_heard_it_give_it_up() {
    let config = Config {
        lease: Some(Span::secs(9)),
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    let ended = |mesh: &Mesh| {
        mesh.events
            .iter()
            .any(|it| matches!(it, (1, Event::Ended(_))))
    };
    let given_up = |mesh: &Mesh| {
        mesh.events
            .iter()
            .any(|it| matches!(it, (_, Event::LeaseOver { .. })))
    };
    assert!(!ended(&mesh) && !given_up(&mesh), "it is renewed");
    mesh.cut.push(1);
    let mut order = Vec::new();
    for _ in 0..300 {
        mesh.pass(Span::millis(100));
        // What is lost goes on being lost.
        order.push((ended(&mesh), given_up(&mesh)));
    }
    let first = |what: fn(&(bool, bool)) -> bool| order.iter().position(what).unwrap();
    assert!(first(|it| it.0) <= first(|it| it.1));
    assert!(first(|it| it.1) <= 95);
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    assert_eq!(mesh.leaders(), [Some(2); 2]);
}

/// Nobody is left on its list before its lease is over, and still nobody acknowledges it.
#[test]
fn a_leader_that_believes_all_others_failed_is_not_renewed_by_nobody() {
    let config = Config {
        lease: Some(Span::secs(9)),
        reelect: false,
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    assert!(mesh.nodes[0].machine().leads().is_some());
    mesh.cut.push(1);
    for id in 2..=3 {
        mesh.tell(1, Delta::Failed(member(id)));
    }
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    // With c = 0 a leader that knows nobody needs nobody.
    let mut alone = Mesh::new(1, Config { c: 0, ..config });
    alone.elect(1);
    alone.pass(Span::secs(20));
    assert!(alone.nodes[0].machine().leads().is_some());
}

#[test]
fn a_lease_that_ran_out_is_renewed_by_the_leader_alone() {
    let config = Config {
        lease: Some(Span::secs(9)),
        reelect: false,
        ..Config::new(1, 1)
    };
    let mut mesh = Mesh::new(3, config);
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    // What the leader sends to 2 is lost for a while, and 3 still acknowledges.
    mesh.cut.push(2);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.leader(2), None);
    assert_eq!(mesh.leader(1), Some(1));
    mesh.tell(2, Delta::Suspected(member(1)));
    mesh.tell(2, Delta::Refuted(member(1)));
    assert_eq!(mesh.leader(2), None);
    mesh.cut.clear();
    mesh.events.clear();
    mesh.pass(Span::secs(4));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
    // Who follows events is told, too.
    let again = |it: &(u64, Event)| matches!(it, (2, Event::Regained { leader, .. }) if *leader == member(1));
    assert!(mesh.events.iter().any(again), "{:?}", mesh.events);
}

#[test]
fn who_hears_that_its_leader_did_not_fail_is_told_that_it_leads_again() {
    let mut mesh = Mesh::new(3, Config::new(1, 1));
    mesh.elect(3);
    mesh.pass(Span::secs(1));
    let leader = mesh.nodes[1].machine().leader();
    mesh.events.clear();
    mesh.tell(2, Delta::Failed(member(1)));
    mesh.tell(2, Delta::Refuted(member(1)));
    assert_eq!(mesh.nodes[1].machine().leader(), leader);
    let (leader, ballot) = leader.unwrap();
    let told = [
        Event::Lost { leader, ballot },
        Event::Regained { leader, ballot },
    ];
    assert_eq!(mesh.events, told.map(|event| (2, event)));
}

#[test]
fn a_message_to_a_former_life_appoints_nobody() {
    let mut mesh = Mesh::new(2, Config::new(0, 0));
    let ballot = Ballot {
        epoch: 1,
        initiator: member(2),
        step: 1,
    };
    let from = member(2);
    let message = Message::Notify { ballot, life: 7 };
    mesh.step(1, Input::Message { from, message }).unwrap();
    assert_eq!(mesh.leader(1), None);
    assert_eq!(mesh.nodes[0].machine().counters().stale, 1);
}

#[test]
fn peers_that_misbehave_are_refused() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    let ballot = Ballot {
        epoch: 1,
        initiator: member(3),
        step: 1,
    };
    let mut refusal =
        |from: Member, message: Message| match mesh.step(1, Input::Message { from, message }) {
            Err(Reject::Misbehaviour(it)) => it,
            other => panic!("{other:?}"),
        };
    let notify = Message::Notify { ballot, life: 0 };
    let found = refusal(member(2), notify.clone());
    assert_eq!(found, Misbehaviour::Initiator(member(3)));
    let found = refusal(Member::new(1, 4), notify);
    assert_eq!(found, Misbehaviour::OwnId(Member::new(1, 4)));
    let claim = Message::Leader {
        ballot,
        leader: member(1),
        renewal: 0,
        told: [].into_iter().collect(),
    };
    assert_eq!(refusal(member(2), claim), Misbehaviour::NotAppointed);
}

#[test]
fn settings_that_cannot_work_are_named() {
    let new = |change: fn(&mut Config)| {
        let mut config = Config::new(1, 1);
        change(&mut config);
        config.check()
    };
    assert_eq!(new(|_| ()), Ok(()));
    assert_eq!(new(|it| it.x = 0), Err(ConfigError::X));
    assert_eq!(new(|it| it.timeout = Span::ZERO), Err(ConfigError::Timeout));
    assert_eq!(new(|it| it.attempts = 0), Err(ConfigError::Attempts));
    assert_eq!(new(|it| it.resend = Span::ZERO), Err(ConfigError::Resend));
    assert_eq!(
        new(|it| it.drift = 1_000_000),
        Err(ConfigError::Drift(1_000_000))
    );
    assert_eq!(
        new(|it| it.frame_budget = 126),
        Err(ConfigError::FrameBudget(126))
    );
    assert_eq!(new(|it| it.peer_limit = 0), Err(ConfigError::PeerLimit));
    assert_eq!(
        new(|it| it.exclude_limit = 0),
        Err(ConfigError::ExcludeLimit)
    );
    let leased = |it: &mut Config| {
        it.lease = Some(Span::secs(9));
        it.retries = 0;
    };
    assert_eq!(new(leased), Err(ConfigError::LeaseWithoutRetries));
    // Where two thirds are taken off, the lease is over when it is to be renewed.
    let drifts = |it: &mut Config| {
        it.lease = Some(Span::millis(3));
        it.drift = 666_667;
    };
    assert_eq!(new(drifts), Err(ConfigError::Drift(666_667)));
    let drifts_less = |it: &mut Config| {
        it.lease = Some(Span::millis(3));
        it.drift = 666_666;
    };
    assert_eq!(new(drifts_less), Ok(()));
    let short = |it: &mut Config| it.lease = Some(Span::millis(1));
    assert_eq!(new(short), Err(ConfigError::Lease(Span::millis(1))));
}

#[test]
fn a_tick_that_comes_late_does_nothing() {
    let mut mesh = Mesh::new(2, Config::new(0, 0));
    mesh.elect(2);
    mesh.pass(Span::secs(1));
    let before = mesh.nodes[1].machine().clone();
    for timer in [
        Timer::Answer,
        Timer::Watch,
        Timer::Start,
        Timer::Tell,
        Timer::Renew,
    ] {
        mesh.step(2, Input::Tick(timer)).unwrap();
    }
    assert_eq!(&before, mesh.nodes[1].machine());
    assert!(mesh.wire.is_empty());
}

/// Whether node 1 says within 30 s that its leadership has ended, while `happens` every second.
fn ends(mesh: &mut Mesh, mut happens: impl FnMut(&mut Mesh)) -> bool {
    for _ in 0..30 {
        mesh.pass(Span::secs(1));
        happens(mesh);
    }
    let is_end = |it: &(u64, Event)| matches!(it, (1, Event::Ended(_)));
    mesh.events.iter().any(is_end)
}

#[test]
fn a_leader_that_holds_all_others_failed_ends() {
    let leased = |c| Config {
        lease: Some(Span::secs(9)),
        ..Config::new(c, 0)
    };
    for (c, expected) in [(1, true), (0, false)] {
        let mut mesh = Mesh::new(3, leased(c));
        mesh.elect(3);
        mesh.pass(Span::secs(1));
        mesh.cut.push(1);
        mesh.tell(1, Delta::Failed(member(2)));
        mesh.tell(1, Delta::Failed(member(3)));
        assert_eq!(ends(&mut mesh, |_| ()), expected, "c = {c}");
    }
}

#[test]
fn one_who_acknowledges_twice_is_one() {
    let config = Config {
        lease: Some(Span::secs(9)),
        ..Config::new(2, 0)
    };
    let mut mesh = Mesh::new(4, config);
    mesh.elect(4);
    mesh.pass(Span::secs(1));
    mesh.cut.extend([3, 4]);
    let flaps = |mesh: &mut Mesh| {
        mesh.tell(1, Delta::Failed(member(2)));
        mesh.tell(1, Delta::Refuted(member(2)));
    };
    assert!(ends(&mut mesh, flaps));
}

/// A first leader is told of before all have answered; those who heard of it have still to answer.
#[test]
fn who_heard_of_a_runs_first_leader_still_answers_it() {
    for retries in [0, 5] {
        let config = Config {
            retries,
            ..multicast(Protocol::Optimistic, 1, 0)
        };
        // 2 does not know 1, and both are asked.
        let mut mesh = Mesh::with_lists(&[vec![2, 3], vec![3], vec![1, 2]], config);
        mesh.elect(3);
        let is_late = |(_, to, message): &(Member, Member, Message)| {
            *to == member(1) && matches!(message, Message::Query { .. })
        };
        let at = mesh.wire.iter().position(is_late).unwrap();
        let late = mesh.wire.remove(at);
        mesh.deliver();
        assert_eq!(mesh.leaders(), [Some(2); 3]);
        mesh.wire.push(late);
        mesh.pass(Span::secs(3));
        assert_eq!(mesh.leaders(), [Some(1); 3], "{retries} retries");
        assert!(!mesh.nodes[2].machine().is_electing());
    }
}

/// News of others must not put off what a lost LEADER waits for.
#[test]
fn refutations_do_not_put_off_a_leader_that_was_not_heard() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    mesh.lossy = true;
    mesh.elect(3);
    mesh.deliver();
    assert_ne!(mesh.leaders(), [Some(1); 3]);
    let sent = |mesh: &Mesh| mesh.unicasts;
    for _ in 0..20 {
        let before = sent(&mesh);
        for delta in [Delta::Suspected, Delta::Refuted] {
            mesh.tell(1, delta(member(2)));
        }
        assert_eq!(sent(&mesh), before, "it was on the list all along");
        mesh.pass(Span::millis(100));
    }
    assert_eq!(mesh.leaders(), [Some(1); 3]);
}

/// Who comes and goes may not either.
#[test]
fn newcomers_do_not_put_off_a_leader_that_was_not_heard() {
    let mut mesh = Mesh::new(4, Config::new(0, 0));
    mesh.lossy = true;
    mesh.elect(3);
    mesh.deliver();
    assert_eq!(mesh.leader(2), None);
    for _ in 0..6 {
        for delta in [Delta::Failed, Delta::Refuted] {
            mesh.tell(1, delta(member(4)));
        }
        mesh.pass(Span::millis(100));
    }
    assert_eq!(mesh.leader(2), Some(1));
}

/// A cut outlasts all retries, and nobody is declared failed meanwhile.
#[test]
fn who_was_told_in_vain_is_told_when_there_is_news_of_it() {
    let mut mesh = Mesh::new(3, Config::new(0, 0));
    mesh.cut.push(2);
    mesh.elect(3);
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(2), None);
    assert_eq!(mesh.nodes[0].machine().counters().unheard, 1);
    mesh.cut.clear();
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.leader(2), None);
    mesh.tell(1, Delta::Refuted(member(2)));
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.leaders(), [Some(1); 3]);
}

/// Of two nodes one does not answer for long, and c wants both lists.
#[test]
fn who_was_passed_over_is_asked_where_there_are_no_others() {
    let mut mesh = Mesh::new(2, Config::new(1, 0));
    mesh.elect(2);
    mesh.deliver();
    assert_eq!(mesh.leader(2), Some(1));
    // It answers the query, and then nothing reaches it for all attempts.
    mesh.elect(2);
    let query = mesh.wire.remove(0);
    mesh.wire.push(query);
    let (from, to, message) = mesh.wire.remove(0);
    mesh.step(to.id.0, Input::Message { from, message })
        .unwrap();
    let (from, to, message) = mesh.wire.remove(0);
    mesh.step(to.id.0, Input::Message { from, message })
        .unwrap();
    mesh.cut.push(1);
    mesh.pass(Span::secs(5));
    assert!(mesh.nodes[1].machine().is_electing());
    mesh.cut.clear();
    mesh.pass(Span::secs(5));
    assert!(!mesh.nodes[1].machine().is_electing());
    assert_eq!(mesh.leader(2), Some(1));
}

//! Failure detection of gateways where links work one way, or where a majority has continued without one.

use std::collections::BTreeSet;

use selvedge_core::{Member, Span};
use selvedge_pcm::gateway::{Command, Config, Event, Gateway, Reject};
use selvedge_pcm::{Limits, Message};
use selvedge_replica::Configuration;

use super::alone::{Alone, HUB, SECOND, THIRD, keep_alive};

const FOURTH: Member = Member::new(4, 0);

/// A few gateways, and the links that are cut.
struct Few {
    nodes: Vec<Alone<Gateway>>,
    cuts: BTreeSet<(u64, u64)>,
}

impl Few {
    fn new(voters: &[Member], newcomers: &[Member]) -> Self {
        let first = Configuration::of(voters.iter().copied());
        let new = |me: &Member| Gateway::new(*me, Config::new(), first.clone(), Limits::new());
        let others = || voters.iter().map(|it| it.id);
        let newcomer = |me: &Member| Gateway::newcomer(*me, Config::new(), others());
        let made = voters.iter().map(new).chain(newcomers.iter().map(newcomer));
        let mut nodes: Vec<_> = made.map(|it| Alone::new(it.unwrap())).collect();
        for node in &mut nodes {
            node.command(Command::Start);
        }
        let cuts = BTreeSet::new();
        let mut few = Self { nodes, cuts };
        few.pass(15);
        few
    }

    fn node(&mut self, who: Member) -> &mut Alone<Gateway> {
        let found = self
            .nodes
            .iter_mut()
            .find(|it| it.driver.machine().me() == who);
        found.unwrap()
    }

    fn manages(&mut self, who: Member) -> bool {
        self.node(who).driver.machine().manages()
    }

    fn cut(&mut self, from: Member, others: &[Member]) {
        self.cuts
            .extend(others.iter().map(|to| (from.id.0, to.id.0)));
    }

    /// Lets this many seconds pass. Gateways refuse messages of gateways that they do not know.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds * 10 {
            for node in &mut self.nodes {
                node.pass(Span::millis(100));
            }
            let mut on_their_way = self.taken();
            while !on_their_way.is_empty() {
                for (from, to, message) in on_their_way {
                    let is_it = |it: &&mut Alone<Gateway>| it.driver.machine().me().id.0 == to;
                    let node = self.nodes.iter_mut().find(is_it);
                    let Some(node) = node.filter(|_| !self.cuts.contains(&(from.id.0, to))) else {
                        continue;
                    };
                    let taken = node.step(selvedge_core::Input::Message { from, message });
                    assert!(
                        matches!(taken, Ok(()) | Err(Reject::UnknownGateway(_))),
                        "{taken:?}"
                    );
                }
                on_their_way = self.taken();
            }
        }
    }

    fn taken(&mut self) -> Vec<(Member, u64, Message)> {
        let sent = self.nodes.iter_mut().flat_map(|it| {
            let me = it.driver.machine().me();
            it.taken()
                .into_iter()
                .map(move |(to, message)| (me, to, message))
        });
        sent.collect()
    }
}

/// The manager receives the heartbeats of its successor and can send nothing itself, so its followers must
/// change to another gateway.
#[test]
fn a_manager_that_is_not_heard_sends_its_followers_to_others() {
    let mut few = Few::new(&[HUB, SECOND, THIRD], &[]);
    let sensor = Member::new(11, 0);
    few.node(HUB).receive(sensor, keep_alive(1));
    few.pass(5);
    few.cut(HUB, &[SECOND, THIRD]);
    few.pass(30);
    assert!(few.manages(SECOND));
    few.node(HUB).receive(sensor, keep_alive(1));
    assert_eq!(few.node(HUB).taken(), [(11, Message::Elsewhere)]);
    assert!(few.node(HUB).notified.contains(&Event::Unavailable));
    few.cuts.clear();
    few.pass(10);
    assert!(few.manages(SECOND) && !few.manages(HUB));
    few.node(HUB).receive(sensor, keep_alive(1));
    assert_ne!(few.node(HUB).taken(), [(11, Message::Elsewhere)]);
}

/// The other gateways have continued under a manager that the former one does not know, and count the former
/// one as failed.
#[test]
fn a_manager_that_was_left_behind_asks_those_that_it_knows() {
    let mut few = Few::new(&[THIRD, HUB, SECOND], &[FOURTH]);
    assert!(few.manages(THIRD));
    for other in [HUB, SECOND, FOURTH] {
        few.cut(other, &[THIRD]);
        few.cut(THIRD, &[other]);
    }
    few.pass(30);
    assert!(few.manages(HUB) && few.manages(THIRD));
    let next = Configuration::of([FOURTH, HUB, SECOND]);
    few.node(HUB).command(Command::Configure(next));
    few.pass(30);
    assert!(few.manages(FOURTH));
    few.cuts.clear();
    few.pass(10);
    assert!(!few.manages(THIRD));
    let number = few
        .node(THIRD)
        .driver
        .machine()
        .replica()
        .configuration()
        .number;
    assert_eq!(number, 2);
}

/// The gateway may run in any life, or not at all, and a voter that is named in a wrong life has no vote.
#[test]
fn a_gateway_that_never_sent_anything_counts_as_failed() {
    let first = Configuration::of([HUB, SECOND]);
    let former = Gateway::new(HUB, Config::new(), first, Limits::new()).unwrap();
    let stored = former.replica().stored();
    let others = || [SECOND, THIRD].map(|it| it.id);
    let restored = Gateway::restore(Member::new(1, 1), Config::new(), stored, others());
    let newcomer = Gateway::newcomer(HUB, Config::new(), others());
    for (gateway, before) in [(restored, vec![THIRD]), (newcomer, vec![SECOND, THIRD])] {
        let mut it = Alone::new(gateway.unwrap());
        it.command(Command::Start);
        let ended = |it: &Alone<Gateway>| -> Vec<Member> {
            let all = it.driver.machine().gateways();
            all.filter(|it| !it.1).map(|it| it.0).collect()
        };
        assert_eq!(ended(&it), before);
        it.receive(
            SECOND,
            Message::Heartbeat {
                ended: [].into_iter().collect(),
            },
        );
        assert_eq!(ended(&it), [THIRD]);
        let third = Member::new(3, 7);
        it.receive(third, Message::Here);
        assert_eq!(ended(&it), []);
    }
}

//! One node of a plan, and messages from others.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Member, Time};
use selvedge_groups::{
    Begins, Command, Config, GroupId, Groups, Item, Message, Misbehaviour, Node, Place, Plan,
    Reject, Selection, Start,
};
use selvedge_replica::{Body, Configuration, State};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Sum(u64);

impl State for Sum {
    type Update = u8;
    type Outcome = u64;

    fn apply(&mut self, add: &u8) -> u64 {
        self.0 = self.0.saturating_add(u64::from(*add));
        self.0
    }
}

/// Groups below 100 begin with the first question, and no other one begins.
impl Begins for Sum {
    type Site = ();

    fn groups((): &()) -> Vec<GroupId> {
        Vec::new()
    }

    fn begin((): &(), group: GroupId) -> Option<Self> {
        (group.0 < 100).then(Self::default)
    }
}

type Inner = Groups<Sum, u8>;

struct Bench {
    driver: Driver<Inner>,
    rng: ChaCha8Rng,
    sent: Vec<(u64, Item<u8, u8>)>,
}

impl Bench {
    /// Node `id` of nodes 1 to `nodes`, of which three are in each group.
    fn new(id: u64, nodes: u64, config: Config) -> Self {
        let node = |id: u64| Node::new(id, Place::default());
        let plan = Plan::new(Selection::new().with_failures(1), (1..=nodes).map(node)).unwrap();
        let me = Member::new(id, 1);
        let machine = Groups::new(me, config, Arc::new(plan), Arc::new(()), Start::Fresh).unwrap();
        Self {
            driver: Driver::new(machine),
            rng: ChaCha8Rng::seed_from_u64(1),
            sent: Vec::new(),
        }
    }

    fn groups(&self) -> &Inner {
        self.driver.machine()
    }

    fn step(&mut self, input: Input<Inner>) -> Result<(), Reject> {
        let sent = &mut self.sent;
        self.driver
            .step(Time::ZERO, &mut self.rng, input, |effect| {
                if let Effect::Send { to, message } = effect {
                    sent.extend(message.items.into_iter().map(|it| (to.id.0, it)));
                }
            })
    }

    fn receive(&mut self, from: u64, item: Item<u8, u8>) -> Result<(), Reject> {
        let plan = self.groups().plan().digest();
        let items = [item].into_iter().collect();
        let from = Member::new(from, 1);
        let message = Message {
            plan,
            generation: 0,
            items,
        };
        self.step(Input::Message { from, message })
    }

    /// Another node sends the place of a group, with the first member as its leader.
    fn is_notified(&mut self, from: u64, group: GroupId, number: u64, members: &[u64]) {
        let members = members.iter().map(|it| Member::new(*it, 1));
        let item = Item::Where {
            group,
            number,
            leader: members.clone().next().map(|it| it.id),
            members: members.collect(),
        };
        self.receive(from, item).unwrap();
    }

    /// Asks a group. Returns the nodes that were asked.
    fn ask(&mut self, group: GroupId) -> Vec<u64> {
        self.sent.clear();
        let payload = 1;
        self.step(Input::Command(Command::Ask { group, payload }))
            .unwrap();
        let asks =
            |it: &&(u64, Item<u8, u8>)| matches!(it.1, Item::Ask { group: of, .. } if of == group);
        let asked: Vec<u64> = self.sent.iter().filter(asks).map(|it| it.0).collect();
        asked
    }

    fn epoch(&mut self, epoch: u64) {
        self.step(Input::Command(Command::SetEpoch(epoch))).unwrap();
    }

    /// Groups that this node does not found.
    fn of_others(&self) -> Vec<GroupId> {
        let me = self.groups().me().id;
        let is_of_others = |it: &GroupId| !self.groups().founders(*it).contains(&me);
        (1..100).map(GroupId).filter(is_of_others).collect()
    }
}

/// The nodes of 1 to 9 that node 1 does not ask for a group of which it knows nothing.
fn elsewhere(group: GroupId) -> Vec<u64> {
    let likely = Bench::new(1, 9, Config::new()).ask(group);
    (2..=9).filter(|it| !likely.contains(it)).collect()
}

#[test]
fn a_founder_that_had_no_room_founds_a_group_when_it_has() {
    let mut bench = Bench::new(1, 3, Config::new().with_groups(1));
    // It learns of a group that no site begins with.
    let message = selvedge_replica::Message {
        configuration: 1,
        body: Body::Rejoin { life: 1 },
    };
    let group = GroupId(100);
    bench.receive(2, Item::Replica { group, message }).unwrap();
    assert_eq!(bench.groups().groups().collect::<Vec<_>>(), [group]);
    let asked = GroupId(1);
    assert_eq!(bench.ask(asked), [2, 3]);
    assert_eq!(bench.groups().counters().no_room, 1);
    assert!(bench.groups().replica(asked).is_none());
    // The other group never began here.
    bench.epoch(1);
    bench.ask(asked);
    let number = bench
        .groups()
        .replica(asked)
        .map(|it| it.configuration().number);
    assert_eq!(number, Some(1));
}

#[test]
fn a_number_that_no_configuration_has_is_refused() {
    let mut bench = Bench::new(1, 9, Config::new());
    let group = bench.of_others()[0];
    let likely = bench.ask(group);
    bench.is_notified(2, group, Configuration::NUMBER_MAX + 1, &[2]);
    assert_eq!(bench.groups().counters().refused, 1);
    assert_eq!(bench.ask(group), likely);
    bench.is_notified(2, group, Configuration::NUMBER_MAX, &[2]);
    assert_eq!(bench.groups().counters().refused, 1);
    assert_eq!(bench.ask(group), [2]);
}

#[test]
fn a_wrong_number_is_believed_until_a_few_questions_go_unanswered() {
    let mut bench = Bench::new(1, 9, Config::new());
    let group = bench.of_others()[0];
    let others = elsewhere(group);
    let [liar, leader] = [others[0], others[1]];
    bench.is_notified(liar, group, Configuration::NUMBER_MAX, &[liar]);
    let mut asked = 0;
    loop {
        asked += 1;
        assert!(asked < 10, "the node is blind");
        bench.ask(group);
        bench.sent.clear();
        bench.is_notified(3, group, 7, &[leader]);
        if bench.sent.iter().any(|it| it.0 == leader) {
            break; // The question goes on.
        }
    }
    assert!(bench.ask(group).contains(&leader));
    // When that node answers, it alone is asked.
    bench
        .receive(
            leader,
            Item::Answer {
                group,
                life: 1,
                notified: 1,
            },
        )
        .unwrap();
    assert_eq!(bench.ask(group), [leader]);
    bench.is_notified(liar, group, 6, &[liar]);
    assert_eq!(bench.ask(group), [leader], "that one knows less");
}

#[test]
fn a_wrong_number_is_believed_until_an_epoch_begins() {
    let mut bench = Bench::new(1, 9, Config::new());
    let group = bench.of_others()[0];
    let others = elsewhere(group);
    let [liar, leader] = [others[0], others[1]];
    bench.is_notified(liar, group, Configuration::NUMBER_MAX, &[liar]);
    bench.is_notified(3, group, 7, &[leader]);
    assert_eq!(bench.ask(group), [liar]);
    bench.epoch(1);
    // Nor does this node pass the place on, except as a guess.
    bench.sent.clear();
    bench.receive(4, Item::Ask { group, asked: 1 }).unwrap();
    let notified = bench.sent.iter().find_map(|it| match it.1 {
        Item::Where { number, .. } => Some(number),
        _ => None,
    });
    assert_eq!(notified, Some(0));
    bench.is_notified(3, group, 7, &[leader]);
    assert_eq!(bench.ask(group), [leader]);
}

#[test]
fn a_founder_that_is_told_wrongly_founds_a_group_all_the_same() {
    let mut bench = Bench::new(1, 3, Config::new());
    let group = GroupId(1);
    bench.is_notified(2, group, Configuration::NUMBER_MAX, &[2]);
    bench.ask(group);
    assert!(bench.groups().replica(group).is_none(), "it may be there");
    for _ in 0..9 {
        bench.ask(group);
    }
    assert!(bench.groups().replica(group).is_some());
}

#[test]
fn a_node_outside_of_the_plan_is_not_heard() {
    let mut bench = Bench::new(1, 3, Config::new());
    let stranger = Member::new(7, 1);
    let refused = Err(Reject::Misbehaviour(Misbehaviour::Unplanned(stranger)));
    let group = GroupId(1);
    let place = Item::Where {
        group,
        number: 1,
        leader: None,
        members: [Member::new(2, 1)].into_iter().collect(),
    };
    let message = selvedge_replica::Message {
        configuration: 1,
        body: Body::Rejoin { life: 1 },
    };
    let before = bench.groups().clone();
    for item in [
        Item::Ask { group, asked: 1 },
        Item::Answer {
            group,
            life: 1,
            notified: 1,
        },
        Item::Replica { group, message },
        place,
    ] {
        assert_eq!(bench.receive(7, item), refused);
    }
    assert_eq!(bench.groups(), &before);
    assert!(bench.sent.is_empty());
}

#[test]
fn the_hint_that_was_used_least_recently_gives_way() {
    let mut bench = Bench::new(1, 9, Config::new().with_leader_hints(2));
    let groups = bench.of_others();
    let lowest = groups[0];
    let far = elsewhere(lowest)[0];
    bench.is_notified(far, lowest, 7, &[far]);
    for &other in &groups[1..9] {
        bench.ask(other);
        assert_eq!(bench.ask(lowest), [far], "{other:?} took its place");
        let notified = Item::Answer {
            group: lowest,
            life: 1,
            notified: 1,
        };
        bench.receive(far, notified).unwrap();
    }
    for &other in &groups[1..3] {
        bench.ask(other);
    }
    assert!(!bench.ask(lowest).contains(&far), "there is room for two");
}

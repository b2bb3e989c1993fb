//! Stories that random histories found, by hand.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_replica::{
    Ballot, Body, Command, Config, Configuration, Entry, Event, Message, Proposal, Replica, Wants,
};

use crate::oracle::{Log, Op};

type Node = Driver<Replica<Log>>;

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

fn node(id: u64, first: &Configuration, window: u32) -> Node {
    let config = Config::new().with_window(window);
    let log = Log {
        ids: Vec::new(),
        pad: vec![0; 5_000],
    };
    Driver::new(Replica::new(member(id), config, first.clone(), log).unwrap())
}

fn step(node: &mut Node, input: Input<Replica<Log>>) -> Vec<Effect<Replica<Log>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut effects = Vec::new();
    node.step(Time::ZERO, &mut rng, input, |it| effects.push(it))
        .unwrap();
    effects
}

fn hear(node: &mut Node, from: u64, body: Body<Op>) -> Vec<(u64, Body<Op>)> {
    let message = Message {
        configuration: 1,
        body,
    };
    let from = member(from);
    let effects = step(node, Input::Message { from, message });
    let sent = effects.into_iter().filter_map(|it| match it {
        Effect::Send { to, message } => Some((to.id.0, message.body)),
        _ => None,
    });
    sent.collect()
}

fn page(version: u64, offset: u32) -> Body<Op> {
    Body::Page {
        version,
        offset,
        total: 1_000,
        bytes: [0; 100].into_iter().collect(),
    }
}

fn fetch(version: u64, offset: u32) -> Body<Op> {
    Body::Fetch {
        version,
        offset,
        wants: Wants::Entries,
    }
}

/// Members that all answered one question had it begin again and again, each with its own pages.
#[test]
fn the_first_page_of_another_member_or_a_doubled_one_begins_nothing_anew() {
    let mut node = node(3, &Configuration::of([1, 2, 3].map(member)), 0);
    assert_eq!(hear(&mut node, 1, page(5, 0)), [(1, fetch(5, 100))]);
    assert_eq!(hear(&mut node, 2, page(6, 0)), []);
    assert_eq!(hear(&mut node, 1, page(5, 0)), []);
    assert_eq!(hear(&mut node, 1, page(5, 100)), [(1, fetch(5, 200))]);
    // Its sender goes on with a later state.
    assert_eq!(hear(&mut node, 1, page(7, 0)), [(1, fetch(7, 100))]);
}

fn propose(node: &mut Node, id: u64) {
    let op = Op {
        id,
        pad: Vec::new(),
    };
    step(node, Input::Command(Command::Propose(op)));
}

fn pages(sent: &[(u64, Body<Op>)]) -> Vec<(u64, u32)> {
    let pages = sent.iter().filter_map(|(_, it)| match it {
        Body::Page {
            version, offset, ..
        } => Some((*version, *offset)),
        _ => None,
    });
    pages.collect()
}

/// With a window that the updates outran, no state ever arrived as a whole. And a state that was kept
/// for one member was sent to another one that had it.
#[test]
fn a_state_that_is_fetched_stays_as_it_is_while_updates_go_on() {
    let mut leader = node(1, &Configuration::of([member(1)]), 0);
    propose(&mut leader, 1);
    let lacking = |committed| Body::Lacking {
        committed,
        wants: if committed == 0 {
            Wants::State
        } else {
            Wants::Entries
        },
    };
    assert_eq!(pages(&hear(&mut leader, 2, lacking(0))), [(1, 0)]);
    propose(&mut leader, 2);
    assert_eq!(pages(&hear(&mut leader, 2, fetch(1, 700))), [(1, 700)]);
    assert_eq!(pages(&hear(&mut leader, 3, lacking(1))), [(2, 0)]);
    // The member that began before shares what is later.
    propose(&mut leader, 3);
    assert_eq!(pages(&hear(&mut leader, 2, fetch(1, 1_400))), [(2, 0)]);
    assert_eq!(pages(&hear(&mut leader, 3, fetch(2, 700))), [(2, 700)]);

    let mut leader = node(1, &Configuration::of([member(1)]), 1);
    propose(&mut leader, 1);
    assert_eq!(pages(&hear(&mut leader, 2, lacking(0))), [(1, 0)]);
    propose(&mut leader, 2);
    let whole = Body::Lacking {
        committed: 2,
        wants: Wants::State,
    };
    assert_eq!(pages(&hear(&mut leader, 3, whole)), [(2, 0)]);
}

/// A proposal that is never applied was decided anew each time that it was sent again: it moved the
/// version away from the members that fetched the state, and its member never heard of its end.
#[test]
fn a_proposal_of_a_life_that_is_over_ends() {
    let mut leader = node(1, &Configuration::of([member(1)]), 8);
    let relay = |incarnation, id| {
        Input::Command(Command::Relay(Proposal {
            by: Member::new(9, incarnation),
            number: 1,
            first: 1,
            since: 0,
            update: Op {
                id,
                pad: Vec::new(),
            },
        }))
    };
    step(&mut leader, relay(1, 1));
    let effects = step(&mut leader, relay(0, 2));
    let is_told = |it: &Effect<_>| matches!(it, Effect::Event(Event::Forgotten { number: 1, .. }));
    assert!(effects.iter().any(is_told), "{effects:?}");
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    for nth in 1..50 {
        leader.expire(Time::ZERO + Span::secs(nth), &mut rng, |_| ());
    }
    assert_eq!(leader.machine().version(), 1);
    assert_eq!(leader.machine().waiting(), 0);
    assert_eq!(leader.deadline(), None);
}

/// Two members that had given the state up told of the next configuration, were asked for the state,
/// and told of it again: each answer brought two questions.
#[test]
fn a_member_that_gave_the_state_up_is_not_asked_for_it() {
    let mut node = node(2, &Configuration::of([1, 2].map(member)), 0);
    let mut next = Configuration::of([3, 4].map(member));
    next.number = 2;
    let mut tell = |is_active| {
        let body = Body::Current {
            configuration: Box::new(next.clone()),
            is_active,
        };
        let message = Message {
            configuration: 2,
            body,
        };
        let from = member(1);
        let effects = step(&mut node, Input::Message { from, message });
        let asked = effects.iter().filter_map(|it| match it {
            Effect::Send { to, .. } => Some(to.id.0),
            _ => None,
        });
        asked.collect::<Vec<u64>>()
    };
    assert_eq!(tell(false), [1, 3, 4]);
    assert_eq!(tell(true), [3, 4]);
}

/// A witness that came back without its memory asked its leader for a state that no witness gets. It
/// was told of the leader again, and asked again.
#[test]
fn a_witness_in_a_later_life_asks_to_be_named_and_for_no_state() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.voters[2].is_witness = true;
    let accept = |number| {
        let proposal = Proposal {
            by: member(2),
            number,
            first: 1,
            since: 0,
            update: Op {
                id: number,
                pad: Vec::new(),
            },
        };
        Body::Accept {
            ballot: Ballot {
                number: 1,
                by: NodeId(2),
            },
            after: number - 1,
            commit: 1,
            round: 1,
            entries: [Entry::Update(proposal)].into_iter().collect(),
        }
    };
    let mut other = node(1, &first, 0);
    hear(&mut other, 2, accept(1));
    let lacking = Body::Lacking {
        committed: 0,
        wants: Wants::State,
    };
    let (_, page) = hear(&mut other, 3, lacking).pop().unwrap();
    let me = Member::new(3, 1);
    let mut witness = Driver::new(Replica::newcomer(me, Config::new()).unwrap());
    hear(&mut witness, 1, page);
    assert_eq!(witness.machine().version(), 1);
    assert_eq!(
        hear(&mut witness, 2, accept(2)),
        [(2, Body::Rejoin { life: 1 })]
    );
}

/// Nodes, and what they sent and has not arrived.
struct Few {
    nodes: Vec<Node>,
    wire: Vec<(Member, Member, Message<Op>)>,
    events: Vec<(u64, Event<Log>)>,
    now: Time,
}

impl Few {
    fn new(nodes: impl IntoIterator<Item = Node>) -> Self {
        Self {
            nodes: nodes.into_iter().collect(),
            wire: Vec::new(),
            events: Vec::new(),
            now: Time::ZERO,
        }
    }

    fn node(&mut self, id: u64) -> Option<&mut Node> {
        self.nodes
            .iter_mut()
            .find(|it| it.machine().me().id.0 == id)
    }

    fn take(&mut self, me: Member, effects: Vec<Effect<Replica<Log>>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.wire.push((me, to, message)),
                Effect::Event(event) => self.events.push((me.id.0, event)),
                Effect::Multicast { .. } => {}
            }
        }
    }

    fn input(&mut self, id: u64, input: Input<Replica<Log>>) {
        let now = self.now;
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        let mut effects = Vec::new();
        let node = self.node(id).unwrap();
        let me = node.machine().me();
        node.step(now, &mut rng, input, |it| effects.push(it))
            .unwrap();
        self.take(me, effects);
    }

    /// All that is on its way arrives, for a time of so many steps of 50 ms.
    fn go_on(&mut self, steps: u64) {
        for _ in 0..steps {
            for (from, to, message) in std::mem::take(&mut self.wire) {
                if self.node(to.id.0).is_some() {
                    self.input(to.id.0, Input::Message { from, message });
                }
            }
            self.now = self.now + Span::millis(50);
            for at in 0..self.nodes.len() {
                let mut rng = ChaCha8Rng::seed_from_u64(0);
                let mut effects = Vec::new();
                let me = self.nodes[at].machine().me();
                self.nodes[at].expire(self.now, &mut rng, |it| effects.push(it));
                self.take(me, effects);
            }
        }
    }
}

fn update(by: u64, number: u64, first: u64, since: u64) -> Entry<Op> {
    Entry::Update(Proposal {
        by: member(by),
        number,
        first,
        since,
        update: Op {
            id: 100 * by + number,
            pad: Vec::new(),
        },
    })
}

/// A member that the group had forgotten began a new row, while its old proposals waited. When the new
/// one was applied, the old ones were said to be applied as well.
#[test]
fn a_proposal_of_a_forgotten_row_is_not_said_to_be_applied() {
    let mut first = Configuration::of([1, 2].map(member));
    first.proposers = 1;
    let mut few = Few::new([node(2, &first, 0)]);
    let propose = |id| {
        Input::Command(Command::Propose(Op {
            id,
            pad: Vec::new(),
        }))
    };
    let accept = |after, entries: &[Entry<Op>]| Input::Message {
        from: member(1),
        message: Message {
            configuration: 1,
            body: Body::Accept {
                ballot: Ballot {
                    number: 1,
                    by: NodeId(1),
                },
                after,
                commit: after + entries.len() as u64,
                round: 1,
                entries: entries.iter().cloned().collect(),
            },
        },
    };
    few.input(2, propose(201));
    few.input(2, accept(0, &[update(8, 1, 1, 0), update(9, 1, 1, 0)]));
    few.input(2, propose(202));
    few.input(2, accept(2, &[update(2, 2, 2, 2)]));
    few.go_on(40);
    let ends: Vec<_> = few
        .events
        .iter()
        .filter_map(|(_, it)| match it {
            Event::Applied { by, number, .. } if *by == member(2) => Some((*number, "applied")),
            Event::Overtaken { number, .. } => Some((*number, "overtaken")),
            Event::Forgotten { number, .. } => Some((*number, "forgotten")),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(2, "applied"), (1, "forgotten")]);
}

/// A member that had lost what it stored, and stopped again before it was named anew, was named in a
/// life in which its memory did not begin. It asked to be named for ever.
#[test]
fn a_member_that_lost_its_memory_is_named_in_the_life_in_which_it_began() {
    let first = Configuration::of([1, 2, 3].map(member));
    let config = Config::new();
    let newcomer = Replica::newcomer(Member::new(3, 1), config).unwrap();
    let me = Member::new(3, 2);
    let third = Driver::new(Replica::restore(me, config, newcomer.stored()).unwrap());
    let mut few = Few::new([node(1, &first, 0), node(2, &first, 0), third]);
    for id in [1, 2] {
        few.input(id, Input::Membership(Delta::Joined(me)));
    }
    few.input(1, Input::Command(Command::Read(1)));
    few.go_on(200);
    let third = few.node(3).unwrap().machine();
    assert!(third.votes(), "{:?}", third.configuration());
    assert_eq!(few.wire, []);
}

/// Nodes that are no members took the places of members among those of which the failure is
/// remembered. The leader sent to a member that had failed for ever.
#[test]
fn a_mesh_of_many_nodes_does_not_have_a_failed_member_forgotten() {
    let first = Configuration::of([1, 2, 3].map(member));
    let config = Config::new().with_peers(64);
    let one = |id| {
        let it = Replica::new(member(id), config, first.clone(), Log::default());
        Driver::new(it.unwrap())
    };
    let mut few = Few::new([one(1), one(2)]);
    for id in [1, 2] {
        for stranger in 100..300 {
            let delta = match stranger % 2 {
                0 => Delta::Joined(member(stranger)),
                _ => Delta::Failed(member(stranger)),
            };
            few.input(id, Input::Membership(delta));
        }
        few.input(id, Input::Membership(Delta::Failed(member(3))));
    }
    few.input(1, Input::Command(Command::Read(1)));
    few.go_on(100);
    assert!(few.nodes.iter().all(|it| it.deadline().is_none()));
}

/// A member that had no vote any more, and knew of no later member, waited until one spoke to it.
#[test]
fn a_node_that_knows_no_later_member_asks_the_nodes_that_are_here() {
    let first = Configuration::of([member(1)]);
    let mut few = Few::new([node(1, &first, 0), node(2, &first, 0), node(3, &first, 0)]);
    let next = Configuration::of([member(2)]);
    few.input(1, Input::Command(Command::Read(1)));
    few.input(1, Input::Command(Command::Configure(next)));
    few.go_on(100);
    assert!(few.node(2).unwrap().machine().votes());
    // Node 1 forgets all, and nobody tells the others that it is back.
    let me = Member::new(1, 1);
    let again = Replica::new(me, Config::new(), first, Log::default()).unwrap();
    *few.node(1).unwrap() = Driver::new(again);
    for id in [2, 3, 4] {
        few.input(1, Input::Membership(Delta::Joined(member(id))));
    }
    few.input(1, Input::Command(Command::Read(7)));
    few.go_on(200);
    let is_end = |it: &(u64, Event<Log>)| it.0 == 1 && matches!(it.1, Event::Unreadable(7));
    assert!(few.events.iter().any(is_end));
    assert_eq!(few.wire, []);
}

/// A newcomer that was named as a witness took the entries without updates that the leader sent it for
/// a lie, and never asked for what it lacked.
#[test]
fn a_newcomer_that_is_named_as_a_witness_asks_for_what_it_lacks() {
    let config = Config::new();
    let mut few = Few::new([Driver::new(Replica::newcomer(member(3), config).unwrap())]);
    let message = Message {
        configuration: 2,
        body: Body::Accept {
            ballot: Ballot {
                number: 1,
                by: NodeId(1),
            },
            after: 3,
            commit: 3,
            round: 1,
            entries: [Entry::Elided].into_iter().collect(),
        },
    };
    let from = member(1);
    few.input(3, Input::Message { from, message });
    assert!(matches!(few.wire[0].2.body, Body::Lacking { .. }));
}

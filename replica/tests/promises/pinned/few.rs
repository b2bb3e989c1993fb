//! Stories of a few nodes that exchange messages until none is in flight.

use super::*;

/// Nodes, and the messages in flight.
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
        node.step_into(now, &mut rng, input, &mut effects).unwrap();
        self.take(me, effects);
    }

    /// Delivers all messages in flight, for a number of steps of 50 ms.
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
                self.nodes[at].expire_into(self.now, &mut rng, &mut effects);
                self.take(me, effects);
            }
        }
    }
}

/// A member that the group had forgotten began a new row, while its old proposals waited. When the
/// new one was applied, the old ones were reported as applied as well.
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

/// A member that had lost its stored facts, and stopped again before it was named again, was named
/// in a life in which its memory did not begin. It asked to be named for ever.
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
    let alone = Configuration::of([member(1)]);
    let mut with_witness = Configuration::of([1, 2].map(member));
    with_witness.voters[1].is_witness = true;
    for first in [alone, with_witness] {
        find_leader(&first);
    }
}

fn find_leader(first: &Configuration) {
    let mut few = Few::new([node(1, first, 0), node(2, first, 0), node(3, first, 0)]);
    let next = Configuration::of([member(2)]);
    few.input(1, Input::Command(Command::Read(1)));
    few.go_on(10);
    few.input(1, Input::Command(Command::Configure(next)));
    few.go_on(100);
    assert!(few.node(2).unwrap().machine().votes());
    // Node 1 forgets all, and no report reaches the others that it is back.
    let me = Member::new(1, 1);
    let again = Replica::new(me, Config::new(), first.clone(), Log::default()).unwrap();
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

/// A newcomer that was named as a witness took the leader's entries without updates for a lie, and
/// never asked for the entries that it lacked.
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
    assert!(matches!(few.wire[0].2.body, Body::Missing { .. }));
}

/// A newcomer that was named as a witness, in a group that had decided nothing, got a message of
/// its leader in place of the configuration, asked again, and so on as fast as the network went.
#[test]
fn a_newcomer_is_told_of_its_configuration_where_nothing_is_decided() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.voters[2].is_witness = true;
    let third = Replica::newcomer(member(3), Config::new()).unwrap();
    let mut few = Few::new([node(1, &first, 0), node(2, &first, 0), Driver::new(third)]);
    few.input(1, Input::Command(Command::Read(1)));
    few.go_on(40);
    assert!(few.node(3).unwrap().machine().votes());
    assert_eq!(few.wire, []);
}

//! Stories of one node: the order of its messages, and the room in frames.

use super::*;

fn accept(ballot: u64, (after, commit): (u64, u64), entries: &[Entry<Op>]) -> Body<Op> {
    Body::Accept {
        ballot: Ballot {
            number: ballot,
            by: NodeId(1),
        },
        after,
        commit,
        round: 1,
        entries: entries.iter().cloned().collect(),
    }
}

fn propose_long(node: &mut Node, id: u64, len: usize) -> Vec<Effect<Replica<Log>>> {
    let pad = vec![1; len];
    step(node, Input::Command(Command::Propose(Op { id, pad })))
}

/// The leader of a configuration with shorter frames could never append it, nor the proposals
/// behind it.
#[test]
fn a_proposal_that_fits_into_frames_no_more_is_given_up() {
    let first = Configuration::of([1, 2].map(member));
    let mut second = first.clone();
    second.number = 2;
    second.frame_budget = 127;
    let mut node = node(2, &first, 0);
    propose_long(&mut node, 1, 100);
    propose_long(&mut node, 2, 1);
    let change = Entry::Configure(Box::new(second));
    let message = Message {
        configuration: 1,
        body: accept(1, (0, 1), &[change]),
    };
    let from = member(1);
    let effects = step(&mut node, Input::Message { from, message });
    let over = effects.iter().filter_map(|it| match it {
        Effect::Event(Event::Abandoned { number, .. }) => Some(*number),
        _ => None,
    });
    assert_eq!(over.collect::<Vec<u64>>(), [1, 2]);
    assert_eq!(node.machine().waiting(), 0);
    // Its next proposal begins a new row.
    propose_long(&mut node, 3, 1);
    assert_eq!(node.machine().waiting(), 1);
    let stored = accept(1, (1, 2), &[update(2, 3, 3, 1)]);
    let message = Message {
        configuration: 2,
        body: stored,
    };
    step(&mut node, Input::Message { from, message });
    assert_eq!(node.machine().waiting(), 0);
}

/// An entry of a configuration with longer frames was sent as it was.
#[test]
fn an_entry_that_fits_into_frames_no_more_is_part_of_the_state() {
    let first = Configuration::of([member(1)]);
    let mut second = first.clone();
    second.frame_budget = 127;
    let mut leader = node(1, &first, 8);
    propose_long(&mut leader, 1, 300);
    step(&mut leader, Input::Command(Command::Configure(second)));
    propose_long(&mut leader, 2, 1);
    assert_eq!(leader.machine().version(), 3);
    let missing = |committed| Body::Missing {
        committed,
        wants: Wants::Entries,
    };
    assert_eq!(pages(&receive(&mut leader, 2, missing(0))), [(3, 0)]);
    let sent = receive(&mut leader, 2, missing(2));
    assert!(matches!(sent[0].1, Body::Learn { after: 2, .. }));
}

/// With room for one read at the leader, one of two members that asked if it is present had no
/// answer. It took the leader for lost and stood, so others asked, and so on for ever.
#[test]
fn a_leader_tells_all_members_that_it_is_there() {
    let first = Configuration::of([1, 2, 3].map(member));
    let config = Config::new().with_pending(1);
    let mut leader = Driver::new(Replica::new(member(1), config, first, Log::default()).unwrap());
    step(&mut leader, Input::Command(Command::Campaign));
    let nothing = Ballot::default();
    let promise = Body::Promise {
        ballot: Ballot {
            number: 1,
            by: NodeId(1),
        },
        committed: 0,
        accepted: nothing,
        end: 0,
        tail: [].into_iter().collect(),
    };
    receive(&mut leader, 2, promise);
    assert!(leader.machine().leads());
    receive(&mut leader, 2, Body::Read { number: 0 });
    receive(&mut leader, 3, Body::Read { number: 0 });
    let mut notified = Vec::new();
    for round in 2..4 {
        let accepted = Body::Accepted {
            ballot: Ballot {
                number: 1,
                by: NodeId(1),
            },
            end: 0,
            committed: 0,
            round,
        };
        let sent = receive(&mut leader, 2, accepted);
        notified.extend(sent.iter().filter_map(|it| match it.1 {
            Body::ReadAt { .. } => Some(it.0),
            _ => None,
        }));
    }
    assert_eq!(notified, [2, 3]);
}

fn with_witness(ids: &[u64], witness: u64) -> Configuration {
    let mut it = Configuration::of(ids.iter().copied().map(member));
    for voter in &mut it.voters {
        voter.is_witness = voter.member.id.0 == witness;
    }
    it
}

/// A leader stopped before it had stored an entry that it had sent. Only witnesses had accepted it,
/// so no member knew its content, and the members that were up waited for ever.
#[test]
fn a_leader_stores_an_entry_before_a_witness_hears_of_it() {
    let mut leader = node(1, &with_witness(&[1, 2, 3], 2), 0);
    step(&mut leader, Input::Command(Command::Campaign));
    let promise = Body::Promise {
        ballot: Ballot {
            number: 1,
            by: NodeId(1),
        },
        committed: 0,
        accepted: Ballot::default(),
        end: 0,
        tail: [].into_iter().collect(),
    };
    receive(&mut leader, 3, promise);
    for from in [2, 3] {
        let accepted = Body::Accepted {
            ballot: Ballot {
                number: 1,
                by: NodeId(1),
            },
            end: 0,
            committed: 0,
            round: 1,
        };
        receive(&mut leader, from, accepted);
    }
    let effects = propose_long(&mut leader, 1, 1);
    let order = effects.iter().filter_map(|it| match it {
        Effect::Send { to, .. } => Some(to.id.0),
        Effect::Event(Event::Fact(_)) => Some(0),
        _ => None,
    });
    assert_eq!(order.collect::<Vec<u64>>(), [3, 0, 2]);
}

/// A candidate waited for an entry that a witness had accepted, though a quorum without the witness
/// had promised.
#[test]
fn a_candidate_does_not_wait_for_what_only_a_witness_has() {
    let mut node = node(1, &with_witness(&[1, 2, 3, 4], 4), 0);
    step(&mut node, Input::Command(Command::Campaign));
    let promise = |by: u64, end| Body::Promise {
        ballot: Ballot {
            number: 1,
            by: NodeId(1),
        },
        committed: 0,
        accepted: Ballot {
            number: 0,
            by: NodeId(by),
        },
        end,
        tail: [].into_iter().collect(),
    };
    receive(&mut node, 4, promise(2, 1));
    receive(&mut node, 2, promise(0, 0));
    assert!(!node.machine().leads());
    receive(&mut node, 3, promise(0, 0));
    assert!(node.machine().leads());
}

/// A count reached a number behind the highest one.
#[test]
fn a_proposer_may_begin_with_the_highest_number() {
    let mut leader = node(1, &Configuration::of([member(1)]), 0);
    for number in [u64::MAX, u64::MAX, 1] {
        let relayed = Proposal {
            by: member(9),
            number,
            first: number,
            since: 0,
            update: Op {
                id: 1,
                pad: Vec::new(),
            },
        };
        step(&mut leader, Input::Command(Command::Relay(relayed)));
    }
    assert_eq!(leader.machine().version(), 1);
}

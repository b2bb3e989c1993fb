//! Members that only vote.

use super::*;

#[test]
fn two_holders_and_a_witness_survive_the_loss_of_one() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    assert_eq!(group.node(3).state(), None);
    assert_eq!(
        group.step(3, Input::Command(Command::Read(1))),
        Err(Reject::NoMember)
    );
    for id in [2, 3] {
        group.tell(id, Delta::Failed(member(1)));
    }
    group.command(2, Command::Propose(8));
    group.wait_without(Span::secs(2), &[1]);
    assert_eq!(group.state(2), [7, 8]);
}

/// Only node 1 and the witness accepted 8: node 2 cannot know it, and says that it waits.
#[test]
fn what_a_witness_alone_has_accepted_is_waited_for() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(8));
    group.deliver_without(&[2]);
    assert_eq!(group.state(1), [7, 8]);
    for id in [2, 3] {
        group.tell(id, Delta::Failed(member(1)));
    }
    group.command(2, Command::Propose(9));
    group.wait_without(Span::secs(5), &[1]);
    assert_eq!(group.state(2), [7]);
    assert!(!group.node(2).leads());
    assert_eq!(
        group.told(2, |it| matches!(it, Event::Unavailable { .. })),
        1
    );
    group.tell(2, Delta::Refuted(member(1)));
    group.tell(3, Delta::Refuted(member(1)));
    group.wait(Span::secs(5));
    assert_eq!(group.state(2), [7, 8, 9]);
}

/// The others of the former configuration are gone for good when the next one begins: what the two
/// that become witnesses held is all that there is.
#[test]
fn a_member_that_becomes_a_witness_keeps_the_state_until_the_next_members_have_it() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4]);
    let at = group.at(1);
    let config = Config::new().with_window(0);
    let leader = Replica::new(member(1), config, first, Journal::default());
    group.nodes[at] = Driver::new(leader.unwrap());
    for update in 1..=3 {
        group.command(1, Command::Propose(update));
        group.deliver_without(&[2, 4]);
    }
    let mut voters = vec![Voter::new(member(4))];
    voters.extend([2, 3].map(|id| Voter::witness(member(id))));
    group.command(1, Command::Configure(Configuration::new(voters)));
    group.deliver_without(&[2, 4]);
    // Node 2 lacks all of it, and gets the state whole, for nothing is kept of the entries.
    group.wait_without(Span::secs(1), &[3, 4]);
    assert_eq!(group.node(2).configuration().number, 2);
    assert_eq!(
        group.node(2).state(),
        None,
        "for the application it is a witness"
    );
    group.wait_without(Span::secs(60), &[1, 3]);
    assert_eq!(group.state(4), [1, 2, 3]);
    assert!(group.node(4).leads());
}

//! Permissions that a section keeps after an exit, and their end.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;

use selvedge::{Command, Event, Exclusion, Node};
use selvedge_camera::Event as It;
use selvedge_camera::sections::{self, Name};
use selvedge_core::{Member, NodeId, Span};
use selvedge_membership::{self as membership, SuspicionLength};
use selvedge_sim::network::{Link, Network, Topology};

const KEEP: Span = Span::secs(10);

fn door() -> Name {
    "door".parse().unwrap()
}

/// A node that declares no other failed: then it would not use the permissions of that one.
fn machine(me: Member, keep_for: Span) -> Node {
    machine_of(me, section(), keep_for)
}

fn section() -> selvedge_camera::Config {
    selvedge_camera::Config::new(3).with_keep(true)
}

fn machine_of(me: Member, section: selvedge_camera::Config, keep_for: Span) -> Node {
    let exclusion = Exclusion::new(sections::Config::with(section)).with_keep_for(keep_for);
    let config = membership::Config::default().with_suspicion(SuspicionLength::Fixed(1_000));
    let node = Node::builder(me).membership(config).locks(exclusion);
    node.build().unwrap()
}

fn join(network: &mut Network<Node>, node: usize, seeds: Vec<NodeId>) {
    let join = membership::Command::Join { seeds };
    network.command(node, Command::Membership(join)).unwrap();
}

/// Three nodes that know one another and keep permissions. The first has opened the section.
fn mesh(keep_for: Span) -> Network<Node> {
    mesh_of(section(), keep_for)
}

fn mesh_of(section: selvedge_camera::Config, keep_for: Span) -> Network<Node> {
    let link = Link::default();
    let mut network = Network::new(3, Topology::full_mesh(3).unwrap(), link).unwrap();
    for node in 0..3_usize {
        let me = Member::new(node as u64 + 1, 0);
        network.add(me, machine_of(me, section, keep_for)).unwrap();
        let seeds = if node > 0 {
            vec![NodeId(1)]
        } else {
            Vec::new()
        };
        join(&mut network, node, seeds);
    }
    network.run_for(Span::secs(10));
    open(&mut network, 0);
    network
}

fn open(network: &mut Network<Node>, node: usize) {
    ask(network, node, |name| sections::Command::Open {
        name,
        config: None,
    });
}

fn ask(network: &mut Network<Node>, node: usize, command: impl Fn(Name) -> sections::Command) {
    network
        .command(node, Command::Sections(command(door())))
        .unwrap();
}

/// Enters and exits with 0.7 s between.
fn visit(network: &mut Network<Node>, node: usize) {
    ask(network, node, sections::Command::Enter);
    network.run_for(Span::millis(700));
    ask(network, node, sections::Command::Exit);
}

/// The nodes whose permission the first node keeps.
fn kept(network: &Network<Node>) -> BTreeSet<u64> {
    let sections = network.machine(0).unwrap().sections().unwrap();
    let door = sections.get(door()).unwrap();
    door.kept().map(|it| it.id.0).collect()
}

/// They are given back by a timer of the node's own, so also where no message of another arrives.
#[test]
fn permissions_are_given_back_after_the_time() {
    let mut network = mesh(KEEP);
    visit(&mut network, 0);
    assert_eq!(kept(&network), [2, 3].into());
    network.run_for(KEEP - Span::millis(1));
    assert_eq!(kept(&network), [2, 3].into());
    network.run_for(Span::millis(2));
    assert_eq!(kept(&network), [].into());
}

/// Else a node that enters all the time would have one request for ever.
#[test]
fn entries_with_kept_permissions_do_not_prolong_the_time() {
    let mut network = mesh(KEEP);
    visit(&mut network, 0);
    let begun = network.now();
    while network.now() < begun + KEEP {
        assert_eq!(kept(&network), [2, 3].into());
        visit(&mut network, 0);
    }
    // The time ended inside, and the exit gives back.
    assert_eq!(kept(&network), [].into());
    visit(&mut network, 0);
    assert_eq!(kept(&network), [2, 3].into());
}

/// A section that is closed takes no command any more.
#[test]
fn a_section_that_is_closed_keeps_nothing() {
    let mut network = mesh(KEEP);
    visit(&mut network, 0);
    ask(&mut network, 0, sections::Command::Close);
    assert_eq!(kept(&network), [].into());
    // Another node enters at once, and its list of nodes that may be inside is empty.
    network.run_for(Span::secs(1));
    open(&mut network, 1);
    drop(network.drain_events());
    visit(&mut network, 1);
    let entered = |event: &Event| {
        matches!(
            event,
            Event::Sections(sections::Event {
                event: It::Entered(_),
                ..
            })
        )
    };
    assert!(network.drain_events().any(|(_, _, event)| entered(&event)));
}

/// Both others ask while the first node is inside, so at its exit it keeps nothing. They still name
/// it: without a RELEASE they would wait for it when it is dead, though it is outside. They wait for no
/// other silent node, because a quorum is enough for them.
#[test]
fn a_request_of_which_no_permission_is_kept_ends_with_the_time_or_the_section() {
    for closes in [false, true] {
        let mut network = mesh_of(section().with_eager(true), KEEP);
        ask(&mut network, 0, sections::Command::Enter);
        network.run_for(Span::millis(700));
        // They keep nothing, or they would not ask the dead node.
        let config = Some(section().with_keep(false).with_eager(true));
        for node in [1, 2] {
            let open = |name| sections::Command::Open { name, config };
            ask(&mut network, node, open);
            ask(&mut network, node, sections::Command::Enter);
        }
        network.run_for(Span::secs(1));
        ask(&mut network, 0, sections::Command::Exit);
        assert_eq!(kept(&network), [].into());
        if closes {
            ask(&mut network, 0, sections::Command::Close);
        }
        take_turns(&mut network);
        if !closes {
            network.run_for(KEEP);
        }
        assert!(network.crash(0).unwrap());
        for node in [1, 2] {
            ask(&mut network, node, sections::Command::Enter);
        }
        take_turns(&mut network);
    }
}

/// The second node and the third, which wait, are inside and exit, one after the other.
fn take_turns(network: &mut Network<Node>) {
    let mut waiting = BTreeSet::from([1, 2]);
    while !waiting.is_empty() {
        network.run_for(Span::secs(1));
        let inside = waiting.iter().copied().find(|it| is_inside(network, *it));
        assert!(inside.is_some(), "none of {waiting:?} is inside");
        let inside = inside.unwrap();
        ask(network, inside, sections::Command::Exit);
        waiting.remove(&inside);
    }
}

/// The time ends while the first node waits, and the end of its request gives all back.
#[test]
fn permissions_of_a_request_after_a_cancelled_one_are_kept_for_the_whole_time() {
    let mut network = mesh(KEEP);
    visit(&mut network, 0);
    open(&mut network, 1);
    ask(&mut network, 1, sections::Command::Enter);
    network.run_for(Span::millis(700));
    ask(&mut network, 0, sections::Command::Enter);
    network.run_for(KEEP);
    assert!(is_inside(&network, 1) && !is_inside(&network, 0));
    ask(&mut network, 0, sections::Command::Cancel);
    ask(&mut network, 1, sections::Command::Exit);
    network.run_for(Span::secs(1));
    visit(&mut network, 0);
    network.run_for(KEEP - Span::millis(1));
    assert_eq!(kept(&network), [2, 3].into());
    network.run_for(Span::millis(2));
    assert_eq!(kept(&network), [].into());
}

fn is_inside(network: &Network<Node>, node: usize) -> bool {
    let sections = network.machine(node).unwrap().sections().unwrap();
    sections.get(door()).is_some_and(|it| it.token().is_some())
}

/// The first node is cut off and learns nothing of the restarts of both others, which come after
/// the time: with them there are more lives than the bound has, and its request has to be over.
#[test]
fn a_node_that_is_cut_off_does_not_enter_with_permissions_of_lives_that_ended() {
    for (keep_for, inside) in [(KEEP, [false, true]), (Span::secs(1_000), [true, true])] {
        let mut network = mesh(keep_for);
        visit(&mut network, 0);
        network.partition(&[&[0][..], &[1, 2]]).unwrap();
        network.run_for(KEEP + Span::secs(1));
        for node in [1, 2] {
            let me = Member::new(node as u64 + 1, 1);
            network.restart(node, me, machine(me, keep_for)).unwrap();
            let seeds = if node == 2 {
                vec![NodeId(2)]
            } else {
                Vec::new()
            };
            join(&mut network, node, seeds);
        }
        network.run_for(Span::secs(10));
        open(&mut network, 1);
        for node in [0, 1] {
            ask(&mut network, node, sections::Command::Enter);
        }
        network.run_for(Span::secs(5));
        assert_eq!(
            [0, 1].map(|it| is_inside(&network, it)),
            inside,
            "{keep_for:?}"
        );
    }
}

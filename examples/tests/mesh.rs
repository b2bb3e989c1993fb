//! The composition of membership, sections and the estimator, in the simulator.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use selvedge_camera::sections::{self, Name};
use selvedge_camera::{Token, estimate};
use selvedge_core::{Member, Ratio, Span, Time};
use selvedge_examples::mesh::{Command, Counting, Event, Exclusion, Mesh, Reject};
use selvedge_membership as membership;
use selvedge_sim::network::{CallError, Link, Network, Topology};

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

fn exclusion(upper: u32, every: Span) -> Exclusion {
    Exclusion {
        sections: sections::Config::new(upper),
        counting: Some(Counting {
            config: estimate::Config::default(),
            every,
            spare: 2,
        }),
    }
}

fn mesh(nodes: usize, exclusion: &Exclusion) -> Network<Mesh> {
    let link = Link {
        loss: Ratio::new(1, 20),
        ..Link::default()
    };
    let mut network = Network::new(5, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    for node in 0..nodes {
        let me = member(node);
        let config = membership::Config::default();
        let machine = Mesh::new(me, config, Some(exclusion.clone())).unwrap();
        network.add(me, machine).unwrap();
        let seeds = (node > 0).then(|| member(0).id).into_iter().collect();
        let join = membership::Command::Join { seeds };
        network.command(node, Command::Membership(join)).unwrap();
    }
    network
}

fn name() -> Name {
    "door".parse().unwrap()
}

fn ask(network: &mut Network<Mesh>, node: usize, command: sections::Command) {
    network.command(node, Command::Sections(command)).unwrap();
}

fn tokens(network: &mut Network<Mesh>) -> Vec<Token> {
    let token = |(_, _, event)| match event {
        Event::Sections(sections::Event {
            event: selvedge_camera::Event::Entered(token),
            ..
        }) => Some(token),
        _ => None,
    };
    network.drain_events().filter_map(token).collect()
}

fn open() -> sections::Command {
    sections::Command::Open {
        name: name(),
        config: None,
    }
}

#[test]
fn a_section_hears_of_members_from_membership_and_of_restarts() {
    let mut network = mesh(5, &exclusion(6, Span::ZERO));
    network.run_for(Span::secs(20));
    for node in [1, 3] {
        ask(&mut network, node, open());
        ask(&mut network, node, sections::Command::Enter(name()));
        network.run_for(Span::secs(5));
    }
    // Node 3 waits for node 1, which restarts and forgets: so it is out.
    let waits = |network: &Network<Mesh>| {
        let sections = network.machine(3).unwrap().sections().unwrap();
        sections.get(name()).unwrap().is_waiting()
    };
    assert!(waits(&network));
    let heir = Member::new(2, 1);
    let machine = Mesh::new(heir, membership::Config::default(), None).unwrap();
    network.restart(1, heir, machine).unwrap();
    let join = membership::Command::Join {
        seeds: vec![member(0).id],
    };
    network.command(1, Command::Membership(join)).unwrap();
    let limit = network.now() + Span::secs(60);
    assert!(network.run_until_met(limit, |network| !waits(network)));
    let tokens = tokens(&mut network);
    assert_eq!(tokens.len(), 2);
    assert!(tokens[0] < tokens[1], "{tokens:?}");
}

#[test]
fn nobody_says_good_bye_while_inside() {
    let mut network = mesh(3, &exclusion(3, Span::ZERO));
    let early = network.command(1, Command::Sections(sections::Command::Enter(name())));
    let why = Reject::NotPresent;
    assert_eq!(early, Err(CallError::Refused { node: 1, why }));
    network.run_for(Span::secs(10));
    ask(&mut network, 0, open());
    ask(&mut network, 0, sections::Command::Enter(name()));
    let leave = || Command::Membership(membership::Command::Leave);
    let refused = network.command(0, leave()).unwrap_err();
    assert!(
        matches!(refused, CallError::Refused { why: Reject::InUse(it), .. } if it == name()),
        "{refused:?}"
    );
    network.run_for(Span::secs(5));
    assert!(network.command(0, leave()).is_err());
    ask(&mut network, 0, sections::Command::Exit(name()));
    network.command(0, leave()).unwrap();
}

/// The estimate's upper bound becomes that of all sections, if it is higher.
#[test]
fn estimates_raise_the_bound_and_never_lower_it() {
    let mut network = mesh(20, &exclusion(4, Span::secs(30)));
    network.run_for(Span::secs(25));
    let raised = |network: &mut Network<Mesh>| -> Vec<u32> {
        let raised = |(_, node, event)| match event {
            Event::Raised(upper) if node == 7 => Some(upper),
            _ => None,
        };
        network.drain_events().filter_map(raised).collect()
    };
    assert_eq!(raised(&mut network), [0; 0]);
    network.run_for(Span::secs(20));
    let first = raised(&mut network);
    assert!(matches!(first[..], [22..=35]), "{first:?}");
    ask(&mut network, 7, open());
    let bound = |network: &Network<Mesh>| {
        let sections = network.machine(7).unwrap().sections().unwrap();
        let camera = sections.get(name()).unwrap();
        assert_eq!(camera.config().upper, sections.config().section.upper);
        camera.config().upper
    };
    assert_eq!(bound(&network), first[0]);
    network.run_until(Time::ZERO + Span::secs(300));
    let later = raised(&mut network);
    let all = [first, later].concat();
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    assert_eq!(all.last(), Some(&bound(&network)));
    // An operator may lower it.
    ask(&mut network, 7, sections::Command::Bound(20));
    assert_eq!(bound(&network), 20);
}

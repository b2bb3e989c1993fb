//! The composition of membership, sections, the estimator and elections, in the simulator.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use selvedge::{Command, Counting, Election, Event, Exclusion, Node, Reject};
use selvedge_camera::sections::{self, Name};
use selvedge_camera::{Token, estimate};
use selvedge_celect::{self as celect, Ballot};
use selvedge_core::{Member, Ratio, Span, Time};
use selvedge_membership as membership;
use selvedge_sim::network::{CallError, Link, Network, Topology};
use std::collections::BTreeMap;

fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

fn exclusion(upper: u32, every: Span) -> Exclusion {
    Exclusion::new(sections::Config::new(upper)).with_counting(Counting {
        config: estimate::Config::default(),
        every,
        spare: 2,
    })
}

fn mesh(nodes: usize, exclusion: &Exclusion) -> Network<Node> {
    let link = Link {
        loss: Ratio::new(1, 20),
        ..Link::default()
    };
    let mut network = Network::new(5, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    for node in 0..nodes {
        let me = member(node);
        let config = membership::Config::default();
        let machine = Node::builder(me)
            .membership(config)
            .locks(exclusion.clone())
            .build()
            .unwrap();
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

fn ask(network: &mut Network<Node>, node: usize, command: sections::Command) {
    network.command(node, Command::Sections(command)).unwrap();
}

fn tokens(network: &mut Network<Node>) -> Vec<Token> {
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
    let waits = |network: &Network<Node>| {
        let sections = network.machine(3).unwrap().sections().unwrap();
        sections.get(name()).unwrap().is_waiting()
    };
    assert!(waits(&network));
    let heir = Member::new(2, 1);
    let machine = Node::builder(heir).build().unwrap();
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

/// Other nodes take the life for over as soon as they receive its good-bye, and let another node
/// in.
#[test]
fn nobody_enters_after_good_bye() {
    let mut network = mesh(3, &exclusion(3, Span::ZERO));
    network.run_for(Span::secs(10));
    ask(&mut network, 0, open());
    let leave = Command::Membership(membership::Command::Leave);
    network.command(0, leave).unwrap();
    let late = network.command(0, Command::Sections(sections::Command::Enter(name())));
    let why = Reject::Leaving(name());
    assert_eq!(late, Err(CallError::Refused { node: 0, why }));
}

/// The estimate's upper bound becomes the bound of all sections, if it is higher.
#[test]
fn estimates_raise_the_bound_and_never_lower_it() {
    let mut network = mesh(20, &exclusion(4, Span::secs(30)));
    network.run_for(Span::secs(25));
    let raised = |network: &mut Network<Node>| -> Vec<u32> {
        let raised = |(_, node, event)| match event {
            Event::MaxLivesRaised(upper) if node == 7 => Some(upper),
            _ => None,
        };
        network.drain_events().filter_map(raised).collect()
    };
    assert_eq!(raised(&mut network), [0; 0]);
    network.run_for(Span::secs(20));
    let first = raised(&mut network);
    assert!(matches!(first[..], [22..=35]), "{first:?}");
    ask(&mut network, 7, open());
    let bound = |network: &Network<Node>| {
        let sections = network.machine(7).unwrap().sections().unwrap();
        let camera = sections.get(name()).unwrap();
        assert_eq!(
            camera.config().max_lives,
            sections.config().section.max_lives
        );
        camera.config().max_lives
    };
    assert_eq!(bound(&network), first[0]);
    network.run_until(Time::ZERO + Span::secs(300));
    let later = raised(&mut network);
    let all = [first, later].concat();
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    assert_eq!(all.last(), Some(&bound(&network)));
    // An operator may lower it.
    ask(&mut network, 7, sections::Command::SetMaxLives(20));
    assert_eq!(bound(&network), 20);
}

fn election(c: u16) -> Election {
    Election {
        config: celect::Config::new(c, 1),
        label: (*b"leader").into(),
        patience: Span::secs(8),
    }
}

/// Nodes that elect leaders, and do nothing else.
fn electors(nodes: usize, c: u16, seed: u64) -> Network<Node> {
    let link = Link {
        loss: Ratio::new(1, 20),
        ..Link::default()
    };
    let mut network = Network::new(seed, Topology::full_mesh(nodes).unwrap(), link).unwrap();
    // A node whose welcome gets lost asks again, and has to take a later life.
    network.set_identity(|it: &Node| it.membership().me());
    for node in 0..nodes {
        network.add(member(node), elector(node, c)).unwrap();
        join(&mut network, node);
    }
    network
}

fn elector(node: usize, c: u16) -> Node {
    let config = membership::Config::default();
    Node::builder(member(node))
        .membership(config)
        .election(election(c))
        .build()
        .unwrap()
}

fn join(network: &mut Network<Node>, node: usize) {
    let seeds = (node > 0).then(|| member(0).id).into_iter().collect();
    let join = membership::Command::Join { seeds };
    network.command(node, Command::Membership(join)).unwrap();
}

/// The leader that these nodes follow, if it is the same.
fn followed(network: &Network<Node>, nodes: &[usize]) -> Option<(Member, Ballot)> {
    let leaders: Vec<_> = nodes
        .iter()
        .map(|&node| network.machine(node).unwrap().leader())
        .collect();
    let first = leaders[0]?;
    leaders.iter().all(|&it| it == Some(first)).then_some(first)
}

/// Runs until these nodes follow one leader that `wanted` accepts.
fn run_until_led(
    network: &mut Network<Node>,
    nodes: &[usize],
    wanted: impl Fn(Member) -> bool,
) -> (Member, Ballot) {
    let limit = network.now() + Span::secs(300);
    let is_led = |network: &Network<Node>| followed(network, nodes).is_some_and(|it| wanted(it.0));
    let in_time = network.run_until_met(limit, is_led);
    let leaders: Vec<_> = nodes
        .iter()
        .map(|&node| network.machine(node).unwrap().leader())
        .collect();
    assert!(in_time, "{leaders:?}");
    followed(network, nodes).unwrap()
}

fn place(member: Member) -> usize {
    usize::try_from(member.id.0 - 1).unwrap()
}

/// No command asks for any of these leaders.
#[test]
fn a_leader_comes_unasked_and_again_when_it_crashes() {
    for seed in 0..5 {
        eprintln!("seed {seed}");
        let mut network = electors(8, 2, seed);
        let mut alive: Vec<usize> = (0..8).collect();
        let (mut leader, mut ballot) = run_until_led(&mut network, &alive, |_| true);
        // Down to one node, which leads itself.
        while alive.len() > 1 {
            network.crash(place(leader)).unwrap();
            alive.retain(|&node| node != place(leader));
            let former = leader;
            let found = run_until_led(&mut network, &alive, |leader| leader != former);
            assert!(found.1 > ballot, "seed {seed}: {found:?} after {ballot:?}");
            (leader, ballot) = found;
        }
        let mut by_ballot = BTreeMap::new();
        for (_, _, event) in network.drain_events() {
            if let Event::Election(celect::Event::Elected { leader, ballot }) = event {
                let first = *by_ballot.entry(ballot).or_insert(leader);
                assert_eq!(first, leader, "seed {seed}: two lead under {ballot:?}");
            }
        }
        assert!(by_ballot.len() >= 8);
    }
}

#[test]
fn a_node_that_is_alone_leads_itself_until_it_meets_others() {
    let mut network = electors(2, 5, 1);
    network.crash(1).unwrap();
    let (leader, _) = run_until_led(&mut network, &[0], |_| true);
    assert_eq!(leader, member(0));
    let heir = Member::new(2, 1);
    let config = membership::Config::default();
    let machine = Node::builder(heir)
        .membership(config)
        .election(election(5))
        .build()
        .unwrap();
    network.restart(1, heir, machine).unwrap();
    join(&mut network, 1);
    // No node begins an election: it learns who leads.
    let (leader, ballot) = run_until_led(&mut network, &[0, 1], |_| true);
    assert_eq!((leader, ballot.epoch), (member(0), 1));
}

#[test]
fn both_sides_of_a_cut_are_led_and_one_of_the_two_leads_all_when_it_heals() {
    let mut network = electors(8, 1, 3);
    let all: Vec<usize> = (0..8).collect();
    let (former, _) = run_until_led(&mut network, &all, |_| true);
    let (one, other) = all.split_at(3);
    network.partition(&[one, other]).unwrap();
    let in_reach = |side: &[usize], leader: Member| side.contains(&place(leader));
    let led = [one, other].map(|side| {
        let found = run_until_led(&mut network, side, |leader| in_reach(side, leader));
        (found.1, found.0)
    });
    assert!(led.iter().any(|it| it.1 == former));
    network.heal();
    let (leader, ballot) = run_until_led(&mut network, &all, |_| true);
    assert!(led.iter().max() <= Some(&(ballot, leader)), "{led:?}");
}

/// Each of n nodes is missing from n - 1 lists at most, for any given c.
#[test]
fn no_more_lists_are_asked_for_than_there_are() {
    let mut network = electors(4, 9, 2);
    let c = |network: &Network<Node>| {
        network
            .machine(3)
            .unwrap()
            .celect()
            .unwrap()
            .config()
            .missing_from
    };
    run_until_led(&mut network, &[0, 1, 2, 3], |_| true);
    assert_eq!(c(&network), 3);
    let tolerate = |c| {
        Command::Election(celect::Command::SetBounds {
            missing_from: c,
            failures: 0,
        })
    };
    network.command(3, tolerate(2)).unwrap();
    assert_eq!(c(&network), 2);
    network.command(3, tolerate(7)).unwrap();
    assert_eq!(c(&network), 3);
    network.crash(0).unwrap();
    let limit = network.now() + Span::secs(300);
    assert!(network.run_until_met(limit, |network| c(network) == 2));
}

#[test]
fn who_takes_no_part_in_elections_says_so() {
    let mut network = mesh(2, &exclusion(3, Span::ZERO));
    network.run_for(Span::secs(10));
    let refused = network.command(0, Command::Election(celect::Command::Elect));
    let why = Reject::NoElection;
    assert_eq!(refused, Err(CallError::Refused { node: 0, why }));
    assert_eq!(network.machine(0).unwrap().leader(), None);
    assert!(!network.machine(0).unwrap().serves(celect::KIND));
}

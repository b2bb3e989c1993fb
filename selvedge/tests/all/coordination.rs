//! Nodes that run routines and keep maps together, with deltas from membership.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;

use selvedge::{Command, ConfigError, Coordination, Event, Message, Node, Reject, decode, encode};
use selvedge_core::{Driver, Input, Member, NodeId, Ratio, Sha256Sortition, Span, Time};
use selvedge_groups as groups;
use selvedge_groups::{
    GroupId, Item, KIND, Misbehaviour, Place, Start,
    store::{Entry, Expected, Operation, StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup as kgroup;
use selvedge_kgroup::routines::{Definition, RoutineEvent};
use selvedge_kgroup::{LeaderEvent, Outcome, Site, TriggerId, WallClock};
use selvedge_membership as membership;
use selvedge_routine::{Routine, State, Step};
use selvedge_sim::network::{CallError, Link, Network, Topology};

pub(crate) const NODES: u64 = 5;
pub(crate) const LAMPS: [NodeId; 2] = [NodeId(101), NodeId(102)];

pub(crate) fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// Five nodes in a row with two lamps, and a routine that switches both on.
fn site() -> Site {
    let place = |at: u64| Place([at as i32 * 100, 0, 0]);
    let selection = groups::Selection::new().with_failures(1);
    let nodes = (1..=NODES).map(|id| groups::Node::new(id, place(id)));
    let lamps = LAMPS.into_iter().zip([place(1), place(4)]);
    let steps = LAMPS.map(|lamp| Step::new(lamp, "on".into())).to_vec();
    let on = Definition::new(Routine { steps });
    let site = Site::new(selection, nodes, lamps, 1).unwrap();
    site.with_routine(on).unwrap()
}

fn coordination(site: Site) -> Coordination {
    Coordination::new(site)
}

fn node(me: Member) -> Node {
    node_of(me, Start::Fresh)
}

pub(crate) fn node_of(me: Member, start: Start) -> Node {
    let coordination = coordination(site()).with_start(start);
    Node::builder(me).groups(coordination).build().unwrap()
}

pub(crate) fn map() -> GroupId {
    GroupId::map("doors", &Sha256Sortition)
}

/// A network, and devices that obey at once.
pub(crate) struct Building {
    pub(crate) net: Network<Node>,
    lamps: BTreeMap<NodeId, State>,
    /// The devices that received a command, in order.
    pub(crate) done: Vec<NodeId>,
    pub(crate) events: Vec<(usize, kgroup::Event)>,
}

impl Building {
    pub(crate) fn new(seed: u64) -> Self {
        eprintln!("seed {seed}");
        let link = Link {
            loss: Ratio::new(1, 50),
            ..Link::default()
        };
        let topology = Topology::full_mesh(NODES as usize).unwrap();
        let mut net = Network::new(seed, topology, link).unwrap();
        net.set_identity(|it: &Node| it.membership().me());
        let mut building = Self {
            net,
            lamps: LAMPS.map(|lamp| (lamp, "off".into())).into(),
            done: Vec::new(),
            events: Vec::new(),
        };
        for at in 0..NODES as usize {
            building.net.add(member(at), node(member(at))).unwrap();
            building.ask(at, kgroup::Command::SetEpoch(1));
            building.join(at);
        }
        building
    }

    pub(crate) fn join(&mut self, at: usize) {
        let seeds = (0..NODES as usize).filter(|it| *it != at);
        let seeds = seeds.map(|it| member(it).id).collect();
        let seeds = if at == 0 && self.net.now() == Time::ZERO {
            Vec::new()
        } else {
            seeds
        };
        let join = Command::Membership(membership::Command::Join { seeds });
        self.net.command(at, join).unwrap();
    }

    pub(crate) fn ask(&mut self, at: usize, command: kgroup::Command) {
        self.net.command(at, Command::Groups(command)).unwrap();
    }

    pub(crate) fn ask_map(&mut self, at: usize, command: StoreCommand) {
        let map = map();
        self.ask(at, kgroup::Command::Map { map, command });
    }

    pub(crate) fn trigger(&mut self, at: usize, id: u64) {
        let (routine, id) = (Site::routine(0), TriggerId(id));
        self.ask(at, kgroup::Command::Trigger { routine, id });
    }

    pub(crate) fn run(&mut self, span: Span) {
        let until = self.net.now() + span;
        while let Some(next) = self.net.next_at().filter(|it| *it <= until) {
            self.net.run_until(next);
            self.receive();
        }
        self.net.run_until(until);
        self.receive();
    }

    fn receive(&mut self) {
        let events: Vec<_> = self.net.drain_events().collect();
        for (_, at, event) in events {
            let Event::Groups(event) = event else {
                continue;
            };
            if let kgroup::Event::Leader {
                event: LeaderEvent::Devices(event),
                ..
            } = &event
                && let Some(answer) = self.on_device(event)
            {
                // It may have lost the lead.
                let _taken = self.net.command(at, Command::Groups(answer)).is_ok();
            }
            self.events.push((at, event));
        }
    }

    fn on_device(&mut self, event: &kgroup::devices::Event) -> Option<kgroup::Command> {
        match event {
            kgroup::devices::Event::Ping { device } => Some(kgroup::Command::Reported {
                device: *device,
                value: Some(self.lamps[device].clone()),
            }),
            kgroup::devices::Event::Act { ticket, value } => {
                self.lamps.insert(ticket.device, value.clone());
                self.done.push(ticket.device);
                Some(kgroup::Command::Acted {
                    ticket: *ticket,
                    outcome: Outcome::Done,
                })
            }
            _ => None,
        }
    }

    pub(crate) fn reports(&self) -> usize {
        let is_report = |event: &kgroup::Event| {
            matches!(
                event,
                kgroup::Event::Leader {
                    event: LeaderEvent::Routine(RoutineEvent::Reports(_)),
                    ..
                }
            )
        };
        self.events.iter().filter(|it| is_report(&it.1)).count()
    }

    fn kgroup(&self, at: usize) -> &kgroup::Kgroup {
        self.net.machine(at).unwrap().kgroup().unwrap()
    }

    /// The nodes that are up and lead the routine's group.
    fn leaders(&self) -> Vec<usize> {
        let up = (0..NODES as usize).filter(|it| self.net.is_up(*it));
        let leads = |at: &usize| self.kgroup(*at).leads().any(|it| it == Site::routine(0));
        up.filter(leads).collect()
    }

    /// The events about the map at a node.
    fn notified(&self, at: usize) -> Vec<StoreEvent> {
        let notified = self.events.iter().filter_map(|(node, event)| match event {
            kgroup::Event::Map { event, .. } if *node == at => Some(event.clone()),
            _ => None,
        });
        notified.collect()
    }
}

fn put(ticket: u64, value: &[u8]) -> StoreCommand {
    let operation = Operation::set(
        "front",
        Expected::Any,
        Some(value.iter().copied().collect()),
    );
    StoreCommand::Change { ticket, operation }
}

#[test]
fn routines_run_and_go_on_when_the_node_that_leads_them_dies() {
    let mut building = Building::new(1);
    building.run(Span::secs(20));
    building.trigger(4, 1);
    building.run(Span::secs(10));
    assert_eq!(building.done, LAMPS);
    assert_eq!(building.reports(), 1);
    let former = building.leaders();
    assert_eq!(former.len(), 1);
    building.net.crash(former[0]).unwrap();
    let asker = (former[0] + 1) % NODES as usize;
    building.trigger(asker, 2);
    building.run(Span::secs(60));
    assert_eq!(building.done, [LAMPS, LAMPS].concat());
    assert_eq!(building.reports(), 2);
    let leaders = building.leaders();
    assert!(leaders.len() == 1 && leaders != former, "{leaders:?}");
}

#[test]
fn a_map_that_one_node_changes_is_watched_by_another() {
    let mut building = Building::new(2);
    building.run(Span::secs(20));
    building.ask_map(4, StoreCommand::Watch("front".into()));
    building.run(Span::secs(5));
    building.ask_map(0, put(1, b"shut"));
    building.run(Span::secs(5));
    let stored = Stored::Done { version: 1 };
    let changed = StoreEvent::Changed { ticket: 1, stored };
    assert_eq!(building.notified(0), [changed]);
    let watched: Vec<_> = building.notified(4).into_iter().map(value).collect();
    assert_eq!(watched, [None, Some(b"shut".to_vec())]);
}

/// The value of a watched entry.
fn value(event: StoreEvent) -> Option<Vec<u8>> {
    let StoreEvent::Watched { entry, .. } = event else {
        return None;
    };
    entry.map(|Entry { value, .. }| value.to_vec())
}

/// A node that left has forgotten its promises as a member of groups.
#[test]
fn a_later_life_of_one_machine_begins_again_and_in_the_epoch_that_was_given() {
    let mut building = Building::new(3);
    building.run(Span::secs(20));
    building.ask_map(3, put(1, b"shut"));
    building.run(Span::secs(5));
    let founded = building.kgroup(3).groups().groups().count();
    assert!(founded > 0);
    let first = building.kgroup(3).me();
    building.ask(3, kgroup::Command::SetEpoch(2));
    let leave = Command::Membership(membership::Command::Leave);
    building.net.command(3, leave).unwrap();
    building.run(Span::secs(10));
    assert_eq!(building.net.machine(3).unwrap().kgroup(), None);
    building.ask(3, kgroup::Command::SetEpoch(7));
    building.join(3);
    while building.net.machine(3).unwrap().kgroup().is_none() {
        building.run(Span::millis(1));
    }
    let kgroup = building.kgroup(3);
    assert!(kgroup.me().incarnation.newer_than(first.incarnation));
    assert_eq!(kgroup.groups().epoch(), 7);
    // A message of a group that names it may have come already.
    let groups = kgroup.groups();
    let number = |it| groups.replica(it).map(|it| it.configuration().number);
    let founded = groups.groups().filter_map(number);
    let founded: Vec<u64> = founded.filter(|it| *it > 0).collect();
    assert!(founded.is_empty(), "it founds nothing: {founded:?}");
    // It continues as a client.
    building.run(Span::secs(10));
    building.ask_map(3, put(2, b"open"));
    building.run(Span::secs(10));
    let stored = Stored::Done { version: 2 };
    let changed = StoreEvent::Changed { ticket: 2, stored };
    assert_eq!(building.notified(3).last(), Some(&changed));
}

/// A node that is alone in its mesh.
fn alone(node: Node) -> Driver<Node> {
    let mut alone = Driver::new(node);
    let seeds = Vec::new();
    let join = Command::Membership(membership::Command::Join { seeds });
    step(&mut alone, Input::Command(join)).unwrap();
    alone
}

fn step(node: &mut Driver<Node>, input: Input<Node>) -> Result<(), Reject> {
    use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    node.step(Time::ZERO, &mut rng, input, drop)
}

fn greeting(site: &Site) -> Message {
    let item = Item::Where {
        group: Site::routine(0),
        number: 0,
        leader: None,
        members: [member(2)].into_iter().collect(),
    };
    Message::Groups(kgroup::Message {
        plan: site.plan().unwrap().digest(),
        generation: 0,
        items: [item].into_iter().collect(),
    })
}

fn receive(node: &mut Driver<Node>, message: Message) -> Result<(), Reject> {
    let from = member(1);
    step(node, Input::Message { from, message })
}

#[test]
fn nodes_with_another_site_are_refused() {
    let mut node = alone(node(member(0)));
    assert_eq!(receive(&mut node, greeting(&site())), Ok(()));
    let shorter = site().with_frame_budget(1_353).unwrap();
    for other in [site().with_origin(1), shorter] {
        let refused = receive(&mut node, greeting(&other)).unwrap_err();
        let Reject::Groups(kgroup::Reject::Groups(groups::Reject::Misbehaviour(why))) = refused
        else {
            panic!("{refused:?}");
        };
        assert!(matches!(why, Misbehaviour::Plan { .. }), "{why:?}");
        assert!(!refused.is_untimely());
    }
}

#[test]
fn a_site_without_this_node_is_refused() {
    let stranger = Node::builder(member(9)).groups(coordination(site()));
    let refused = stranger.build();
    let why = kgroup::Reject::Groups(groups::Reject::Unplanned(member(9).id));
    assert_eq!(refused.unwrap_err(), ConfigError::Groups(why));
}

#[test]
fn a_node_without_this_part_says_so() {
    let plain = Node::builder(member(0)).build().unwrap();
    assert!(!plain.serves(KIND));
    assert!(node(member(0)).serves(KIND));
    let mut plain = alone(plain);
    let refused = receive(&mut plain, greeting(&site()));
    assert_eq!(refused, Err(Reject::NoCoordination));
    let epoch = Input::Command(Command::Groups(kgroup::Command::SetEpoch(1)));
    assert_eq!(step(&mut plain, epoch), Err(Reject::NoCoordination));
}

#[test]
fn a_clock_that_is_set_before_the_node_is_in_goes_on_in_its_life() {
    use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
    let shown = WallClock {
        utc: Span::secs(1_772_433_000),
        ahead: 3_600,
        ..WallClock::default()
    };
    let mut node = Driver::new(node(member(0)));
    let clock = Command::Groups(kgroup::Command::SetClock(shown));
    step(&mut node, Input::Command(clock)).unwrap();
    let join = Command::Membership(membership::Command::Join { seeds: vec![] });
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let later = Time::ZERO + Span::secs(5);
    node.step(later, &mut rng, Input::Command(join), drop)
        .unwrap();
    let part = node.machine().kgroup().unwrap();
    assert_eq!(part.clock(later), Some(shown.after(Span::secs(5))));
}

#[test]
fn a_node_that_asked_to_be_spared_is_so_in_each_life_until_it_takes_its_share() {
    let mut building = Building::new(3);
    building.run(Span::secs(5));
    let spared = |building: &Building, of| {
        let all = (1..=3).map(|at| building.kgroup(at).groups().is_spared(of));
        all.collect::<Vec<_>>()
    };
    let first = building.kgroup(3).me();
    building.ask(3, kgroup::Command::SetSpared(true));
    building.run(Span::secs(1));
    assert_eq!(spared(&building, first.id), [true; 3]);
    let leave = Command::Membership(membership::Command::Leave);
    building.net.command(3, leave).unwrap();
    building.run(Span::secs(10));
    building.join(3);
    building.run(Span::secs(10));
    assert!(building.kgroup(3).me().supersedes(first));
    assert_eq!(spared(&building, first.id), [true; 3]);
    // It has left again when it takes its share.
    let leave = Command::Membership(membership::Command::Leave);
    building.net.command(3, leave).unwrap();
    building.run(Span::secs(10));
    building.ask(3, kgroup::Command::SetSpared(false));
    building.join(3);
    building.run(Span::secs(10));
    assert_eq!(spared(&building, first.id), [false; 3]);
}

#[test]
fn settings_of_the_host_are_taken_before_the_node_is_in() {
    let mut building = Building::new(4);
    let (routine, id) = (Site::routine(0), TriggerId(1));
    let trigger = Command::Groups(kgroup::Command::Trigger { routine, id });
    let early = building.net.command(1, trigger);
    let why = Reject::NotPresent;
    assert_eq!(early, Err(CallError::Refused { node: 1, why }));
    let mut joining = Driver::new(node(member(0)));
    let untimely = receive(&mut joining, greeting(&site())).unwrap_err();
    assert!(untimely.is_untimely());
}

#[test]
fn its_frames_are_of_kind_8() {
    let (from, message) = (member(1), greeting(&site()));
    let mut frame = Vec::new();
    encode(from, &message, 1_400, &mut frame).unwrap();
    assert_eq!((message.kind(), frame[1]), (8, 8));
    let read = decode(KIND, &frame, 1_400).unwrap();
    assert_eq!((read.from, read.message), (from, message));
}

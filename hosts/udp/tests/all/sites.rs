//! Sites that change while real nodes run, and nodes whose site differs from that of the others.

use std::net::SocketAddr;
use std::sync::Arc;

use selvedge::Coordination;
use selvedge_core::{Incarnation, NodeId, Span};
use selvedge_groups::store::Stored;
use selvedge_groups::{self as groups, GroupId, Place, Selection, Start};
use selvedge_kgroup::routines::{Definition, Retrigger};
use selvedge_kgroup::{Config, ConfigError, Event, Reject as Refused, Site, TriggerId};
use selvedge_routine::trigger::Trigger;
use selvedge_routine::{Routine, Step};
use selvedge_udp::discovery::OtherSite;
use selvedge_udp::{Error, Handle, Map, NodeEvent, Reject, Setup};
use tokio::time::timeout;

use crate::bench::{self, Node, PATIENCE, until};
use crate::devices::Devices;
use crate::facts::Disk;

const LAMP: NodeId = NodeId(101);
const DOOR: NodeId = NodeId(102);
const BLIND: NodeId = NodeId(103);

/// The first site: these nodes, a lamp and a door, and a routine that switches the lamp on.
fn first(nodes: u64) -> Site {
    let nodes = (1..=nodes).map(node);
    let devices = [LAMP, DOOR].map(|it| (it, Place::default()));
    let site = Site::new(Selection::new().with_failures(1), nodes, devices, 1);
    site.unwrap().with_routine(switching(&[LAMP])).unwrap()
}

fn node(id: u64) -> groups::Node {
    groups::Node::new(id, Place::default())
}

fn switching(devices: &[NodeId]) -> Definition {
    let steps = devices.iter().map(|it| Step::new(*it, "on".into()));
    let steps = steps.collect();
    // A run whose leader was killed may take a while to end.
    Definition::new(Routine { steps }).with_retrigger(Retrigger::QueueOnce)
}

/// A site with a blind, and a routine that switches it.
fn with_blind(site: &Site) -> Site {
    let site = site.clone().with_device(BLIND, Place::default()).unwrap();
    site.with_routine(switching(&[BLIND])).unwrap()
}

/// Nodes with folders, and devices.
struct Building {
    nodes: Vec<Node>,
    disks: Vec<Disk>,
    devices: Devices,
}

impl Building {
    async fn start(count: usize, site: &Site) -> Self {
        Self::start_with(count, site, |it| it).await
    }

    async fn start_with(count: usize, site: &Site, change: impl Fn(Setup) -> Setup) -> Self {
        let mut building = Self {
            nodes: Vec::new(),
            disks: Vec::new(),
            devices: Devices::default(),
        };
        for _ in 0..count {
            building.add(site, &change).await;
        }
        building.meet().await;
        building
    }

    /// Starts one more node with an empty folder.
    async fn add(&mut self, site: &Site, change: impl Fn(Setup) -> Setup) {
        self.disks.push(Disk::default());
        let node = self.node(self.nodes.len(), site, change).await;
        self.nodes.push(node);
    }

    /// Starts the node with this index from its folder.
    async fn node(&self, at: usize, site: &Site, change: impl FnOnce(Setup) -> Setup) -> Node {
        let others = self.nodes.iter().filter(|it| it.state().is_in);
        let others = others.filter(|it| it.id() != NodeId(at as u64 + 1));
        let seeds: Vec<SocketAddr> = others.map(|it| it.address()).take(2).collect();
        let setup = bench::setup(at as u64 + 1, &seeds)
            .coordination(Coordination::new(site.clone()), Span::secs(3_600))
            .state_on(self.disks[at].clone());
        let node = Node::start(change(setup)).await;
        tokio::spawn(self.devices.clone().serve(node.clone()));
        node.joined().await.unwrap();
        node
    }

    /// Kills a node, and starts it again with this site.
    async fn restart(&mut self, at: usize, site: &Site) {
        self.nodes[at].kill().await;
        self.nodes[at] = self.node(at, site, |it| it).await;
    }

    /// Waits until all know each other.
    async fn meet(&self) {
        let count = self.nodes.len();
        for node in &self.nodes {
            until(|| node.live() == count).await;
        }
    }

    async fn have_generation(&self, generation: u32) {
        for node in &self.nodes {
            until(|| generation_of(node) == Some(generation)).await;
        }
    }

    /// Has a routine run, and waits for its command to the device.
    async fn run(&self, at: usize, routine: u32, id: u64, device: NodeId) {
        let before = self.devices.count(device);
        let asked = self.nodes[at].trigger(Site::routine(routine), TriggerId(id));
        timeout(PATIENCE, asked).await.unwrap().unwrap();
        until(|| self.devices.count(device) > before).await;
    }
}

fn generation_of(node: &Handle) -> Option<u32> {
    node.site().map(|it| it.generation())
}

async fn put(map: Map<'_>, version: u64) {
    let stored = timeout(PATIENCE, map.put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version }));
}

async fn change(node: &Handle, site: Site) -> Result<u32, Error> {
    timeout(PATIENCE, node.change_site(site)).await.unwrap()
}

fn is_own(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::OtherSite(OtherSite::Own { .. }))
}

/// The reason with which a request is refused.
async fn refusal(node: &Handle) -> (OtherSite, String) {
    let refused = timeout(PATIENCE, node.map("doors").get("front")).await;
    let error = refused.unwrap().unwrap_err();
    match error {
        Error::Rejected(Reject::OtherSite(other)) => (other, error.to_string()),
        _ => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_device_and_a_routine_are_added_while_nodes_run() {
    let mut building = Building::start(5, &first(5)).await;
    building.run(0, 0, 1, LAMP).await;
    assert_eq!(generation_of(&building.nodes[2]), Some(0));
    let present = building.nodes[2].site().unwrap();
    let next = with_blind(&present);
    assert_eq!(change(&building.nodes[2], next.clone()).await, Ok(1));
    let decided = present.changed_to(&next).unwrap();
    assert_eq!(building.nodes[2].site(), Some(Arc::new(decided)));
    let is_first = |it: &NodeEvent| matches!(it, NodeEvent::Site { generation: 1 });
    for node in &mut building.nodes {
        node.wait_for(is_first).await;
        assert_eq!(generation_of(node), Some(1));
    }
    building.run(4, 1, 2, BLIND).await;
    building.run(0, 0, 3, LAMP).await;
}

#[tokio::test]
async fn a_routine_that_time_triggers_is_added_while_nodes_run() {
    let building = Building::start(3, &first(3)).await;
    let every = switching(&[DOOR]).with_trigger(Trigger::Every(Span::secs(1)));
    let next = Site::clone(&building.nodes[0].site().unwrap()).with_routine(every);
    assert_eq!(change(&building.nodes[0], next.unwrap()).await, Ok(1));
    until(|| building.devices.count(DOOR) > 1).await;
}

#[tokio::test]
async fn a_routine_that_is_removed_passes_its_devices_on() {
    let mut holding = Step::new(LAMP, "on".into());
    holding.hold = Span::secs(3_600);
    let steps = vec![holding, Step::new(DOOR, "open".into())];
    let long = Definition::new(Routine { steps });
    let site = first(5).without_routine(0).unwrap();
    let site = site.with_routine(long).unwrap();
    let site = site.with_routine(switching(&[DOOR])).unwrap();
    let building = Building::start(5, &site).await;
    building.run(0, 1, 1, LAMP).await;
    // It waits for the door.
    let asked = building.nodes[1].trigger(Site::routine(2), TriggerId(2));
    timeout(PATIENCE, asked).await.unwrap().unwrap();
    tokio::time::sleep(core::time::Duration::from_millis(500)).await;
    assert_eq!(building.devices.count(DOOR), 0);
    let next = Site::clone(&building.nodes[3].site().unwrap());
    let next = next.without_routine(1).unwrap();
    let next = next.without_device(LAMP).unwrap();
    assert_eq!(change(&building.nodes[3], next).await, Ok(1));
    until(|| building.devices.count(DOOR) == 1).await;
}

#[tokio::test]
async fn of_two_changes_one_is_decided_and_what_cannot_follow_is_refused() {
    let building = Building::start(3, &first(3)).await;
    let present = building.nodes[0].site().unwrap();
    let one = change(&building.nodes[0], with_blind(&present));
    let other = Site::clone(&present).without_device(DOOR).unwrap();
    let (one, other) = tokio::join!(one, change(&building.nodes[1], other));
    let lost = Error::Rejected(Reject::OtherChange { generation: 1 });
    let outcomes = [(Ok(1), Err(lost)), (Err(lost), Ok(1))];
    assert!(outcomes.contains(&(one, other)), "{one:?}, {other:?}");
    building.have_generation(1).await;
    // Later, a change of the former site would undo the decided one.
    let late = change(&building.nodes[2], with_blind(&present)).await;
    assert_eq!(late, Err(lost));
    let present = building.nodes[0].site().unwrap();
    let shorter = Site::clone(&present).with_frame_budget(1_000).unwrap();
    let refused = change(&building.nodes[0], shorter).await.unwrap_err();
    let setting = "frame_budget";
    assert!(
        matches!(
            refused,
            Error::Rejected(Reject::Node(selvedge::Reject::Groups(Refused::Config(
                ConfigError::Fixed { setting: it, found: 1_000, .. }
            )))) if it == setting
        ),
        "{refused}"
    );
}

#[tokio::test]
async fn nodes_restart_one_by_one_with_a_later_site() {
    let site = first(5);
    let mut building = Building::start(5, &site).await;
    put(building.nodes[0].map("doors"), 1).await;
    let later = with_blind(&site.with_generation(1));
    for at in 0..5 {
        building.restart(at, &later).await;
        building.meet().await;
        building.have_generation(1).await;
        let id = 10 * (at as u64 + 1);
        put(building.nodes[at].map("doors"), at as u64 + 2).await;
        building.run((at + 1) % 5, 0, id, LAMP).await;
        building.run((at + 2) % 5, 1, id + 1, BLIND).await;
    }
}

#[tokio::test]
async fn a_node_that_starts_before_the_site_has_it_waits_and_joins() {
    let mut building = Building::start(5, &first(5)).await;
    let later = first(5).with_generation(1).with_node(node(6)).unwrap();
    building.add(&later, |it| it).await;
    let reported = building.nodes[5].wait_for(is_own).await;
    let (refused, why) = refusal(&building.nodes[5]).await;
    assert_eq!(reported, NodeEvent::OtherSite(refused));
    let no_node = ConfigError::NoNode(NodeId(6));
    assert!(matches!(refused, OtherSite::Own { why, .. } if why == no_node));
    assert!(why.contains("add it by a change of the site"), "{why}");
    let changes = change(&building.nodes[5], later.clone()).await;
    assert_eq!(changes, Err(Error::Rejected(Reject::OtherSite(refused))));
    assert_eq!(change(&building.nodes[2], later).await, Ok(1));
    building.have_generation(1).await;
    put(building.nodes[5].map("doors"), 1).await;
}

/// A program that gives an older site, the same one, or a later one.
#[tokio::test]
async fn all_nodes_have_the_decided_site_after_a_restart() {
    let site = first(5);
    let mut building = Building::start(5, &site).await;
    put(building.nodes[0].map("doors"), 1).await;
    let next = with_blind(&site);
    assert_eq!(change(&building.nodes[4], next.clone()).await, Ok(1));
    building.have_generation(1).await;
    building.run(1, 1, 1, BLIND).await;
    let same = next.clone().with_generation(1);
    let later = same.clone().with_routine(switching(&[DOOR]));
    let later = later.unwrap().with_generation(2);
    for (round, (given, generation)) in [(&site, 1), (&same, 1), (&later, 2)].iter().enumerate() {
        for node in &building.nodes {
            node.kill().await;
        }
        for at in 0..5 {
            building.nodes[at] = building.node(at, given, |it| it).await;
            // None founds anything of the site of its program.
            let has_stored = generation_of(&building.nodes[at]).is_some_and(|it| it > 0);
            assert!(has_stored, "round {round}");
        }
        building.meet().await;
        building.have_generation(*generation).await;
        put(building.nodes[round].map("doors"), round as u64 + 2).await;
        building.run(2, 1, 10 + round as u64, BLIND).await;
    }
    building.run(3, 2, 20, DOOR).await;
}

#[tokio::test]
async fn a_node_with_another_site_of_the_same_generation_is_refused_until_there_is_a_later_one() {
    let site = first(5);
    let mut building = Building::start(5, &site).await;
    assert_eq!(change(&building.nodes[0], with_blind(&site)).await, Ok(1));
    building.have_generation(1).await;
    let other = site.with_generation(1).without_device(DOOR).unwrap();
    building.restart(4, &other).await;
    let reported = building.nodes[4].wait_for(is_own).await;
    let (refused, why) = refusal(&building.nodes[4]).await;
    assert_eq!(reported, NodeEvent::OtherSite(refused));
    assert!(
        why.contains("device 102 differs") && why.contains("higher generation"),
        "{why}"
    );
    put(building.nodes[1].map("doors"), 1).await;
    // It changes the site as it likes, from the present one.
    let present = building.nodes[4].site().unwrap();
    let next = Site::clone(&present).without_device(DOOR).unwrap();
    assert_eq!(change(&building.nodes[4], next).await, Ok(2));
    put(building.nodes[4].map("doors"), 2).await;
}

#[tokio::test]
async fn maps_that_were_never_used_begin_where_three_of_seven_nodes_are_dead() {
    let building = Building::start(7, &first(7)).await;
    for node in &building.nodes[2..5] {
        node.kill().await;
    }
    let names: Vec<String> = (0..8).map(|it| format!("map {it}")).collect();
    let node = &building.nodes[6];
    for name in &names {
        put(node.map(name), 1).await;
    }
}

/// The indices of the nodes that have entered a group.
fn members(building: &mut Building, group: GroupId) -> Vec<usize> {
    let has_entered = |node: &mut Node| {
        let entered = |it: &NodeEvent| matches!(it, NodeEvent::Groups(Event::Groups(groups::Event::Entered(it))) if *it == group);
        node.passed().iter().any(entered)
    };
    let nodes = building.nodes.iter_mut().enumerate();
    nodes
        .filter_map(|(at, it)| has_entered(it).then_some(at))
        .collect()
}

#[tokio::test]
async fn a_map_whose_members_are_gone_for_good_begins_anew_by_command() {
    let mut building = Building::start(7, &first(7)).await;
    put(building.nodes[0].map("doors"), 1).await;
    let map = building.nodes[0].map("doors").group();
    let lost = members(&mut building, map);
    assert_eq!(lost.len(), 3);
    for at in &lost {
        building.nodes[*at].kill().await;
    }
    let left = (0..7).find(|it| !lost.contains(it)).unwrap();
    let node = building.nodes[left].clone();
    until(|| building.nodes[left].live() == 4).await;
    let waits = core::time::Duration::from_secs(2);
    assert!(
        timeout(waits, node.map("doors").get("front"))
            .await
            .is_err()
    );
    timeout(PATIENCE, node.begin_anew(map))
        .await
        .unwrap()
        .unwrap();
    let found = timeout(PATIENCE, node.map("doors").get("front")).await;
    assert_eq!(found.unwrap(), Ok(None));
    // Versions are higher than those of the map that was lost.
    let first = selvedge_groups::store::Store::after(1).version() + 1;
    put(node.map("doors"), first).await;
    // A group that the site does not have.
    let refused = node.begin_anew(Site::routine(9)).await.unwrap_err();
    assert!(
        matches!(refused, Error::Rejected(Reject::Node(_))),
        "{refused}"
    );
}

const EPOCH: Span = Span::secs(3);

/// Short epochs, in which groups change over after this time.
fn with_epochs(setup: Setup, site: &Site, delay: Span, start: Start) -> Setup {
    let groups = groups::Config::new()
        .with_patience(Span::millis(200))
        .with_change_delay(delay)
        .with_stagger(Span::millis(500));
    let coordination = Coordination::new(site.clone())
        .with_config(Config::new().with_groups(groups))
        .with_start(start);
    setup.coordination(coordination, EPOCH)
}

fn has_lost_quorum(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Groups(Event::Groups(groups::Event::QuorumLost(it))) if *it == Site::routine(0))
}

fn has_begun_anew(event: &NodeEvent) -> bool {
    matches!(event, NodeEvent::Groups(Event::Groups(groups::Event::BegunAnew(it))) if *it == Site::routine(0))
}

/// The power is cut, and two of the three members of the routine's group lose their folders.
#[tokio::test]
async fn a_routine_begins_anew_by_itself_when_all_nodes_but_one_are_up() {
    let site = first(9);
    let stays = |it| with_epochs(it, &site, EPOCH * 2, Start::Fresh);
    let mut building = Building::start_with(9, &site, stays).await;
    building.run(0, 0, 1, LAMP).await;
    let members = members(&mut building, Site::routine(0));
    let [one, two, kept] = members[..] else {
        panic!("{members:?}");
    };
    for node in &building.nodes {
        node.kill().await;
    }
    for at in [one, two] {
        building.disks[at] = Disk::default();
    }
    let again = |it: Setup, at| {
        let start = match [one, two].contains(&at) {
            true => Start::Restarted,
            false => Start::Fresh,
        };
        with_epochs(it, &site, Span::millis(200), start).life(Incarnation(1))
    };
    let others = (0..9).filter(|it| !members.contains(it));
    let here: Vec<usize> = others.skip(2).chain(members.iter().copied()).collect();
    for at in here.iter().copied() {
        building.nodes[at] = building.node(at, &site, |it| again(it, at)).await;
    }
    // The registry has a quorum. The two others may be a quorum of the group elsewhere.
    building.nodes[kept].wait_for(has_lost_quorum).await;
    tokio::time::sleep((EPOCH * 2).into()).await;
    for at in &here {
        assert!(!building.nodes[*at].passed().iter().any(has_begun_anew));
    }
    let third = (0..9).find(|it| !here.contains(it)).unwrap();
    building.nodes[third] = building.node(third, &site, |it| again(it, third)).await;
    building.nodes[kept].wait_for(has_begun_anew).await;
    building.run(kept, 0, 2, LAMP).await;
}

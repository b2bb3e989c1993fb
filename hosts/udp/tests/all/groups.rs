//! Real nodes that hold maps and run routines together.

use std::net::SocketAddr;
use std::time::Duration;

use selvedge::{Coordination, Election};
use selvedge_core::shared::Limits;
use selvedge_core::wire::VERSION;
use selvedge_core::{NodeId, Span, Time};
use selvedge_groups::{
    KIND, Place, Selection,
    store::{Expected, StoreEvent, Stored},
};
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{Config, Event, LeaderEvent, Outcome, Site, TriggerId, WallClock, devices};
use selvedge_routine::trigger::Trigger;
use selvedge_routine::{Routine, State, Step};
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::discovery::OtherSite;
use selvedge_udp::{Clock, Error, HostError, NodeEvent, Reject, Setup, Watch};
use tokio::time::timeout;

use crate::bench::{self, Node, PATIENCE, until};
use crate::datagrams;
use crate::network::Network;

pub(crate) const LAMP: NodeId = NodeId(101);

/// Three nodes, a lamp, and a routine that switches it on.
pub(crate) fn coordination() -> Coordination {
    coordination_of(|on| on)
}

fn coordination_of(change: impl FnOnce(Definition) -> Definition) -> Coordination {
    let nodes = (1..=3).map(|id| selvedge_groups::Node::new(id, Place::default()));
    let site = Site::new(
        Selection::new().with_failures(1),
        nodes,
        [(LAMP, Place::default())],
        1,
    );
    let steps = vec![Step::new(LAMP, "on".into())];
    let on = change(Definition::new(Routine { steps }));
    Coordination::new(site.unwrap().with_routine(on).unwrap())
}

pub(crate) async fn start(count: u64, change: impl Fn(Setup) -> Setup) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for id in 1..=count {
        let first = nodes.first().map(|it| it.address());
        let seeds: Vec<SocketAddr> = first.into_iter().collect();
        let setup = bench::setup(id, &seeds).coordination(coordination(), Span::secs(3_600));
        let setup = setup.stateless();
        nodes.push(Node::start(change(setup)).await);
    }
    for node in &nodes {
        until(|| node.live() == count as usize).await;
    }
    nodes
}

/// Frames are shorter where they are sealed, and the site is held to that.
#[tokio::test]
async fn a_map_that_one_node_changes_is_read_and_watched_by_others() {
    let keyring = Keyring::of(Key::random().unwrap());
    let sealed = |setup: Setup| setup.seal(Seal::new(keyring.clone(), "test"));
    let nodes = start(3, sealed).await;
    let mut front = nodes[2].map("doors").watch("front").await.unwrap();
    assert_eq!(timeout(PATIENCE, front.next()).await.unwrap(), Ok(None));
    let doors = nodes[0].map("doors");
    let stored = timeout(PATIENCE, doors.put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version: 1 }));
    let shut = timeout(PATIENCE, front.next()).await.unwrap().unwrap();
    let entry = nodes[1].map("doors").get("front").await.unwrap().unwrap();
    assert_eq!((entry.version, entry.value.to_vec()), (1, b"shut".to_vec()));
    assert_eq!(shut, Some(entry.clone()));
    // Of two nodes that change an entry after reading it, one succeeds.
    let [one, two] = [0, 1].map(|at: usize| nodes[at].map("doors"));
    let expected = Expected::Version(entry.version);
    let change = |map| async move {
        let map: selvedge_udp::Map<'_> = map;
        map.compare_and_set("front", expected, Some(b"open")).await
    };
    let (one, two) = tokio::join!(change(one), change(two));
    let mut stored = [one.unwrap(), two.unwrap()];
    stored.sort();
    let found = Some(2);
    let lost = Stored::Mismatch { found };
    assert_eq!(stored, [Stored::Done { version: 2 }, lost]);
    let elsewhere = nodes[0].map("windows").get("front").await;
    assert_eq!(elsewhere, Ok(None));
    assert_eq!(nodes[0].traffic().report().too_long, 0);
}

/// Watches of one entry share a registration, which outlives each but the last. A reader that is too slow
/// for the node's events reads the entry again.
#[tokio::test]
async fn watches_of_one_entry_are_apart_and_outlive_a_lag() {
    let events = core::num::NonZeroUsize::new(8).unwrap();
    let few = Limits {
        events,
        ..Limits::default()
    };
    let nodes = start(3, |setup| setup.limits(few)).await;
    let doors = nodes[0].map("doors");
    let next = |watch: Watch| async move {
        let mut watch = watch;
        let entry = timeout(PATIENCE, watch.next()).await.unwrap().unwrap();
        (entry.map(|it| it.value.to_vec()), watch)
    };
    doors.put("front", b"0").await.unwrap();
    let one = nodes[1].map("doors").watch("front").await.unwrap();
    let (found, one) = next(one).await;
    assert_eq!(found.unwrap(), b"0");
    let two = nodes[1].map("doors").watch("front").await.unwrap();
    let (found, two) = next(two).await;
    assert_eq!(found.unwrap(), b"0");
    drop(two);
    doors.put("front", b"1").await.unwrap();
    let (found, mut one) = next(one).await;
    assert_eq!(found.unwrap(), b"1");
    // More events than a reader may be behind: those of the watch are lost among them.
    let mut back = nodes[1].map("doors").watch("back").await.unwrap();
    for nth in 0..20_u8 {
        doors.put("back", &[nth]).await.unwrap();
        timeout(PATIENCE, back.next()).await.unwrap().unwrap();
    }
    doors.put("front", b"2").await.unwrap();
    for nth in 20..40_u8 {
        doors.put("back", &[nth]).await.unwrap();
        timeout(PATIENCE, back.next()).await.unwrap().unwrap();
    }
    let found = timeout(PATIENCE, one.next()).await.unwrap().unwrap();
    assert_eq!(found.unwrap().value.to_vec(), b"2");
    let removed = doors.remove("front").await.unwrap();
    assert!(matches!(removed, Stored::Done { .. }));
    assert_eq!(timeout(PATIENCE, one.next()).await.unwrap(), Ok(None));
}

/// A caller that gives up while its watch begins takes nothing from another watch of the entry.
#[tokio::test]
async fn a_watch_that_is_dropped_while_it_begins_leaves_the_others() {
    let nodes = start(3, |setup| setup).await;
    let doors = nodes[0].map("doors");
    let mut kept = doors.watch("front").await.unwrap();
    assert_eq!(timeout(PATIENCE, kept.next()).await.unwrap(), Ok(None));
    for polls in 1..5_u8 {
        {
            let mut begins = std::pin::pin!(doors.watch("front"));
            for _ in 0..polls {
                let polled = std::future::poll_fn(|cx| {
                    std::task::Poll::Ready(begins.as_mut().poll(cx).is_ready())
                });
                if polled.await {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        doors.put("front", &[polls]).await.unwrap();
        let found = timeout(PATIENCE, kept.next()).await.unwrap().unwrap();
        assert_eq!(found.unwrap().value.to_vec(), [polls], "{polls} polls");
    }
}

/// The last watch of an entry ends the registration, so changes are not reported to the node any more.
#[tokio::test]
async fn the_last_watch_that_is_dropped_ends_the_reports() {
    let nodes = start(3, |setup| setup).await;
    let (writer, reader) = (nodes[0].map("doors"), nodes[1].map("doors"));
    let mut watches = [
        reader.watch("front").await.unwrap(),
        reader.watch("front").await.unwrap(),
    ];
    for watch in &mut watches {
        assert_eq!(timeout(PATIENCE, watch.next()).await.unwrap(), Ok(None));
    }
    let [one, two] = watches;
    drop(one);
    drop(two);
    // A command after the end of the registration has an answer.
    assert_eq!(reader.get("front").await.unwrap(), None);
    let mut events = nodes[1].events();
    writer.put("front", b"1").await.unwrap();
    assert!(reader.get("front").await.unwrap().is_some());
    tokio::time::sleep(Duration::from_millis(500)).await;
    while let Ok(observed) = timeout(Duration::ZERO, events.recv()).await {
        let event = observed.unwrap().event;
        assert!(
            !matches!(&event, NodeEvent::Groups(Event::Map { event, .. })
                if matches!(event, StoreEvent::Watched { .. })),
            "{event:?}"
        );
    }
}

/// More watches end at once than commands may wait: all make room for others.
#[tokio::test]
async fn watches_that_end_at_once_make_room_for_others() {
    let few = Limits {
        commands: core::num::NonZeroUsize::MIN,
        ..Limits::default()
    };
    let nodes = start(3, |setup| {
        let maps = selvedge_groups::store::StoreConfig::new().with_pending(4);
        let coordination = coordination().with_config(Config::new().with_maps(maps));
        setup
            .limits(few)
            .coordination(coordination, Span::secs(3_600))
    })
    .await;
    let doors = nodes[0].map("doors");
    for round in 0..3 {
        let mut watches = Vec::new();
        for nth in 0..4 {
            watches.push(doors.watch(format!("{round} {nth}")).await.unwrap());
        }
        let full = doors.watch("one more").await;
        assert!(full.is_err(), "the limit is 4");
        // All are dropped in one step, without a moment for the node.
        drop(watches);
    }
}

/// Performs commands and pings of the device, until the routine reports.
async fn serve(node: &mut Node, lamp: &std::cell::RefCell<State>) {
    loop {
        let event = node
            .wait_for(|it| matches!(it, NodeEvent::Groups(Event::Leader { .. })))
            .await;
        let NodeEvent::Groups(Event::Leader {
            event: LeaderEvent::Devices(event),
            ..
        }) = event
        else {
            continue;
        };
        // It may lead no more.
        let _taken = match event {
            devices::Event::Ping { device } => {
                let value = lamp.borrow().clone();
                node.reported(device, Some(value)).await.is_ok()
            }
            devices::Event::Act { ticket, value } => {
                lamp.replace(value);
                node.acted(ticket, Outcome::Done).await.is_ok()
            }
            _ => false,
        };
    }
}

#[tokio::test]
async fn a_routine_that_is_triggered_switches_the_lamp() {
    let mut nodes = start(3, |setup| setup).await;
    let lamp = std::cell::RefCell::new(State::from("off"));
    let handle = nodes[2].clone();
    let [one, two, three] = &mut nodes[..] else {
        panic!("three nodes");
    };
    let on = async {
        let asked = handle.trigger(Site::routine(0), TriggerId(1));
        timeout(PATIENCE, asked).await.unwrap().unwrap();
        until(|| *lamp.borrow() == State::from("on")).await;
    };
    tokio::select! {
        () = on => {}
        () = async { tokio::join!(serve(one, &lamp), serve(two, &lamp), serve(three, &lamp)); } => {}
    }
    // A trigger that is asked again is decided, and starts nothing.
    let again = handle.trigger(Site::routine(0), TriggerId(1));
    assert_eq!(timeout(PATIENCE, again).await.unwrap(), Ok(()));
}

/// An interval by the clocks that the setups give, of which one is a year ahead. How many count is
/// tested in `selvedge-kgroup`.
#[tokio::test]
async fn an_interval_switches_the_lamp_by_the_clocks_of_the_setups() {
    let nth = std::cell::Cell::new(0);
    let clock = Clock::start();
    let mut nodes = start(3, |setup| {
        nth.set(nth.get() + 1);
        let days = if nth.get() == 1 { 20_865 } else { 20_500 };
        let shown = move || {
            let utc = Span::secs(days * 86_400) + clock.now().since(Time::ZERO);
            Some(WallClock {
                utc,
                ..WallClock::default()
            })
        };
        let every = Trigger::Every(Span::secs(1));
        let coordination = coordination_of(|on| on.with_trigger(every));
        let setup = setup.coordination(coordination, Span::secs(3_600));
        setup.local_clock(shown)
    })
    .await;
    let lamp = std::cell::RefCell::new(State::from("off"));
    let [one, two, three] = &mut nodes[..] else {
        panic!("three nodes");
    };
    tokio::select! {
        () = until(|| *lamp.borrow() == State::from("on")) => {}
        () = async { tokio::join!(serve(one, &lamp), serve(two, &lamp), serve(three, &lamp)); } => {}
    }
}

#[tokio::test]
async fn a_node_without_k_groups_says_so_and_counts_their_frames() {
    let plain = Node::start(bench::setup(9, &[])).await;
    let refused = plain.trigger(Site::routine(0), TriggerId(2)).await;
    let why = Reject::Node(selvedge::Reject::NoCoordination);
    assert_eq!(refused, Err(Error::Rejected(why)));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .send_to(&[VERSION, KIND, 1, 0], plain.address())
        .unwrap();
    until(|| plain.traffic().report().wrong_kind == 1).await;
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let stranger = bench::setup(9, &[]).coordination(coordination(), Span::ZERO);
    let stranger = stranger.stateless();
    let refused = selvedge_udp::Host::start(stranger).await.unwrap_err();
    assert!(matches!(refused, HostError::Config(_)), "{refused}");
}

/// The seed of a node starts later than the node. Questions wait meanwhile, as a lock does.
#[tokio::test]
async fn what_is_asked_before_the_node_has_joined_waits_until_it_has() {
    let network = Network::default();
    let setup = |id, seeds: &[u16]| {
        datagrams::setup(&network, id, seeds)
            .coordination(coordination(), Span::secs(3_600))
            .stateless()
            .election(Election::paced(Span::millis(200), 1, 1))
    };
    let two = Node::start(setup(2, &[1])).await;
    let handle = two.clone();
    let asks = tokio::spawn(async move {
        let doors = handle.map("doors");
        let mut front = doors.watch("front").await.unwrap();
        let stored = doors.put("front", b"shut").await;
        (stored, doors.get("front").await, front.next().await)
    });
    let handle = two.clone();
    let elects = tokio::spawn(async move { handle.elect().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!asks.is_finished() && !elects.is_finished() && !two.state().is_in);
    let _others = (
        Node::start(setup(1, &[])).await,
        Node::start(setup(3, &[1])).await,
    );
    let (stored, found, watched) = timeout(PATIENCE, asks).await.unwrap().unwrap();
    assert_eq!(stored, Ok(Stored::Done { version: 1 }));
    assert_eq!(
        found.as_ref().unwrap().as_ref().unwrap().value.to_vec(),
        b"shut"
    );
    assert!(watched == found || watched == Ok(None));
    assert_eq!(timeout(PATIENCE, elects).await.unwrap().unwrap(), Ok(()));
}

/// No caller waits for an answer of a node that stops.
#[tokio::test]
async fn questions_end_with_the_node() {
    let setup = bench::setup(1, &[]).coordination(coordination(), Span::secs(60));
    let mut node = Node::start(setup.stateless()).await;
    node.joins().await;
    let handle = node.clone();
    let asks = tokio::spawn(async move { handle.map("doors").get("front").await });
    // Two founders are missing, so no node leads.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!asks.is_finished());
    node.kill().await;
    let answer = timeout(PATIENCE, asks).await.unwrap().unwrap();
    assert!(answer.is_err(), "{answer:?}");
}

/// Seven nodes, of which the last one has a device more than the others.
#[tokio::test]
async fn a_node_with_another_site_reports_it_and_refuses_requests() {
    let site = |devices: u64| {
        let nodes = (1..=7).map(|id| selvedge_groups::Node::new(id, Place::default()));
        let devices = (0..devices).map(|it| (NodeId(LAMP.0 + it), Place::default()));
        Site::new(Selection::new().with_failures(2), nodes, devices, 1).unwrap()
    };
    let mut nodes: Vec<Node> = Vec::new();
    for id in 1..=7 {
        let first = nodes.first().map(|it| it.address());
        let seeds: Vec<SocketAddr> = first.into_iter().collect();
        let site = site(if id == 7 { 2 } else { 1 });
        let setup = bench::setup(id, &seeds)
            .coordination(Coordination::new(site), Span::secs(3_600))
            .stateless();
        nodes.push(Node::start(setup).await);
    }
    let mut odd = nodes.pop().unwrap();
    let is_report = |it: &NodeEvent| matches!(it, NodeEvent::OtherSite(_));
    odd.wait_for(is_report).await;
    let refused = timeout(PATIENCE, odd.map("doors").get("front")).await;
    let why = refused.unwrap().unwrap_err();
    let Error::Rejected(Reject::OtherSite(OtherSite::Member { found, own, .. })) = why else {
        panic!("{why}");
    };
    assert_ne!(found, own);
    assert!(
        why.to_string()
            .contains("start all nodes with one first site")
    );
    // The others have the node in their groups, and go on without it.
    let reported = nodes[0].wait_for(is_report).await;
    let NodeEvent::OtherSite(OtherSite::Member { member, .. }) = reported else {
        panic!("{reported:?}");
    };
    assert_eq!(member.id, NodeId(7));
    let stored = timeout(PATIENCE, nodes[1].map("doors").put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version: 1 }));
    // Started again with the site of the others, it takes part.
    odd.kill().await;
    let setup = bench::setup(7, &[nodes[0].address()]).life(selvedge_core::Incarnation(1));
    let again = Coordination::new(site(1)).with_start(selvedge_groups::Start::Restarted);
    let setup = setup.coordination(again, Span::secs(3_600)).stateless();
    let odd = Node::start(setup).await;
    let found = timeout(PATIENCE, odd.map("doors").get("front")).await;
    assert!(found.unwrap().unwrap().is_some());
}

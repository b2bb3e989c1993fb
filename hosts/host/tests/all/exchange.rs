//! Hosts that exchange messages, and their handles.

use std::net::UdpSocket;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};

use selvedge_core::shared::{self, Limits, RecvError};
use selvedge_core::{Delta, Member, NodeId, Span};
use selvedge_host::{Host, HostError, Setup, block_on};
use selvedge_seal::{Key, Keyring, Seal};
use tokio::time::timeout;

use crate::toy::{
    Command, Event, Message, PATIENCE, Toy, Zero, asynchronous, event, frame, me, next, received,
    setups, socket, start, total, with_peer,
};

#[tokio::test]
async fn three_nodes_add_up_what_each_was_given_and_thank_the_sender() {
    let nodes = start(setups(3)).await;
    let mut thanks = nodes[0].events();
    for (node, number) in nodes.iter().zip([1, 20, 300]) {
        node.submit(Command::Add(number)).await.unwrap();
    }
    for node in &nodes {
        total(node, 321).await;
    }
    let mut thanked = Vec::new();
    while thanked.len() < 2 {
        if let Event::Thanked(by, number) = event(&mut thanks).await.unwrap() {
            thanked.push((by.id.0, number));
        }
    }
    thanked.sort_unstable();
    assert_eq!(thanked, [(2, 1), (3, 1)]);
    for node in &nodes {
        let traffic = node.traffic();
        assert_eq!((traffic.refused, traffic.unknown_sender), (0, 0));
        assert!(
            traffic.received_bytes >= 5 * traffic.received,
            "{traffic:?}"
        );
    }
}

#[tokio::test]
async fn sealed_nodes_exchange_and_a_node_with_another_key_is_dropped_and_counted() {
    let seal = |key: &Key| Some(Seal::new(Keyring::of(key.clone()), "toys"));
    let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
    let keys = [seal(&key), seal(&key), seal(&other), None];
    let sealed = setups(4).into_iter().zip(keys);
    let sealed = sealed.map(|(setup, seal)| match seal {
        Some(seal) => setup.seal(seal),
        None => setup,
    });
    let nodes = start(sealed.collect()).await;
    for (node, number) in nodes.iter().zip([1, 20, 300, 4_000]) {
        node.submit(Command::Add(number)).await.unwrap();
    }
    total(&nodes[0], 21).await;
    total(&nodes[1], 21).await;
    for node in &nodes {
        received(node, 3).await;
    }
    // The message of node 2, its thanks, the foreign key, and the frame in the clear.
    received(&nodes[0], 4).await;
    let traffic = nodes[0].traffic();
    assert_eq!((traffic.wrong_key, traffic.unsealed), (1, 1));
    assert_eq!(nodes[3].traffic().sealed, 3);
    assert_eq!((*nodes[2].snapshot(), *nodes[3].snapshot()), (300, 4_000));
}

#[tokio::test]
async fn a_reject_returns_and_the_host_goes_on() {
    let (node, _peer) = with_peer().await;
    let refused = node.submit(Command::Add(0)).await;
    assert_eq!(refused, Err(shared::Error::Rejected(Zero)));
    assert_eq!(node.submit(Command::Add(7)).await, Ok(()));
    // A caller that got an outcome reads a snapshot that reflects it.
    assert_eq!(*node.snapshot(), 7);
}

#[tokio::test]
async fn timers_tick_and_changes_of_membership_reach_the_machine() {
    let (node, _peer) = with_peer().await;
    let mut events = node.events();
    node.submit(Command::Ring).await.unwrap();
    assert_eq!(event(&mut events).await, Ok(Event::Rang));
    let failed = Delta::Failed(me(2));
    node.learn(failed).await.unwrap();
    assert_eq!(event(&mut events).await, Ok(Event::Learned(failed)));
}

/// The second life of node 2 begins at the same address.
#[tokio::test]
async fn heartbeats_report_the_lives_of_peers_and_their_ends() {
    let (own, peer) = (socket(), socket());
    let beating = |id: u64, life, socket, other| {
        let setup = Setup::bound(Member::new(id, life), socket);
        setup.peers([other]).heartbeat(Span::millis(20))
    };
    let (one, two) = ((NodeId(1), own.1), (NodeId(2), peer.1));
    let node = Host::start(Toy::default(), beating(1, 0, own.0, two))
        .await
        .unwrap();
    let mut events = node.events();
    let mut learned = async || match event(&mut events).await {
        Ok(Event::Learned(delta)) => delta,
        other => panic!("{other:?}"),
    };
    let again = peer.0.try_clone().unwrap();
    let former = Host::start(Toy::default(), beating(2, 0, peer.0, one))
        .await
        .unwrap();
    assert_eq!(learned().await, Delta::Joined(me(2)));
    former.stop().await.unwrap();
    assert_eq!(learned().await, Delta::Failed(me(2)));
    let later = Member::new(2, 1);
    let _later = Host::start(Toy::default(), beating(2, 1, again, one))
        .await
        .unwrap();
    assert_eq!(learned().await, Delta::Confirmed(me(2)));
    assert_eq!(learned().await, Delta::Joined(later));
    assert_eq!(node.traffic().wrong_kind, 0);
}

#[tokio::test]
async fn a_stopped_host_frees_its_port_and_refuses_and_its_last_snapshot_stays() {
    let (node, _peer) = with_peer().await;
    let (address, mut events) = (node.address(), node.events());
    node.submit(Command::Add(7)).await.unwrap();
    node.clone().stop().await.unwrap();
    UdpSocket::bind(address).unwrap();
    assert_eq!(
        node.submit(Command::Add(1)).await,
        Err(shared::Error::Closed)
    );
    assert_eq!(event(&mut events).await, Ok(Event::Total(7)));
    assert_eq!(event(&mut events).await, Err(RecvError::Closed));
    assert_eq!((*node.snapshot(), node.traffic().sent), (7, 1));
    // Once more changes nothing.
    node.stop().await.unwrap();
    node.ended().await.unwrap();
}

#[tokio::test]
async fn the_last_handle_stops_the_host() {
    let (node, _peer) = with_peer().await;
    let (address, mut events) = (node.address(), node.events());
    let other = node.clone();
    drop(node);
    other.submit(Command::Ring).await.unwrap();
    drop(other);
    let ended = timeout(PATIENCE, async { while events.recv().await.is_ok() {} });
    ended.await.unwrap();
    UdpSocket::bind(address).unwrap();
}

#[tokio::test]
async fn a_host_leaves_after_its_last_command_or_after_the_event_that_ends_it() {
    let (node, peer) = with_peer().await;
    let refused = node.leave(Command::Add(0)).await;
    assert_eq!(refused, Err(shared::Error::Rejected(Zero)));
    node.leave(Command::Add(5)).await.unwrap();
    assert_eq!(next(&peer).await, (me(1), Message::Added(5)));
    UdpSocket::bind(node.address()).unwrap();

    let setup = setups(1).remove(0).ends_with(|event| *event == Event::Left);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let mut events = node.events();
    node.leave(Command::Leave).await.unwrap();
    assert_eq!(event(&mut events).await, Ok(Event::Left));
    UdpSocket::bind(node.address()).unwrap();
    node.ended().await.unwrap();
}

#[tokio::test]
async fn a_leave_that_is_cut_off_by_a_stop_is_not_answered() {
    let setup = setups(1).remove(0).ends_with(|_| false);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let leaving = tokio::spawn({
        let node = node.clone();
        async move { node.leave(Command::Ring).await }
    });
    let mut events = node.events();
    event(&mut events).await.unwrap();
    node.stop().await.unwrap();
    assert_eq!(leaving.await.unwrap(), Err(shared::Error::Unanswered));
}

#[test]
fn a_host_runs_in_a_thread_of_its_own() {
    let mut setups = setups(2).into_iter();
    let mut start = || Host::blocking_start(Toy::default(), setups.next().unwrap()).unwrap();
    let nodes = [start(), start()];
    nodes[0].blocking_submit(Command::Add(7)).unwrap();
    let seen = block_on(nodes[1].wait_for(|total| *total == 7));
    assert_eq!(seen.as_deref(), Ok(&7));
    for node in nodes {
        block_on(node.stop()).unwrap();
        UdpSocket::bind(node.address()).unwrap();
    }
}

/// The host may run in the same thread, and would never get to answer.
#[tokio::test]
async fn a_call_that_blocks_panics_in_a_task() {
    let node = start(setups(1)).await.remove(0);
    let submit = AssertUnwindSafe(|| node.blocking_submit(Command::Add(7)));
    let panic = catch_unwind(submit).unwrap_err();
    let message = panic.downcast::<String>().unwrap();
    assert!(message.contains("within a runtime"), "{message}");
}

#[tokio::test]
async fn frames_carry_the_life_that_the_machine_had_after_the_step() {
    let (own, peer) = (socket(), socket());
    let setup = Setup::bound(me(1), own.0)
        .peers([(NodeId(2), peer.1)])
        .identity(|toy: &Toy| Member::new(1, toy.life));
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let peer = asynchronous(peer.0);
    // In one round: the host has not run yet.
    let commands = [Command::Add(1), Command::Renew, Command::Add(2)];
    let submitted = commands.map(|command| {
        let node = node.clone();
        tokio::spawn(async move { node.submit(command).await })
    });
    for it in submitted {
        it.await.unwrap().unwrap();
    }
    assert_eq!(next(&peer).await, (me(1), Message::Added(1)));
    assert_eq!(next(&peer).await, (Member::new(1, 1), Message::Added(2)));
}

#[tokio::test]
async fn addresses_are_learned_where_that_is_allowed_up_to_the_limit_and_no_listed_peer_moves() {
    let (own, listed) = (socket(), socket());
    let setup = Setup::bound(me(1), own.0)
        .peers([(NodeId(2), listed.1)])
        .learn_addresses(1)
        .view(|toy: &Toy| toy.total);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let strangers = [asynchronous(socket().0), asynchronous(socket().0)];
    let send = async |nth: usize, id: u64, number: u64| {
        let frame = frame(me(id), &Message::Added(number));
        strangers[nth]
            .send_to(&frame, node.address())
            .await
            .unwrap();
    };
    // Refused by the machine, so not learned.
    send(0, 8, 0).await;
    received(&node, 1).await;
    send(0, 9, 10).await;
    assert_eq!(next(&strangers[0]).await, (me(1), Message::Thanks(10)));
    // Node 9 has another address now; there is no room for node 8, and node 2 is listed.
    send(1, 9, 20).await;
    assert_eq!(next(&strangers[1]).await, (me(1), Message::Thanks(20)));
    send(0, 8, 40).await;
    send(0, 2, 50).await;
    received(&node, 5).await;
    node.submit(Command::Thank(me(9))).await.unwrap();
    assert_eq!(next(&strangers[1]).await, (me(1), Message::Thanks(0)));
    let traffic = node.traffic();
    assert_eq!((traffic.refused, traffic.unknown_sender), (1, 2));
    assert_eq!(*node.snapshot(), 30);
}

#[tokio::test]
async fn a_message_to_an_unknown_node_and_one_that_is_too_long_are_counted() {
    let (node, _peer) = with_peer().await;
    node.submit(Command::Thank(me(3))).await.unwrap();
    node.submit(Command::Blob(1_400)).await.unwrap();
    let traffic = node.traffic();
    assert_eq!((traffic.unknown_destination, traffic.too_long), (1, 1));
    node.submit(Command::Blob(1_390)).await.unwrap();
    assert_eq!(node.traffic().sent, 1);
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_with_what_was_asked() {
    let (taken, address) = socket();
    let start = async |setup: Setup<Toy>| {
        let error = Host::start(Toy::default(), setup).await.unwrap_err();
        (error.to_string(), error)
    };
    let (text, error) = start(Setup::new(me(1), address)).await;
    assert!(matches!(error, HostError::Listen { address: it, .. } if it == address));
    assert!(text.contains(&address.to_string()), "{text}");
    drop(taken);
    let any = "127.0.0.1:0".parse().unwrap();
    for wrong in ["127.0.0.1:0", "0.0.0.0:7", "[::1]:7", "224.0.0.1:7"] {
        let wrong = wrong.parse().unwrap();
        let setup = Setup::new(me(1), any).peers([(NodeId(2), wrong)]);
        let (text, error) = start(setup).await;
        assert!(matches!(error, HostError::Peer { address: it, .. } if it == wrong));
        assert!(text.contains("node 2"), "{text}");
    }
    let (_, error) = start(Setup::new(me(1), any).heartbeat(Span::ZERO)).await;
    assert!(matches!(error, HostError::Heartbeat));
    for wrong in [0, 16, 65_508] {
        let (_, error) = start(Setup::new(me(1), any).frame_budget(wrong)).await;
        assert!(matches!(error, HostError::Budget { budget, .. } if budget == wrong));
    }
}

#[tokio::test]
async fn a_slow_reader_misses_events_and_a_full_queue_makes_callers_wait() {
    let one = NonZeroUsize::MIN;
    let limits = Limits {
        commands: one,
        events: one,
    };
    let setup = setups(1).remove(0).limits(limits);
    let node = Host::start(Toy::default(), setup).await.unwrap();
    let mut events = node.events();
    for number in 1..=3 {
        node.submit(Command::Add(number)).await.unwrap();
    }
    assert_eq!(
        event(&mut events).await,
        Err(RecvError::Lagged { missed: 2 })
    );
    // More commands than the queue has room for wait for room.
    let waiting = [4, 5, 6].map(|number| {
        let node = node.clone();
        tokio::spawn(async move { node.submit(Command::Add(number)).await })
    });
    for it in waiting {
        it.await.unwrap().unwrap();
    }
    assert_eq!(*node.snapshot(), 21);
}

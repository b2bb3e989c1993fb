//! The handle of a node: in many threads, without a runtime, and after the node has stopped.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use selvedge_core::shared::{self, RecvError, block_on};
use selvedge_membership::{Command, Event};
use selvedge_udp::{Error, Events, Handle, Host, NodeEvent, Reject};
use tokio::time::{sleep, timeout};

use crate::bench::{Node, PATIENCE, setup, until};
use crate::datagrams;
use crate::network::Network;

const fn is_shared_by_threads<T: Clone + Send + Sync + 'static>() {}
const fn is_sent<T: Send + 'static>() {}

#[test]
fn handles_go_into_all_threads() {
    is_shared_by_threads::<Handle>();
    is_sent::<Events>();
}

/// No runtime in the application, and two nodes that meet, lock, and leave.
#[test]
fn threads_without_a_runtime_use_a_node() {
    let one = Host::blocking_start(setup(1, &[]).locks(2)).unwrap();
    let mut events = one.events();
    let two = Host::blocking_start(setup(2, &[one.address()]).locks(2)).unwrap();
    loop {
        let observed = events.blocking_recv().unwrap();
        if matches!(
            observed.event,
            NodeEvent::Membership(Event::Changed(it)) if it.member().id == two.id()
        ) {
            break;
        }
    }
    assert_eq!(one.members().len(), 2);
    let name = "door".parse().unwrap();
    let users = [one.clone(), two.clone(), one.clone()]
        .map(|node| thread::spawn(move || node.blocking_lock(name).unwrap().token()));
    let mut tokens = users.map(|user| user.join().unwrap());
    tokens.sort_unstable();
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:?}");
    block_on(one.command(Command::Broadcast([7].into()))).unwrap();
    two.blocking_leave().unwrap();
    assert!(!two.state().is_in && one.state().is_in);
    assert_eq!(two.blocking_leave(), Err(Error::Closed));
    one.blocking_leave().unwrap();
}

/// A reader that falls behind learns the number of missed events, and the state reflects them.
#[tokio::test]
async fn a_reader_that_falls_behind_hears_of_it() {
    let few = shared::Limits {
        events: NonZeroUsize::new(2).unwrap(),
        ..shared::Limits::default()
    };
    let one = Host::start(setup(1, &[]).limits(few)).await.unwrap();
    let mut slow = one.events_from_oldest();
    let mut others = Vec::new();
    for id in 2..=5 {
        others.push(Node::start(setup(id, &[one.address()])).await);
    }
    until(|| one.members().len() == 5).await;
    let Err(RecvError::Lagged { missed }) = slow.recv().await else {
        panic!("it read all");
    };
    assert!(missed >= 3, "{missed}");
    assert!(slow.recv().await.is_ok());
}

/// The node stops with its last handle; a subscription reads the kept events, and then the end.
#[tokio::test]
async fn a_node_without_a_handle_stops() {
    let mut two = {
        let one = Node::start(setup(1, &[])).await;
        let mut two = Node::start(setup(2, &[one.address()])).await;
        two.meets(one.id()).await;
        let mut events = one.events();
        let address = one.address();
        drop(one);
        let ends = async { while events.recv().await != Err(RecvError::Closed) {} };
        timeout(PATIENCE, ends).await.unwrap();
        // Its port is free.
        std::net::UdpSocket::bind(address).unwrap();
        two
    };
    two.wait_for(crate::bench::is_failure).await;
}

/// Two callers leave at once: both wait for a guard, and both learn of the end. A node that has not
/// joined yet leaves as well, and a node that is killed meanwhile gives no answer.
#[tokio::test]
async fn all_callers_of_leave_hear_of_the_end() {
    let one = Node::start(setup(1, &[]).locks(1)).await;
    let guard = one.lock("door".parse().unwrap()).await.unwrap();
    let exit = async {
        sleep(Duration::from_millis(100)).await;
        assert!(guard.is_closed() && one.state().is_in);
        drop(guard);
    };
    let (first, second, ()) = tokio::join!(one.leave(), one.leave(), exit);
    assert_eq!((first, second), (Ok(()), Ok(())));

    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let alone = Node::start(setup(2, &[silent.local_addr().unwrap()])).await;
    assert_eq!(alone.leave().await, Ok(()));
    assert_eq!(alone.elect().await, Err(Error::Closed));

    let held = Node::start(setup(3, &[]).locks(1)).await;
    let guard = held.lock("door".parse().unwrap()).await.unwrap();
    let (left, ()) = tokio::join!(held.leave(), held.kill());
    assert_eq!(left, Err(Error::Unanswered));
    assert!(guard.is_closed());
}

/// A node joins when its seed starts. A wait for that, or for another state, ends with the node.
#[tokio::test]
async fn waits_end_with_the_state_that_is_wanted_or_with_the_node() {
    let network = Network::default();
    let node = async |id, seeds: &[u16]| {
        let setup = datagrams::setup(&network, id, seeds);
        Host::start(setup).await.unwrap()
    };
    let two = node(2, &[1]).await;
    assert!(
        timeout(Duration::from_millis(50), two.joined())
            .await
            .is_err()
    );
    let [joins, meets, never] = [(); 3].map(|()| two.clone());
    let joins = tokio::spawn(async move { joins.joined().await });
    let meets = tokio::spawn(async move { meets.wait_for(|state| state.members.len() == 2).await });
    let never = tokio::spawn(async move { never.wait_for(|state| state.leader.is_some()).await });
    let one = node(1, &[]).await;
    one.joined().await.unwrap();
    timeout(PATIENCE, joins).await.unwrap().unwrap().unwrap();
    let state = timeout(PATIENCE, meets).await.unwrap().unwrap().unwrap();
    assert!(state.is_in && state.members.iter().any(|it| it.member.id == one.id()));
    two.joined().await.unwrap();
    assert!(!never.is_finished());
    two.leave().await.unwrap();
    let ended = timeout(PATIENCE, never).await.unwrap().unwrap();
    assert_eq!(ended.unwrap_err(), Error::Closed);
    assert_eq!(two.joined().await, Err(Error::Closed));
    // The last state is no error.
    assert!(two.wait_for(|state| !state.is_in).await.is_ok());

    let early = node(3, &[9]).await;
    let (joined, asked, left) = tokio::join!(early.joined(), early.set_max_lives(5), early.leave());
    assert_eq!((joined, left), (Err(Error::Closed), Ok(())));
    let no_locks = Reject::Node(selvedge::Reject::NoExclusion);
    assert_eq!(asked, Err(Error::Rejected(no_locks)));
}

//! Real nodes that contend for what the recipes give.

mod multi_lock;
mod priority_election;
mod priority_queue;
mod rw_lock;
mod shared_lock;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use selvedge_core::Span;
use selvedge_groups::store::TTL_MIN;
use selvedge_udp::recipes::barrier::Barrier;
use selvedge_udp::recipes::counter::Counter;
use selvedge_udp::recipes::election::Election;
use selvedge_udp::recipes::lock::{Lock, Token};
use selvedge_udp::recipes::queue::Queue;
use selvedge_udp::recipes::registry::Registry;
use selvedge_udp::recipes::semaphore::Semaphore;
use selvedge_udp::{Error, Reject};
use tokio::time::{sleep, timeout};

use crate::bench::{Node, PATIENCE};
use crate::groups::start;
use crate::sessions::{few_events, remove_many};

const TTL: Span = Span::secs(20);
/// For a caller that has to wait.
const MOMENT: Duration = Duration::from_millis(500);

async fn soon<T>(wait: impl Future<Output = T>) -> T {
    timeout(PATIENCE, wait).await.unwrap()
}

/// Waits until a map has this number of entries with a prefix.
async fn has_entries(node: &Node, map: &str, prefix: &str, number: usize) {
    let map = node.map(map);
    while soon(map.list_all(prefix)).await.unwrap().entries.len() != number {
        sleep(Duration::from_millis(20)).await;
    }
}

/// The number of users inside, and the most that were.
#[derive(Debug, Default)]
struct Inside {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Inside {
    async fn stay(&self) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        sleep(Duration::from_millis(30)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Programs spawn them on runtimes of several threads.
#[tokio::test]
async fn futures_can_be_sent_to_other_threads() {
    fn is_send<T: Send>(_: T) {}
    let nodes = start(1, |setup| setup).await;
    let map = nodes[0].map("m");
    let lock = Lock::all(map, &["a", "b"], TTL);
    is_send(lock.acquire());
    is_send(lock.try_acquire());
    is_send(Election::new(map, "e", TTL).campaign(&[]));
    is_send(Election::new(map, "e", TTL).observe());
    is_send(Semaphore::new(map, "s", 1, TTL).acquire());
    is_send(Queue::new(map, "q").pop());
    is_send(Registry::new(map).register("r", 1, "a", TTL));
    is_send(Registry::new(map).watch("r").next());
    is_send(Barrier::new(map, "b", 1, TTL).enter());
    is_send(Counter::new(map, "c").add(1));
    let rw_lock = selvedge_udp::recipes::rw_lock::RwLock::new(map, "rw", TTL);
    is_send(rw_lock.read());
    is_send(rw_lock.write());
    let ranked = selvedge_udp::recipes::priority_queue::PriorityQueue::new(map, "p");
    is_send(ranked.pop());
    let ranked = selvedge_udp::recipes::priority_election::PriorityElection::new(map, "p", TTL);
    is_send(ranked.campaign(1, &[]));
}

#[tokio::test]
async fn a_lock_has_one_holder_and_greater_tokens_for_later_ones() {
    let nodes = start(3, |setup| setup).await;
    let inside = Inside::default();
    let takes = async |node: &Node| {
        let lock = Lock::new(node.map("locks"), "printer", TTL);
        let mut tokens = Vec::new();
        for _ in 0..3 {
            let guard = soon(lock.acquire()).await.unwrap();
            assert!(guard.is_held());
            tokens.push(guard.token());
            inside.stay().await;
            soon(guard.release()).await.unwrap();
        }
        tokens
    };
    let (one, two) = tokio::join!(takes(&nodes[0]), takes(&nodes[1]));
    assert_eq!(inside.most.load(Ordering::SeqCst), 1);
    let is_rising = |it: &[Token]| it.is_sorted_by(|a, b| a < b);
    assert!(is_rising(&one) && is_rising(&two), "{one:?} {two:?}");
}

#[tokio::test]
async fn a_node_that_asks_again_for_a_lock_is_behind_the_node_that_waits() {
    let nodes = start(2, |setup| setup).await;
    let [zero, one] = [0, 1].map(|at: usize| Lock::new(nodes[at].map("locks"), "printer", TTL));
    let held = soon(zero.acquire()).await.unwrap();
    let waits = async {
        let guard = soon(one.acquire()).await.unwrap();
        let token = guard.token();
        soon(guard.release()).await.unwrap();
        token
    };
    let again = async {
        let map = nodes[0].map("locks");
        while soon(map.list_all("lock/")).await.unwrap().entries.len() < 2 {
            sleep(Duration::from_millis(20)).await;
        }
        soon(held.release()).await.unwrap();
        soon(zero.acquire()).await.unwrap().token()
    };
    let (waited, asked_again) = tokio::join!(waits, again);
    assert!(waited < asked_again, "{waited:?} {asked_again:?}");
}

#[tokio::test]
async fn a_lock_that_is_taken_is_passed_on_by_a_drop_and_by_the_end_of_its_node() {
    let nodes = start(3, |setup| setup).await;
    let [zero, one, two] = [0, 1, 2].map(|at: usize| {
        let map = nodes[at].map("locks");
        (
            Lock::new(map, "door", TTL_MIN),
            Lock::new(map, "door/0", TTL),
        )
    });
    let held = soon(zero.0.try_acquire()).await.unwrap().unwrap();
    assert!(soon(one.0.try_acquire()).await.unwrap().is_none());
    // Another name, which begins alike, and whose entries sort before.
    let other = soon(one.1.try_acquire()).await.unwrap().unwrap();
    // A caller that gives up leaves the line.
    let gives_up = timeout(Duration::from_millis(500), one.0.acquire()).await;
    assert!(gives_up.is_err());
    drop(held);
    let held = soon(two.0.acquire()).await.unwrap();
    nodes[2].kill().await;
    let next = soon(one.0.acquire()).await.unwrap();
    assert!(next.token() > held.token() && next.token() > other.token());
    soon(held.lapsed()).await;
}

#[tokio::test]
async fn an_election_has_one_leader_and_all_observe_it() {
    let nodes = start(3, |setup| setup).await;
    let elections = nodes.iter().map(|it| it.map("elections"));
    let elections: Vec<_> = elections.map(|it| Election::new(it, "heat", TTL)).collect();
    let mut observer = soon(elections[2].observe()).await.unwrap();
    assert_eq!(soon(observer.next()).await, Ok(None));
    let first = soon(elections[0].campaign(b"one")).await.unwrap();
    let leader = soon(observer.next()).await.unwrap().unwrap();
    assert_eq!(leader.value.to_vec(), b"one");
    assert_eq!(leader.created, first.token().version);
    let mut second = Box::pin(elections[1].campaign(b"two"));
    let waits = timeout(Duration::from_millis(500), &mut second).await;
    assert!(waits.is_err(), "there is a leader");
    soon(first.resign()).await.unwrap();
    let second = soon(second).await.unwrap();
    assert!(second.is_leader());
    let leader = loop {
        if let Some(leader) = soon(observer.next()).await.unwrap() {
            break leader;
        }
    };
    assert_eq!(leader.value.to_vec(), b"two");
    drop(second);
    assert_eq!(soon(observer.next()).await, Ok(None));
}

#[tokio::test]
async fn an_item_of_a_queue_is_taken_once_and_in_order() {
    let nodes = start(3, |setup| setup).await;
    let takes = async |node: &Node| {
        let queue = Queue::new(node.map("jobs"), "print");
        let mut taken = Vec::new();
        loop {
            match &*soon(queue.pop()).await.unwrap() {
                [nth] => taken.push(*nth),
                _end => return taken,
            }
        }
    };
    let puts = async |node: &Node| {
        let queue = Queue::new(node.map("jobs"), "print");
        for nth in 0..12 {
            soon(queue.push(&[nth])).await.unwrap();
        }
        for _ in 0..2 {
            soon(queue.push(b"the end")).await.unwrap();
        }
    };
    let (one, two, ()) = tokio::join!(takes(&nodes[0]), takes(&nodes[1]), puts(&nodes[2]));
    assert!(one.is_sorted() && two.is_sorted(), "{one:?} {two:?}");
    let mut all = [one, two].concat();
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());
    let rest = Queue::new(nodes[0].map("jobs"), "print");
    assert_eq!(soon(rest.try_pop()).await, Ok(None));
}

#[tokio::test]
async fn a_service_is_listed_while_its_nodes_are_here() {
    let nodes = start(3, |setup| setup).await;
    let all = nodes.iter().map(|it| Registry::new(it.map("services")));
    let all: Vec<_> = all.collect();
    let listed = |which: &[u64]| which.iter().map(|&it| (it, format!("at {it}"))).collect();
    let mut seen = all[2].watch("print");
    assert_eq!(soon(seen.next()).await, Ok(Vec::new()));
    let register = async |at: usize, instance: u64, ttl| {
        let address = format!("at {instance}");
        soon(all[at].register("print", instance, &address, ttl))
            .await
            .unwrap()
    };
    let (one, two) = tokio::join!(register(0, 1, TTL), register(1, 2, TTL_MIN));
    assert_eq!(soon(all[2].resolve("print")).await, Ok(listed(&[1, 2])));
    assert_eq!(soon(all[2].resolve("print/1")).await, Ok(Vec::new()));
    // A program that is started again, before its former session has ended.
    let again = register(0, 1, TTL).await;
    soon(one.end()).await.unwrap();
    assert_eq!(soon(all[2].resolve("print")).await, Ok(listed(&[1, 2])));
    nodes[1].kill().await;
    let mut last = soon(seen.next()).await.unwrap();
    while last != listed(&[1]) || soon(all[2].resolve("print")).await != Ok(listed(&[1])) {
        last = soon(seen.next()).await.unwrap();
    }
    assert!(again.is_listed());
    drop((again, two));
    while !soon(seen.next()).await.unwrap().is_empty() {}
}

#[tokio::test]
async fn a_semaphore_gives_no_more_permits_than_it_has() {
    let nodes = start(3, |setup| setup).await;
    let inside = Inside::default();
    let takes = async |node: &Node| {
        let chargers = Semaphore::new(node.map("power"), "charge", 2, TTL);
        let once = async || {
            let permit = soon(chargers.acquire()).await.unwrap();
            inside.stay().await;
            soon(permit.release()).await.unwrap();
        };
        tokio::join!(once(), once(), once());
    };
    tokio::join!(takes(&nodes[0]), takes(&nodes[1]));
    assert_eq!(inside.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_barrier_opens_for_all_and_all_leave_together() {
    let nodes = start(3, |setup| setup).await;
    let [arrived, leaving] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    let moment = Duration::from_millis(300);
    let goes = async |at: usize| {
        let round = Barrier::new(nodes[at].map("rounds"), "1", 3, TTL);
        arrived.fetch_add(1, Ordering::SeqCst);
        let entered = soon(round.enter()).await.unwrap();
        assert_eq!(arrived.load(Ordering::SeqCst), 3);
        if at == 2 {
            sleep(moment).await;
        }
        leaving.fetch_add(1, Ordering::SeqCst);
        soon(entered.leave()).await.unwrap();
        assert_eq!(leaving.load(Ordering::SeqCst), 3);
    };
    let late = async {
        let rounds = nodes[2].map("rounds");
        while soon(rounds.list_all("")).await.unwrap().entries.len() < 2 {
            sleep(Duration::from_millis(20)).await;
        }
        sleep(moment).await;
        goes(2).await;
    };
    tokio::join!(goes(0), goes(1), late);
}

/// The observer is too slow for the events of its node, and the map forgets removed entries in the meantime.
#[tokio::test]
async fn an_observer_that_is_too_late_has_the_present_leader() {
    let nodes = start(3, |setup| setup.limits(few_events())).await;
    let [one, two, here] = [0, 1, 2].map(|at: usize| {
        let map = nodes[at].map("elections");
        Election::new(map, "heating", TTL)
    });
    let first = soon(one.campaign(b"one")).await.unwrap();
    let mut seen = soon(here.observe()).await.unwrap();
    let leader = soon(seen.next()).await.unwrap();
    assert_eq!(leader.unwrap().created, first.token().version);
    soon(first.resign()).await.unwrap();
    let next = soon(two.campaign(b"two")).await.unwrap();
    // More events than a reader may be behind.
    let there = nodes[2].map("elections");
    let mut back = there.watch("back").await.unwrap();
    for nth in 0..20_u8 {
        soon(there.put("back", &[nth])).await.unwrap();
        soon(back.next()).await.unwrap();
    }
    remove_many(nodes[0].map("elections")).await;
    let leads = async {
        while soon(seen.next()).await.unwrap().map(|it| it.created) != Some(next.token().version) {}
    };
    soon(leads).await;
}

#[tokio::test]
async fn an_arrival_whose_session_has_ended_does_not_wait_at_a_barrier() {
    let nodes = start(3, |setup| setup).await;
    let round = Barrier::new(nodes[0].map("rounds"), "1", 2, TTL);
    let ends = async {
        let rounds = nodes[1].map("rounds");
        let arrived = loop {
            let all = soon(rounds.list_all("")).await.unwrap();
            if let Some((_, entry)) = all.entries.into_iter().next() {
                break entry.session.unwrap();
            }
            sleep(Duration::from_millis(20)).await;
        };
        let session = soon(rounds.resume(arrived)).await.unwrap();
        soon(session.end()).await.unwrap();
    };
    let (entered, ()) = tokio::join!(soon(round.enter()), ends);
    let why = entered.map(|_| ()).unwrap_err();
    assert!(
        matches!(why, Error::Rejected(Reject::SessionOver(_))),
        "{why}"
    );
}

#[tokio::test]
async fn a_counter_returns_each_sum_once() {
    let nodes = start(3, |setup| setup).await;
    let adds = async |node: &Node| {
        let counter = Counter::new(node.map("counts"), "visitors");
        let mut sums = Vec::new();
        for _ in 0..8 {
            sums.push(soon(counter.add(1)).await.unwrap());
        }
        sums
    };
    let (one, two) = tokio::join!(adds(&nodes[0]), adds(&nodes[1]));
    let mut all = [one, two].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=16).collect::<Vec<_>>());
    let read = Counter::new(nodes[2].map("counts"), "visitors");
    assert_eq!(soon(read.get()).await, Ok(16));
}

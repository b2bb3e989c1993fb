//! Locks of several names.

use std::sync::Mutex;

use super::*;

#[tokio::test]
async fn locks_of_names_in_a_circle_exclude_each_other_and_never_wait_in_one() {
    let nodes = start(3, |setup| setup).await;
    let names = ["a", "b", "c"];
    let inside = names.map(|_| Inside::default());
    let tokens = names.map(|_| Mutex::new(Vec::new()));
    let takes = async |at: usize, number: usize| {
        let mine = [at, (at + 1) % 3];
        let map = nodes[at].map("locks");
        let lock = Lock::all(map, &mine.map(|it| names[it])[..number], TTL);
        for _ in 0..4 {
            let guard = soon(lock.acquire()).await.unwrap();
            assert!(guard.is_held());
            let stay = async |name: usize| {
                if mine[..number].contains(&name) {
                    tokens[name].lock().unwrap().push(guard.token());
                    inside[name].stay().await;
                }
            };
            tokio::join!(stay(0), stay(1), stay(2));
            soon(guard.release()).await.unwrap();
        }
    };
    let all = async { tokio::join!(takes(0, 2), takes(1, 2), takes(2, 2), takes(0, 1)) };
    soon(all).await;
    for (inside, tokens) in inside.iter().zip(tokens) {
        assert_eq!(inside.most.load(Ordering::SeqCst), 1);
        let tokens = tokens.into_inner().unwrap();
        assert!(tokens.len() >= 8);
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    }
}

#[tokio::test]
async fn holders_that_ask_for_further_names_may_wait_in_a_circle() {
    let nodes = start(3, |setup| setup).await;
    let lock = |at: usize, name| Lock::new(nodes[at].map("locks"), name, TTL);
    let (a, b) = (lock(0, "a"), lock(1, "b"));
    let (held, other) = tokio::join!(soon(a.acquire()), soon(b.acquire()));
    let (after_a, after_b) = (lock(0, "b"), lock(1, "a"));
    let further = async { tokio::join!(after_a.acquire(), after_b.acquire()) };
    assert!(timeout(MOMENT, further).await.is_err());
    let (held, other) = (held.unwrap(), other.unwrap());
    assert!(held.is_held() && other.is_held());
}

#[tokio::test]
async fn a_lock_of_several_names_is_free_as_a_whole_after_a_drop_and_the_end_of_its_node() {
    let nodes = start(3, |setup| setup).await;
    let lock = |at: usize, names: &[&str]| Lock::all(nodes[at].map("locks"), names, TTL);
    let fails = Lock::all(nodes[2].map("locks"), &["a", "b"], TTL_MIN);
    let held = soon(fails.acquire()).await.unwrap();
    let none = soon(lock(0, &["b", "c"]).try_acquire()).await.unwrap();
    assert!(none.is_none());
    // It has one name, waits for the other, and gives up both.
    assert!(
        timeout(MOMENT, lock(0, &["b", "c"]).acquire())
            .await
            .is_err()
    );
    let free = soon(lock(1, &["c"]).acquire()).await.unwrap();
    nodes[2].kill().await;
    let both = soon(lock(1, &["b", "a", "b"]).acquire()).await.unwrap();
    assert!(both.token() > held.token() && both.token() > free.token());
    drop((free, both));
    let all = soon(lock(0, &["c", "a", "b"]).acquire()).await.unwrap();
    soon(all.release()).await.unwrap();
}

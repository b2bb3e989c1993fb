//! Readers that share, and writers that are alone.

use std::sync::Mutex;

use selvedge_udp::recipes::lock::Guard;
use selvedge_udp::recipes::rw_lock::RwLock;

use super::*;

/// The holders that are inside, and the tokens of all in the order in which they came.
#[derive(Debug, Default)]
struct Room {
    readers: AtomicUsize,
    writers: AtomicUsize,
    tokens: Mutex<Vec<(bool, Token)>>,
}

impl Room {
    async fn stay(&self, guard: Guard, is_writer: bool) {
        let mine = [&self.readers, &self.writers][usize::from(is_writer)];
        mine.fetch_add(1, Ordering::SeqCst);
        self.tokens.lock().unwrap().push((is_writer, guard.token()));
        for _ in 0..3 {
            let [readers, writers] =
                [&self.readers, &self.writers].map(|it| it.load(Ordering::SeqCst));
            assert!(
                writers == 0 || (readers, writers) == (0, 1),
                "{readers} {writers}"
            );
            sleep(Duration::from_millis(10)).await;
        }
        mine.fetch_sub(1, Ordering::SeqCst);
        soon(guard.release()).await.unwrap();
    }
}

fn locks(nodes: &[Node]) -> Vec<RwLock<'_>> {
    let maps = nodes.iter().map(|it| it.map("locks"));
    maps.map(|it| RwLock::new(it, "plan", TTL)).collect()
}

#[tokio::test]
async fn a_writer_is_alone_and_has_a_greater_token_than_all_before_it() {
    let nodes = start(3, |setup| setup).await;
    let locks = locks(&nodes);
    let room = Room::default();
    let uses = async |lock: &RwLock<'_>| {
        for _ in 0..3 {
            room.stay(soon(lock.read()).await.unwrap(), false).await;
            room.stay(soon(lock.write()).await.unwrap(), true).await;
        }
    };
    tokio::join!(uses(&locks[0]), uses(&locks[1]), uses(&locks[2]));
    let tokens = room.tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 18);
    for (at, &(is_writer, token)) in tokens.iter().enumerate() {
        let former = tokens[..at].iter();
        let excluded = former.filter(|it| is_writer || it.0);
        assert!(excluded.map(|it| it.1).all(|it| it < token), "{tokens:?}");
    }
}

#[tokio::test]
async fn readers_share_and_do_not_pass_a_writer_that_waits() {
    let nodes = start(3, |setup| setup).await;
    let locks = locks(&nodes);
    let (first, second) = tokio::join!(locks[0].read(), locks[1].read());
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(first.is_held() && second.is_held());
    let writer = async {
        let guard = soon(locks[1].write()).await.unwrap();
        let token = guard.token();
        // The reader behind it is still outside.
        sleep(MOMENT).await;
        soon(guard.release()).await.unwrap();
        token
    };
    let reader = async {
        has_entries(&nodes[2], "locks", "rw-lock/", 3).await;
        soon(locks[2].read()).await.unwrap().token()
    };
    let leave = async {
        has_entries(&nodes[0], "locks", "rw-lock/", 4).await;
        sleep(MOMENT).await;
        let (first, second) = tokio::join!(first.release(), second.release());
        first.and(second).unwrap();
    };
    let (writer, reader, ()) = tokio::join!(writer, reader, leave);
    assert!(writer < reader, "{writer:?} {reader:?}");
}

#[tokio::test]
async fn a_reader_comes_after_a_writer_that_gave_up_and_a_writer_after_a_reader_that_was_killed() {
    let nodes = start(3, |setup| setup).await;
    let fails = RwLock::new(nodes[2].map("locks"), "plan", TTL_MIN);
    let locks = locks(&nodes);
    let held = soon(fails.read()).await.unwrap();
    assert!(timeout(MOMENT, locks[0].write()).await.is_err());
    let shared = soon(locks[1].read()).await.unwrap();
    drop(shared);
    nodes[2].kill().await;
    let next = soon(locks[0].write()).await.unwrap();
    assert!(next.token() > held.token());
    soon(held.lapsed()).await;
}

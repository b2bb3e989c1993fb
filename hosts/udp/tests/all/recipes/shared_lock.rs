//! Locks that some share and others have alone.

use super::*;

/// The present numbers of shared and of exclusive holders of a name.
#[derive(Debug, Default)]
struct Room([AtomicUsize; 2]);

impl Room {
    async fn stay(&self, is_alone: bool) {
        let mine = &self.0[usize::from(is_alone)];
        mine.fetch_add(1, Ordering::SeqCst);
        for _ in 0..3 {
            let [shared, alone] = [&self.0[0], &self.0[1]].map(|it| it.load(Ordering::SeqCst));
            assert!(
                alone == 0 || (shared, alone) == (0, 1),
                "{shared} share it, {alone} have it alone"
            );
            sleep(Duration::from_millis(10)).await;
        }
        mine.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn some_share_names_and_one_has_them_alone() {
    let nodes = start(3, |setup| setup).await;
    let names = ["a", "b", "c"];
    let rooms = names.map(|_| Room::default());
    let uses = async |at: usize, number: usize| {
        let mine = [at, (at + 1) % 3];
        let map = nodes[at].map("locks");
        let lock = Lock::all(map, &mine.map(|it| names[it])[..number], TTL);
        let mut token = None;
        for turn in 0..6 {
            let is_alone = turn % 2 == 1;
            let guard = match is_alone {
                true => soon(lock.acquire()).await.unwrap(),
                false => soon(lock.acquire_shared()).await.unwrap(),
            };
            assert!(guard.is_held() && token < Some(guard.token()));
            token = Some(guard.token());
            let stay = async |name: usize| {
                if mine[..number].contains(&name) {
                    rooms[name].stay(is_alone).await;
                }
            };
            tokio::join!(stay(0), stay(1), stay(2));
            soon(guard.release()).await.unwrap();
        }
    };
    soon(async { tokio::join!(uses(0, 2), uses(1, 2), uses(2, 2), uses(0, 1)) }).await;
}

#[tokio::test]
async fn one_that_waits_to_have_a_lock_alone_is_passed_by_none_that_share_it() {
    let nodes = start(3, |setup| setup).await;
    let lock = |at: usize| Lock::new(nodes[at].map("locks"), "plan", TTL);
    let first = soon(lock(0).acquire_shared()).await.unwrap();
    let second = soon(lock(1).try_acquire_shared()).await.unwrap().unwrap();
    assert!(soon(lock(2).try_acquire()).await.unwrap().is_none());
    let looks = lock(0);
    let look = async || {
        let places = soon(looks.places()).await.unwrap();
        let places = places.iter().map(|it| (it.is_shared, it.has_it, it.token));
        places.collect::<Vec<_>>()
    };
    let waits = lock(2);
    let alone = async { soon(waits.acquire()).await.unwrap() };
    let others = async {
        while look().await.len() < 3 {
            sleep(Duration::from_millis(10)).await;
        }
        let places = look().await;
        assert_eq!(
            places[..2],
            [(true, true, first.token()), (true, true, second.token())]
        );
        assert_eq!((places[2].0, places[2].1), (false, false));
        assert!(soon(lock(0).try_acquire_shared()).await.unwrap().is_none());
        let last = lock(1);
        let mut late = Box::pin(last.acquire_shared());
        assert!(timeout(MOMENT, &mut late).await.is_err());
        let states: Vec<_> = look().await.iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(
            states,
            [(true, true), (true, true), (false, false), (true, false)]
        );
        soon(first.release()).await.unwrap();
        soon(second.release()).await.unwrap();
    };
    let (alone, ()) = tokio::join!(alone, others);
    // The one behind it was dropped.
    while look().await.len() > 1 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(look().await, [(false, true, alone.token())]);
    let places = soon(lock(1).places()).await.unwrap();
    assert_eq!(places[0].session, alone.session().id());
}

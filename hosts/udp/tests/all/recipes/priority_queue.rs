//! Items with priorities.

use selvedge_udp::recipes::priority_queue::PriorityQueue;

use super::*;

#[tokio::test]
async fn items_are_taken_once_by_priority_and_then_by_age() {
    let nodes = start(3, |setup| setup).await;
    let queue = |at: usize| PriorityQueue::new(nodes[at].map("jobs"), "print");
    // No item is lost by one that waits no longer.
    assert!(timeout(MOMENT, queue(1).pop()).await.is_err());
    for nth in 0..12_u8 {
        let priority = [900, 7, u32::MAX][usize::from(nth % 3)];
        soon(queue(2).push(priority, &[nth % 3, nth]))
            .await
            .unwrap();
    }
    let others = PriorityQueue::new(nodes[0].map("jobs"), "print/00000000");
    assert_eq!(soon(others.try_pop()).await, Ok(None));
    let plain = Queue::new(nodes[0].map("jobs"), "print");
    assert_eq!(soon(plain.try_pop()).await, Ok(None));
    let takes = async |at: usize| {
        let mut taken = Vec::new();
        while let Some(item) = soon(queue(at).try_pop()).await.unwrap() {
            taken.push([[1, 0, 2][usize::from(item[0])], item[1]]);
        }
        taken
    };
    let (one, two) = tokio::join!(takes(0), takes(1));
    assert!(one.is_sorted() && two.is_sorted(), "{one:?} {two:?}");
    let mut all: Vec<u8> = [one, two].concat().iter().map(|it| it[1]).collect();
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<_>>());
}

#[tokio::test]
async fn items_of_three_nodes_are_taken_once_while_others_come() {
    let nodes = start(3, |setup| setup).await;
    let works = async |at: usize| {
        let queue = PriorityQueue::new(nodes[at].map("jobs"), "print");
        let mut taken = Vec::new();
        for nth in 0..8_u8 {
            let item = at as u8 * 8 + nth;
            soon(queue.push(u32::from(nth % 4), &[item])).await.unwrap();
            taken.extend(soon(queue.pop()).await.unwrap());
        }
        taken
    };
    let (one, two, three) = tokio::join!(works(0), works(1), works(2));
    let mut all = [one, two, three].concat();
    all.sort_unstable();
    assert_eq!(all, (0..24).collect::<Vec<_>>());
}

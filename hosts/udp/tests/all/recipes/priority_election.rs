//! Candidates with priorities, and leaders that hand over.

use std::sync::Mutex;

use selvedge_udp::recipes::priority_election::PriorityElection;

use super::*;

const PREFIX: &str = "priority-election/heat/0000000";

fn elections(nodes: &[Node]) -> Vec<PriorityElection<'_>> {
    let maps = nodes.iter().map(|it| it.map("elections"));
    maps.map(|it| PriorityElection::new(it, "heat", TTL))
        .collect()
}

async fn candidates(election: &PriorityElection<'_>) -> Vec<(u32, Vec<u8>)> {
    let all = soon(election.candidates()).await.unwrap();
    let all = all.iter().map(|it| (it.priority(), it.value().to_vec()));
    all.collect()
}

#[tokio::test]
async fn the_smallest_priority_leads_when_there_is_no_leader_and_later_ones_have_greater_tokens() {
    let nodes = start(3, |setup| setup).await;
    let elections = elections(&nodes);
    let mut observer = soon(elections[2].observe()).await.unwrap();
    assert_eq!(soon(observer.next()).await, Ok(None));
    let first = soon(elections[0].campaign(5, b"first")).await.unwrap();
    let leader = soon(observer.next()).await.unwrap().unwrap();
    assert_eq!(leader.value.to_vec(), b"first");
    assert_eq!(leader.version, first.token().version);
    let order = Mutex::new(Vec::new());
    let campaigns = async |at: usize, priority, value: &[u8], others| {
        has_entries(&nodes[at], "elections", PREFIX, others).await;
        let leads = soon(elections[at].campaign(priority, value)).await.unwrap();
        assert!(leads.is_leader());
        let mut order = order.lock().unwrap();
        order.push((value.to_vec(), leads.token()));
    };
    let resigns = async {
        has_entries(&nodes[0], "elections", PREFIX, 3).await;
        let waiting = candidates(&elections[0]).await;
        let waiting: Vec<u32> = waiting.iter().map(|it| it.0).collect();
        assert_eq!(waiting, [1, 4, 4]);
        sleep(MOMENT).await;
        assert!(
            first.is_leader(),
            "a candidate waits, whatever its priority"
        );
        let token = first.token();
        soon(first.resign()).await.unwrap();
        token
    };
    // The one that comes last leads first, and the oldest candidate leads later.
    let (first, ..) = tokio::join!(
        resigns,
        campaigns(1, 4, b"third", 0),
        campaigns(2, 4, b"fourth", 1),
        campaigns(1, 1, b"second", 2),
    );
    let order = order.into_inner().unwrap();
    let names: Vec<&[u8]> = order.iter().map(|it| &*it.0).collect();
    assert_eq!(names, [&b"second"[..], b"third", b"fourth"]);
    let tokens: Vec<Token> = order.iter().map(|it| it.1).collect();
    assert!(
        first < tokens[0] && tokens.is_sorted_by(|a, b| a < b),
        "{first:?} {tokens:?}"
    );
}

#[tokio::test]
async fn a_leader_hands_over_to_a_candidate_that_waits_and_leads_on_where_it_has_ended() {
    let nodes = start(3, |setup| setup).await;
    let elections = elections(&nodes);
    let mut observer = soon(elections[0].observe()).await.unwrap();
    let first = soon(elections[0].campaign(5, b"first")).await.unwrap();
    let mut ahead = Box::pin(elections[1].campaign(1, b"ahead"));
    assert!(timeout(MOMENT, &mut ahead).await.is_err());
    let mut last = Box::pin(elections[2].campaign(9, b"last"));
    assert!(timeout(MOMENT, &mut last).await.is_err());
    let waiting = soon(elections[0].candidates()).await.unwrap();
    assert_eq!(waiting.len(), 2);
    let token = first.token();
    assert!(soon(first.hand_over(&waiting[1])).await.unwrap().is_none());
    let leads = soon(last).await.unwrap();
    assert!(leads.is_leader() && leads.token() > token);
    let seen = async {
        loop {
            let leader = soon(observer.next()).await.unwrap();
            if let Some(leader) = leader.filter(|it| *it.value == *b"last") {
                return leader.version;
            }
        }
    };
    assert_eq!(seen.await, leads.token().version);
    assert_eq!(candidates(&elections[0]).await, [(1, b"ahead".to_vec())]);
    // The same candidate waits no more, and nor does one whose future was dropped.
    let leads = soon(leads.hand_over(&waiting[1])).await.unwrap().unwrap();
    drop(ahead);
    has_entries(&nodes[0], "elections", PREFIX, 0).await;
    let leads = soon(leads.hand_over(&waiting[0])).await.unwrap().unwrap();
    assert!(leads.is_leader());
    // And one of another election.
    let others = PriorityElection::new(nodes[1].map("elections"), "light", TTL);
    let light = soon(others.campaign(1, b"light")).await.unwrap();
    let mut waits = Box::pin(others.campaign(2, b"next light"));
    assert!(timeout(MOMENT, &mut waits).await.is_err());
    let waiting = soon(others.candidates()).await.unwrap();
    let leads = soon(leads.hand_over(&waiting[0])).await.unwrap().unwrap();
    assert_eq!(soon(others.candidates()).await, Ok(waiting));
    assert!(light.is_leader());
    drop(leads);
    let next = soon(elections[1].campaign(9, b"next")).await.unwrap();
    // It leads alone: what was handed over has not come back.
    soon(next.resign()).await.unwrap();
    has_entries(&nodes[0], "elections", "priority-election/heat/leader", 0).await;
}

#[tokio::test]
async fn one_candidate_leads_at_a_time_also_after_a_leader_that_was_killed() {
    let nodes = start(3, |setup| setup).await;
    let elections = elections(&nodes);
    let fails = PriorityElection::new(nodes[2].map("elections"), "heat", TTL_MIN);
    let killed = soon(fails.campaign(1, b"killed")).await.unwrap();
    nodes[2].kill().await;
    let (inside, tokens) = (Inside::default(), Mutex::new(vec![killed.token()]));
    let campaigns = async |at: usize, priority| {
        for nth in 0..3_u32 {
            let campaign = elections[at].campaign(priority + nth % 2, b"");
            let leads = soon(campaign).await.unwrap();
            tokens.lock().unwrap().push(leads.token());
            inside.stay().await;
            let waiting = soon(elections[at].candidates()).await.unwrap();
            let leads = match waiting.last() {
                Some(to) => soon(leads.hand_over(to)).await.unwrap(),
                None => Some(leads),
            };
            if let Some(leads) = leads {
                soon(leads.resign()).await.unwrap();
            }
        }
    };
    tokio::join!(campaigns(0, 3), campaigns(1, 2), campaigns(0, 1));
    assert_eq!(inside.most.load(Ordering::SeqCst), 1);
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 10);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
    soon(killed.lapsed()).await;
}

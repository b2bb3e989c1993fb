//! What a node does for the leaders of its groups.

use alloc::collections::BTreeSet;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Time};

use super::*;
use crate::routines::RoutineTimer;
use crate::{Node, Place, Selection};

fn node() -> Kgroup {
    let nodes = (1..=3).map(|id| Node::new(id, Place([0; 3])));
    let selection = Selection::new().with_failures(1);
    let site = Arc::new(Site::new(selection, nodes, [], 1).unwrap());
    let begin = groups::Begin::First;
    Kgroup::new(Member::new(1, 0), Config::new(), site, begin).unwrap()
}

#[test]
fn a_time_by_chance_lies_between_the_time_and_twice_the_time() {
    let group = GroupId::routine(0);
    let timer = LeaderTimer::Routine(RoutineTimer::Backoff);
    let after = Span::millis(800);
    let mut driver = Driver::new(node());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut seen = BTreeSet::new();
    for _ in 0..400 {
        let call = |node: &mut Kgroup, cx: &mut Context<'_, Kgroup>| {
            node.carry_out(group, Wish::ArmAbout { timer, after }, cx);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = driver.with(Time::ZERO, &mut rng, call, |_| ());
        let (armed, at) = driver.timers().next().unwrap();
        assert_eq!(armed, Timer::Leader(group, timer));
        seen.insert(at.since(Time::ZERO));
    }
    assert_eq!(seen.first(), Some(&after));
    assert_eq!(seen.last(), Some(&Span(after.0 * 2)));
    assert_eq!(seen.len() as u64, SLOTS + 1);
}

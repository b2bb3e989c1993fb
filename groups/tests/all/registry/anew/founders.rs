//! Founders that look for the registry, or report groups without news.

use super::*;

const REGISTRY: GroupId = GroupId::REGISTRY;

/// The nodes that a node asks to found the registry when an epoch begins.
fn woken(town: &mut Town, id: u64, epoch: u64) -> BTreeSet<u64> {
    town.wire.clear();
    town.input(id, Input::Command(Command::SetEpoch(epoch)));
    let own = town.wire.iter().filter(|it| it.2.id.0 == id);
    let is_find = |it: &Item<_, _>| {
        matches!(
            it,
            Item::Find {
                group: REGISTRY,
                ..
            }
        )
    };
    let own = own.filter(|it| it.3.items.iter().any(is_find));
    own.map(|it| it.1).collect()
}

/// The registry has fewer members.
const NODES: u64 = 17;

/// A town without a registry, and the nodes that found it.
fn town_of_founders() -> (Town, Land, Vec<u64>) {
    let land = Land::first(NODES, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let founders = town.nodes[&1].machine().founders(REGISTRY);
    (town, land, founders.iter().map(|it| it.0).collect())
}

#[test]
fn a_founder_without_its_memory_asks_the_founders_that_are_here_for_the_registry() {
    let (mut town, land, founders) = town_of_founders();
    let [asker, away, here @ ..] = &founders[..] else {
        panic!("{founders:?}");
    };
    town.stop(*away);
    forget(&mut town, *asker, 2, &land);
    assert_eq!(woken(&mut town, *asker, 2), here.iter().copied().collect());
    for id in here {
        assert_eq!(
            woken(&mut town, *id, 2),
            BTreeSet::new(),
            "it has its memory"
        );
    }
    let other = (1..=NODES).find(|it| !founders.contains(it)).unwrap();
    forget(&mut town, other, 2, &land);
    assert_eq!(
        woken(&mut town, other, 2),
        BTreeSet::new(),
        "it is no founder"
    );
}

#[test]
fn a_founder_that_knows_the_registry_asks_for_it_no_more() {
    let (mut town, land, founders) = town_of_founders();
    let asker = founders[0];
    forget(&mut town, asker, 2, &land);
    town.wire.clear();
    let item = Item::Where {
        group: REGISTRY,
        number: 1,
        leader: None,
        members: [life(founders[1], 1)].into_iter().collect(),
    };
    let message = Message {
        plan: land.plan().digest(),
        generation: 0,
        items: [item].into_iter().collect(),
    };
    let from = life(founders[1], 1);
    town.input(asker, Input::Message { from, message });
    assert!(town.nodes[&asker].machine().replica(REGISTRY).is_none());
    assert_eq!(
        woken(&mut town, asker, 2),
        BTreeSet::new(),
        "it knows the place"
    );
    // That hint leads nowhere, and does not count in a later epoch.
    epochs(&mut town, 2..=3);
    assert!(town.nodes[&asker].machine().replica(REGISTRY).is_some());
    epochs(&mut town, 4..=5);
    assert_eq!(
        woken(&mut town, asker, 6),
        BTreeSet::new(),
        "it is a member"
    );
    let land = land.next();
    town.change(1, &land);
    town.run(Span::secs(10));
    forget(&mut town, asker, 3, &land);
    assert_eq!(
        woken(&mut town, asker, 7),
        BTreeSet::new(),
        "the site has changed"
    );
}

#[test]
fn without_a_registry_no_node_asks_for_it() {
    for id in 1..=5 {
        let mut node = One::new(id, 5, Start::Restarted);
        for other in (1..=5).filter(|it| *it != id) {
            node.learn(Delta::Joined(life(other, 1)));
        }
        node.command(Command::SetEpoch(1));
        assert_eq!(node.sent(), []);
    }
}

/// Returns true if a node reports the group to the registry in the second of two epochs that begin now.
fn reports_after_epochs(town: &mut Town, id: u64, before: impl FnOnce(&mut Town)) -> bool {
    town.input(id, Input::Command(Command::SetEpoch(2)));
    before(town);
    town.wire.clear();
    town.input(id, Input::Command(Command::SetEpoch(3)));
    let own = town.wire.iter().filter(|it| it.2.id.0 == id);
    let mut items = own.flat_map(|it| it.3.items.iter());
    items.any(|it| matches!(it, Item::Lost { group: FIRST, .. }))
}

#[test]
fn a_founder_that_votes_has_news_without_a_leader() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let leader = town.leaders(FIRST)[0];
    let voter = members(&town, FIRST).into_iter().find(|it| *it != leader);
    let voter = voter.unwrap();
    town.stop(leader);
    let replica = town.nodes[&voter].machine().replica(FIRST).unwrap();
    assert!(replica.votes() && replica.leader().is_none());
    assert!(!reports_after_epochs(&mut town, voter, |_| {}));
}

/// A message gave it a part, of which it knows nothing.
#[test]
fn a_founder_with_an_empty_part_has_no_news() {
    let land = Land::first(7, &[FIRST.0]);
    let mut town = Town::new(&land);
    town.run(Span::secs(2));
    let others = members(&town, FIRST);
    forget(&mut town, others[0], 2, &land);
    let is_reported = reports_after_epochs(&mut town, others[0], |town| {
        let message = Message {
            plan: land.plan().digest(),
            generation: 0,
            items: [answers::missing(FIRST, 1)].into_iter().collect(),
        };
        let from = life(others[1], 1);
        town.input(others[0], Input::Message { from, message });
        let replica = town.nodes[&others[0]].machine().replica(FIRST).unwrap();
        assert!(!replica.votes() && replica.leader().is_none());
    });
    assert!(is_reported);
}

//! The facts of a node's memory.

use selvedge_core::durable::Durable;
use selvedge_groups::Fact;
use selvedge_replica::Configuration;

use crate::mesh::*;

#[test]
fn what_a_node_stores_has_the_groups_that_it_left() {
    let mut mark = Configuration::of([2, 3, 4].map(|id| life(id, 0)));
    mark.number = 3;
    let mut groups = machine(life(1, 0), 5, config(), Start::Restarted);
    leave(&mut groups, GROUP, mark.clone());
    let left = Fact::Left {
        group: GROUP,
        plan: groups.plan().digest(),
        configuration: mark.into(),
    };
    assert_eq!(groups.base(Some(GROUP)), Some(left.clone()));
    assert_eq!(groups.base(Some(LATER)), None);
    let stored: Vec<_> = groups.stored().collect();
    assert_eq!(stored.last(), Some(&left));
    let mut next = machine(life(1, 1), 5, config(), Start::Restarted);
    stored.iter().for_each(|it| next.fold(it).unwrap());
    assert_eq!(next.base(Some(GROUP)), Some(left));
}

#[test]
fn a_host_finds_facts_among_events() {
    let fact = machine(life(1, 0), 5, config(), Start::Restarted)
        .base(None)
        .unwrap();
    assert_eq!(Machine::fact(&Event::Fact(fact.clone())), Some(&fact));
    assert_eq!(Machine::fact(&Event::Entered(GROUP)), None);
}

#[test]
fn a_leaders_entries_go_ahead_of_its_fact_and_a_members_answer_waits_for_its_own() {
    let mut mesh = Mesh::new(5, config());
    mesh.run(Span::secs(5));
    let leader = mesh.leader(GROUP);
    let node = mesh.node(leader);
    let propose = Command::Propose {
        group: GROUP,
        update: 7,
    };
    let effects = effects_of(node, Input::Command(propose));
    let [.., last] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert!(matches!(last, Effect::Event(Event::Fact(_))), "{effects:?}");
    let entries = || effects.iter().filter_map(entry_of);
    assert_eq!(entries().count(), 2, "{effects:?}");

    let from = mesh.node(leader).machine().me();
    let (to, message) = entries().next().unwrap();
    let node = mesh.node(to.id.0);
    let effects = effects_of(node, Input::Message { from, message });
    assert!(
        matches!(
            effects[..],
            [Effect::Event(Event::Fact(_)), Effect::Send { .. }]
        ),
        "{effects:?}"
    );
}

/// The effects of a step, in order.
fn effects_of(node: &mut One, input: Input<Machine>) -> Vec<Effect<Machine>> {
    let mut effects = vec![];
    let taken = node
        .driver
        .step(node.now, &mut node.rng, input, |it| effects.push(it));
    taken.unwrap();
    effects
}

/// A message with an entry for a member to accept.
fn entry_of(effect: &Effect<Machine>) -> Option<Sent> {
    let Effect::Send { to, message } = effect else {
        return None;
    };
    let is_entry = |it: &Item<u64, Payload>| match it {
        Item::Replica { message, .. } => matches!(message.body, replica::Body::Accept { .. }),
        _ => false,
    };
    let has_entry = message.items.iter().any(is_entry);
    has_entry.then(|| (*to, message.clone()))
}

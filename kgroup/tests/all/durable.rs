//! Nodes that store: a building after a power cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::Durable;
use selvedge_core::{Driver, Effect, Input, Member, Sha256Sortition, Span, Time};
use selvedge_groups::{
    Damage, Fact, GroupId, Node, Place, Selection, Start,
    store::{Expected, Operation, StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup::routines::{Definition, Stage};
use selvedge_kgroup::{Command, Config, Delivery, Event, GroupState, Kgroup, Site};
use selvedge_replica as replica;
use selvedge_sim::network::{Link, Storage};

use crate::building::{Building, device, switching};

const FLASH: Storage = Storage {
    latency: Span::millis(2),
    jitter: Span::millis(20),
};

fn doors() -> GroupId {
    GroupId::map("doors", &Sha256Sortition)
}

fn put(house: &mut Building, at: usize, ticket: u64, expected: Expected) {
    let operation = Operation::set("front", expected, Some([7].into_iter().collect()));
    let command = StoreCommand::Change { ticket, operation };
    let map = doors();
    let command = Command::Map { map, command };
    house.net.command(at, command).unwrap();
}

/// The outcome of a change.
fn changed(house: &Building, of: u64) -> Option<Stored> {
    let mut changes = house.events.iter().filter_map(|(_, _, event)| match event {
        Event::Map {
            event: StoreEvent::Changed { ticket, stored },
            ..
        } if *ticket == of => Some(*stored),
        _ => None,
    });
    changes.next_back()
}

/// Turns four devices on, each command given once at most.
fn once() -> Definition {
    switching(&[1, 2, 3, 4], "on").with_deliveries([Delivery::AtMostOnce; 4])
}

/// The storage of a node.
pub(crate) fn image(house: &Building, at: usize) -> Vec<Fact<GroupState>> {
    house.net.machine(at).unwrap().groups().stored().collect()
}

/// The facts that a node carried out behind their storing, in all of its lives: facts before a base
/// of their group are dropped, as a host may.
fn log(house: &Building, at: usize) -> Vec<Fact<GroupState>> {
    let mut groups: BTreeMap<Option<GroupId>, Vec<Fact<GroupState>>> = BTreeMap::new();
    for (_, node, event) in &house.events {
        if let (true, Some(fact)) = (*node == at, Kgroup::fact(event)) {
            let facts = groups.entry(fact.group()).or_default();
            if fact.is_base() {
                facts.clear();
            }
            // As from a disk.
            let bytes = postcard::to_allocvec(fact).unwrap();
            facts.push(postcard::from_bytes(&bytes).unwrap());
        }
    }
    groups.into_values().flatten().collect()
}

/// The power may fail at each moment of a run, in all nodes at once, and again.
#[test]
fn a_building_that_loses_power_goes_on_from_its_facts() {
    let mut in_between = 0;
    for (nth, moment) in (0..32).map(|it| (it, Span::millis(11 * it))) {
        let mut house = Building::new(nth, 5, 4, 1, Link::default(), [once()]);
        house.net.set_storage(FLASH);
        house.run(Span::secs(5));
        put(&mut house, 2, 1, Expected::Absent);
        house.run(Span::secs(2));
        assert_eq!(
            changed(&house, 1),
            Some(Stored::Done { version: 1 }),
            "{moment:?}"
        );
        house.trigger(3, 0, 1);
        house.run(moment);
        let before = house.done.len();
        in_between += usize::from((1..4).contains(&before));
        let source = match nth % 2 {
            0 => image,
            _ => log,
        };
        house.black_out(source);
        house.run(moment);
        house.black_out(source);
        // The node asks again, under the same name.
        house.trigger(3, 0, 1);
        house.run(Span::secs(40));
        let state = house.routine(0);
        assert_eq!(state.instance(), 1, "{moment:?}");
        assert_eq!(state.stage(), &Stage::NotTriggered, "{moment:?}");
        assert_eq!(state.report().map(|it| it.instance), Some(1), "{moment:?}");
        for number in 1..=4 {
            let given = house.done.iter().filter(|it| it.device == device(number));
            assert!(given.count() <= 1, "{moment:?}, device {number}");
        }
        put(&mut house, 4, 2, Expected::Absent);
        put(&mut house, 4, 3, Expected::Version(1));
        house.run(Span::secs(5));
        assert_eq!(
            changed(&house, 2),
            Some(Stored::Mismatch { found: Some(1) }),
            "{moment:?}"
        );
        assert_eq!(
            changed(&house, 3),
            Some(Stored::Done { version: 2 }),
            "{moment:?}"
        );
    }
    assert!(in_between > 3, "{in_between} runs were in the middle");
}

/// Groups move, so that nodes are in groups that they were in, and left, in former lives.
#[test]
fn groups_that_move_between_two_losses_of_power_keep_what_they_hold() {
    let mut house = Building::new(7, 9, 4, 1, Link::default(), [once()]);
    house.net.set_storage(FLASH);
    house.run(Span::secs(5));
    put(&mut house, 2, 1, Expected::Absent);
    let mut marks = BTreeMap::new();
    for epoch in 2..8 {
        for at in 0..9 {
            house.net.command(at, Command::SetEpoch(epoch)).unwrap();
        }
        house.trigger(epoch as usize, 0, epoch);
        house.run(Span::secs(12));
        let source = match epoch % 2 {
            0 => image,
            _ => log,
        };
        let before: Vec<_> = (0..9)
            .map(|at| marks_of(house.net.machine(at).unwrap()))
            .collect();
        house.black_out(source);
        for (at, before) in before.into_iter().enumerate() {
            assert_eq!(marks_of(house.net.machine(at).unwrap()), before, "{at}");
        }
        house.run(Span::secs(12));
        assert_eq!(house.routine(0).instance(), epoch - 1);
        for at in 0..9 {
            for (group, mark) in marks_of(house.net.machine(at).unwrap()) {
                let before = marks.insert((at, group), mark);
                assert!(before <= Some(mark), "{at}, {group:?}: {before:?}, {mark}");
            }
        }
        put(&mut house, 3, epoch, Expected::Version(epoch - 1));
        house.run(Span::secs(3));
        let done = Stored::Done { version: epoch };
        assert_eq!(changed(&house, epoch), Some(done));
    }
    let former = house.net.machines().map(|it| it.1.groups().former());
    assert!(former.sum::<usize>() > 9);
}

/// For each group, the highest configuration in which a node may have voted.
fn marks_of(node: &Kgroup) -> Vec<(GroupId, u64)> {
    let groups = node.groups();
    let mark = |fact: Fact<GroupState>| {
        let group = fact.group()?;
        let left = match fact {
            Fact::Left { configuration, .. } => configuration.number,
            Fact::Ended { number, .. } => number,
            Fact::Began { .. } | Fact::Site { .. } | Fact::Base { .. } | Fact::Replica { .. } => 0,
        };
        let mark = groups.replica(group).map_or(left, |it| it.mark().max(left));
        Some((group, mark))
    };
    groups.stored().filter_map(mark).collect()
}

fn site(origin: u32) -> Arc<Site> {
    let node = |id: u64| Node::new(id, Place([id as i32, 0, 0]));
    let selection = Selection::new().with_failures(1);
    let lamp = (device(1), Place::default());
    let site = Site::new(selection, (1..=3).map(node), [lamp], 1).unwrap();
    Arc::new(site.with_origin(origin))
}

fn node(me: Member, origin: u32) -> Kgroup {
    Kgroup::new(me, Config::new(), site(origin), Start::Fresh).unwrap()
}

/// The facts that three nodes store in two seconds, on a network that loses nothing, and takes no
/// time.
fn facts_of_three() -> Vec<Vec<Fact<GroupState>>> {
    let members = [1, 2, 3].map(|id| Member::new(id, 1));
    let mut drivers = members.map(|me| Driver::new(node(me, 0)));
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut facts = vec![Vec::new(); 3];
    let mut inputs: Vec<(usize, Input<Kgroup>)> = Vec::new();
    inputs.extend((0..3).map(|at| (at, Input::Command(Command::SetEpoch(1)))));
    for tenth in 0..20 {
        let now = Time::ZERO + Span::millis(100) * tenth;
        for at in 0..3 {
            let mut effects = Vec::new();
            drivers[at].expire_into(now, &mut rng, &mut effects);
            take(at, members[at], effects, &mut facts[at], &mut inputs);
        }
        while !inputs.is_empty() {
            let (at, input) = inputs.remove(0);
            let mut effects = Vec::new();
            let taken = drivers[at].step_into(now, &mut rng, input, &mut effects);
            taken.unwrap();
            // Of one step: nothing is sent before a fact.
            let is_fact =
                |it: &Effect<Kgroup>| matches!(it, Effect::Event(it) if Kgroup::fact(it).is_some());
            let is_sent = |it: &Effect<Kgroup>| matches!(it, Effect::Send { .. });
            let first_sent = effects.iter().position(is_sent);
            let last_fact = effects.iter().rposition(is_fact);
            assert!(
                first_sent.is_none() || last_fact < first_sent,
                "{effects:?}"
            );
            take(at, members[at], effects, &mut facts[at], &mut inputs);
        }
    }
    facts
}

fn take(
    at: usize,
    from: Member,
    effects: Vec<Effect<Kgroup>>,
    facts: &mut Vec<Fact<GroupState>>,
    inputs: &mut Vec<(usize, Input<Kgroup>)>,
) {
    for effect in effects {
        match effect {
            Effect::Send { to, message } => {
                let to = usize::try_from(to.id.0 - 1).unwrap();
                assert_ne!(to, at);
                inputs.push((to, Input::Message { from, message }));
            }
            Effect::Event(event) => facts.extend(Kgroup::fact(&event).cloned()),
            Effect::Multicast { .. } => {}
        }
    }
}

#[test]
fn a_fact_comes_before_what_is_sent_in_its_step_and_a_base_before_other_facts() {
    for facts in facts_of_three() {
        assert!(facts.iter().any(|it| !it.is_base()), "{facts:?}");
        let begins = |it: &&Fact<GroupState>| matches!(it, Fact::Began { .. });
        assert_eq!(facts.iter().filter(begins).count(), 1, "{facts:?}");
        let mut known = Vec::new();
        for fact in facts {
            assert!(fact.is_base() || known.contains(&fact.group()), "{fact:?}");
            known.push(fact.group());
        }
    }
}

#[test]
fn facts_come_to_what_is_stored_and_what_is_stored_to_itself() {
    for (facts, id) in facts_of_three().into_iter().zip(1..) {
        let mut first = node(Member::new(id, 2), 0);
        facts.iter().for_each(|it| first.fold(it).unwrap());
        let stored: Vec<_> = first.groups().stored().collect();
        let mut again = node(Member::new(id, 3), 0);
        stored.iter().for_each(|it| again.fold(it).unwrap());
        assert!(again.groups().stored().eq(stored.iter().cloned()));
        for fact in stored {
            assert_eq!(first.groups().base(fact.group()), Some(fact));
        }
    }
}

#[test]
fn facts_that_cannot_be_taken_are_named() {
    let facts = facts_of_three().remove(0);
    let base = facts
        .iter()
        .find(|it| matches!(it, Fact::Base { .. }))
        .unwrap();
    let other = facts.iter().find(|it| !it.is_base()).unwrap();
    let mut late = node(Member::new(1, 2), 1);
    let own = late.groups().plan().digest();
    let found = node(Member::new(1, 2), 0).groups().plan().digest();
    assert_eq!(late.fold(base), Err(Damage::Plan { found, own }));
    let mut missing = node(Member::new(1, 2), 0);
    assert_eq!(
        missing.fold(other),
        Err(Damage::Missing(other.group().unwrap()))
    );
    let not_own = replica::Damage::NotOwn(Member::new(1, 1)).into();
    let mut theirs = node(Member::new(2, 2), 0);
    let damage = Damage::Replica(base.group().unwrap(), not_own);
    assert_eq!(theirs.fold(base), Err(damage));
}

/// Returns true if a node accepts the next configuration of a group.
fn is_link(event: &Event) -> bool {
    let Some(Fact::Replica { fact, .. }) = Kgroup::fact(event) else {
        return false;
    };
    let replica::Fact::Accepted { entries, .. } = fact else {
        return false;
    };
    let mut entries = entries.iter();
    entries.any(|it| matches!(it, replica::Entry::Configure(_)))
}

/// Nodes and devices in which no one may fail, up to when the groups have moved once.
fn moved(seed: u64) -> Building {
    let mut house = Building::new(seed, 4, 4, 0, Link::default(), [once()]);
    house.run(Span::secs(5));
    for at in 0..4 {
        house.net.command(at, Command::SetEpoch(2 + seed)).unwrap();
    }
    house.run(Span::secs(15));
    house
}

/// A group of one leads and passes on to others in one step.
#[test]
fn a_member_that_stored_a_link_and_not_that_it_is_decided_passes_on() {
    let mut cut = 0;
    for seed in 0..4 {
        let ends = moved(seed)
            .events
            .iter()
            .enumerate()
            .filter_map(|(at, it)| is_link(&it.2).then_some(at + 1))
            .collect::<Vec<_>>();
        for end in ends {
            cut += 1;
            let mut house = moved(seed);
            house.events.truncate(end);
            house.black_out(log);
            house.run(Span::secs(30));
            let mut leads = BTreeMap::<(usize, GroupId), bool>::new();
            for (_, node, event) in house.events.iter().skip(end) {
                match event {
                    Event::Leading { group } => {
                        leads.insert((*node, *group), true);
                    }
                    Event::Deposed { group } => {
                        let led = leads.insert((*node, *group), false);
                        assert_eq!(led, Some(true), "seed {seed}: {group:?} was not led");
                    }
                    _ => {}
                }
            }
            for group in house.site.groups() {
                assert_eq!(house.leader(group).len(), 1, "seed {seed}: {group:?}");
            }
        }
    }
    assert!(cut > 3, "{cut} links");
}

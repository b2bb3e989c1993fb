//! Stored facts, databases, datagrams and sites.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Time};
use selvedge_replica::{Command, Config, Configuration, Event, Fact, Replica, Stored};

use super::Seed;
use crate::group_facts::{Run, coordination};
use crate::stored_facts::{FIRST, Sum};

pub(super) fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let Some((base, facts)) = stored() else {
        return seeds;
    };
    for (name, kept) in [("all", facts.len()), ("some", facts.len() / 2), ("none", 0)] {
        let facts = facts.get(..kept).unwrap_or_default();
        let bytes = postcard::to_allocvec(&(&base, facts)).unwrap_or_default();
        seeds.push(seed("stored_facts", name, bytes));
    }
    if let Some(node) = Run::first() {
        let node = node.take_part();
        let (stored, facts) = (node.stored(), node.facts);
        let some = facts.get(..facts.len() / 2).unwrap_or_default();
        for (name, facts) in [
            ("none", &[][..]),
            ("some", some),
            ("all", &facts),
            ("base", &stored),
        ] {
            let bytes = postcard::to_allocvec(facts).unwrap_or_default();
            seeds.push(seed("group_facts", name, bytes));
        }
    }
    // Each operation, at each datagram.
    let all = (0..48_u8).flat_map(|it| [it / 12, it % 12, it.wrapping_mul(7), it]);
    seeds.push(seed("sealed", "all", all.collect()));
    for (name, bytes) in [
        ("crashed", &[0][..]),
        ("closed", &[1]),
        ("one-byte", &[0, 0, 0, 14, 1, 1, 3, 7, 0x80]),
        ("a-sector", &[1, 2, 9, 9, 0]),
        ("cut", &[0, 3, 1, 0, 0, 0, 0, 200, 255]),
    ] {
        seeds.push(seed("database", name, bytes.to_vec()));
    }
    for step in [1_u8, 37, 101] {
        let bytes = (0..=u8::MAX)
            .cycle()
            .take(1_024)
            .map(|at| at.wrapping_mul(step));
        seeds.push(seed("site", &format!("step-{step}"), bytes.collect()));
    }
    if let Some(of_groups) = coordination() {
        seeds.push(seed("site", "encoded", of_groups.site.encode()));
    }
    seeds
}

fn seed(target: &'static str, name: &str, bytes: Vec<u8>) -> Seed {
    let name = name.into();
    Seed {
        target,
        name,
        bytes,
    }
}

/// Returns the base and the facts of a member alone in its group, which proposes, changes its
/// configuration, and proposes again.
fn stored() -> Option<(Stored<Sum>, Vec<Fact<Sum>>)> {
    let first = Configuration::of([FIRST]);
    let machine = Replica::new(FIRST, Config::new(), first.clone(), Sum(0)).ok()?;
    let base = machine.stored();
    let mut driver = Driver::new(machine);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut facts = Vec::new();
    for command in [
        Command::Propose(1),
        Command::Configure(first),
        Command::Propose(2),
    ] {
        let _refused = driver.step(Time::ZERO, &mut rng, Input::Command(command), |effect| {
            if let Effect::Event(Event::Fact(fact)) = effect {
                facts.push(fact);
            }
        });
    }
    Some((base, facts))
}

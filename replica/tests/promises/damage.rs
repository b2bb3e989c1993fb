//! Storage that returns other data than it was given.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Input, Member, Span, Time};
use selvedge_replica::{
    Body, Command, Config, Configuration, Damage, Entry, Event, Fact, Message, Reject, Replica,
    Stored, Wants,
};

use crate::oracle::{Log, Op};

type Machine = Replica<Log>;

fn op(id: u64) -> Op {
    Op {
        id,
        pad: Vec::new(),
    }
}

/// The facts of a member alone in its group, which proposes, changes, and proposes.
fn stored() -> (Stored<Log>, Vec<Fact<Log>>) {
    let me = Member::new(1, 0);
    let first = Configuration::of([me]);
    let machine = Replica::new(me, Config::new(), first.clone(), Log::default()).unwrap();
    let base = machine.stored();
    let mut driver = Driver::new(machine);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut facts = Vec::new();
    for command in [
        Command::Propose(op(1)),
        Command::Configure(first),
        Command::Propose(op(2)),
    ] {
        let emit = |effect| {
            if let selvedge_core::Effect::Event(Event::Fact(fact)) = effect {
                facts.push(fact);
            }
        };
        let input = Input::Command(command);
        driver.step(Time::ZERO, &mut rng, input, emit).unwrap();
    }
    assert_eq!(driver.machine().version(), 3);
    (base, facts)
}

/// A later life of it, as far as it takes the stored facts.
fn begin(base: Stored<Log>, facts: &[Fact<Log>]) -> Option<Machine> {
    let mut machine = Replica::restore(Member::new(1, 1), Config::new(), base).ok()?;
    for fact in facts {
        machine.fold(fact).ok()?;
    }
    Some(machine)
}

/// Nothing of it may panic; debug assertions are on.
fn live(machine: Machine) {
    let mut driver = Driver::new(machine);
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let from = Member::new(2, 0);
    let configuration = driver.machine().configuration().number;
    let wants = Wants::State;
    let body = Body::Missing {
        committed: 0,
        wants,
    };
    let message = Message {
        configuration,
        body,
    };
    let inputs = [
        Input::Membership(Delta::Joined(from)),
        Input::Command(Command::Campaign),
        Input::Command(Command::Propose(op(3))),
        Input::Message { from, message },
        Input::Command(Command::Read(1)),
    ];
    for (nth, input) in (1..).zip(inputs) {
        let _refused = driver.step(Time::ZERO, &mut rng, input, |_| ()).is_err();
        driver.expire(Time::ZERO + Span::secs(nth), &mut rng, |_| ());
    }
    let _again = begin(driver.machine().stored(), &[]);
}

#[test]
fn what_is_damaged_is_refused_or_harmless() {
    let (base, facts) = stored();
    live(begin(base.clone(), &facts).unwrap());
    let mut taken = 0;
    let bytes = postcard::to_allocvec(&(base.clone(), facts.clone())).unwrap();
    for at in 0..bytes.len() {
        for byte in [0, 1, 2, 3, 0x7f, 0xff, bytes[at] ^ 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] = byte;
            // A number that is the highest one there is.
            let mut wide = damaged.clone();
            wide.splice(at..=at, [255, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
            for bytes in [damaged, wide] {
                let Ok((base, facts)) =
                    postcard::from_bytes::<(Stored<Log>, Vec<Fact<Log>>)>(&bytes)
                else {
                    continue;
                };
                if let Some(machine) = begin(base, &facts) {
                    taken += 1;
                    live(machine);
                }
            }
        }
    }
    assert!(taken > 0);
}

#[test]
fn a_fact_that_is_missing_is_noticed() {
    let (base, facts) = stored();
    for missing in 0..facts.len() - 1 {
        let mut facts = facts.clone();
        facts.remove(missing);
        if let Some(machine) = begin(base.clone(), &facts) {
            live(machine);
        }
    }
    let mut machine = begin(base, &facts[..1]).unwrap();
    assert_eq!(machine.fold(facts.last().unwrap()), Err(Damage::Missing));
}

/// Nothing follows the entry that ends a configuration.
#[test]
fn stored_entries_behind_the_end_of_a_configuration_are_refused() {
    let (base, facts) = stored();
    let behind = |fact: &Fact<Log>| match fact {
        Fact::Accepted { entries, .. } => entries.iter().next().cloned(),
        _ => None,
    };
    let mut found = facts.iter().filter_map(behind);
    let update = found.next().unwrap();
    let end = found.find(|it| matches!(it, Entry::Configure(_))).unwrap();
    let fact = |entries: [Entry<Op>; 2]| Fact::Learned {
        after: 0,
        entries: entries.into_iter().collect(),
    };
    let mut machine = begin(base.clone(), &[]).unwrap();
    let wrong = fact([end.clone(), update.clone()]);
    assert_eq!(machine.fold(&wrong), Err(Damage::Unsound));
    let mut machine = begin(base, &[]).unwrap();
    assert_eq!(machine.fold(&fact([update, end])), Ok(()));
}

#[test]
fn the_storage_of_another_node_is_refused() {
    let (base, _) = stored();
    let of = base.voter();
    let refused = Replica::restore(Member::new(2, 1), Config::new(), base);
    assert_eq!(refused, Err(Reject::Damaged(Damage::NotOwn(of))));
}

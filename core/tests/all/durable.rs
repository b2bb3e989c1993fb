//! The barrier: no effect is released before the facts in front of it are stored, whatever storage
//! does.

use core::convert::Infallible;

use chacha20::ChaCha8Rng;
use proptest::collection::vec;
use proptest::prelude::*;
use rand_core::SeedableRng;
use selvedge_core::durable::{Barrier, Behind, Durable, Mark};
use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Time};

/// A machine that counts its commands. Each event or message carries the number of facts before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Promiser {
    facts: u32,
    effects: u32,
}

/// An action of a step, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Act {
    Promise,
    Send,
    Multicast,
    Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Reported {
    nth: u32,
    after: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Event {
    Promised(u32),
    Notified(Reported),
}

impl Machine for Promiser {
    type Message = Reported;
    type Timer = ();
    type Command = Vec<Act>;
    type Event = Event;
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        let Input::Command(acts) = input else {
            return Err(());
        };
        for act in acts {
            let reported = Reported {
                nth: self.effects,
                after: self.facts,
            };
            match act {
                Act::Promise => {
                    self.facts += 1;
                    cx.event(Event::Promised(self.facts));
                    continue;
                }
                Act::Send => cx.send(Member::new(9, 0), reported),
                Act::Multicast => cx.multicast(reported),
                Act::Notify => cx.event(Event::Notified(reported)),
            }
            self.effects += 1;
        }
        Ok(())
    }
}

impl Durable for Promiser {
    type Fact = u32;
    type Damage = Infallible;

    fn fact(event: &Event) -> Option<&u32> {
        match event {
            Event::Promised(fact) => Some(fact),
            Event::Notified(_) => None,
        }
    }

    fn fold(&mut self, fact: &u32) -> Result<(), Infallible> {
        self.facts = *fact;
        Ok(())
    }
}

/// A host with its storage.
struct Host {
    driver: Driver<Promiser>,
    barrier: Barrier<Effect<Promiser>>,
    rng: ChaCha8Rng,
    /// Writes that were begun and are not reported yet: their facts, and their marks.
    writes: Vec<(Vec<u32>, Mark)>,
    log: Vec<u32>,
    out: Vec<Effect<Promiser>>,
    /// All effects of the machine, in order.
    asked: Vec<Effect<Promiser>>,
}

impl Host {
    fn new(limit: usize) -> Self {
        Self {
            driver: Driver::new(Promiser::default()),
            barrier: Barrier::new(limit),
            rng: ChaCha8Rng::seed_from_u64(0),
            writes: Vec::new(),
            log: Vec::new(),
            out: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn step(&mut self, acts: Vec<Act>) -> Result<(), Behind> {
        self.barrier.ready()?;
        let (barrier, out, asked) = (&mut self.barrier, &mut self.out, &mut self.asked);
        let input = Input::Command(acts);
        let notified = self
            .driver
            .step(Time::ZERO, &mut self.rng, input, |effect| {
                asked.push(effect.clone());
                barrier.take(effect, |effect| out.push(effect));
            });
        assert_eq!(notified, Ok(()));
        Ok(())
    }

    fn write(&mut self) -> bool {
        let mut facts = Vec::new();
        let mark = self.barrier.write_facts(|fact| facts.push(*fact));
        assert_eq!(mark.is_some(), !facts.is_empty());
        self.writes.extend(mark.map(|mark| (facts, mark)));
        mark.is_some()
    }

    /// Completes this many of the writes that were begun; storage reports the last of them only.
    fn complete(&mut self, writes: usize) {
        let writes = writes.min(self.writes.len());
        let mut last = None;
        for (facts, mark) in self.writes.drain(..writes) {
            facts.iter().for_each(|fact| store(&mut self.log, *fact));
            last = Some(mark);
        }
        if let Some(mark) = last {
            let out = &mut self.out;
            self.barrier.stored(mark, |effect| out.push(effect));
            assert!(self.barrier.is_stored(mark));
        }
    }

    /// Fails all writes that were begun, the first of them after `kept` of its facts.
    fn fail(&mut self, kept: usize) {
        if let Some((facts, _)) = self.writes.first() {
            let kept = &facts[..kept.min(facts.len() - 1)];
            kept.iter().for_each(|fact| store(&mut self.log, *fact));
        }
        self.writes.clear();
        self.barrier.failed();
    }

    /// A crash at this moment, with any prefix of the unfinished writes: the effects that were
    /// released depend on stored facts only.
    fn check(&self) {
        assert_eq!(
            self.out,
            self.asked[..self.out.len()],
            "in order, none doubled"
        );
        let all = self.writes.iter().flat_map(|it| &it.0);
        for kept in 0..=all.clone().count() {
            let mut machine = Promiser::default();
            let mut log = self.log.clone();
            let on_its_way = all.clone().take(kept);
            on_its_way.for_each(|fact| store(&mut log, *fact));
            for fact in &log {
                assert_eq!(*fact, machine.facts + 1, "no gap");
                assert_eq!(machine.fold(fact), Ok(()));
            }
            for effect in &self.out {
                assert!(machine.facts >= rests_on(effect), "{effect:?}: {machine:?}");
            }
        }
        // No effect is delayed beyond its order: the next one is a fact that is not stored.
        if let Some(next) = self.asked.get(self.out.len()) {
            assert!(
                matches!(next, Effect::Event(event) if Promiser::fact(event).is_some()),
                "{next:?} waits for nothing"
            );
        }
        let waiting = self.asked.len() - self.out.len();
        assert_eq!(self.barrier.waiting(), waiting);
    }
}

/// Stores a fact at its place; the remains of a failed write from there on are removed.
fn store(log: &mut Vec<u32>, fact: u32) {
    log.truncate(fact as usize - 1);
    log.push(fact);
}

fn rests_on(effect: &Effect<Promiser>) -> u32 {
    match effect {
        Effect::Send { message, .. } | Effect::Multicast { message } => message.after,
        Effect::Event(Event::Notified(reported)) => reported.after,
        Effect::Event(Event::Promised(fact)) => *fact,
    }
}

#[derive(Clone, Debug)]
enum Doing {
    Step(Vec<Act>),
    Write,
    Complete(usize),
    Fail(usize),
}

fn doing() -> impl Strategy<Value = Doing> {
    let act = prop_oneof![
        Just(Act::Promise),
        Just(Act::Send),
        Just(Act::Multicast),
        Just(Act::Notify)
    ];
    prop_oneof![
        4 => vec(act, 0..5).prop_map(Doing::Step),
        3 => Just(Doing::Write),
        3 => (0_usize..4).prop_map(Doing::Complete),
        1 => (0_usize..4).prop_map(Doing::Fail),
    ]
}

proptest! {
    #[test]
    fn whatever_storage_does_what_is_out_is_stored(
        limit in 0_usize..12,
        doings in vec(doing(), 0..60),
    ) {
        let mut host = Host::new(limit);
        for doing in doings {
            match doing {
                Doing::Step(acts) => {
                    let (before, most) = (host.barrier.waiting(), acts.len());
                    let notified = host.step(acts);
                    prop_assert_eq!(notified.is_err(), before > limit);
                    prop_assert!(host.barrier.waiting() <= limit + 5 && most < 5);
                }
                Doing::Write => drop(host.write()),
                Doing::Complete(writes) => host.complete(writes),
                Doing::Fail(kept) => host.fail(kept),
            }
            host.check();
        }
        // In the end everything is stored, and everything is released.
        host.write();
        host.complete(usize::MAX);
        host.check();
        prop_assert_eq!(&host.out, &host.asked);
        prop_assert_eq!((host.barrier.waiting(), host.barrier.unstored()), (0, 0));
        prop_assert_eq!(host.log.len() as u32, host.driver.machine().facts);
        prop_assert!(!host.write(), "nothing is stored twice");
    }
}

#[test]
fn what_stands_before_the_first_fact_goes_out_at_once() {
    let mut host = Host::new(9);
    host.step(vec![Act::Send, Act::Promise, Act::Notify])
        .unwrap();
    assert_eq!(host.out.len(), 1);
    host.step(vec![Act::Send]).unwrap();
    assert_eq!((host.out.len(), host.barrier.waiting()), (1, 3));
    assert!(host.write());
    host.complete(1);
    assert_eq!((host.out.len(), host.barrier.waiting()), (4, 0));
}

/// One write for all facts until now, and the next one for the facts that come meanwhile.
#[test]
fn facts_are_written_in_groups() {
    let mut host = Host::new(9);
    for _ in 0..3 {
        host.step(vec![Act::Promise, Act::Send]).unwrap();
    }
    assert!(host.write());
    host.step(vec![Act::Promise, Act::Send]).unwrap();
    assert_eq!(host.writes[0].0, [1, 2, 3]);
    host.complete(1);
    assert_eq!((host.out.len(), host.barrier.waiting()), (6, 2));
    assert!(host.write() && !host.write());
    assert_eq!(host.writes[0].0, [4]);
    let last = host.barrier.last();
    assert!(!host.barrier.is_stored(last));
    host.complete(1);
    assert!(host.barrier.is_stored(last));
}

#[test]
fn a_host_whose_storage_is_behind_takes_no_step() {
    let mut host = Host::new(1);
    host.step(vec![Act::Promise, Act::Send]).unwrap();
    let behind = host.step(vec![Act::Send]).unwrap_err();
    assert_eq!((behind.waiting, behind.limit), (2, 1));
    assert!(behind.to_string().contains("2 effects wait for storage"));
    host.write();
    host.complete(1);
    host.step(vec![Act::Send]).unwrap();
    assert_eq!(host.out, host.asked);
}

/// A failed write that storage completed late all the same: each fact is released once.
#[test]
fn a_write_that_failed_is_handed_out_again() {
    let mut host = Host::new(9);
    host.step(vec![Act::Promise, Act::Send]).unwrap();
    assert!(host.write());
    let late = host.writes[0].clone();
    host.fail(0);
    let waiting = host.barrier.waiting();
    host.barrier.stored(late.1, |_| panic!("it failed"));
    assert_eq!(host.barrier.waiting(), waiting);
    assert!(host.write());
    assert_eq!(host.writes[0].0, late.0);
    host.complete(1);
    let out = host.out.len();
    host.barrier.stored(late.1, |_| panic!("it is out"));
    assert_eq!((out, host.barrier.waiting()), (2, 0));
}

/// The mark of the last fact is ahead of storage until that fact is written.
#[test]
fn a_fact_that_storage_was_never_handed_is_not_stored() {
    let mut barrier = Barrier::new(9);
    let mut out = Vec::new();
    barrier.push_fact(1);
    barrier.stored(barrier.last(), |it| out.push(it));
    assert_eq!(barrier.unstored(), 1);
    let written = barrier.write(|_| ());
    barrier.push_fact(2);
    assert!(written.is_some() && written != Some(barrier.last()));
    barrier.stored(barrier.last(), |it| out.push(it));
    assert_eq!((barrier.unstored(), barrier.waiting()), (1, 1));
    let mut handed = Vec::new();
    let written = barrier.write(|it| handed.push(*it)).unwrap();
    barrier.stored(written, |it| out.push(it));
    assert_eq!((handed, out), (vec![2], vec![1, 2]));
}

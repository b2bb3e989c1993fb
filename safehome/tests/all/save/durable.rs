//! A hub whose steps are facts, and storage that is late, groups writes and loses them.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::{Barrier, Durable, Mark};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Command, Config, Damage, Difference, DurableEvent, DurableHub, Event, Hub, Outcome, Routine,
    Saved, Step,
};
use selvedge_sim::histories;

const DEVICES: u64 = 3;

type Effects = Vec<Effect<DurableHub<u8>>>;

/// A host with storage of its own, and records for the test.
struct Host {
    hub: Driver<DurableHub<u8>>,
    rng: ChaCha8Rng,
    now: Time,
    barrier: Barrier<Effect<DurableHub<u8>>>,
    log: Vec<Difference<u8>>,
    /// Writes that were begun.
    writes: Vec<(Vec<Difference<u8>>, Mark)>,
    out: Effects,
    /// All issued commands in order, each with the number of facts before it.
    asked: Vec<(usize, Effect<DurableHub<u8>>)>,
    /// The state after each number of facts.
    states: Vec<Saved<u8>>,
    sent: Vec<(NodeId, u64)>,
}

impl Host {
    fn new(seed: u64, limit: usize) -> Self {
        let hub = DurableHub::new(Hub::new(Config::default()).unwrap());
        Self {
            states: vec![hub.hub().save()],
            hub: Driver::new(hub),
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: Time::ZERO,
            barrier: Barrier::new(limit),
            log: Vec::new(),
            writes: Vec::new(),
            out: Vec::new(),
            asked: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// A step, or ticks. Each fact is the state that it leads to.
    fn feed(&mut self, input: Option<Input<DurableHub<u8>>>) {
        let mut effects = Vec::new();
        let before = self.states.len();
        match input {
            Some(input) => {
                // A refused input is no step.
                let notified = self
                    .hub
                    .step_into(self.now, &mut self.rng, input, &mut effects);
                let facts = effects.iter().filter(|it| is_fact(it)).count();
                assert_eq!(facts, usize::from(notified.is_ok()), "one fact a step");
                assert!(effects.first().is_none_or(is_fact), "and it comes first");
            }
            None => drop(self.hub.expire_into(self.now, &mut self.rng, &mut effects)),
        }
        let out = &mut self.out;
        for effect in effects {
            if let Effect::Event(DurableEvent::Changed(difference)) = &effect {
                let state = self.states.last().unwrap().clone();
                self.states.push(state.apply(difference.clone()).unwrap());
            }
            self.asked.push((self.states.len() - 1, effect.clone()));
            self.barrier.take(effect, |effect| out.push(effect));
        }
        if self.states.len() > before {
            assert_eq!(
                *self.states.last().unwrap(),
                self.hub.machine().hub().save()
            );
        }
    }

    fn write(&mut self) {
        let mut facts = Vec::new();
        let mark = self.barrier.write_facts(|fact| facts.push(fact.clone()));
        self.writes.extend(mark.map(|mark| (facts, mark)));
    }

    fn complete(&mut self) {
        if self.writes.is_empty() {
            return;
        }
        let (facts, mark) = self.writes.remove(0);
        self.log.extend(facts);
        let before = self.out.len();
        let out = &mut self.out;
        self.barrier.stored(mark, |effect| out.push(effect));
        for effect in &self.out[before..] {
            if let Effect::Event(DurableEvent::Hub(Event::Issue { device, token, .. })) = effect {
                self.sent.push((*device, *token));
            }
        }
    }

    fn act(&mut self) {
        match self.rng.below(7) {
            0 => {
                let step = |_| {
                    let device = NodeId(self.rng.below(DEVICES));
                    Step::new(device, u8::try_from(self.rng.below(4)).unwrap())
                };
                let steps = (0..3).map(step).collect();
                self.feed(Some(Input::Command(Command::Submit(Routine { steps }))));
            }
            1..5 => {
                let Some((device, token)) = self.sent.pop() else {
                    return;
                };
                let outcome = match self.rng.below(5) {
                    0 => Outcome::Refused,
                    _ => Outcome::Done,
                };
                self.feed(Some(Input::Command(Command::Acted {
                    device,
                    token,
                    outcome,
                })));
            }
            5 => {
                let member = Member::new(self.rng.below(DEVICES), 0);
                let delta = match self.rng.below(6) {
                    0 => Delta::Failed(member),
                    _ => Delta::Joined(member),
                };
                self.feed(Some(Input::Membership(delta)));
            }
            _ => {
                self.now = self.now + Span::secs(self.rng.below(20));
                self.feed(None);
            }
        }
    }

    /// Simulates a crash now: whichever part of the pending writes is kept, no emitted event is
    /// forgotten, and the restored state is one after a step.
    fn crash(&self) {
        let safe = self.log.len();
        for (nth, effect) in self.out.iter().enumerate() {
            let (rests_on, asked) = &self.asked[nth];
            assert!(effect == asked && *rests_on <= safe, "{effect:?}");
        }
        let base = &self.states[0];
        let on_its_way = self.writes.iter().flat_map(|it| &it.0);
        let mut facts = self.log.clone();
        let mut folded = DurableHub::recover(Config::default(), base.clone(), self.log.clone());
        let mut left = on_its_way.cloned();
        loop {
            let kept = &self.states[facts.len()];
            let facts_so_far = facts.clone();
            let recovered = DurableHub::recover(Config::default(), base.clone(), facts_so_far);
            let hub = recovered.unwrap();
            assert!(hub.hub().save() == *kept && hub.saved() == kept);
            assert_eq!(
                *folded.as_ref().unwrap(),
                hub,
                "one by one comes to the same"
            );
            let Some(fact) = left.next() else {
                return;
            };
            folded.as_mut().unwrap().fold(&fact).unwrap();
            facts.push(fact);
        }
    }
}

fn is_fact(effect: &Effect<DurableHub<u8>>) -> bool {
    matches!(effect, Effect::Event(event) if DurableHub::<u8>::fact(event).is_some())
}

#[test]
fn nothing_of_a_step_is_out_before_it_is_stored_and_all_of_it_comes_back() {
    let (mut committed, mut held, mut kept) = (0, 0, 0);
    let ran = histories(0..60, |seed| {
        let mut host = Host::new(seed, usize::try_from(seed % 9).unwrap());
        for device in (0..DEVICES).map(NodeId) {
            let state = Some(0);
            host.feed(Some(Input::Command(Command::AddDevice { device, state })));
            host.write();
            host.complete();
        }
        for _ in 0..150 {
            match host.barrier.ready() {
                Ok(()) => host.act(),
                Err(_) => held += 1,
            }
            if host.rng.below(2) == 0 {
                host.write();
            }
            if host.rng.below(3) == 0 {
                host.complete();
            }
            kept = kept.max(host.writes.iter().map(|it| it.0.len()).sum());
            if host.rng.below(8) == 0 {
                host.crash();
            }
        }
        host.write();
        while !host.writes.is_empty() {
            host.complete();
        }
        host.crash();
        assert_eq!(host.out.len(), host.asked.len());
        let is_commit =
            |it: &&Effect<_>| matches!(it, Effect::Event(DurableEvent::Hub(Event::Committed(_))));
        committed += host.out.iter().filter(is_commit).count();
    });
    let is_varied = committed > 20 && held > 20 && kept > 3;
    assert!(ran < 60 || is_varied, "{committed} {held} {kept}");
}

#[test]
fn what_is_missing_or_damaged_is_not_taken() {
    let mut host = Host::new(1, 100);
    for device in (0..DEVICES).map(NodeId) {
        let state = Some(0);
        host.feed(Some(Input::Command(Command::AddDevice { device, state })));
    }
    host.write();
    host.complete();
    let base = host.states[0].clone();
    let gap = [host.log[0].clone(), host.log[2].clone()];
    let refused = DurableHub::recover(Config::default(), base.clone(), gap).unwrap_err();
    let (expected, found) = (1, 2);
    let missing = Damage::Gap { expected, found };
    assert_eq!(refused, missing);
    assert_eq!(refused.to_string(), missing.to_string());

    let mut hub = DurableHub::recover(Config::default(), base.clone(), []).unwrap();
    let before = hub.clone();
    assert!(hub.fold(&host.log[1]).is_err());
    assert_eq!(hub, before);

    let config = Config::default().with_device_limit(2);
    let refused = DurableHub::recover(config, base, host.log.clone()).unwrap_err();
    let limit = 2;
    let found = 3;
    let state = Damage::TooManyDevices { found, limit };
    assert_eq!(refused, state);
}

//! Clusters of devices under random updates: doubled, late, and of claims that are over.

#![allow(
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on fails"
)]

use std::collections::{BTreeMap, BTreeSet};

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Member, NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_kgroup::devices::{Act, Decision, Devices, Limits, Update, Verdict};
use selvedge_kgroup::{Claim, Delivery, Outcome, Patience};
use selvedge_replica::State as _;
use selvedge_routine::State;

const DEVICES: u64 = 2;
const ROUTINES: u64 = 5;

/// The history of a device, apart from its state.
#[derive(Default)]
struct Past {
    /// The highest released claim of each routine.
    released: BTreeMap<GroupId, Claim>,
    /// The highest claim of each routine that took the lock or a place in the queue.
    taken: BTreeMap<GroupId, Claim>,
    /// Claims that wait, in the order in which they were answered so.
    waits: Vec<Claim>,
    holder: Option<Claim>,
    /// The command that is not settled.
    acts: Option<u64>,
    given: u64,
    /// All routines that took anything, or were released while there was room.
    known: BTreeSet<GroupId>,
    /// The leader that handles the command that is not settled, and its turn.
    by: Option<(Member, u32)>,
    /// Its outcome is known.
    has_ended: bool,
}

impl Past {
    fn is_over(&self, claim: Claim) -> bool {
        let is_released = self.released.get(&claim.routine) >= Some(&claim);
        is_released || self.taken.get(&claim.routine) > Some(&claim)
    }

    /// A claim ends: the claims of its routine that hold or wait, up to it.
    fn end(&mut self, routine: GroupId, is_up_to: impl Fn(Claim) -> bool) {
        let is_it = |it: &Claim| it.routine == routine && is_up_to(*it);
        self.waits.retain(|it| !is_it(it));
        self.holder = self.holder.filter(|it| !is_it(it));
        // A command of a claim that has ended is not given again.
        self.has_ended |= self.holder.is_none();
    }

    /// The lock passes on where it may: to the first that waits.
    fn pass(&mut self) -> Option<Claim> {
        if self.holder.is_some() || self.acts.is_some() || self.waits.is_empty() {
            return None;
        }
        self.holder = Some(self.waits.remove(0));
        self.holder
    }

    fn take(&mut self, update: &Update, verdict: &Verdict, limits: Limits) {
        let mut granted = None;
        match (update, verdict.decision) {
            (Update::Lock { claim, .. }, decision) => {
                granted = self.take_lock(*claim, decision, limits);
            }
            (Update::Release { claim, .. }, Decision::Released(same)) => {
                assert_eq!(*claim, same);
                let is_known = self.known.contains(&claim.routine);
                if is_known || self.known.len() < limits.routines.into() {
                    self.known.insert(claim.routine);
                    let highest = self.released.entry(claim.routine).or_insert(*claim);
                    *highest = (*highest).max(*claim);
                }
                self.end(claim.routine, |it| it <= *claim);
                granted = self.pass();
            }
            (Update::Act { claim, by, .. }, Decision::Gives { number }) => {
                assert_eq!(self.holder, Some(*claim), "it acts for what does not hold");
                assert!(!self.is_over(*claim));
                assert_eq!(self.acts, None, "two commands at once");
                assert!(number > self.given);
                self.acts = Some(number);
                self.given = number;
                self.by = Some((*by, 0));
                self.has_ended = false;
            }
            (
                Update::TakeOver {
                    number, after, by, ..
                },
                Decision::TakenOver { .. },
            ) => {
                assert_eq!(self.acts, Some(*number));
                assert_eq!(self.turn(), Some(*after));
                self.by = Some((*by, after + 1));
            }
            (Update::TakeOver { number, after, .. }, Decision::Nothing) => {
                assert!(self.acts != Some(*number) || self.turn() != Some(*after));
            }
            (Update::Waited { number, turn, .. }, Decision::Waited { .. }) => {
                assert_eq!((self.acts, self.turn()), (Some(*number), Some(*turn)));
            }
            (Update::Act { claim, .. }, Decision::Over(_)) => {
                assert_ne!(self.holder, Some(*claim));
            }
            (
                Update::Acted { number, turn, .. },
                Decision::Acted { .. } | Decision::Settled { .. },
            ) => {
                assert_eq!((self.acts, self.turn()), (Some(*number), Some(*turn)));
                assert_eq!(
                    matches!(verdict.decision, Decision::Acted { .. }),
                    !self.has_ended
                );
                self.has_ended = true;
                if *turn == 0 {
                    self.acts = None;
                    granted = self.pass();
                }
            }
            (Update::Acted { number, turn, .. }, Decision::Nothing) => {
                let is_open = (self.acts, self.turn()) == (Some(*number), Some(*turn));
                assert!(!is_open || self.has_ended && *turn > 0);
            }
            (
                Update::Settled { number, turn, .. },
                Decision::Acted { .. } | Decision::Settled { .. },
            ) => {
                assert_eq!((self.acts, self.turn()), (Some(*number), Some(*turn)));
                self.acts = None;
                granted = self.pass();
            }
            _ => {}
        }
        assert_eq!(verdict.granted, granted);
    }

    fn turn(&self) -> Option<u32> {
        self.by.map(|it| it.1)
    }

    fn take_lock(&mut self, claim: Claim, decision: Decision, limits: Limits) -> Option<Claim> {
        let is_over = self.is_over(claim);
        assert_eq!(decision == Decision::Over(claim), is_over);
        if is_over {
            return None;
        }
        let is_known = self.known.contains(&claim.routine);
        let is_one_too_many = !is_known && self.known.len() >= limits.routines.into();
        assert!(!is_one_too_many || decision == Decision::Full(claim) || self.holder.is_some());
        // The routine asks again: its earlier claims are over.
        let had_earlier = self
            .holder
            .iter()
            .chain(&self.waits)
            .any(|it| it.routine == claim.routine && *it < claim);
        self.end(claim.routine, |it| it < claim);
        let granted = self.pass();
        let is_taken = matches!(decision, Decision::Granted(_) | Decision::Queued(_));
        if is_taken || had_earlier {
            let highest = self.taken.entry(claim.routine).or_insert(claim);
            *highest = (*highest).max(claim);
            self.known.insert(claim.routine);
        }
        match decision {
            Decision::Granted(same) => {
                assert_eq!(same, claim);
                assert!(self.holder.is_none_or(|it| it == claim), "two hold it");
                assert!(self.holder.is_some() || self.acts.is_none());
                assert!(
                    self.holder.is_some() || self.waits.is_empty(),
                    "out of turn"
                );
                self.holder = Some(claim);
            }
            Decision::Queued(same) => {
                assert_eq!(same, claim);
                if !self.waits.contains(&claim) {
                    self.waits.push(claim);
                }
            }
            Decision::Busy(_) | Decision::Full(_) => {
                assert_ne!(self.holder, Some(claim));
                let is_full = self.waits.len() >= limits.queue.into();
                let may_be_full = is_full || is_one_too_many;
                assert!(!matches!(decision, Decision::Full(_)) || may_be_full);
            }
            other => panic!("{other:?} to a request for a lock"),
        }
        granted
    }

    /// Returns true if the state agrees, and keeps its limits.
    fn check(&self, state: &Devices, device: NodeId) {
        let limits = state.limits();
        assert_eq!(state.holder(device), self.holder);
        let queue: Vec<Claim> = state.queue(device).collect();
        assert_eq!(queue, self.waits);
        assert!(queue.len() <= limits.queue.into());
        assert!(self.holder.is_some() || self.acts.is_some() || queue.is_empty());
        let all: Vec<Claim> = self.holder.into_iter().chain(queue).collect();
        let routines: BTreeSet<GroupId> = all.iter().map(|it| it.routine).collect();
        assert_eq!(routines.len(), all.len(), "a routine has one claim at most");
        assert!(all.iter().all(|it| !state.is_over(device, *it)));
        assert!(all.iter().all(|it| !self.is_over(*it)));
        let act = state.act(device).filter(|it| !it.is_settled);
        assert_eq!(act.map(|it| it.number), self.acts);
        let acts_for_another = |it: &Act| self.holder.is_some_and(|holder| holder != it.claim);
        assert!(!act.is_some_and(acts_for_another), "two commands at once");
        assert!(state.watchers(device).count() <= limits.watchers.into());
    }
}

struct History {
    rng: ChaCha8Rng,
    limits: Limits,
    state: Devices,
    past: BTreeMap<NodeId, Past>,
    /// All updates up to now: some arrive again.
    sent: Vec<Update>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut below = |bound| u16::try_from(rng.below(bound)).unwrap();
        let limits = Limits::new()
            .with_queue(below(5))
            .with_routines(3 + below(3))
            .with_watchers(below(3))
            .with_word(2 + below(3));
        let devices = (0..DEVICES).map(NodeId);
        Self {
            rng,
            limits,
            state: Devices::new(devices.clone(), limits),
            past: devices.map(|it| (it, Past::default())).collect(),
            sent: Vec::new(),
        }
    }

    fn claim(&mut self) -> Claim {
        Claim {
            routine: GroupId(self.rng.below(ROUTINES)),
            instance: 1 + self.rng.below(1 + self.sent.len() as u64 / 40),
            attempt: 1 + self.rng.below(2) as u32,
        }
    }

    fn value(&mut self) -> State {
        match self.rng.below(4) {
            0 => 7.into(),
            1 => "on".into(),
            2 => "off".into(),
            _ => "dimmed".into(),
        }
    }

    fn update(&mut self) -> Update {
        let again = self.rng.below(4) == 0 && !self.sent.is_empty();
        if again {
            let at = self.rng.below(self.sent.len() as u64);
            return self.sent[at as usize].clone();
        }
        let device = NodeId(self.rng.below(DEVICES));
        let holder = self.state.holder(device);
        // Half of the claims that hold go on in order.
        let holder = holder.filter(|_| self.rng.below(2) == 0);
        let claim = self.claim();
        let act = self.state.act(device).cloned();
        let turn = act.as_ref().map_or(0, |it| it.turn);
        let waited = act.as_ref().map_or(Span::ZERO, |it| it.waited);
        let number = act.map_or(1, |it| it.number) - self.rng.below(6) / 5;
        // Some come late.
        let turn = turn.saturating_sub((self.rng.below(6) / 5) as u32);
        match self.rng.below(13) {
            0..4 => Update::Lock {
                device,
                generation: 0,
                claim,
                patience: match self.rng.below(4) {
                    0 => Patience::Leaves,
                    _ => Patience::Queues,
                },
            },
            4 | 5 => Update::Release {
                generation: 0,
                device,
                claim: holder.unwrap_or(claim),
            },
            6 => Update::Act {
                device,
                claim: holder.unwrap_or(claim),
                step: self.rng.below(4) as u16,
                value: self.value(),
                delivery: Delivery::AtLeastOnce,
                by: Member::new(self.rng.below(2), 0),
            },
            7 => Update::Acted {
                device,
                number,
                turn,
                outcome: [Outcome::Done, Outcome::Failed, Outcome::Unknown]
                    [self.rng.below(3) as usize],
            },
            9 => Update::TakeOver {
                device,
                number,
                after: turn,
                by: Member::new(self.rng.below(2), 0),
            },
            10 => Update::Waited {
                device,
                number,
                turn,
                waited: waited + Span(self.rng.below(3)),
            },
            11 => Update::Settled {
                device,
                number,
                turn,
            },
            8 => Update::Observed {
                device: NodeId(self.rng.below(DEVICES + 1)),
                after: (self.state.status(device).unwrap().version + self.rng.below(3))
                    .saturating_sub(1),
                is_up: self.rng.below(3) > 0,
                value: match self.rng.below(2) {
                    0 => None,
                    _ => Some(self.value()),
                },
            },
            _ => Update::Watch {
                generation: 0,
                device,
                routine: claim.routine,
            },
        }
    }

    fn step(&mut self, update: Update, seen: &mut BTreeMap<&'static str, u32>) {
        let before = self.state.clone();
        let verdict = self.state.apply(&update);
        *seen.entry(name(&verdict)).or_default() += 1;
        let device = update.device();
        if let Some(past) = self.past.get_mut(&device) {
            past.take(&update, &verdict, self.limits);
            past.check(&self.state, device);
            check_status(&before, &self.state, &verdict);
            if let Update::Observed { after, .. } = update {
                let is_due = before.status(device).unwrap().version == after;
                assert!(is_due || verdict.decision == Decision::Nothing);
            }
        } else {
            assert_eq!(verdict.decision, Decision::NoDevice);
            assert_eq!(before, self.state);
        }
        // Nothing changes a second time.
        let once = self.state.clone();
        let again = self.state.apply(&update);
        assert_eq!(self.state, once, "{update:?} twice");
        assert_eq!((again.granted, again.version), (None, None));
        self.sent.push(update);
    }

    /// All routines give all back, and all commands end.
    fn end(&mut self, seen: &mut BTreeMap<&'static str, u32>) {
        for device in (0..DEVICES).map(NodeId) {
            for routine in (0..ROUTINES).map(GroupId) {
                let claim = Claim {
                    routine,
                    instance: u64::MAX,
                    attempt: 1,
                };
                self.step(
                    Update::Release {
                        device,
                        claim,
                        generation: 0,
                    },
                    seen,
                );
            }
            if let Some(number) = self.past[&device].acts {
                let outcome = Outcome::Unknown;
                let turn = self.state.act(device).unwrap().turn;
                let acted = Update::Acted {
                    device,
                    number,
                    turn,
                    outcome,
                };
                let settled = Update::Settled {
                    device,
                    number,
                    turn,
                };
                self.step(acted, seen);
                self.step(settled, seen);
            }
            assert_eq!(self.state.holder(device), None);
            assert_eq!(self.state.queue(device).count(), 0);
        }
        // A late update has no effect.
        for update in self.sent.clone() {
            if !matches!(update, Update::Release { .. }) {
                self.step(update, seen);
            }
        }
        let is_free = |it| self.state.holder(it).is_none();
        assert!(self.state.ids().all(is_free));
    }
}

/// A status changes by its version, and only after an observation or a command that was done.
fn check_status(before: &Devices, after: &Devices, verdict: &Verdict) {
    let was = before.status(verdict.device).unwrap();
    let is = after.status(verdict.device).unwrap();
    match verdict.version {
        Some(version) => {
            let is_cause = |it| {
                matches!(
                    it,
                    Decision::Observed
                        | Decision::Settled { .. }
                        | Decision::Acted {
                            outcome: Outcome::Done,
                            ..
                        }
                )
            };
            assert!(is_cause(verdict.decision));
            assert_eq!((is.version, was.version + 1), (version, version));
            let is_news = (is.is_up, &is.value) != (was.is_up, &was.value);
            assert!(is_news || version == 1, "{was:?} to {is:?}");
        }
        None => assert_eq!(was, is),
    }
    let word = after.limits().word.into();
    let is_short = |it: &State| !matches!(it, State::Word(it) if it.len() > word);
    assert!(is.value.as_ref().is_none_or(is_short));
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict.decision {
        _ if verdict.granted.is_some() => "passed on",
        Decision::NoDevice => "no device",
        Decision::Granted(_) => "granted",
        Decision::Queued(_) => "queued",
        Decision::Busy(_) => "busy",
        Decision::Full(_) => "full",
        Decision::Over(_) => "over",
        Decision::Released(_) => "released",
        Decision::Gives { .. } => "gives",
        Decision::TakenOver { .. } => "taken over",
        Decision::Waits => "waits",
        Decision::Acted { .. } => "acted",
        Decision::Settled { .. } => "settled",
        Decision::Waited { .. } => "waited",
        Decision::Observed => "observed",
        Decision::Watched(_) => "watched",
        Decision::Unwatched(_) => "unwatched",
        Decision::Nothing => "nothing",
        _ => panic!("a decision that this test does not know"),
    }
}

#[test]
fn random_histories_keep_every_promise_of_a_cluster() {
    let mut seen = BTreeMap::new();
    let ran = selvedge_sim::histories(0..1_500, |seed| {
        let mut history = History::new(seed);
        for _ in 0..120 {
            let update = history.update();
            history.step(update, &mut seen);
        }
        let bytes = postcard::to_allocvec(&history.state).unwrap();
        let decoded: Devices = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(decoded, history.state);
        history.end(&mut seen);
    });
    println!("{seen:?}");
    assert!(seen.len() == 18 || ran == 1, "{seen:?}");
}

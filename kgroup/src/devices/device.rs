//! A device in the state of a group.

use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};
use selvedge_groups::GroupId;
use selvedge_routine::State;
use serde::{Deserialize, Serialize};

use super::act::Act;
use super::config::Limits;
use super::decision::{Decision, Verdict};
use super::lock::{Around, Asks, Lock};
use super::published::Rules;
use super::update::Update;
use crate::{Claim, Outcome, Status};

/// The parts of a cluster's state on which a device depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) limits: Limits,
    pub(super) rules: Rules,
    /// The generation of the site that the state follows.
    pub(super) generation: u32,
}

/// The state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Device {
    pub(super) id: NodeId,
    /// The generation of the site with which it came, and the number of beginnings of the cluster before:
    /// 0 from the beginning. It is higher each time that the device enters a cluster.
    pub(super) since: u64,
    pub(super) lock: Lock,
    pub(super) status: Status,
    pub(super) act: Option<Act>,
    /// In the order of their ids.
    pub(super) watchers: Vec<GroupId>,
    /// False until it is known which claim holds it: the cluster has begun anew.
    pub(super) is_open: bool,
    /// The time for which it has not reported, while it sleeps. The next leader continues from this value.
    pub(super) silent: Span,
}

impl Device {
    /// A device that no routine has asked for, and of which nothing is known.
    pub(super) fn new(id: NodeId, since: u64) -> Self {
        Self {
            id,
            since,
            lock: Lock::default(),
            status: Status::default(),
            act: None,
            watchers: Vec::new(),
            is_open: true,
            silent: Span::ZERO,
        }
    }

    /// Takes an update of this device.
    pub(super) fn apply(&mut self, update: &Update, terms: Terms) -> Verdict {
        let Terms { rules, .. } = terms;
        let around = self.around(terms);
        let before = self.status.version;
        let (decision, granted) = match *update {
            Update::Lock { .. } | Update::Act { .. } if !self.is_open => (Decision::Waits, None),
            Update::Reclaim { claim, given, .. } => match self.judge(update, terms) {
                Some(decision) => (decision, None),
                None => (self.reclaim(claim, given, around), None),
            },
            Update::Open { .. } => match self.judge(update, terms) {
                Some(decision) => (decision, None),
                None => {
                    self.is_open = true;
                    (Decision::Opened, None)
                }
            },
            Update::Lock {
                claim,
                patience,
                generation,
                ..
            } => {
                let asks = Asks {
                    claim: known_as(claim, rules),
                    patience,
                    generation,
                };
                let (decision, granted) = self.lock.lock(asks, around);
                self.abandon();
                (decision, granted)
            }
            Update::Release { claim, .. } => match self.judge(update, terms) {
                Some(decision) => (decision, None),
                None => {
                    let claim = known_as(claim, rules);
                    let granted = self.lock.release(claim, around);
                    self.abandon();
                    (Decision::Released(claim), granted)
                }
            },
            Update::Forget { routine, .. } => match self.judge(update, terms) {
                Some(decision) => (decision, None),
                None => (Decision::Forgotten(routine), self.forget(routine, around)),
            },
            Update::Acted { outcome, .. } => match self.judge(update, terms) {
                Some(decision) => (decision, None),
                None => self.acted(outcome),
            },
            Update::Settled { .. } => match self.judge(update, terms) {
                Some(decision) => (decision, None),
                None => self.settled(),
            },
            Update::Act { .. }
            | Update::Observed { .. }
            | Update::Watch { .. }
            | Update::TakeOver { .. }
            | Update::Waited { .. }
            | Update::Silent { .. }
            | Update::Enter { .. }
            | Update::Exit { .. } => {
                let decision = self.judge(update, terms);
                (decision.unwrap_or_else(|| self.take(update, rules)), None)
            }
        };
        Verdict {
            device: self.id,
            decision,
            granted,
            version: Some(self.status.version).filter(|it| *it != before),
        }
    }

    /// Applies an update that is known to change something.
    fn take(&mut self, update: &Update, rules: Rules) -> Decision {
        match *update {
            Update::Act {
                claim,
                step,
                ref value,
                delivery,
                by,
                ..
            } => {
                let is_down = self.status.version > 0 && !self.status.is_up;
                let act = Act {
                    number: self.act.as_ref().map_or(self.base(), |it| it.number) + 1,
                    claim: known_as(claim, rules),
                    step,
                    value: value.clone(),
                    delivery,
                    by,
                    turn: 0,
                    waited: Span::ZERO,
                    outcome: is_down.then_some(Outcome::Failed),
                    is_settled: is_down,
                };
                let number = act.number;
                let decision = match act.outcome {
                    Some(outcome) => Decision::Acted {
                        claim: act.claim,
                        step,
                        outcome,
                    },
                    None => Decision::Gives { number },
                };
                self.act = Some(act);
                decision
            }
            Update::Observed {
                is_up, ref value, ..
            } => {
                let base = self.base();
                observe(&mut self.status, base, is_up, value.as_ref());
                Decision::Observed
            }
            Update::Watch { routine, .. } => {
                let at = self.watchers.partition_point(|it| *it < routine);
                self.watchers.insert(at, routine);
                Decision::Watched(routine)
            }
            Update::TakeOver { number, by, .. } => {
                if let Some(act) = &mut self.act {
                    act.take_over(by);
                }
                Decision::TakenOver { number }
            }
            Update::Waited { number, waited, .. } => {
                if let Some(act) = &mut self.act {
                    act.waited = waited;
                }
                Decision::Waited { number }
            }
            Update::Silent { silent, .. } => {
                self.silent = silent;
                Decision::Silent
            }
            Update::Lock { .. }
            | Update::Release { .. }
            | Update::Acted { .. }
            | Update::Settled { .. }
            | Update::Enter { .. }
            | Update::Exit { .. }
            | Update::Forget { .. }
            | Update::Reclaim { .. }
            | Update::Open { .. } => {
                debug_assert!(false, "these are taken elsewhere");
                Decision::Nothing
            }
        }
    }

    fn acted(&mut self, outcome: Outcome) -> (Decision, Option<Claim>) {
        let base = self.base();
        let Some(act) = &mut self.act else {
            debug_assert!(false, "it was judged");
            return (Decision::Nothing, None);
        };
        // After a takeover the host of a former leader may still carry the command out.
        act.is_settled = act.turn == 0;
        let decision = match act.outcome {
            Some(_) => Decision::Settled { number: act.number },
            None => Decision::Acted {
                claim: act.claim,
                step: act.step,
                outcome,
            },
        };
        act.outcome.get_or_insert(outcome);
        let acts = !act.is_settled;
        // A command that was done sets the status (section 4.2), until the device reports another
        // state.
        if outcome == Outcome::Done && is_news(&self.status, true, Some(&act.value)) {
            observe(&mut self.status, base, true, Some(&act.value));
        }
        (decision, self.lock.pass(acts))
    }

    fn settled(&mut self) -> (Decision, Option<Claim>) {
        let Some(act) = &mut self.act else {
            debug_assert!(false, "it was judged");
            return (Decision::Nothing, None);
        };
        act.is_settled = true;
        let decision = match act.outcome {
            Some(_) => Decision::Settled { number: act.number },
            None => Decision::Acted {
                claim: act.claim,
                step: act.step,
                outcome: *act.outcome.insert(Outcome::Unknown),
            },
        };
        (decision, self.lock.pass(false))
    }

    fn forget(&mut self, routine: GroupId, around: Around) -> Option<Claim> {
        self.watchers.retain(|it| *it != routine);
        let granted = self.lock.forget(routine, around);
        self.abandon();
        granted
    }

    /// The routines of which it remembers anything.
    pub(super) fn routines(&self) -> impl Iterator<Item = GroupId> {
        self.lock.routines().chain(self.watchers.iter().copied())
    }

    /// The number below those of its commands, and of the versions of its status. A device that comes
    /// back to a cluster gets higher ones than before.
    pub(super) fn base(&self) -> u64 {
        self.since << u32::BITS
    }

    /// Ends the command if its claim no longer holds the device: it is not given again.
    fn abandon(&mut self) {
        if let Some(act) = &mut self.act
            && self.lock.holder != Some(act.claim)
        {
            act.abandon();
        }
    }

    /// The outcome of an update that would change nothing.
    pub(super) fn judge(&self, update: &Update, terms: Terms) -> Option<Decision> {
        let Terms { limits, rules, .. } = terms;
        let around = self.around(terms);
        match *update {
            Update::Lock { .. } | Update::Act { .. } if !self.is_open => Some(Decision::Waits),
            Update::Reclaim {
                since,
                claim,
                given,
                ..
            } => self.judge_reclaim(since, claim, given),
            // A host of the former beginning may still carry a command out.
            Update::Open { .. } if self.is_open => Some(Decision::Nothing),
            Update::Open { .. } => self.acts().then_some(Decision::Waits),
            Update::Lock {
                claim,
                patience,
                generation,
                ..
            } => {
                let asks = Asks {
                    claim: known_as(claim, rules),
                    patience,
                    generation,
                };
                self.lock.judge_lock(asks, around)
            }
            Update::Release {
                claim, generation, ..
            } => {
                let claim = known_as(claim, rules);
                if self.lock.is_released(claim, around) {
                    return Some(Decision::Released(claim));
                }
                let is_outdated = (self.lock).is_outdated(claim.routine, generation, around);
                is_outdated.then_some(Decision::Outdated)
            }
            Update::Act {
                claim,
                step,
                ref value,
                ..
            } => self.judge_act(known_as(claim, rules), step, value, limits),
            // It is late if the outcome is known, or another leader handles the command.
            Update::Acted { number, turn, .. } => {
                let act = self.open(number, turn);
                act.is_none_or(|it| turn > 0 && !it.is_under_way())
                    .then_some(Decision::Nothing)
            }
            Update::TakeOver { number, after, .. } => {
                let act = self.open(number, after);
                act.is_none_or(|it| it.turn == u32::MAX)
                    .then_some(Decision::Nothing)
            }
            Update::Settled { number, turn, .. } => {
                let act = self.open(number, turn);
                act.is_none().then_some(Decision::Nothing)
            }
            Update::Waited {
                number,
                turn,
                waited,
                ..
            } => {
                let act = self.open(number, turn);
                act.is_none_or(|it| it.waited >= waited)
                    .then_some(Decision::Nothing)
            }
            Update::Observed {
                after,
                is_up,
                ref value,
                ..
            } => {
                let fits = after == self.status.version
                    && value
                        .as_ref()
                        .is_none_or(|it| long_word(it, limits).is_none());
                let is_news = fits && is_news(&self.status, is_up, value.as_ref());
                (!is_news).then_some(Decision::Nothing)
            }
            Update::Forget { routine, .. } => {
                let is_known = self.routines().any(|it| it == routine);
                (!is_known).then_some(Decision::Nothing)
            }
            Update::Silent { after, silent, .. } => {
                (after != self.silent || after == silent).then_some(Decision::Nothing)
            }
            // Taken by the cluster.
            Update::Enter { .. } | Update::Exit { .. } => Some(Decision::Nothing),
            Update::Watch {
                routine,
                generation,
                ..
            } => {
                let most = limits.watchers.into();
                match self.watchers.binary_search(&routine) {
                    Ok(_) => Some(Decision::Watched(routine)),
                    Err(_) if generation < terms.generation => Some(Decision::Outdated),
                    Err(_) if self.watchers.len() >= most => Some(Decision::Unwatched(routine)),
                    Err(_) => None,
                }
            }
        }
    }

    fn judge_act(
        &self,
        claim: Claim,
        step: u16,
        value: &State,
        limits: Limits,
    ) -> Option<Decision> {
        if self.lock.holder != Some(claim) {
            return Some(Decision::Over(claim));
        }
        if long_word(value, limits).is_some() {
            let outcome = Outcome::Failed;
            return Some(Decision::Acted {
                claim,
                step,
                outcome,
            });
        }
        let act = self.act.as_ref().filter(|it| it.claim == claim)?;
        act.judge(step)
    }

    /// The command of this number, if it is not settled, and in this turn.
    fn open(&self, number: u64, turn: u32) -> Option<&Act> {
        let act = self.act.as_ref();
        act.filter(|it| it.number == number && it.turn == turn && !it.is_settled)
    }

    pub(super) fn around(&self, terms: Terms) -> Around {
        Around {
            limits: terms.limits,
            rules: terms.rules,
            generation: terms.generation,
            acts: self.acts(),
        }
    }

    /// Returns true while a command is not settled.
    pub(super) fn acts(&self) -> bool {
        self.act.as_ref().is_some_and(|it| !it.is_settled)
    }
}

/// Returns true if a report differs from the status. The first report always does.
pub(super) fn is_news(status: &Status, is_up: bool, value: Option<&State>) -> bool {
    let is_same_value = value.is_none() || value == status.value.as_ref();
    status.version == 0 || status.is_up != is_up || !is_same_value
}

fn observe(status: &mut Status, base: u64, is_up: bool, value: Option<&State>) {
    status.version = status.version.max(base) + 1;
    status.is_up = is_up;
    if value.is_some() {
        status.value = value.cloned();
    }
}

/// The length in bytes of a state that is longer than [`Limits::word`].
pub(super) fn long_word(state: &State, limits: Limits) -> Option<usize> {
    match state {
        State::Number(_) => None,
        State::Word(word) => Some(word.len()).filter(|it| *it > limits.word.into()),
    }
}

/// The identity of a claim at the device: the claim itself, except under published rules.
pub(super) const fn known_as(claim: Claim, rules: Rules) -> Claim {
    let Claim {
        routine,
        instance,
        attempt,
    } = claim;
    Claim {
        routine,
        instance: if rules.unnumbered() { 0 } else { instance },
        attempt: if rules.unnumbered() || rules.unlabelled() {
            0
        } else {
            attempt
        },
    }
}

//! Verdicts of both engines on one model, side by side.

use alloc::sync::Arc;
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use selvedge_core::Machine;
use stateright::{Checker, Property};
use thiserror::Error;

use super::super::explore::{End, Search};
use super::super::property::Kind;
use super::super::{Incomplete, Limits, Model, NO_PANIC, Observer, Report, State};
use super::reached::Place;
use super::{Reached, Stateright, Step};

/// An engine's verdict on a model, limited to the checks of both engines.
///
/// Progress is left out: stateright has no property for it. Our engine follows the transitions of
/// the same states backwards, so equal counts of states support progress, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every reachable state was visited, and no property breaks in one.
    Complete {
        /// Unique states.
        states: usize,
        /// Steps from an initial state to the deepest state.
        depth: usize,
        /// The `sometimes` properties that are true in no state.
        never_true: Vec<&'static str>,
    },
    /// A property broke. No property breaks nearer to an initial state.
    Broke {
        /// The property.
        property: &'static str,
        /// The steps of the counterexample.
        steps: usize,
        /// Unique states that were visited before.
        states: usize,
    },
    /// The search did not get through.
    Truncated(Incomplete),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete {
                states,
                depth,
                never_true,
            } => {
                write!(f, "{states} states, {depth} steps deep")?;
                if !never_true.is_empty() {
                    write!(f, ", never true: {never_true:?}")?;
                }
                Ok(())
            }
            Self::Broke {
                property,
                steps,
                states,
            } => write!(
                f,
                "{property:?} breaks after {steps} steps and {states} states"
            ),
            Self::Truncated(why) => write!(f, "unknown: {why}"),
        }
    }
}

/// The engines do not agree, so at least one of them is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the engines disagree: ours finds {ours}; stateright finds {theirs}")]
pub struct Disagreement {
    /// The verdict of our engine.
    pub ours: Verdict,
    /// The verdict of stateright.
    pub theirs: Verdict,
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// Checks as [`check_with`](Self::check_with), and at the same time by stateright, on a thread
    /// of its own. `Ok` is the verdict of both.
    pub fn check_both(
        &self,
        limits: &Limits,
        news: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> (Vec<Report>, Result<Verdict, Disagreement>)
    where
        Self: Send + Sync + 'static,
        State<M, O>: Send + Sync + 'static,
        M::Timer: Send + Sync,
    {
        let joint = Joint::new(self.clone(), limits);
        let beside = joint.beside();
        let mut is_stopped = false;
        let (search, theirs) = ask(joint, &beside, || {
            let search = self.search(limits, &mut |states| {
                let flow = news(states);
                is_stopped |= flow.is_break();
                flow
            });
            beside.stop.store(is_stopped, Ordering::Relaxed);
            search
        });
        let ours = self.verdict(&search);
        let reports = self.reports(&search, limits);
        // A caller that stops one engine stops both, and neither has a verdict.
        let verdict = if ours == theirs || is_stopped {
            Ok(ours)
        } else {
            Err(Disagreement { ours, theirs })
        };
        (reports, verdict)
    }

    /// The verdict of our search.
    fn verdict(&self, search: &Search) -> Verdict {
        let name = |at: usize| self.properties.get(at).map_or("", |property| property.name);
        let states = search.states();
        match &search.end {
            End::Complete => Verdict::Complete {
                states,
                depth: search.depth,
                never_true: self.never_true(&search.met),
            },
            // The state in which it broke is counted by then.
            End::Broke { property, state } => Verdict::Broke {
                property: name(*property),
                steps: search.way(*state).1.len(),
                states: states - 1,
            },
            End::Refused {
                property, state, ..
            } => Verdict::Broke {
                property: name(*property),
                steps: search.way(*state).1.len() + 1,
                states,
            },
            End::Panicked { state, .. } => Verdict::Broke {
                property: NO_PANIC,
                steps: search.way(*state).1.len() + 1,
                states,
            },
            End::Truncated(why) => Verdict::Truncated(why.clone()),
        }
    }

    /// The `sometimes` properties that are true in no state.
    fn never_true(&self, met: &[bool]) -> Vec<&'static str> {
        let is_sometimes = |kind: &Kind<M, O>| matches!(kind, Kind::Sometimes(_));
        let properties = self.properties.iter().zip(met);
        properties
            .filter(|(property, met)| is_sometimes(&property.kind) && !**met)
            .map(|(property, _)| property.name)
            .collect()
    }
}

/// The results of stateright's search up to now.
#[derive(Debug, Default)]
struct Tally {
    /// States of which the properties were asked. Breadth first on one thread, stateright asks in
    /// the order in which our engine finds them.
    asked: usize,
    met: Vec<bool>,
    end: Option<Bad>,
}

/// The reason why stateright's search ended.
#[derive(Clone, Debug)]
enum Bad {
    Broke(&'static str),
    Truncated(Incomplete),
}

/// All properties of a model as one. So stateright stops where the first one breaks, and its
/// counterexample is a shortest one.
struct Joint<M: Machine, O> {
    model: Stateright<M, O>,
    states: usize,
    tally: Arc<Mutex<Tally>>,
    stop: Arc<AtomicBool>,
}

/// Our bookkeeping for a [`Joint`] model while stateright searches it.
struct Beside<M: Machine, O> {
    model: Stateright<M, O>,
    tally: Arc<Mutex<Tally>>,
    stop: Arc<AtomicBool>,
}

/// Runs stateright's search, and `meanwhile` at the same time.
fn ask<M, O, S, T>(model: S, beside: &Beside<M, O>, meanwhile: impl FnOnce() -> T) -> (T, Verdict)
where
    M: Machine,
    O: Observer<M>,
    S: stateright::Model<State = Reached<M, O>, Action = Step<M, O>> + Send + Sync + 'static,
    Reached<M, O>: Send + Sync + 'static,
{
    let checker = model.checker().spawn_bfs();
    let done = meanwhile();
    let checker = checker.join();
    let tally = beside.tally.lock().unwrap_or_else(PoisonError::into_inner);
    let properties = &beside.model.model;
    let verdict = match &tally.end {
        Some(Bad::Truncated(why)) => Verdict::Truncated(why.clone()),
        Some(Bad::Broke(property)) => {
            let (property, asked) = (*property, tally.asked);
            // To build the path, stateright asks the model again.
            drop(tally);
            let way = checker.discovery(ALL);
            Verdict::Broke {
                property,
                steps: way.map_or(0, |way| way.into_actions().len()),
                states: asked,
            }
        }
        None if beside.model.is_cut() => Verdict::Truncated(Incomplete::Boundary),
        None => Verdict::Complete {
            states: checker.unique_state_count(),
            // Stateright counts the states on the way.
            depth: checker.max_depth().saturating_sub(1),
            never_true: properties.never_true(&tally.met),
        },
    };
    (done, verdict)
}

/// The name of all properties together.
const ALL: &str = "all properties";

impl<M: Machine, O: Observer<M>> Joint<M, O> {
    fn new(model: Model<M, O>, limits: &Limits) -> Self {
        let tally = Tally {
            met: vec![false; model.properties.len()],
            ..Tally::default()
        };
        Self {
            model: model.for_stateright(limits),
            states: limits.states,
            tally: Arc::new(Mutex::new(tally)),
            stop: Arc::default(),
        }
    }

    fn beside(&self) -> Beside<M, O> {
        Beside {
            model: self.model.clone(),
            tally: Arc::clone(&self.tally),
            stop: Arc::clone(&self.stop),
        }
    }

    /// Returns true if no property breaks in this state.
    fn holds(&self, reached: &Reached<M, O>) -> bool {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        if tally.end.is_some() {
            return false;
        }
        tally.end = self.judge(reached, &mut tally);
        tally.asked += usize::from(tally.end.is_none());
        tally.end.is_none()
    }

    fn judge(&self, reached: &Reached<M, O>, tally: &mut Tally) -> Option<Bad> {
        let properties = &self.model.model.properties;
        if self.stop.load(Ordering::Relaxed) {
            return Some(Bad::Truncated(Incomplete::Stopped));
        }
        if properties.is_empty() {
            return Some(Bad::Truncated(Incomplete::NoProperty));
        }
        let state = match reached.place() {
            Place::State(state) => state,
            Place::Stuck(why) => return Some(Bad::Truncated(why.clone())),
            Place::Panicked(_) => return Some(Bad::Broke(NO_PANIC)),
            Place::Refused(_) => {
                let rejects = |kind: &Kind<M, O>| matches!(kind, Kind::NeverRejects);
                let rejects = properties.iter().find(|it| rejects(&it.kind));
                return rejects.map(|it| Bad::Broke(it.name));
            }
        };
        if tally.asked >= self.states {
            let limit = self.states;
            return Some(Bad::Truncated(Incomplete::States { limit }));
        }
        for (at, property) in properties.iter().enumerate() {
            match &property.kind {
                Kind::Always(condition) if !condition(state) => {
                    return Some(Bad::Broke(property.name));
                }
                Kind::Sometimes(condition) => {
                    if let Some(met) = tally.met.get_mut(at) {
                        *met = *met || condition(state);
                    }
                }
                Kind::Always(_) | Kind::Progress { .. } | Kind::NeverRejects => {}
            }
        }
        None
    }
}

impl<M: Machine, O: Observer<M>> stateright::Model for Joint<M, O> {
    type State = Reached<M, O>;
    type Action = Step<M, O>;

    fn init_states(&self) -> Vec<Self::State> {
        self.model.init_states()
    }

    fn actions(&self, reached: &Self::State, actions: &mut Vec<Self::Action>) {
        self.model.actions(reached, actions);
    }

    fn next_state(&self, _: &Self::State, step: Self::Action) -> Option<Self::State> {
        Some(step.next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(ALL, Self::holds)]
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::{Context, Input, Member, Span};

    use super::*;

    /// Counts to three, one more at each tick.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Count(u8);

    impl Machine for Count {
        type Message = ();
        type Timer = ();
        type Command = ();
        type Event = ();
        type Reject = &'static str;

        fn handle(
            &mut self,
            _: Input<Self>,
            cx: &mut Context<'_, Self>,
        ) -> Result<(), Self::Reject> {
            self.0 += 1;
            if self.0 < 3 {
                cx.arm((), Span::secs(1));
            }
            Ok(())
        }
    }

    fn two() -> Model<Count> {
        Model::new(vec![Count(0); 2], |_| Member::default()).start(|_, _, _, cx| {
            cx.arm((), Span::secs(1));
            Ok(())
        })
    }

    /// Never takes the last step out of a state in which there is more than one.
    struct Forgetful(Joint<Count, ()>);

    impl stateright::Model for Forgetful {
        type State = Reached<Count>;
        type Action = Step<Count>;

        fn init_states(&self) -> Vec<Self::State> {
            self.0.init_states()
        }

        fn actions(&self, reached: &Self::State, actions: &mut Vec<Self::Action>) {
            self.0.actions(reached, actions);
            actions.truncate(actions.len().max(2) - 1);
        }

        fn next_state(&self, _: &Self::State, step: Self::Action) -> Option<Self::State> {
            Some(step.next)
        }

        fn properties(&self) -> Vec<Property<Self>> {
            vec![Property::always(ALL, |it: &Self, reached| {
                it.0.holds(reached)
            })]
        }
    }

    /// Both verdicts, with all of stateright's steps and with one dropped.
    fn verdicts(model: &Model<Count>) -> [Verdict; 3] {
        let limits = Limits::default();
        let search = model.search(&limits, &mut |_| ControlFlow::Continue(()));
        let whole = Joint::new(model.clone(), &limits);
        let beside = whole.beside();
        let ((), theirs) = ask(whole, &beside, || ());
        let joint = Joint::new(model.clone(), &limits);
        let beside = joint.beside();
        let ((), lossy) = ask(Forgetful(joint), &beside, || ());
        [model.verdict(&search), theirs, lossy]
    }

    #[test]
    fn an_engine_that_drops_a_step_is_noticed() {
        let [ours, theirs, lossy] = verdicts(&two().always("few", |_| true));
        assert_eq!(ours, theirs);
        assert!(
            matches!(
                ours,
                Verdict::Complete {
                    states: 16,
                    depth: 6,
                    ..
                }
            ),
            "{ours}"
        );
        assert!(
            matches!(lossy, Verdict::Complete { states: 7, .. }),
            "{lossy}"
        );
        let notified = Disagreement {
            ours,
            theirs: lossy,
        }
        .to_string();
        assert_eq!(
            notified,
            "the engines disagree: ours finds 16 states, 6 steps deep; \
             stateright finds 7 states, 6 steps deep"
        );
    }

    #[test]
    fn an_engine_that_misses_a_break_is_noticed() {
        // Only a path of the second node leads there, which is dropped while the first can go on.
        let ahead = |state: &State<Count>| {
            let counts: Vec<u8> = state.machines().map(|it| it.0).collect();
            counts != [1, 2]
        };
        let [ours, theirs, lossy] = verdicts(&two().always("not ahead", ahead));
        assert_eq!(ours, theirs);
        assert!(matches!(ours, Verdict::Broke { steps: 3, .. }), "{ours}");
        assert!(matches!(lossy, Verdict::Complete { .. }), "{lossy}");
    }

    #[test]
    fn what_is_never_true_and_what_is_cut_short_is_the_same_to_both() {
        let idle = two().sometimes("far", |state| state.machines().any(|it| it.0 > 3));
        let bounded = two()
            .always("few", |_| true)
            .boundary(|state| state.machines().all(|it| it.0 < 2));
        let refused = Model::new(vec![Count(0)], |_| Member::default())
            .always("few", |_| true)
            .start(|_, _, _, _| Err("no"));
        for model in [idle, bounded, refused, two()] {
            let [ours, theirs, _] = verdicts(&model);
            assert_eq!(ours, theirs);
        }
    }
}

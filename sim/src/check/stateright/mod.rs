//! A model as stateright takes it: for its searches, and for its Explorer in the browser.

mod explorer;
mod reached;
mod second;

use alloc::sync::Arc;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use selvedge_core::Machine;
use stateright::Property;

use super::property::Kind;
use super::step::Scratch;
use super::{Action, Choice, Incomplete, Limits, Model, Observer, State};

pub use explorer::{ExploreError, explore};
use reached::Place;
pub use reached::Reached;
pub use second::{Disagreement, Verdict};

/// The property of a model without an `always` of its own. It breaks when a step panics or cannot be
/// explored in all its ways, and keeps stateright from stopping before it has visited every state.
pub const COMPLETE: &str = "every step is explored in all its ways";

/// The property that breaks when a model has more properties than stateright can be given.
const TOO_MANY: &str = "a model has at most 16 properties";

/// A [`Model`] as a [`stateright::Model`]. [`Model::for_stateright`] makes it.
///
/// Both engines ask the model for the same successors. Stateright has its own search, its own set
/// of visited states, and a fingerprint of its own.
///
/// - `always`, `sometimes` and `never_rejects` go over. A refusal that `never_rejects` forbids is
///   a state of its own in which nothing more happens, and an `always` breaks there. Progress does
///   not go over: `eventually` of stateright is another property.
/// - A step that panics, or cannot be explored in all its ways, leads to a state in which every
///   `always` breaks.
/// - Beyond the model's boundary nothing happens.
///
/// Three traps of stateright: `assert_properties` passes on a run that was cut short, so ask
/// `is_done` and the count of unique states; a counterexample is a shortest one only by breadth
/// first search on one thread of a model with one property; `symmetry` is unsound where ids break
/// ties. [`Scenario::run_both`](super::Scenario::run_both) avoids them.
#[derive(Clone)]
pub struct Stateright<M: Machine, O = ()> {
    model: Arc<Model<M, O>>,
    /// The limit on sequences of choices in a step.
    choices: usize,
    never_rejects: bool,
    /// True if a state beyond the boundary was met.
    cut: Arc<AtomicBool>,
}

/// A transition in stateright's form: the action, the machine's choices, and the state that
/// follows.
#[derive(Clone)]
pub struct Step<M: Machine, O = ()> {
    /// The action; `None` where a step could not be explored.
    pub action: Option<Action<M::Timer>>,
    /// The choices that the machine made.
    pub choices: Vec<Choice>,
    /// Its place among the transitions out of `before`.
    by: u32,
    before: Arc<State<M, O>>,
    next: Reached<M, O>,
}

impl<M: Machine, O: PartialEq> PartialEq for Step<M, O> {
    fn eq(&self, other: &Self) -> bool {
        self.by == other.by && self.action == other.action && self.next == other.next
    }
}

/// Prints in the words of a [`Trace`](super::Trace).
impl<M: Machine, O: Observer<M>> fmt::Debug for Step<M, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(action) = self.action else {
            return f.write_str("a step that cannot be explored");
        };
        let model = self.next.model();
        f.write_str(&model.describe_action(&self.before, action))?;
        if !self.choices.is_empty() {
            let choices: Vec<String> = self.choices.iter().map(|it| format!("{it:?}")).collect();
            write!(f, " (choosing {})", choices.join(", "))?;
        }
        Ok(())
    }
}

impl<M: Machine, O: Observer<M>> Model<M, O> {
    /// Converts the model for stateright's own tools.
    #[must_use]
    pub fn for_stateright(self, limits: &Limits) -> Stateright<M, O> {
        let rejects = |kind: &Kind<M, O>| matches!(kind, Kind::NeverRejects);
        Stateright {
            never_rejects: self.properties.iter().any(|it| rejects(&it.kind)),
            model: Arc::new(self),
            choices: limits.choices,
            cut: Arc::default(),
        }
    }
}

impl<M: Machine, O: Observer<M>> Stateright<M, O> {
    fn at(&self, place: Place<M, O>) -> Reached<M, O> {
        Reached::new(Arc::clone(&self.model), place)
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Hands every step out of `state` to `sink`, always in the same order.
    fn steps(&self, state: &State<M, O>, sink: &mut Vec<Step<M, O>>) {
        let within = self.model.boundary.as_ref();
        if within.is_some_and(|within| !within(state)) {
            self.cut.store(true, Ordering::Relaxed);
            return;
        }
        let before = Arc::new(state.clone());
        let mut scratch = Scratch::new(self.choices, false);
        let mut by = 0;
        let outcome = self.model.successors(state, &mut scratch, &mut |found| {
            let place = match (found.panicked, found.refused) {
                (Some(panic), _) => Place::Panicked(panic),
                (None, Some(reject)) if self.never_rejects => Place::Refused(format!("{reject:?}")),
                (None, _) => Place::State(found.next),
            };
            sink.push(Step {
                action: Some(found.action),
                choices: found.choices,
                by,
                before: Arc::clone(&before),
                next: self.at(place),
            });
            by += 1;
            Ok(())
        });
        if let Err(why) = outcome {
            sink.push(Step {
                action: None,
                choices: Vec::new(),
                by,
                before,
                next: self.at(Place::Stuck(why)),
            });
        }
    }

    fn first(&self) -> Vec<Reached<M, O>> {
        let mut scratch = Scratch::new(self.choices, false);
        let initial = match self.model.defect() {
            None => self.model.initial(&mut scratch),
            Some(defect) => Err(defect),
        };
        match initial {
            Ok(states) => {
                let mut first: Vec<Reached<M, O>> = Vec::new();
                for state in states {
                    let reached = self.at(Place::State(state));
                    // Equal states would be visited twice.
                    if !first.contains(&reached) {
                        first.push(reached);
                    }
                }
                first
            }
            Err(why) => vec![self.at(Place::Stuck(why))],
        }
    }
}

impl<M: Machine, O: Observer<M>> stateright::Model for Stateright<M, O> {
    type State = Reached<M, O>;
    type Action = Step<M, O>;

    fn init_states(&self) -> Vec<Self::State> {
        self.first()
    }

    fn actions(&self, reached: &Self::State, actions: &mut Vec<Self::Action>) {
        if let Some(state) = reached.state() {
            self.steps(state, actions);
        }
    }

    fn next_state(&self, _: &Self::State, step: Self::Action) -> Option<Self::State> {
        Some(step.next)
    }

    /// The action, in the words of a [`Trace`](super::Trace).
    fn format_action(&self, step: &Self::Action) -> String {
        format!("{step:?}")
    }

    /// The step's effects, in the words of a [`Trace`](super::Trace).
    fn format_step(&self, _: &Self::State, step: Self::Action) -> Option<String> {
        let notified = step
            .action
            .and_then(|_| self.model.tell_step(&step.before, step.by, self.choices));
        let Some(notified) = notified else {
            return step.next.stuck().map(Incomplete::to_string);
        };
        let effects = notified.effects.iter().map(|effect| format!("-> {effect}"));
        let after = Some(notified.after).filter(|after| !after.is_empty());
        let lines: Vec<String> = effects.chain(after).collect();
        Some(lines.join("\n"))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = Vec::new();
        let listed = &self.model.properties;
        let is_always = |kind: &Kind<M, O>| matches!(kind, Kind::Always(_) | Kind::NeverRejects);
        if !listed.iter().any(|property| is_always(&property.kind)) {
            properties.push(Property::always(COMPLETE, |_, reached: &Self::State| {
                !matches!(reached.place(), Place::Stuck(_) | Place::Panicked(_))
            }));
        }
        for (at, property) in listed.iter().enumerate() {
            let Some(&condition) = conditions::<M, O>().get(at) else {
                properties.push(Property::always(TOO_MANY, |_, _| false));
                break;
            };
            properties.push(match property.kind {
                Kind::Always(_) | Kind::NeverRejects => Property::always(property.name, condition),
                Kind::Sometimes(_) => Property::sometimes(property.name, condition),
                Kind::Progress { .. } => continue,
            });
        }
        properties
    }
}

type Pointer<M, O> = fn(&Stateright<M, O>, &Reached<M, O>) -> bool;

/// Conditions are closures here and function pointers there: one pointer for each place.
const fn conditions<M: Machine, O: Observer<M>>() -> [Pointer<M, O>; 16] {
    [
        at::<0, M, O>,
        at::<1, M, O>,
        at::<2, M, O>,
        at::<3, M, O>,
        at::<4, M, O>,
        at::<5, M, O>,
        at::<6, M, O>,
        at::<7, M, O>,
        at::<8, M, O>,
        at::<9, M, O>,
        at::<10, M, O>,
        at::<11, M, O>,
        at::<12, M, O>,
        at::<13, M, O>,
        at::<14, M, O>,
        at::<15, M, O>,
    ]
}

fn at<const PLACE: usize, M: Machine, O>(
    stateright: &Stateright<M, O>,
    reached: &Reached<M, O>,
) -> bool {
    let Some(property) = stateright.model.properties.get(PLACE) else {
        return false;
    };
    match (&property.kind, reached.place()) {
        (Kind::Always(condition) | Kind::Sometimes(condition), Place::State(state)) => {
            condition(state)
        }
        // A refused input is a break of `never_rejects` alone.
        (Kind::Always(_), Place::Refused(_)) | (Kind::NeverRejects, Place::State(_)) => true,
        _ => false,
    }
}

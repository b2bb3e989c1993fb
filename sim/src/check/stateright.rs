//! The same model for stateright's own tools: its searches, its explorer in the browser.

use core::fmt;

use selvedge_core::Machine;
use stateright::Property;

use super::property::Kind;
use super::step::Scratch;
use super::{Action, Bounds, Choice, Limits, Model, Observer, State};

/// A transition as stateright sees it: what happened, which choices were made, and where that
/// leads.
#[derive(Clone, PartialEq)]
pub struct Step<M: Machine, O = ()> {
    /// What happened.
    pub action: Action<M::Timer>,
    /// The choices that the machine made.
    pub choices: Vec<Choice>,
    next: State<M, O>,
}

impl<M: Machine, O> fmt::Debug for Step<M, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.action.fmt(f)?;
        if !self.choices.is_empty() {
            write!(f, " choosing {:?}", self.choices)?;
        }
        Ok(())
    }
}

/// `always` and `sometimes` go over; progress and `never_rejects` do not, for stateright has no
/// words for them. A step that cannot be explored in all its ways leads to a state in which every
/// `always` breaks.
///
/// Three traps: `assert_properties` passes on a run that was cut short, so ask `is_done` and the
/// count of unique states; a counterexample is a shortest one only by breadth first search on one
/// thread of a model with one property; `symmetry` is unsound where ids break ties.
impl<M: Machine, O: Observer<M>> stateright::Model for Model<M, O> {
    type State = State<M, O>;
    type Action = Step<M, O>;

    fn init_states(&self) -> Vec<Self::State> {
        let mut scratch = Scratch::new(Limits::default().choices, false);
        let initial = match self.defect() {
            None => self.initial(&mut scratch).ok(),
            Some(_) => None,
        };
        initial.unwrap_or_else(|| vec![spoiled(self.bounds, &self.observer)])
    }

    fn actions(&self, state: &Self::State, actions: &mut Vec<Self::Action>) {
        let mut scratch = Scratch::new(Limits::default().choices, false);
        let outcome = self.successors(state, &mut scratch, &mut |found| {
            actions.push(Step {
                action: found.action,
                choices: found.choices,
                next: found.next,
            });
            Ok(())
        });
        if outcome.is_err() {
            actions.push(Step {
                action: Action::Crash { node: usize::MAX },
                choices: Vec::new(),
                next: spoiled(state.left, &state.observer),
            });
        }
    }

    fn next_state(&self, _: &Self::State, step: Self::Action) -> Option<Self::State> {
        Some(step.next)
    }

    fn format_action(&self, step: &Self::Action) -> String {
        format!("{step:?}")
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = Vec::new();
        let always =
            |property: &super::property::Property<M, O>| matches!(property.kind, Kind::Always(_));
        if !self.properties.iter().any(always) {
            properties.push(Property::always(COMPLETE, |_, state: &Self::State| {
                !state.nodes.is_empty()
            }));
        }
        for (at, property) in self.properties.iter().enumerate() {
            let Some(&condition) = conditions::<M, O>().get(at) else {
                properties.push(Property::always(TOO_MANY, |_, _| false));
                break;
            };
            properties.push(match property.kind {
                Kind::Always(_) => Property::always(property.name, condition),
                Kind::Sometimes(_) => Property::sometimes(property.name, condition),
                Kind::Progress { .. } | Kind::NeverRejects => continue,
            });
        }
        properties
    }

    fn within_boundary(&self, state: &Self::State) -> bool {
        self.boundary.as_ref().is_none_or(|within| within(state))
    }
}

/// The property of a model without an `always` of its own. It breaks when a step could not be
/// carried out in all its ways, and keeps stateright from stopping before it has seen everything.
pub const COMPLETE: &str = "every step is explored in all its ways";

/// The property that breaks when a model has more properties than stateright can be given.
const TOO_MANY: &str = "a model has at most 16 properties";

/// No state that can be reached has no nodes, so it serves as a mark.
fn spoiled<M: Machine, O: Clone>(left: Bounds, observer: &O) -> State<M, O> {
    State {
        nodes: Vec::new(),
        letters: Vec::new(),
        left,
        observer: observer.clone(),
    }
}

type Pointer<M, O> = fn(&Model<M, O>, &State<M, O>) -> bool;

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

fn at<const PLACE: usize, M: Machine, O>(model: &Model<M, O>, state: &State<M, O>) -> bool {
    if state.nodes.is_empty() {
        return false;
    }
    match model.properties.get(PLACE).map(|property| &property.kind) {
        Some(Kind::Always(condition) | Kind::Sometimes(condition)) => condition(state),
        Some(Kind::Progress { .. } | Kind::NeverRejects) | None => false,
    }
}

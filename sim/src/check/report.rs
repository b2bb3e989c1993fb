//! Results of a check.

use core::fmt;

use thiserror::Error;

use super::Trace;

/// The rules that the machines followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rules {
    /// The rules that this project ships.
    #[default]
    Ours,
    /// The rules of the paper to the letter, where they differ.
    Published,
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Published => "published",
        })
    }
}

/// The expected result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Every property holds, and this is the exact number of unique states.
    Holds {
        /// Unique states.
        states: usize,
    },
    /// A property breaks, and a shortest way there has this number of steps.
    Breaks {
        /// Steps after the initial state.
        steps: usize,
    },
}

/// The result for one property.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every reachable state was visited, and the property holds.
    Holds,
    /// The property breaks; the trace is a shortest way there.
    Breaks {
        /// From an initial state to where it breaks.
        trace: Trace,
    },
    /// The search did not get through, so nothing is known.
    Truncated {
        /// The reason.
        why: Incomplete,
    },
}

/// Why a search did not visit every reachable state. Such a search is no pass.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Incomplete {
    /// Too many states.
    #[error("more than {limit} states: bound the scenario more tightly, or raise Limits::states")]
    States {
        /// The number allowed.
        limit: usize,
    },
    /// More transitions than can be numbered.
    #[error(
        "more than 2^32 transitions: bound the scenario more tightly, or check progress apart in a smaller one"
    )]
    Transitions,
    /// The model's boundary cut something off.
    #[error(
        "the search reached the state boundary: bound commands, ticks or faults instead, or widen it"
    )]
    Boundary,
    /// Too many sequences of choices in one step.
    #[error(
        "a step of node {node} has more than {limit} sequences of choices: let it choose among fewer outcomes, or raise Limits::choices"
    )]
    Choices {
        /// The node that makes the step.
        node: usize,
        /// The number allowed.
        limit: usize,
    },
    /// A step that never stops choosing.
    #[error("a step of node {node} never stopped making choices: bound the loop that draws")]
    Endless {
        /// The node that makes the step.
        node: usize,
    },
    /// A machine that hides state, or depends on something outside its state and input.
    #[error(
        "a step of node {node} chose differently after the same answers: let it depend on its state and input alone, and keep in Untracked nothing that decides"
    )]
    Unrepeatable {
        /// The node that makes the step.
        node: usize,
    },
    /// A machine that breaks the contract.
    #[error(
        "node {node} refused an input and yet changed, or had effects: check first, change later"
    )]
    RefusedAndChanged {
        /// The node.
        node: usize,
    },
    /// A life that did not begin.
    #[error("node {node} refused to start: {reject}")]
    Start {
        /// The node.
        node: usize,
        /// Its reason.
        reject: String,
    },
    /// A machine that panicked before there was a state.
    #[error("node {node} {panic} when it started")]
    Panicked {
        /// The node.
        node: usize,
        /// The place of the panic and its text.
        panic: String,
    },
    /// The model names a node that it does not have.
    #[error("{asked} names node {node}, but there are {nodes}, counted from 0")]
    NoSuchNode {
        /// The part of the model.
        asked: &'static str,
        /// The node it names.
        node: usize,
        /// The number of nodes.
        nodes: usize,
    },
    /// More than 64 deltas for one node.
    #[error("node {node} has {deltas} deltas listed: list at most 64")]
    Deltas {
        /// The node.
        node: usize,
        /// The number listed.
        deltas: usize,
    },
    /// Restarts are allowed, but the model does not define a restarted machine.
    #[error("the bounds allow restarts: define the restarted machine with Model::restart")]
    NoRestart,
    /// A machine that does not fold its own facts.
    #[error("node {node} refused to fold a fact that it had stored: {damage}")]
    Fold {
        /// The node.
        node: usize,
        /// Its reason.
        damage: String,
    },
    /// There is no property to check.
    #[error("the model has no property: add one with always, sometimes, progress or never_rejects")]
    NoProperty,
    /// Another property broke, and the search ended there.
    #[error("the search ended when {property:?} broke: check this one by itself")]
    OtherBroke {
        /// The property that broke.
        property: &'static str,
    },
    /// The caller stopped the search.
    #[error("stopped by the caller")]
    Stopped,
}

/// The property that breaks if a machine panics. Every model has it; reports name it only if it
/// breaks.
pub const NO_PANIC: &str = "no step panics";

/// The result of a check for one property, in a form for people and for files.
#[derive(Clone, Debug)]
pub struct Report {
    /// The scenario's name; empty when a model was run by itself.
    pub name: String,
    /// The property's name.
    pub property: &'static str,
    /// The rules that the machines followed.
    pub rules: Rules,
    /// Nodes, commands and bounds in words.
    pub bounds: String,
    /// True if every reachable state was visited.
    pub complete: bool,
    /// Unique states that were visited.
    pub states: usize,
    /// The result.
    pub outcome: Outcome,
    /// The steps of the counterexample, or, when there is none, of the longest of all shortest
    /// ways to a state.
    pub steps: usize,
    /// The expected result, if the scenario states one.
    pub expected: Option<Expected>,
}

impl Report {
    /// Returns true if the outcome is the expected one, to the state and to the step; without an
    /// expectation, if the property holds. A truncated run never is as expected, nor is a panic.
    #[must_use]
    pub fn as_expected(&self) -> bool {
        if self.property == NO_PANIC {
            return false;
        }
        match (&self.outcome, self.expected) {
            (Outcome::Truncated { .. }, _)
            | (Outcome::Holds, Some(Expected::Breaks { .. }))
            | (Outcome::Breaks { .. }, Some(Expected::Holds { .. }) | None) => false,
            (Outcome::Holds, None) => self.complete,
            (Outcome::Holds, Some(Expected::Holds { states })) => {
                self.complete && self.states == states
            }
            (Outcome::Breaks { .. }, Some(Expected::Breaks { steps })) => self.steps == steps,
        }
    }

    /// Returns `holds`, `breaks` or `truncated`.
    #[must_use]
    pub const fn outcome_name(&self) -> &'static str {
        match self.outcome {
            Outcome::Holds => "holds",
            Outcome::Breaks { .. } => "breaks",
            Outcome::Truncated { .. } => "truncated",
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "{}: ", self.name)?;
        }
        let Self {
            property,
            rules,
            bounds,
            states,
            steps,
            ..
        } = self;
        write!(f, "{property} (")?;
        // The word "ours" has a meaning only beside published rules.
        if *rules == Rules::Published {
            write!(f, "{rules} rules; ")?;
        }
        write!(f, "{bounds}) ")?;
        match &self.outcome {
            Outcome::Holds => write!(f, "holds in all {states} states, {steps} steps deep")?,
            Outcome::Breaks { .. } => write!(f, "breaks after {steps} steps")?,
            Outcome::Truncated { why } => write!(f, "is unknown after {states} states: {why}")?,
        }
        if let (Some(expected), false) = (self.expected, self.as_expected()) {
            match expected {
                Expected::Holds { states } => write!(f, "; expected: holds in {states} states")?,
                Expected::Breaks { steps } => write!(f, "; expected: breaks after {steps} steps")?,
            }
        }
        if let Outcome::Breaks { trace } = &self.outcome {
            write!(f, "\n{trace}")?;
        }
        Ok(())
    }
}

/// A check with an unexpected outcome.
#[derive(Clone, Error)]
#[error("{0}")]
pub struct Surprise(pub Box<Report>);

// `unwrap` and a test's `?` show the trace, not the fields.
impl fmt::Debug for Surprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

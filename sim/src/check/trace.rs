//! A counterexample that a person can follow.

use core::fmt;

/// A way through the states, step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The nodes at the beginning, one text each.
    pub start: Vec<String>,
    /// The steps.
    pub steps: Vec<TraceStep>,
    /// A remark about the end.
    pub end: String,
}

/// A step of a [`Trace`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceStep {
    /// The action, and its node.
    pub what: String,
    /// The choices that the machine made, in order.
    pub choices: Vec<String>,
    /// The messages and events of the machine, in order, and its refusal, if it refused.
    pub effects: Vec<String>,
    /// The node afterwards; empty when it looks as before.
    pub after: String,
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  0. start")?;
        for node in &self.start {
            writeln!(f, "       {node}")?;
        }
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "{:3}. {}", number + 1, step.what)?;
            if !step.choices.is_empty() {
                write!(f, " (choosing {})", step.choices.join(", "))?;
            }
            writeln!(f)?;
            for effect in &step.effects {
                writeln!(f, "       -> {effect}")?;
            }
            if !step.after.is_empty() {
                writeln!(f, "       {}", step.after)?;
            }
        }
        write!(f, "     {}", self.end)
    }
}

//! The checker, checked: what it explores, what it finds, and that it never takes a run that was
//! cut short for a proof.

mod agrees;
mod bounds;
mod choices;
mod lives;
mod toy;
mod verdicts;

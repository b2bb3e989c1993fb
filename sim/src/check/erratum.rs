//! Setups that are tried under a protocol's own rules and under published ones.

use alloc::format;
use alloc::string::String;

use super::{Expected, Scenario};

/// A setup of a protocol: its nodes, their knowledge and commands, and the possible faults, under
/// rules that can be exchanged.
pub trait Trial: Copy {
    /// The first part of its scenarios' names, as in `camera/2 nodes`.
    const PROTOCOL: &'static str;

    /// A published rule, in place of the protocol's own.
    type Rule: 'static;
    /// A promise that can be checked alone.
    type Promise;

    /// The scenario of this setup, with the given name and expected outcome.
    #[must_use]
    fn scenario(self, name: String, expected: Expected) -> Scenario;

    /// The same setup under these rules, with a check of this promise alone.
    #[must_use]
    fn under(self, rules: &'static [Self::Rule], promise: Self::Promise) -> Self;
}

/// The scenario of a setup that holds, with this number of states, under the protocol's own rules.
pub fn holds<T: Trial>(name: &str, states: usize, setup: T) -> Scenario {
    setup.scenario(full::<T>(name), Expected::Holds { states })
}

/// The scenario of a setup in which published rules break a promise after this number of steps.
pub fn breaks<T: Trial>(
    name: &str,
    steps: usize,
    setup: T,
    rules: &'static [T::Rule],
    promise: T::Promise,
) -> Scenario {
    let setup = setup.under(rules, promise);
    let expected = Expected::Breaks { steps };
    setup.scenario(full::<T>(name), expected).published()
}

fn full<T: Trial>(name: &str) -> String {
    format!("{}/{name}", T::PROTOCOL)
}

/// A setup in which published rules break a promise, and the protocol's own rules hold.
#[derive(Clone, Copy, Debug)]
pub struct Erratum<T: Trial> {
    /// The name of both scenarios.
    pub name: &'static str,
    /// The setup in which both rules are tried.
    pub setup: T,
    /// The number of states under the protocol's own rules.
    pub states: usize,
    /// The published rules.
    pub rules: &'static [T::Rule],
    /// The promise that breaks.
    pub promise: T::Promise,
    /// The number of steps until it breaks.
    pub steps: usize,
}

impl<T: Trial> Erratum<T> {
    /// The two scenarios: the protocol's own rules, then the published ones.
    #[must_use]
    pub fn pair(self) -> [Scenario; 2] {
        [
            holds(self.name, self.states, self.setup),
            breaks(self.name, self.steps, self.setup, self.rules, self.promise),
        ]
    }
}

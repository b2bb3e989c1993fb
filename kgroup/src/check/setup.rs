//! The subject of a check: routines, devices, changes of them, and faults.

use alloc::string::String;

use selvedge_core::{Member, NodeId};
use selvedge_routine::trigger::{Clause, Trigger};
use selvedge_routine::{Comparison, Condition, Priority, Routine, State, Step};
use selvedge_sim::check::{Bounds, Expected, Model, Scenario, Trial};

use super::show::show;
use super::world::World;
use crate::routines::{Definition, INTERVAL_LEAST, Locking, Retrigger};
use crate::{Delivery, Rule};

/// A routine in a check. Its step number s brings its device into state `10 * routine + s + 1`.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The devices that are commanded, step by step.
    pub steps: &'static [u64],
    /// A step is passed over unless this device is in this state when its turn comes: (step, device,
    /// state).
    pub condition: Option<(usize, u64, i32)>,
    /// It is triggered when this device is in state 7.
    pub clause: Option<u64>,
    /// The number of times that it is triggered by hand.
    pub triggers: u8,
    /// The number of occurrences of its trigger of time. Only the first routine has one.
    pub occurrences: u64,
    /// See [`Definition::retrigger`].
    pub retrigger: Retrigger,
    /// See [`Definition::deliveries`].
    pub delivery: Delivery,
    /// True if its steps hold their devices for a time.
    pub holds: bool,
}

/// A group in a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The group of the routine with this number.
    Routine(usize),
    /// The group of this cluster.
    Cluster(usize),
}

/// The faults of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Network {
    /// Each message may arrive at any time, also again and again, or never. Nothing is sent again.
    Remembers,
    /// Each message arrives once, or is lost, up to this number of losses. A request without an
    /// answer is repeated when nothing is on its way.
    Loses(u8),
}

/// A promise, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Theorem 3: no two routines that share a device execute at once.
    Apart,
    /// Theorem 3: no device gets a command of a routine that does not execute.
    NoStrays,
    /// Lemmas 1 and 2: no step is repeated or left out.
    Inherited,
    /// An occurrence of a trigger of time starts one run at most, and none before it has come by a right
    /// clock.
    Once,
    /// Each run has one definition, and a group never goes back to the definition of an older site.
    OneDefinition,
    /// Theorems 4 and 5: all that is triggered is run to its end.
    Ends,
}

/// The subject of a check.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The routines.
    pub routines: &'static [Plan],
    /// The definitions of the first routine in later generations of the site, from 1.
    pub editions: &'static [Plan],
    /// The way in which they get their devices.
    pub locking: Locking,
    /// The number of devices, which are numbered from 0.
    pub devices: u64,
    /// True if one cluster has all devices, instead of one for each.
    pub one_cluster: bool,
    /// The device that is brought into state 7 by hand, once.
    pub changes: Option<u64>,
    /// The groups of which a leader may be replaced, each once.
    pub may_change: &'static [Who],
    /// The number of leaders that are replaced in all.
    pub takeovers: u8,
    /// True if a cluster's group may lose its memory and begin anew, in place of a replaced leader.
    pub begins_anew: bool,
    /// True if time passes between a proposal and its decision: another leader may begin meanwhile,
    /// and then it may be decided later, or never.
    pub delays: bool,
    /// The faults of the network.
    pub network: Network,
    /// The number of the try from which on the routine with the lower number tries first.
    pub attempts: u32,
    /// True if the last one of the three clocks of the routine's group is wrong: it may be ahead at any
    /// time, and beyond all occurrences.
    pub wrong_clock: bool,
    /// True if the timeouts of commands may expire at leaders.
    pub timeouts: bool,
    /// Rules that differ from the rules of this crate.
    pub rules: &'static [Rule],
    /// The only promise to check; all of them, if none is named.
    pub only: Option<Promise>,
}

impl Plan {
    /// These devices, triggered by hand once.
    #[must_use]
    pub const fn of(steps: &'static [u64]) -> Self {
        Self {
            steps,
            condition: None,
            clause: None,
            triggers: 1,
            occurrences: 0,
            retrigger: Retrigger::Ignore,
            delivery: Delivery::AtLeastOnce,
            holds: false,
        }
    }

    /// Returns true if the condition of a step asks for another state than the routine itself
    /// brought the device into.
    pub(super) fn passes_over(&self, number: usize, step: usize) -> bool {
        let Some((_, device, value)) = self.condition.filter(|it| it.0 == step) else {
            return false;
        };
        let mut before = self.steps.iter().take(step);
        let set = before.rposition(|it| *it == device);
        set.and_then(|it| i32::try_from(10 * number + it + 1).ok()) != Some(value)
    }

    pub(super) fn definition(&self, number: usize, locking: Locking) -> Definition {
        let number = i32::try_from(number).unwrap_or_default();
        let is = |device, value: i32| Condition {
            device: NodeId(device),
            comparison: Comparison::Equal,
            value: State::from(value),
        };
        let step = |(nth, device): (i32, &u64)| {
            let condition = self.condition.filter(|it| i32::try_from(it.0) == Ok(nth));
            Step {
                condition: condition.map(|(_, device, value)| is(device, value).into()),
                hold: selvedge_core::Span::secs(self.holds.into()),
                priority: Priority::Must,
                ..Step::new(NodeId(*device), State::from(10 * number + nth + 1))
            }
        };
        let steps = (0..).zip(self.steps).map(step).collect();
        let mut definition = Definition::new(Routine { steps })
            .with_locking(locking)
            .with_retrigger(self.retrigger);
        definition.deliveries.fill(self.delivery);
        if self.occurrences > 0 {
            definition = definition.with_trigger(Trigger::Every(INTERVAL_LEAST));
        }
        definition.clause = self.clause.map(|device| Clause::Is(is(device, 7)));
        definition
    }
}

impl Setup {
    /// These routines and this number of devices, each in a cluster of its own. No leader is
    /// replaced.
    #[must_use]
    pub const fn of(devices: u64, routines: &'static [Plan]) -> Self {
        Self {
            routines,
            editions: &[],
            locking: Locking::Sequential,
            devices,
            one_cluster: false,
            changes: None,
            may_change: &[],
            takeovers: 0,
            begins_anew: false,
            delays: false,
            network: Network::Remembers,
            attempts: 2,
            wrong_clock: false,
            timeouts: false,
            rules: &[],
            only: None,
        }
    }

    /// The same where one of these leaders is replaced.
    #[must_use]
    pub const fn with_takeover(self, may_change: &'static [Who]) -> Self {
        Self {
            may_change,
            takeovers: 1,
            ..self
        }
    }

    /// The model of this setup.
    #[must_use]
    pub fn model(self) -> Model<World> {
        let model = Model::new(alloc::vec![World::new(self)], |_| Member::new(1, 0))
            .bounds(Bounds::default())
            .start(|_, _, world, cx| {
                world.begin(cx);
                Ok(())
            })
            .show(show);
        self.with_properties(model)
    }
}

impl Trial for Setup {
    const PROTOCOL: &'static str = "kgroup";

    type Rule = Rule;
    type Promise = Promise;

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Rule], promise: Promise) -> Self {
        Self {
            rules,
            only: Some(promise),
            ..self
        }
    }
}

//! Entries that can be read, and that are perhaps mistakes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use selvedge_core::NodeId;

use super::error::{perhaps, suffix};
use super::known::{Known, Use};
use super::tree::{Data, Mark, Node, Place};
use super::{Home, near};
use crate::trigger::Trigger;
use crate::{Catalogue, Clause, Comparison, Condition, State};

/// An oddity in a file: its place, its kind, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The place, as in `routines[2].CommandList[1]`.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, in characters from 1.
    pub column: usize,
    /// The kind of oddity.
    pub oddity: Oddity,
}

/// The kinds of oddities.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Oddity {
    /// A state that differs from another one of its device in its case or type alone.
    Alike {
        /// The device.
        device: String,
        /// The state, as a file has it.
        state: String,
        /// The other one, which more places have, or an earlier one.
        other: String,
    },
    /// A device that neither the file declares nor the home knows.
    UnknownDevice {
        /// The device.
        device: String,
        /// A similar name.
        near: Option<String>,
    },
    /// A device that is declared, and that no routine, trigger, group or scene names.
    UnusedDevice(String),
    /// A trigger with a clause that is never true.
    NeverFires,
    /// A trigger with a clause that is always true, so that it never becomes true.
    AlwaysTrue,
    /// A command with a condition that is never true.
    NeverDone,
    /// A routine that has no trigger, in a file that has some.
    NoTrigger(String),
    /// A time of day at which the sun is asked for, at a place where it does not rise or set on
    /// some days.
    Polar,
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}{}", self.oddity, suffix(self.line, self.column))
    }
}

impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alike {
                device,
                state,
                other,
            } => write!(
                f,
                "device {device:?} has the state {state} here and {other} elsewhere, which are two states: write both alike"
            ),
            Self::UnknownDevice { device, near } => write!(
                f,
                "device {device:?} is not known: {}declare it in devices, or correct the name",
                perhaps(near.as_deref())
            ),
            Self::UnusedDevice(device) => write!(
                f,
                "nothing names device {device:?}: use it, or remove it"
            ),
            Self::NeverFires => f.write_str(
                "the clause is never true, so the trigger never runs its routine: correct it, or remove the trigger",
            ),
            Self::AlwaysTrue => f.write_str(
                "the clause is always true, so it never becomes true, and the trigger never runs its routine: correct it, or remove the trigger",
            ),
            Self::NeverDone => f.write_str(
                "the condition is never true, so the command is never done: correct it, or remove the command",
            ),
            Self::NoTrigger(routine) => write!(
                f,
                "routine {routine:?} has no trigger: add one, or a trigger with manual"
            ),
            Self::Polar => f.write_str(
                "at this latitude the sun does not rise or set on some days, and on those the trigger does not run: add another trigger if it should",
            ),
        }
    }
}

/// The lints of a file, in its order.
pub(super) fn find(node: &Node, home: &Home, known: &Known, before: &Catalogue) -> Vec<Lint> {
    let uses = known.uses.as_deref().unwrap_or_default();
    let mut lints = Vec::new();
    alike(uses, home, &mut lints);
    devices(node, uses, home, known.is_declared, before, &mut lints);
    routines(node, home, &mut lints);
    triggers(node, home, &mut lints);
    lints.sort_by_key(|it| (it.line, it.column));
    lints
}

fn lint(path: String, mark: Mark, oddity: Oddity) -> Lint {
    Lint {
        path,
        line: mark.line,
        column: mark.column,
        oddity,
    }
}

/// States that are alike: the number of uses, and the first use.
type Written<'a> = BTreeMap<&'a State, (usize, &'a Use)>;

/// Reports states of one device that are alike at the rarer one, each once.
fn alike(uses: &[Use], home: &Home, lints: &mut Vec<Lint>) {
    let mut states: BTreeMap<(NodeId, String), Written<'_>> = BTreeMap::new();
    for it in uses {
        if let Some(state) = &it.state {
            let alike = state.to_string().trim().to_lowercase();
            let group = states.entry((it.device, alike)).or_default();
            group.entry(state).or_insert((0, it)).0 += 1;
        }
    }
    for ((device, _), group) in states {
        // The first of the most used ones.
        let first = |it: &Use| (it.mark.line, it.mark.column);
        let most = group.iter().max_by(|a, b| {
            let by_count = a.1.0.cmp(&b.1.0);
            by_count.then_with(|| first(b.1.1).cmp(&first(a.1.1)))
        });
        let Some((&most, _)) = most else {
            continue;
        };
        for (&state, (_, it)) in group.iter().filter(|it| *it.0 != most) {
            let oddity = Oddity::Alike {
                device: name(home, device),
                state: written(state),
                other: written(most),
            };
            lints.push(lint(it.path.clone(), it.mark, oddity));
        }
    }
}

fn name(home: &Home, device: NodeId) -> String {
    home.catalogue.name(device).unwrap_or_default().into()
}

/// As a file has it.
fn written(state: &State) -> String {
    match state {
        State::Number(number) => number.to_string(),
        State::Word(word) => format!("{word:?}"),
    }
}

fn devices(
    node: &Node,
    uses: &[Use],
    home: &Home,
    is_declared: bool,
    before: &Catalogue,
    lints: &mut Vec<Lint>,
) {
    if !is_declared && !before.is_empty() {
        let mut warned = BTreeSet::new();
        // The search for a similar name takes time in proportion to the number of devices.
        const COMPARED: usize = 10;
        for it in uses {
            let device = name(home, it.device);
            if before.name(it.device).is_none() && warned.insert(it.device) {
                let known = before.iter().map(|it| it.1);
                let near = (warned.len() <= COMPARED).then(|| near(&device, known));
                let near = near.flatten();
                let oddity = Oddity::UnknownDevice { device, near };
                lints.push(lint(it.path.clone(), it.mark, oddity));
            }
        }
    }
    let is_use = |it: &&Use| !it.path.starts_with("devices[");
    let used: BTreeSet<NodeId> = uses.iter().filter(is_use).map(|it| it.device).collect();
    let top = Place::Top;
    let list = top.key("devices");
    for (nth, node) in nodes(node, "devices").iter().enumerate() {
        let Some(Data::Word(device)) = value(node, "DevID").map(|it| &it.data) else {
            continue;
        };
        if home
            .catalogue
            .id(device)
            .is_some_and(|it| !used.contains(&it))
        {
            let path = list.nth(nth).to_string();
            lints.push(lint(path, node.mark, Oddity::UnusedDevice(device.clone())));
        }
    }
}

fn routines(node: &Node, home: &Home, lints: &mut Vec<Lint>) {
    let top = Place::Top;
    let list = top.key("routines");
    let is_single = value(node, "CommandList").is_some();
    let single = [node];
    let all: Vec<&Node> = if is_single {
        single.into()
    } else {
        nodes(node, "routines").iter().collect()
    };
    let triggered: BTreeSet<&str> = home.triggers.iter().map(|it| it.name.as_str()).collect();
    for (nth, (node, it)) in all.into_iter().zip(&home.routines).enumerate() {
        let place = if is_single { top } else { list.nth(nth) };
        let mut conditions = it
            .routine
            .steps
            .iter()
            .filter_map(|it| it.condition.as_ref());
        if conditions.any(never) {
            lints.push(lint(place.to_string(), node.mark, Oddity::NeverDone));
        }
        if !triggered.is_empty() && !triggered.contains(it.name.as_str()) {
            let oddity = Oddity::NoTrigger(it.name.clone());
            lints.push(lint(place.to_string(), node.mark, oddity));
        }
    }
}

fn triggers(node: &Node, home: &Home, lints: &mut Vec<Lint>) {
    // Where the sun does not set in midsummer, with refraction.
    const POLAR: i64 = 65_700;
    let top = Place::Top;
    let list = top.key("triggers");
    let is_polar = home
        .location
        .is_some_and(|it| it.latitude.thousandths().abs() > POLAR);
    for (nth, (node, it)) in nodes(node, "triggers")
        .iter()
        .zip(&home.triggers)
        .enumerate()
    {
        let oddity = match &it.trigger {
            Trigger::When(clause) if never(clause) => Oddity::NeverFires,
            Trigger::When(clause) if always(clause) => Oddity::AlwaysTrue,
            Trigger::Sun { .. } if is_polar => Oddity::Polar,
            Trigger::When(_)
            | Trigger::Sun { .. }
            | Trigger::At(_)
            | Trigger::On { .. }
            | Trigger::Every(_)
            | Trigger::Manual => continue,
        };
        lints.push(lint(list.nth(nth).to_string(), node.mark, oddity));
    }
}

fn value<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    let Data::Map(entries) = &node.data else {
        return None;
    };
    entries.iter().find(|it| it.key == key).map(|it| &it.value)
}

fn nodes<'a>(node: &'a Node, key: &str) -> &'a [Node] {
    match value(node, key).map(|it| &it.data) {
        Some(Data::List(nodes)) => nodes,
        _ => &[],
    }
}

/// Returns true if the clause is true in no state of the devices, as far as one look at each list
/// shows.
pub(super) fn never(clause: &Clause<State>) -> bool {
    is_constant(clause, false)
}

/// Returns true if the clause is true in each state of the devices, as far as one look at each list
/// shows.
pub(super) fn always(clause: &Clause<State>) -> bool {
    is_constant(clause, true)
}

/// Returns true if the clause always has this answer. A list of which each must hold is checked
/// together with the lists in it; a negation is checked with the answers exchanged.
fn is_constant(clause: &Clause<State>, answer: bool) -> bool {
    match (clause, answer) {
        (Clause::Is(_), _) => false,
        (Clause::Not(clause), _) => is_constant(clause, !answer),
        (Clause::All(clauses), true) | (Clause::Any(clauses), false) => {
            clauses.iter().all(|it| is_constant(it, answer))
        }
        (Clause::All(clauses), false) | (Clause::Any(clauses), true) => {
            let mut ranges = BTreeMap::new();
            clauses.iter().any(|it| is_constant(it, answer))
                || !narrow(clause, !answer, &mut ranges)
        }
    }
}

/// The remaining states of a device.
#[derive(Default)]
struct Range<'a> {
    is: Option<&'a State>,
    is_not: BTreeSet<&'a State>,
    above: Option<&'a State>,
    below: Option<&'a State>,
    least: Option<&'a State>,
    most: Option<&'a State>,
}

/// Removes the states of the devices for which the clause does not have this answer; returns true
/// if each has some state left. Parts that leave a choice are ignored.
fn narrow<'a>(
    clause: &'a Clause<State>,
    answer: bool,
    ranges: &mut BTreeMap<NodeId, Range<'a>>,
) -> bool {
    match (clause, answer) {
        (Clause::Is(condition), _) => {
            let range = ranges.entry(condition.device).or_default();
            range.take(condition, answer)
        }
        (Clause::Not(clause), _) => narrow(clause, !answer, ranges),
        (Clause::All(clauses), true) | (Clause::Any(clauses), false) => {
            clauses.iter().all(|it| narrow(it, answer, ranges))
        }
        (Clause::All(clauses), false) | (Clause::Any(clauses), true) => match &clauses[..] {
            [only] => narrow(only, answer, ranges),
            _ => true,
        },
    }
}

impl<'a> Range<'a> {
    fn take(&mut self, condition: &'a Condition<State>, answer: bool) -> bool {
        let value = &condition.value;
        match (condition.comparison, answer) {
            (Comparison::Equal, true) | (Comparison::NotEqual, false) => {
                if self.is.is_some_and(|it| it != value) {
                    return false;
                }
                self.is = Some(value);
            }
            (Comparison::NotEqual, true) | (Comparison::Equal, false) => {
                self.is_not.insert(value);
            }
            (Comparison::Less, true) => {
                self.below = Some(self.below.map_or(value, |it| it.min(value)));
            }
            (Comparison::Greater, true) => {
                self.above = Some(self.above.map_or(value, |it| it.max(value)));
            }
            (Comparison::Less, false) => {
                self.least = Some(self.least.map_or(value, |it| it.max(value)));
            }
            (Comparison::Greater, false) => {
                self.most = Some(self.most.map_or(value, |it| it.min(value)));
            }
        }
        let before = |low: Option<&State>, high: Option<&State>| {
            low.zip(high).is_none_or(|(low, high)| low < high)
        };
        let is_open = before(self.above, self.below)
            && before(self.above, self.most)
            && before(self.least, self.below)
            && self
                .least
                .zip(self.most)
                .is_none_or(|(low, high)| low <= high);
        let fits = |it: &State| {
            self.above.is_none_or(|above| it > above)
                && self.below.is_none_or(|below| it < below)
                && self.least.is_none_or(|least| it >= least)
                && self.most.is_none_or(|most| it <= most)
                && !self.is_not.contains(&it)
        };
        is_open && self.is.is_none_or(fits)
    }
}

//! Lists of commands, in expanded form: a hub does one command after the other, each with its
//! condition.
//!
//! A block (`if`, `choose`) becomes a condition of each of its commands. They all get the same
//! answer, because a hub lets no other routine change the devices in a condition before the routine
//! is done with it; only the routine itself could, and that is refused
//! ([`Fault::AsksWhatItSets`](super::Fault)).

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec::Vec;

use selvedge_core::Span;

use super::fields::{self, Fields, has};
use super::known::Known;
use super::tree::{Node, Place};
use super::{Fault, FileError};
use crate::{Clause, Priority, State, Step};

// Blocks are written out here, and a protocol knows one kind of step. If it stored the answer of a block
// instead, toggles would be possible, at the cost of a state for each open block that is saved and compared.
// A delay is the hold of the command before it: a delay without a device would be a second kind of step. The
// result has a limit, because twelve bytes can ask for 65,535 repetitions.

const COMMAND: &str = "an object with DevID and Action, or with group, scene, delay_ms, if and then, choose, or repeat";
const COMMAND_KEYS: [&str; 9] = [
    "DevID",
    "group",
    "Action",
    "Priority",
    "hold_ms",
    "preemptible",
    "timeout_ms",
    "undo",
    "if",
];
const SCENE_KEYS: [&str; 4] = ["scene", "Priority", "timeout_ms", "if"];

/// The most commands that a hub can number.
pub(super) const MOST: usize = u16::MAX as usize;

/// Commands that were read.
pub(super) struct Read {
    pub(super) steps: Vec<Step<State>>,
    /// The last one must succeed and is always done: a delay may stand behind it.
    is_sure: bool,
}

impl Known {
    /// Reads commands, as deep on the stack as blocks are nested, which the readers limit.
    pub(super) fn commands(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let nodes = fields::some(node, place, "a list of commands")?;
        let mut all = Read {
            steps: Vec::new(),
            is_sure: false,
        };
        for (nth, node) in nodes.iter().enumerate() {
            let place = place.nth(nth);
            if has(node, "delay_ms") {
                self.delay(node, &place, &mut all)?;
                continue;
            }
            let read = if has(node, "choose") {
                self.choose(node, &place)?
            } else if has(node, "repeat") {
                self.repeat(node, &place)?
            } else if has(node, "then") {
                self.block(node, &place)?
            } else if has(node, "scene") {
                self.set_scene(node, &place)?
            } else {
                self.command(node, &place)?
            };
            all.is_sure = read.is_sure;
            all.steps.extend(read.steps);
            if all.steps.len() > MOST {
                let fault = Fault::TooManyCommands(all.steps.len().max(nodes.len()));
                return Err(place.fault(node.mark, fault));
            }
        }
        Ok(all)
    }

    /// A command to a device, or to each of a group.
    fn command(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let given = Fields::of(node, place, COMMAND, &COMMAND_KEYS)?;
        let found = given.count(&["DevID", "group"]);
        if found != 1 {
            let keys = "DevID and group";
            return Err(place.fault(node.mark, Fault::OneOf { found, keys }));
        }
        let condition = self.condition(&given, place)?;
        let value = fields::state(given.need("Action", place)?, &place.key("Action"))?;
        let undo = given.get("undo");
        let undo = undo.map(|it| Ok((fields::state(it, &place.key("undo"))?, it.mark)));
        let undo = undo.transpose()?;
        if let Some((_, mark)) = undo.as_ref().filter(|it| it.0 == value) {
            let fault = Fault::UndoIsAction(value.to_string());
            return Err(place.key("undo").fault(*mark, fault));
        }
        let devices = match given.get("group") {
            Some(node) => self.group(node, &place.key("group"))?,
            None => {
                let device = given.need("DevID", place)?;
                [self.device(device, &place.key("DevID"))?].into()
            }
        };
        let mut step = self.plain(&given, place)?;
        step.hold = given.millis("hold_ms", place)?.unwrap_or_default();
        step.undo = undo.map(|it| it.0);
        if let Some(node) = given.get("preemptible") {
            let place = place.key("preemptible");
            step.preemptible = fields::truth(node, &place, "true or false")?;
            if step.preemptible && step.hold == Span::ZERO {
                return Err(place.fault(node.mark, Fault::NoHold));
            }
        }
        self.spend(devices.len(), node.mark, place)?;
        let mut steps = Vec::with_capacity(devices.len());
        for device in devices {
            self.note(device, Some(&value), node.mark, place);
            if let Some(undo) = &step.undo {
                let mark = given.get("undo").map_or(node.mark, |it| it.mark);
                self.note(device, Some(undo), mark, &place.key("undo"));
            }
            let value = value.clone();
            steps.push(Step {
                device,
                value,
                ..step.clone()
            });
        }
        self.conditional(steps, condition, node, place)
    }

    /// The states of a scene, in its order.
    fn set_scene(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let given = Fields::of(node, place, COMMAND, &SCENE_KEYS)?;
        let condition = self.condition(&given, place)?;
        let scene = self.scene(given.need("scene", place)?, &place.key("scene"))?;
        let step = self.plain(&given, place)?;
        self.spend(scene.len(), node.mark, place)?;
        let steps = scene.into_iter().map(|(device, value)| Step {
            device,
            value,
            ..step.clone()
        });
        self.conditional(steps.collect(), condition, node, place)
    }

    fn condition(
        &mut self,
        given: &Fields<'_>,
        place: &Place<'_>,
    ) -> Result<Option<Clause<State>>, FileError> {
        let node = given.get("if");
        node.map(|it| self.clause(it, &place.key("if"))).transpose()
    }

    /// The fields that commands to devices and scenes have in common.
    #[allow(clippy::unused_self, reason = "it reads one of the forms of a command")]
    fn plain(&self, given: &Fields<'_>, place: &Place<'_>) -> Result<Step<State>, FileError> {
        let mut step = Step::new(selvedge_core::NodeId(0), State::from(0));
        if let Some(node) = given.get("Priority") {
            const WANTED: &str = "\"MUST\" or \"BEST_EFFORT\"";
            let place = place.key("Priority");
            step.priority = match fields::word(node, &place, WANTED)? {
                "MUST" => Priority::Must,
                "BEST_EFFORT" => Priority::BestEffort,
                _ => return Err(fields::wrong(node, &place, WANTED)),
            };
        }
        step.timeout = given.some_millis("timeout_ms", place)?;
        Ok(step)
    }

    fn conditional(
        &mut self,
        mut steps: Vec<Step<State>>,
        condition: Option<Clause<State>>,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Read, FileError> {
        let is_must = |it: &Step<State>| it.priority == Priority::Must;
        let is_sure = condition.is_none() && steps.last().is_some_and(is_must);
        if let Some(clause) = condition {
            let place = place.key("if");
            self.guard(&mut steps, &clause, node.mark, &place)?;
            self.keep_apart(&steps, &[&clause], node.mark, &place)?;
        }
        Ok(Read { steps, is_sure })
    }

    /// Adds a delay: the command before it holds its device for longer.
    fn delay(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        before: &mut Read,
    ) -> Result<(), FileError> {
        let given = Fields::of(node, place, "an object with delay_ms", &["delay_ms"])?;
        let delay = given.some_millis("delay_ms", place)?.unwrap_or_default();
        self.wait(delay, node, place, before)
    }

    pub(super) fn wait(
        &mut self,
        delay: Span,
        node: &Node,
        place: &Place<'_>,
        before: &mut Read,
    ) -> Result<(), FileError> {
        let is_sure = before.is_sure;
        let Some(step) = before.steps.last_mut().filter(|_| is_sure) else {
            return Err(place.fault(node.mark, Fault::StrayDelay));
        };
        let most = u64::MAX / 1_000 * 1_000;
        step.hold = Span(step.hold.0.saturating_add(delay.0).min(most));
        Ok(())
    }

    fn block(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let keys = ["if", "then", "else"];
        let given = Fields::of(node, place, "an object with if, then and else", &keys)?;
        let clause = self.clause(given.need("if", place)?, &place.key("if"))?;
        let then = self.commands(given.need("then", place)?, &place.key("then"))?;
        self.branches([(clause, then)].into(), &given, place)
    }

    fn choose(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        const WANTED: &str = "an object with if and then";
        let given = Fields::of(
            node,
            place,
            "an object with choose and else",
            &["choose", "else"],
        )?;
        let list = place.key("choose");
        let nodes = fields::some(given.need("choose", place)?, &list, "a list of if and then")?;
        let mut branches = Vec::new();
        for (nth, node) in nodes.iter().enumerate() {
            let place = list.nth(nth);
            let given = Fields::of(node, &place, WANTED, &["if", "then"])?;
            let clause = self.clause(given.need("if", &place)?, &place.key("if"))?;
            let then = self.commands(given.need("then", &place)?, &place.key("then"))?;
            branches.push((clause, then));
        }
        self.branches(branches, &given, place)
    }

    fn branches(
        &mut self,
        branches: Vec<(Clause<State>, Read)>,
        given: &Fields<'_>,
        place: &Place<'_>,
    ) -> Result<Read, FileError> {
        let otherwise = given.get("else");
        let otherwise = otherwise.map(|it| self.commands(it, &place.key("else")));
        let otherwise = otherwise.transpose()?.map(|it| it.steps);
        let branches = branches
            .into_iter()
            .map(|(clause, read)| (clause, read.steps));
        let steps = self.one_of(branches.collect(), otherwise, given.mark, place)?;
        Ok(steps)
    }

    /// The commands of the first branch with a clause that holds, else the others.
    pub(super) fn one_of(
        &mut self,
        branches: Vec<(Clause<State>, Vec<Step<State>>)>,
        otherwise: Option<Vec<Step<State>>>,
        mark: super::tree::Mark,
        place: &Place<'_>,
    ) -> Result<Read, FileError> {
        let (mut asked, mut steps) = (Vec::new(), Vec::new());
        let mut others: Option<Clause<State>> = None;
        for (clause, mut then) in branches {
            let limit = Clause::<State>::MOST;
            let found = others
                .as_ref()
                .map_or(0, Clause::size)
                .saturating_add(clause.size());
            if found > limit {
                return Err(place.fault(mark, Fault::LongCondition { found, limit }));
            }
            let not = Clause::Not(Box::new(clause.clone()));
            let own = match &others {
                Some(others) => others.clone().and(clause.clone()),
                None => clause.clone(),
            };
            self.guard(&mut then, &own, mark, place)?;
            steps.extend(then);
            asked.push(clause);
            others = Some(match others {
                Some(others) => others.and(not),
                None => not,
            });
        }
        if let (Some(mut then), Some(others)) = (otherwise, others) {
            self.guard(&mut then, &others, mark, place)?;
            steps.extend(then);
        }
        let asked: Vec<_> = asked.iter().collect();
        self.keep_apart(&steps, &asked, mark, place)?;
        let is_sure = false;
        Ok(Read { steps, is_sure })
    }

    fn repeat(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let given = Fields::of(
            node,
            place,
            "an object with repeat and do",
            &["repeat", "do"],
        )?;
        let read = self.commands(given.need("do", place)?, &place.key("do"))?;
        self.times(given.need("repeat", place)?, &place.key("repeat"), &read)
    }

    /// The commands, repeated.
    pub(super) fn times(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        read: &Read,
    ) -> Result<Read, FileError> {
        let count = fields::whole(node, place, "a whole number from 1 to 65535")?;
        let count = usize::try_from(count)
            .ok()
            .filter(|it| (1..=MOST).contains(it));
        let fault = || place.fault(node.mark, Fault::NoCount(node.shown()));
        let count = count.ok_or_else(fault)?;
        let found = read.steps.len().saturating_mul(count);
        if found > MOST {
            return Err(place.fault(node.mark, Fault::TooManyCommands(found)));
        }
        let size = |it: &Step<State>| 1 + it.condition.as_ref().map_or(0, |it| it.size() + 1);
        let size: usize = read.steps.iter().map(size).sum();
        self.spend(size.saturating_mul(count - 1), node.mark, place)?;
        let mut steps = Vec::with_capacity(found);
        for _ in 0..count {
            steps.extend(read.steps.iter().cloned());
        }
        let is_sure = read.is_sure;
        Ok(Read { steps, is_sure })
    }
}

#[cfg(feature = "yaml")]
impl Read {
    /// Commands of another form.
    pub(super) const fn of(steps: Vec<Step<State>>, is_sure: bool) -> Self {
        Self { steps, is_sure }
    }

    /// No delay may stand behind it.
    pub(super) const fn doubt(&mut self) {
        self.is_sure = false;
    }

    pub(super) fn into_steps(self) -> Vec<Step<State>> {
        self.steps
    }

    pub(super) fn add(&mut self, other: Self) {
        self.is_sure = other.is_sure;
        self.steps.extend(other.steps);
    }
}

//! Steps of scripts and automations.

use alloc::format;
use alloc::vec::Vec;

use selvedge_core::Span;

use super::super::commands::{MOST, Read};
use super::super::fields;
use super::super::tree::{Data, Entry, Mark, Node, Place, short};
use super::super::{Fault, FileError};
use super::{Reader, conditions, entries, many, missing, one};
use crate::{Clause, Priority, State, Step};

/// Keys that every step may have.
const ASIDE: [&str; 3] = ["alias", "enabled", "metadata"];

/// A condition in a list, and where the steps behind it begin.
struct Gate {
    from: usize,
    clause: Clause<State>,
    mark: Mark,
}

impl Reader {
    /// The commands of a list of steps, or of one. Constructs that are not understood are reported,
    /// and skipped.
    pub(super) fn actions(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Vec<Step<State>>, FileError> {
        Ok(self.steps(node, place)?.into_steps())
    }

    /// Reads steps, as deep on the stack as they are nested, which the reader of YAML limits.
    fn steps(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let mut all = Read::of(Vec::new(), false);
        let mut gates: Vec<Gate> = Vec::new();
        for (nth, node) in many(node).iter().enumerate() {
            let place = place.nth(nth);
            let read = self.step(node, &place, &mut all, &mut gates);
            self.warned(read);
            if all.steps.len() > MOST {
                let fault = Fault::TooManyCommands(all.steps.len());
                return Err(place.fault(node.mark, fault));
            }
        }
        for gate in gates.iter().rev() {
            let steps = all.steps.get_mut(gate.from..).unwrap_or_default();
            self.known.guard(steps, &gate.clause, gate.mark, place)?;
            self.known
                .keep_apart(steps, &[&gate.clause], gate.mark, place)?;
        }
        if !gates.is_empty() {
            all.doubt();
        }
        Ok(all)
    }

    fn step(
        &mut self,
        node: &Node,
        place: &Place<'_>,
        all: &mut Read,
        gates: &mut Vec<Gate>,
    ) -> Result<(), FileError> {
        if let Data::Word(_) = &node.data {
            // A template as a condition.
            return self.condition(node, place).map(drop);
        }
        let given = entries(node, place)?;
        if let Some(enabled) = one(given, &["enabled"])
            && enabled.value.data != Data::Bool(true)
        {
            let what = format!("enabled that is {}", enabled.value.shown());
            return Err(missing(what, enabled.mark, &place.key("enabled")));
        }
        let kinds = [
            "action",
            "service",
            "delay",
            "if",
            "choose",
            "repeat",
            "sequence",
            "condition",
            "and",
            "or",
            "not",
        ];
        let Some(kind) = one(given, &kinds) else {
            let mut others = given.iter().filter(|it| !ASIDE.contains(&it.key.as_str()));
            return Err(match others.next() {
                Some(it) => {
                    let what = format!("the step {:?}", short(&it.key));
                    missing(what, it.mark, &place.key(&it.key))
                }
                None => place.fault(node.mark, Fault::NoKey("action")),
            });
        };
        let read = match kind.key.as_str() {
            "action" | "service" => self.act(kind, given, node, place)?,
            "delay" => {
                self.aside(given, &["delay"], place);
                let delay = conditions::span(&kind.value, &place.key("delay"))?;
                if delay > Span::ZERO {
                    self.known.wait(delay, node, place, all)?;
                }
                return Ok(());
            }
            "if" => {
                self.aside(given, &["if", "then", "else"], place);
                let clause = self.condition(&kind.value, &place.key("if"))?;
                let fault = || place.fault(node.mark, Fault::NoKey("then"));
                let then = one(given, &["then"]).ok_or_else(fault)?;
                let then = self.actions(&then.value, &place.key("then"))?;
                let otherwise = self.otherwise(given, "else", place)?;
                let branches = [(clause, then)].into();
                self.known.one_of(branches, otherwise, node.mark, place)?
            }
            "choose" => self.choice(kind, given, node, place)?,
            "repeat" => {
                self.aside(given, &["repeat"], place);
                self.again(&kind.value, &place.key("repeat"))?
            }
            "sequence" => {
                self.aside(given, &["sequence"], place);
                self.steps(&kind.value, &place.key("sequence"))?
            }
            _ => {
                let clause = self.condition(node, place)?;
                let (from, mark) = (all.steps.len(), node.mark);
                gates.push(Gate { from, clause, mark });
                all.doubt();
                return Ok(());
            }
        };
        all.add(read);
        Ok(())
    }

    fn aside(&mut self, given: &[Entry], keys: &[&str], place: &Place<'_>) {
        let known: Vec<&str> = keys.iter().chain(&ASIDE).copied().collect();
        self.only(given, &known, place);
    }

    fn otherwise(
        &mut self,
        given: &[Entry],
        key: &str,
        place: &Place<'_>,
    ) -> Result<Option<Vec<Step<State>>>, FileError> {
        let node = one(given, &[key]);
        let steps = node.map(|it| self.actions(&it.value, &place.key(key)));
        Ok(steps.transpose()?.filter(|it| !it.is_empty()))
    }

    fn choice(
        &mut self,
        kind: &Entry,
        given: &[Entry],
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Read, FileError> {
        self.aside(given, &["choose", "default"], place);
        let list = place.key("choose");
        let mut branches = Vec::new();
        for (nth, node) in many(&kind.value).iter().enumerate() {
            let place = list.nth(nth);
            let given = entries(node, &place)?;
            self.aside(given, &["conditions", "sequence"], &place);
            let missing = |key| place.fault(node.mark, Fault::NoKey(key));
            let asked = one(given, &["conditions"]).ok_or_else(|| missing("conditions"))?;
            let clause = self.condition(&asked.value, &place.key("conditions"))?;
            let then = one(given, &["sequence"]).ok_or_else(|| missing("sequence"))?;
            let then = self.actions(&then.value, &place.key("sequence"))?;
            branches.push((clause, then));
        }
        let otherwise = self.otherwise(given, "default", place)?;
        self.known.one_of(branches, otherwise, node.mark, place)
    }

    fn again(&mut self, node: &Node, place: &Place<'_>) -> Result<Read, FileError> {
        let given = entries(node, place)?;
        self.aside(given, &["count", "sequence"], place);
        let missing = |key| place.fault(node.mark, Fault::NoKey(key));
        let count = one(given, &["count"]).ok_or_else(|| missing("count"))?;
        let body = one(given, &["sequence"]).ok_or_else(|| missing("sequence"))?;
        let read = self.steps(&body.value, &place.key("sequence"))?;
        self.known.times(&count.value, &place.key("count"), &read)
    }

    /// Brings entities into a state.
    fn act(
        &mut self,
        kind: &Entry,
        given: &[Entry],
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Read, FileError> {
        let keys = [
            &kind.key,
            "target",
            "entity_id",
            "data",
            "continue_on_error",
        ];
        self.aside(given, &keys, place);
        let at = place.key(&kind.key);
        let called = fields::word(&kind.value, &at, "an action, as light.turn_on")?;
        let data = one(given, &["data"]);
        let none = Data::Map(Vec::new()).into();
        let data = data.map_or(&none, |it| &it.value);
        let data = if data.data == Data::Null {
            &[]
        } else {
            entries(data, &place.key("data"))?
        };
        let value = state(called, data, kind.value.mark, &at, &place.key("data"))?;
        let (key, value) = value;
        for entry in data
            .iter()
            .filter(|it| Some(it.key.as_str()) != key && it.key != "entity_id")
        {
            self.warned::<()>(Err(super::key(entry, &place.key("data"))));
        }
        let mut devices = Vec::new();
        let target = one(given, &["target"]);
        if let Some(target) = target {
            let place = place.key("target");
            let given = entries(&target.value, &place)?;
            self.only(given, &["entity_id"], &place);
            devices.extend(self.entities(given, &target.value, &place)?);
        }
        for (given, place) in [(given, *place), (data, place.key("data"))] {
            if one(given, &["entity_id"]).is_some() {
                devices.extend(self.entities(given, node, &place)?);
            }
        }
        if devices.is_empty() {
            return Err(place.fault(node.mark, Fault::NoKey("target")));
        }
        let may_fail = one(given, &["continue_on_error"]).map(|it| {
            let place = place.key("continue_on_error");
            fields::truth(&it.value, &place, "true or false")
        });
        let priority = if may_fail.transpose()? == Some(true) {
            Priority::BestEffort
        } else {
            Priority::Must
        };
        let steps = devices.into_iter().map(|device| Step {
            priority,
            ..Step::new(device, value.clone())
        });
        Ok(Read::of(steps.collect(), priority == Priority::Must))
    }
}

/// The state into which an action brings an entity, and the key of the data that gives it.
fn state<'a>(
    called: &str,
    data: &'a [Entry],
    mark: Mark,
    place: &Place<'_>,
    given: &Place<'_>,
) -> Result<(Option<&'a str>, State), FileError> {
    let (domain, service) = called.split_once('.').unwrap_or((called, ""));
    let word = match (domain, service) {
        ("scene" | "script" | "automation" | "group" | "notify", _) => None,
        (_, "turn_on") => Some("on"),
        (_, "turn_off") => Some("off"),
        ("cover", "open_cover") | ("valve", "open_valve") => Some("open"),
        ("cover", "close_cover") | ("valve", "close_valve") => Some("closed"),
        ("lock", "lock") => Some("locked"),
        ("lock", "unlock") => Some("unlocked"),
        ("alarm_control_panel", "alarm_arm_away") => Some("armed_away"),
        ("alarm_control_panel", "alarm_arm_home") => Some("armed_home"),
        ("alarm_control_panel", "alarm_arm_night") => Some("armed_night"),
        ("alarm_control_panel", "alarm_disarm") => Some("disarmed"),
        _ => None,
    };
    if let Some(word) = word {
        return Ok((None, word.into()));
    }
    let key = match (domain, service) {
        ("input_number" | "number" | "input_text" | "text", "set_value") => "value",
        ("input_select" | "select", "select_option") => "option",
        ("climate" | "water_heater", "set_temperature") => "temperature",
        ("climate", "set_hvac_mode") => "hvac_mode",
        _ => {
            let what = format!("the action {:?}", short(called));
            return Err(missing(what, mark, place));
        }
    };
    let entry = data.iter().find(|it| it.key == key);
    let entry = entry.ok_or_else(|| given.fault(mark, Fault::NoKey(key)))?;
    let value = conditions::value(&entry.value, &given.key(key))?;
    Ok((Some(&entry.key), value))
}

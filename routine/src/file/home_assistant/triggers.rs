//! Automations and their triggers.

use alloc::format;
use alloc::vec::Vec;

use selvedge_core::Span;

use super::super::tree::{Data, Node, Place, short};
use super::super::{Fault, FileError, NamedTrigger, fields};
use super::{Reader, conditions, entries, many, missing, one};
use crate::trigger::{Days, SUN_OFFSET, SunEvent, TimeOfDay, Trigger};
use crate::{Clause, State};

impl Reader {
    pub(super) fn automation(&mut self, node: &Node, place: &Place<'_>) -> Result<(), FileError> {
        let given = entries(node, place)?;
        let known = [
            "alias",
            "id",
            "description",
            "mode",
            "max",
            "max_exceeded",
            "trigger",
            "triggers",
            "condition",
            "conditions",
            "action",
            "actions",
        ];
        self.only(given, &known, place);
        let fault = |key| place.fault(node.mark, Fault::NoKey(key));
        let actions = self.either(given, &["actions", "action"], place);
        let actions = actions.ok_or_else(|| fault("actions"))?;
        let asked = self.either(given, &["triggers", "trigger"], place);
        let asked = asked.ok_or_else(|| fault("triggers"))?;
        let mut steps = self.actions(&actions.value, &place.key(&actions.key))?;
        let mut days = None;
        if let Some(it) = self.either(given, &["conditions", "condition"], place) {
            let place = place.key(&it.key);
            for (nth, node) in many(&it.value).iter().enumerate() {
                let place = place.nth(nth);
                if let Some(found) = self.weekdays(node, &place)? {
                    let common = days.map_or(Some(found), |it: Days| {
                        Days::new(it.iter().filter(|it| found.has(*it)))
                    });
                    let fault =
                        || missing("no day that all conditions name".into(), node.mark, &place);
                    days = Some(common.ok_or_else(fault)?);
                    continue;
                }
                let read = self.condition(node, &place);
                if let Some(clause) = self.warned(read) {
                    self.known.guard(&mut steps, &clause, node.mark, &place)?;
                    self.known
                        .keep_apart(&steps, &[&clause], node.mark, &place)?;
                }
            }
        }
        let mut triggers = Vec::new();
        let list = place.key(&asked.key);
        for (nth, node) in many(&asked.value).iter().enumerate() {
            let read = self.trigger(node, days, &list.nth(nth));
            triggers.extend(self.warned(read).into_iter().flatten());
        }
        if steps.is_empty() && !self.missed.is_empty() {
            // Its constructs that are not understood were reported.
            return Ok(());
        }
        let name = self.add(None, given, steps, node, place)?;
        let named = |trigger| NamedTrigger {
            name: name.clone(),
            trigger,
            cool_down: Span::ZERO,
        };
        self.home.triggers.extend(triggers.into_iter().map(named));
        Ok(())
    }

    /// The days of a condition that asks for nothing but days.
    fn weekdays(&mut self, node: &Node, place: &Place<'_>) -> Result<Option<Days>, FileError> {
        let Data::Map(_) = &node.data else {
            return Ok(None);
        };
        let given = entries(node, place)?;
        let is_time = one(given, &["condition"]);
        if is_time.is_none_or(|it| it.value.data != Data::Word("time".into())) {
            return Ok(None);
        }
        self.only(given, &["alias", "condition", "weekday"], place);
        let fault = || place.fault(node.mark, Fault::NoKey("weekday"));
        let days = one(given, &["weekday"]).ok_or_else(fault)?;
        conditions::days(&days.value, &place.key("weekday")).map(Some)
    }

    /// A trigger for each entity, state and time that it names.
    fn trigger(
        &mut self,
        node: &Node,
        days: Option<Days>,
        place: &Place<'_>,
    ) -> Result<Vec<Trigger<State>>, FileError> {
        let given = entries(node, place)?;
        let fault = |key| place.fault(node.mark, Fault::NoKey(key));
        let kind = self.either(given, &["trigger", "platform"], place);
        let kind = kind.ok_or_else(|| fault("trigger"))?;
        let at = place.key(&kind.key);
        let aside = ["trigger", "platform", "id", "alias"];
        let only = |reader: &mut Self, keys: &[&str]| {
            let known: Vec<&str> = aside.iter().chain(keys).copied().collect();
            reader.only(given, &known, place);
        };
        let word = fields::word(&kind.value, &at, "a kind of trigger")?;
        if let (Some(_), "state" | "numeric_state") = (days, word) {
            let what = "a condition about days at a trigger that is no time".into();
            return Err(missing(what, node.mark, place));
        }
        match word {
            "state" => {
                only(self, &["entity_id", "to"]);
                let devices = self.entities(given, node, place)?;
                let to = one(given, &["to"]).ok_or_else(|| fault("to"))?;
                let at = place.key("to");
                let states = many(&to.value).iter().map(|it| conditions::value(it, &at));
                let states = states.collect::<Result<Vec<_>, _>>()?;
                if states.is_empty() {
                    return Err(at.fault(to.mark, Fault::EmptyList));
                }
                let many = devices.len().saturating_mul(states.len());
                self.known.spend(many, node.mark, place)?;
                let all = devices.into_iter().flat_map(|device| {
                    let states = states.iter().cloned();
                    states.map(move |it| Trigger::When(conditions::is(device, it)))
                });
                Ok(all.collect())
            }
            "numeric_state" => {
                only(self, &["entity_id", "above", "below"]);
                let devices = self.entities(given, node, place)?;
                let clause = |it| conditions::between(it, given, node, place);
                let clauses = devices.into_iter().map(clause);
                let clauses = clauses.collect::<Result<Vec<Clause<State>>, _>>()?;
                Ok(clauses.into_iter().map(Trigger::When).collect())
            }
            "time" => {
                only(self, &["at", "weekday"]);
                let days = self.own_days(given, days, place)?;
                let times = one(given, &["at"]).ok_or_else(|| fault("at"))?;
                let at = place.key("at");
                let times = many(&times.value).iter().map(|it| time(it, &at));
                let times = times.collect::<Result<Vec<_>, _>>()?;
                let trigger = |at| match days {
                    Some(days) => Trigger::On { days, at },
                    None => Trigger::At(at),
                };
                Ok(times.into_iter().map(trigger).collect())
            }
            "sun" => {
                only(self, &["event", "offset"]);
                let event = one(given, &["event"]).ok_or_else(|| fault("event"))?;
                let at = place.key("event");
                let event = match fields::word(&event.value, &at, "sunrise or sunset")? {
                    "sunrise" => SunEvent::Rise,
                    "sunset" => SunEvent::Set,
                    _ => return Err(fields::wrong(&event.value, &at, "sunrise or sunset")),
                };
                let offset = one(given, &["offset"]).map(|it| {
                    let place = place.key("offset");
                    let found = conditions::millis(&it.value, &place)?;
                    let near = i32::try_from(found).ok();
                    let near = near.filter(|it| it.unsigned_abs() <= SUN_OFFSET.unsigned_abs());
                    let fault = || place.fault(it.mark, Fault::Offset(it.value.shown()));
                    near.ok_or_else(fault)
                });
                let trigger = Trigger::Sun {
                    days: days.unwrap_or(Days::ALL),
                    event,
                    offset_ms: offset.transpose()?.unwrap_or_default(),
                };
                Ok([trigger].into())
            }
            other => {
                let what = format!("the trigger {:?}", short(other));
                Err(missing(what, kind.mark, &at))
            }
        }
    }

    /// The days of a trigger that has some of its own.
    #[allow(clippy::unused_self, reason = "one of the forms of a trigger")]
    fn own_days(
        &self,
        given: &[super::Entry],
        days: Option<Days>,
        place: &Place<'_>,
    ) -> Result<Option<Days>, FileError> {
        let Some(own) = one(given, &["weekday"]) else {
            return Ok(days);
        };
        let place = place.key("weekday");
        if days.is_some() {
            let what = "weekday at a trigger and in a condition".into();
            return Err(missing(what, own.mark, &place));
        }
        conditions::days(&own.value, &place).map(Some)
    }
}

/// A time of day, as `06:30` or `6:30:00`.
fn time(node: &Node, place: &Place<'_>) -> Result<TimeOfDay, FileError> {
    let text = fields::word(node, place, "a time of day as \"06:30\", in quotes")?;
    let padded = format!("0{text}");
    let fault = || place.fault(node.mark, Fault::NoTime(short(text)));
    let found = TimeOfDay::parse(text).or_else(|| TimeOfDay::parse(&padded));
    found.ok_or_else(fault)
}

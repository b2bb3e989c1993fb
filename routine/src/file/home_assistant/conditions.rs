//! Conditions, and the values in them.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;

use selvedge_core::{NodeId, Span};

use super::super::fields;
use super::super::tree::{Data, Entry, Node, Place, scaled};
use super::super::{Fault, FileError};
use super::{Reader, entries, many, missing, one};
use crate::trigger::{Days, Weekday};
use crate::{Clause, Comparison, Condition, Number, State};

const TIME: &str = "seconds, a time as \"00:01:30\", or an object with hours, minutes and seconds";

impl Reader {
    /// A condition; a list of them is one of which each must hold. As deep on the stack as it is
    /// nested, which the reader of YAML limits.
    pub(super) fn condition(
        &mut self,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Clause<State>, FileError> {
        let clause = self.part(node, place)?;
        super::super::clauses::check_depth(&clause, node.mark, place)?;
        Ok(clause)
    }

    fn part(&mut self, node: &Node, place: &Place<'_>) -> Result<Clause<State>, FileError> {
        if let Data::List(nodes) = &node.data {
            return match &nodes[..] {
                [] => Err(place.fault(node.mark, Fault::EmptyList)),
                [only] => self.part(only, &place.nth(0)),
                _ => Ok(Clause::All(self.parts(node, place)?)),
            };
        }
        if let Data::Word(text) = &node.data {
            let what = format!("the template {:?}", super::super::tree::short(text));
            return Err(missing(what, node.mark, place));
        }
        let given = entries(node, place)?;
        if let Some(entry) = one(given, &["and", "or", "not"]) {
            self.only(given, &["alias", &entry.key], place);
            let place = place.key(&entry.key);
            return self.logical(&entry.key, &entry.value, &place);
        }
        let Some(kind) = one(given, &["condition"]) else {
            return Err(place.fault(node.mark, Fault::NoKey("condition")));
        };
        let at = place.key("condition");
        match fields::word(&kind.value, &at, "a kind of condition")? {
            word @ ("and" | "or" | "not") => {
                self.only(given, &["alias", "condition", "conditions"], place);
                let all = one(given, &["conditions"]);
                let fault = || place.fault(node.mark, Fault::NoKey("conditions"));
                self.logical(
                    word,
                    &all.ok_or_else(fault)?.value,
                    &place.key("conditions"),
                )
            }
            "state" => self.state(given, node, place),
            "numeric_state" => {
                let known = ["alias", "condition", "entity_id", "above", "below"];
                self.only(given, &known, place);
                let devices = self.entities(given, node, place)?;
                let clauses = devices
                    .into_iter()
                    .map(|it| between(it, given, node, place));
                Ok(all(clauses.collect::<Result<_, _>>()?))
            }
            other => {
                let what = format!("the condition {:?}", super::super::tree::short(other));
                Err(missing(what, kind.mark, &at))
            }
        }
    }

    fn parts(&mut self, node: &Node, place: &Place<'_>) -> Result<Vec<Clause<State>>, FileError> {
        let nodes = many(node);
        if nodes.is_empty() {
            return Err(place.fault(node.mark, Fault::EmptyList));
        }
        let nodes = nodes.iter().enumerate();
        let nodes = nodes.map(|(nth, it)| self.part(it, &place.nth(nth)));
        nodes.collect()
    }

    /// `not` means that none of them holds.
    fn logical(
        &mut self,
        word: &str,
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Clause<State>, FileError> {
        let clauses = self.parts(node, place)?;
        Ok(match word {
            "and" => Clause::All(clauses),
            "or" => Clause::Any(clauses),
            _ => Clause::Not(Box::new(Clause::Any(clauses))),
        })
    }

    /// Each of the entities is in one of the states.
    fn state(
        &mut self,
        given: &[Entry],
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Clause<State>, FileError> {
        let known = ["alias", "condition", "entity_id", "state", "match"];
        self.only(given, &known, place);
        let devices = self.entities(given, node, place)?;
        let fault = || place.fault(node.mark, Fault::NoKey("state"));
        let wanted = one(given, &["state"]).ok_or_else(fault)?;
        let at = place.key("state");
        let states = many(&wanted.value).iter().map(|it| value(it, &at));
        let states = states.collect::<Result<Vec<State>, _>>()?;
        if states.is_empty() {
            return Err(at.fault(wanted.mark, Fault::EmptyList));
        }
        let many = devices.len().saturating_mul(states.len());
        self.known.spend(many, node.mark, &at)?;
        let each = devices.into_iter().map(|device| {
            let clauses = states.iter().map(|it| is(device, it.clone()));
            match clauses.collect::<Vec<_>>() {
                one if one.len() == 1 => all(one),
                several => Clause::Any(several),
            }
        });
        let each = each.collect::<Vec<_>>();
        let place = place.key("match");
        match one(given, &["match"]) {
            None => Ok(all(each)),
            Some(it) => match fields::word(&it.value, &place, "all or any")? {
                "all" => Ok(all(each)),
                "any" => Ok(Clause::Any(each)),
                _ => Err(fields::wrong(&it.value, &place, "all or any")),
            },
        }
    }

    /// The entities at the key `entity_id`: one, several in a list, or with commas between.
    pub(super) fn entities(
        &mut self,
        given: &[Entry],
        node: &Node,
        place: &Place<'_>,
    ) -> Result<Vec<NodeId>, FileError> {
        let fault = || place.fault(node.mark, Fault::NoKey("entity_id"));
        let named = one(given, &["entity_id"]).ok_or_else(fault)?;
        let place = place.key("entity_id");
        let (mut devices, mut seen) = (Vec::new(), BTreeSet::new());
        for node in many(&named.value) {
            let text = fields::word(node, &place, "an entity, as light.hall")?;
            for name in text.split(',').map(str::trim) {
                let is_entity = name.split_once('.').is_some_and(|(domain, object)| {
                    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
                    !domain.is_empty()
                        && !object.is_empty()
                        && domain.chars().chain(object.chars()).all(is_plain)
                });
                if !is_entity {
                    return Err(fields::wrong(node, &place, "an entity, as light.hall"));
                }
                fields::check_name(name, node.mark, &place)?;
                let device = self.known.find(name, node.mark, &place)?;
                if seen.insert(device) {
                    devices.push(device);
                }
            }
        }
        if devices.is_empty() {
            return Err(place.fault(named.mark, Fault::EmptyList));
        }
        self.known.spend(devices.len(), named.mark, &place)?;
        Ok(devices)
    }
}

pub(super) const fn is(device: NodeId, value: State) -> Clause<State> {
    Clause::Is(Condition {
        device,
        comparison: Comparison::Equal,
        value,
    })
}

fn all(mut clauses: Vec<Clause<State>>) -> Clause<State> {
    match (clauses.pop(), clauses.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            clauses.extend(last);
            Clause::All(clauses)
        }
    }
}

/// The device's state is a number above and below these.
pub(super) fn between(
    device: NodeId,
    given: &[Entry],
    node: &Node,
    place: &Place<'_>,
) -> Result<Clause<State>, FileError> {
    let mut clauses = Vec::new();
    for (key, comparison) in [("above", Comparison::Greater), ("below", Comparison::Less)] {
        let Some(limit) = one(given, &[key]) else {
            continue;
        };
        let place = place.key(key);
        let number = number(&limit.value);
        let number = number.ok_or_else(|| fields::wrong(&limit.value, &place, "a number"))?;
        clauses.push(Clause::Is(Condition {
            device,
            comparison,
            value: State::Number(number),
        }));
    }
    if clauses.is_empty() {
        let keys = "above and below";
        return Err(place.fault(node.mark, Fault::OneOf { found: 0, keys }));
    }
    Ok(all(clauses))
}

fn number(node: &Node) -> Option<Number> {
    match &node.data {
        Data::Number(text) | Data::Word(text) => fields::number(text.trim()),
        Data::Null | Data::Bool(_) | Data::List(_) | Data::Map(_) => None,
    }
}

/// A state: a numeric text is a number.
pub(super) fn value(node: &Node, place: &Place<'_>) -> Result<State, FileError> {
    if let Some(number) = number(node) {
        return Ok(State::Number(number));
    }
    match fields::state(node, place)? {
        State::Word(text) if text.contains("{{") || text.contains("{%") => {
            let what = format!("the template {:?}", super::super::tree::short(&text));
            Err(missing(what, node.mark, place))
        }
        state @ (State::Number(_) | State::Word(_)) => Ok(state),
    }
}

/// A length of time, in milliseconds; negative with a minus sign.
pub(super) fn millis(node: &Node, place: &Place<'_>) -> Result<i64, FileError> {
    let wrong = || fields::wrong(node, place, TIME);
    let found = match &node.data {
        Data::Number(text) => scaled(text, 3),
        Data::Word(text) => clock(text),
        Data::Map(_) => {
            let mut sum = Some(0_i128);
            let entries = entries(node, place)?;
            for entry in entries {
                let unit = match entry.key.as_str() {
                    "days" => 86_400_000,
                    "hours" => 3_600_000,
                    "minutes" => 60_000,
                    "seconds" => 1_000,
                    "milliseconds" => 1,
                    _ => return Err(super::key(entry, place)),
                };
                let count = number(&entry.value).map(|it| i128::from(it.thousandths()) * unit);
                let whole = count.filter(|it| it % 1_000 == 0).map(|it| it / 1_000);
                sum = sum.zip(whole).map(|(sum, it)| sum + it);
            }
            sum.filter(|_| !entries.is_empty())
        }
        Data::Null | Data::Bool(_) | Data::List(_) => None,
    };
    // A thousand years.
    let found = found.filter(|it| it.unsigned_abs() < 31_557_600_000_000);
    found
        .and_then(|it| i64::try_from(it).ok())
        .ok_or_else(wrong)
}

/// `HH:MM` or `HH:MM:SS`, perhaps with a sign and a part of a second; or a number of seconds.
fn clock(text: &str) -> Option<i128> {
    let (sign, rest) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.trim().trim_start_matches('+')),
    };
    if !rest.contains(':') {
        return scaled(rest, 3).map(|it| sign * it);
    }
    let mut parts = rest.split(':');
    let whole = |text: &str| {
        let is_plain = !text.is_empty() && text.len() <= 6;
        let digits = text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<i128>().ok().filter(|_| is_plain && digits)
    };
    let (hours, minutes) = (whole(parts.next()?)?, whole(parts.next()?)?);
    let seconds = match parts.next() {
        Some(text) if text.starts_with(|it: char| it.is_ascii_digit()) => scaled(text, 3)?,
        Some(_) => return None,
        None => 0,
    };
    let is_time = minutes < 60 && seconds < 60_000 && parts.next().is_none();
    is_time.then_some(sign * (hours * 3_600_000 + minutes * 60_000 + seconds))
}

pub(super) fn span(node: &Node, place: &Place<'_>) -> Result<Span, FileError> {
    let millis = millis(node, place)?;
    let millis = u64::try_from(millis).map_err(|_| fields::wrong(node, place, TIME))?;
    Ok(Span::millis(millis))
}

/// Days as `mon`, one or several.
pub(super) fn days(node: &Node, place: &Place<'_>) -> Result<Days, FileError> {
    let days = many(node).iter().map(|node| {
        let text = fields::word(node, place, "a day: mon, tue, wed, thu, fri, sat or sun")?;
        let fault = || place.fault(node.mark, Fault::NoDay(super::super::tree::short(text)));
        Weekday::parse(text).ok_or_else(fault)
    });
    let days = days.collect::<Result<Vec<_>, _>>()?;
    Days::new(days).ok_or_else(|| place.fault(node.mark, Fault::EmptyList))
}

//! The keys and values of a file.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Number, State};

/// What tells one routine from a document.
#[derive(Debug, Deserialize)]
#[serde(remote = "Self")]
pub(super) struct Probe {
    #[serde(rename = "RoutineName")]
    pub(super) name: Option<IgnoredAny>,
    #[serde(rename = "CommandList")]
    pub(super) commands: Option<IgnoredAny>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct Document {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) devices: Option<Vec<DeviceShape>>,
    #[serde(default)]
    pub(super) routines: Vec<RoutineShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) triggers: Vec<TriggerShape>,
    /// How a hub reaches the devices: for the hub to read.
    #[serde(default, skip_serializing)]
    pub(super) hub: Option<IgnoredAny>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct DeviceShape {
    #[serde(rename = "DevID")]
    pub(super) device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) initial: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lateness_ms: Option<Millis>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct RoutineShape {
    #[serde(rename = "RoutineName")]
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<ModeShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<u16>,
    #[serde(default, skip_serializing_if = "is_not_urgent")]
    pub(super) urgency: u8,
    #[serde(rename = "CommandList")]
    pub(super) commands: Vec<CommandShape>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_not_urgent(urgency: &u8) -> bool {
    *urgency == 0
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ModeShape {
    Parallel,
    Single,
    Restart,
    Queued,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct CommandShape {
    #[serde(rename = "DevID")]
    pub(super) device: String,
    #[serde(rename = "Action")]
    pub(super) action: Shown,
    #[serde(rename = "Priority", default)]
    pub(super) priority: PriorityShape,
    #[serde(default, skip_serializing_if = "Millis::is_zero")]
    pub(super) hold_ms: Millis,
    #[serde(default, skip_serializing_if = "is_not")]
    pub(super) preemptible: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undo: Option<Shown>,
    #[serde(rename = "if", default, skip_serializing_if = "Option::is_none")]
    pub(super) condition: Option<ConditionShape>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_not(it: &bool) -> bool {
    !*it
}

#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize, Deserialize)]
pub(super) enum PriorityShape {
    #[default]
    #[serde(rename = "MUST")]
    Must,
    #[serde(rename = "BEST_EFFORT")]
    BestEffort,
}

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct ConditionShape {
    #[serde(rename = "DevID")]
    pub(super) device: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) equal: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not_equal: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) less: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) greater: Option<Shown>,
}

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct ClauseShape {
    #[serde(rename = "DevID", default, skip_serializing_if = "Option::is_none")]
    pub(super) device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) equal: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not_equal: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) less: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) greater: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) all: Option<Vec<Self>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) any: Option<Vec<Self>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) not: Option<Box<Self>>,
}

#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(super) struct TriggerShape {
    #[serde(rename = "RoutineName")]
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) every_ms: Option<Millis>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) when: Option<ClauseShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) manual: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cooldown_ms: Option<Millis>,
}

/// Serde's derives read a list as a struct with its fields in order, too. Here that would be a
/// second, undocumented form of the format, so these ask for keys. With `remote`, what serde
/// derives is a function of the type.
macro_rules! keyed {
    ($($shape:ty: $what:literal)*) => {
        $(
            impl<'de> Deserialize<'de> for $shape {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    struct Keyed;

                    impl<'de> Visitor<'de> for Keyed {
                        type Value = $shape;

                        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                            f.write_str($what)
                        }

                        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<$shape, A::Error> {
                            <$shape>::deserialize(MapAccessDeserializer::new(map))
                        }
                    }

                    deserializer.deserialize_map(Keyed)
                }
            }
        )*
    };
}

keyed! {
    Probe: "an object: a routine, or a document with devices, routines and triggers,"
    Document: "an object with devices, routines and triggers"
    DeviceShape: "an object with DevID"
    RoutineShape: "an object with RoutineName and CommandList"
    CommandShape: "an object with DevID and Action"
    ConditionShape: "an object with DevID and a comparison"
    ClauseShape: "an object with DevID and a comparison, or with all, any or not"
    TriggerShape: "an object with RoutineName and when it is run"
}

/// What serde derives for writing, as the trait.
macro_rules! written {
    ($($shape:ty)*) => {
        $(
            impl Serialize for $shape {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    <$shape>::serialize(self, serializer)
                }
            }
        )*
    };
}

written! { Document DeviceShape RoutineShape CommandShape ConditionShape ClauseShape TriggerShape }

/// A state: a number or a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shown(pub(super) State);

/// Whole milliseconds, not below zero.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(super) struct Millis(pub(super) u64);

impl Millis {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    const fn is_zero(&self) -> bool {
        self.0 == 0
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole;

        impl Visitor<'_> for Whole {
            type Value = Millis;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("whole milliseconds from 0")
            }

            fn visit_u64<E: Error>(self, found: u64) -> Result<Millis, E> {
                Ok(Millis(found))
            }

            fn visit_i64<E: Error>(self, found: i64) -> Result<Millis, E> {
                u64::try_from(found).map(Millis).map_err(|_| {
                    E::custom(format!(
                        "{found} is below zero: give whole milliseconds from 0,"
                    ))
                })
            }
        }

        deserializer.deserialize_u64(Whole)
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            State::Word(word) => serializer.serialize_str(word),
            State::Number(number) if number.thousandths() % 1_000 == 0 => {
                serializer.serialize_i64(number.thousandths() / 1_000)
            }
            State::Number(number) => serializer.serialize_f64(float(number.thousandths())),
        }
    }
}

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl Visitor<'_> for Either {
            type Value = Shown;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a word, or a number of up to 12 digits before the point and 3 behind it,",
                )
            }

            fn visit_i64<E: Error>(self, found: i64) -> Result<Shown, E> {
                let number = found.checked_mul(1_000).and_then(Number::from_thousandths);
                let number = number.ok_or_else(|| inexact(found))?;
                Ok(Shown(State::Number(number)))
            }

            fn visit_u64<E: Error>(self, found: u64) -> Result<Shown, E> {
                self.visit_i64(i64::try_from(found).map_err(|_| inexact(found))?)
            }

            fn visit_f64<E: Error>(self, found: f64) -> Result<Shown, E> {
                let number = exact(found).ok_or_else(|| inexact(found))?;
                Ok(Shown(State::Number(number)))
            }

            fn visit_str<E: Error>(self, found: &str) -> Result<Shown, E> {
                Ok(Shown(found.into()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

fn inexact<E: Error>(found: impl fmt::Display) -> E {
    E::custom(format!(
        "{found} is too long: give a number of up to 12 digits before the point and 3 behind it,"
    ))
}

/// The float that is nearest to so many thousandths.
#[allow(clippy::cast_precision_loss, reason = "numbers have at most 15 digits")]
fn float(thousandths: i64) -> f64 {
    thousandths as f64 / 1_000.0
}

/// The number of thousandths that this float is the nearest to. Up to 15 digits there is one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "what is beyond the range or between two numbers does not come back the same"
)]
fn exact(found: f64) -> Option<Number> {
    let number = Number::from_thousandths((found * 1_000.0).round() as i64)?;
    (float(number.thousandths()) == found).then_some(number)
}

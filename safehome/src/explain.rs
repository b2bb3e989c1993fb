//! Reasons and refusals in words, with the names of devices.

use alloc::format;
use alloc::string::{String, ToString};

use crate::{AbortReason, Catalogue, Reject, Routine, SkipReason};

impl AbortReason {
    /// Describes why this routine was aborted, with names, as in "the device was down at command 2,
    /// to "oven"". Commands are counted from 1, as people do. If a condition could not be
    /// evaluated, the text names the device that it reads.
    #[must_use]
    pub fn explain<V>(self, routine: &Routine<V>, catalogue: &Catalogue) -> String {
        match self {
            Self::Cancelled => "it was cancelled".into(),
            Self::Step(step, skip) => {
                let nth = u32::from(step) + 1;
                let commanded = routine.steps.get(usize::from(step)).map(|it| it.device);
                let skip = match skip {
                    SkipReason::StateUnknown(asked) => {
                        let asked = catalogue.shown(asked);
                        return format!(
                            "the state of {asked}, which the condition of command {nth} asks about, was unknown"
                        );
                    }
                    SkipReason::Down(down) if Some(down) != commanded => {
                        let down = catalogue.shown(down);
                        return format!(
                            "{down}, which the condition of command {nth} asks about, was down"
                        );
                    }
                    SkipReason::Down(_) => "the device was down",
                    SkipReason::Condition => "its condition did not hold",
                    SkipReason::Refused => "the device refused",
                    SkipReason::Unknown => "the device gave no answer",
                };
                let to = |device| format!(", to {}", catalogue.shown(device));
                let device = commanded.map_or_else(String::new, to);
                format!("{skip} at command {nth}{device}")
            }
            Self::Device { device, step } => {
                let device = catalogue.shown(device);
                let by = needed_by(step);
                format!("{device} failed or restarted while it was needed{by}")
            }
            Self::LeaseExpired { device, step } => {
                let device = catalogue.shown(device);
                let by = needed_by(step);
                format!("it kept {device} longer than it was lent for{by}")
            }
            Self::Superseded(by) => format!("routine {by} of the same key takes its place"),
            Self::Preempted { by, device, step } => {
                let device = catalogue.shown(device);
                let who = by.map_or_else(|| "a manual change".into(), |by| format!("routine {by}"));
                let needed = needed_by(step);
                format!("{who} is more urgent and took {device}, which was needed{needed}")
            }
        }
    }
}

/// The command that needed a device, counted from 1, in words.
fn needed_by(step: Option<u16>) -> String {
    step.map_or_else(String::new, |it| {
        format!(" by command {}", u32::from(it) + 1)
    })
}

impl Reject {
    /// Describes why an input was refused, with the name of the device if the catalogue has it.
    #[must_use]
    pub fn explain(&self, catalogue: &Catalogue) -> String {
        let reported = self.to_string();
        let device = self.device();
        match device.and_then(|it| Some((it, catalogue.name(it)?))) {
            // The texts of all errors have the form "device 7".
            Some((device, name)) => {
                reported.replacen(&format!("device {device}"), &format!("device {name:?}"), 1)
            }
            None => reported,
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::{Delta, Member, NodeId};

    use super::*;
    use crate::Step;

    #[test]
    fn messages_name_devices() {
        let mut catalogue = Catalogue::new();
        let oven = catalogue.id_or_new("oven");
        let steps = [Step::new(oven, 1), Step::new(oven, 2)];
        let routine = Routine {
            steps: steps.into(),
        };
        let (device, step) = (oven, Some(1));
        let why = AbortReason::Device { device, step }.explain(&routine, &catalogue);
        assert_eq!(
            why,
            "\"oven\" failed or restarted while it was needed by command 2"
        );
        let by = Some(crate::RoutineId(7));
        let why = AbortReason::Preempted { by, device, step }.explain(&routine, &catalogue);
        assert_eq!(
            why,
            "routine 7 is more urgent and took \"oven\", which was needed by command 2"
        );
        let why = AbortReason::Superseded(crate::RoutineId(7)).explain(&routine, &catalogue);
        assert_eq!(why, "routine 7 of the same key takes its place");
        let why = AbortReason::Step(1, SkipReason::Down(oven)).explain(&routine, &catalogue);
        assert_eq!(why, "the device was down at command 2, to \"oven\"");
        let (device, token) = (oven, 7);
        for reject in [
            Reject::UnknownDevice(oven),
            Reject::KnownDevice(oven),
            Reject::DeviceInUse(oven),
            Reject::UnknownToken { device, token },
            Reject::UnknownMember(Delta::Left(Member::new(oven.0, 0))),
        ] {
            let reported = reject.explain(&catalogue);
            let is_named = reported.contains("device \"oven\"") && !reported.contains("device 0");
            assert!(is_named, "{reported}");
        }
        // The text names no device, though device 0 has a name.
        let number = 0;
        for reject in [Reject::Empty, Reject::NoTime(number)] {
            assert_eq!(reject.explain(&catalogue), reject.to_string());
            assert_eq!(reject.device(), None);
        }
        let nameless = Reject::UnknownDevice(NodeId(9)).explain(&catalogue);
        assert!(
            nameless.starts_with("device 9 is unknown to the hub"),
            "{nameless}"
        );
    }
    #[test]
    fn a_reason_has_the_device_and_the_routine_to_blame() {
        let [lamp, oven] = [NodeId(1), NodeId(2)];
        let steps = [Step::new(lamp, 1), Step::new(oven, 2)];
        let routine = Routine {
            steps: steps.into(),
        };
        let (device, step, by) = (oven, Some(1), Some(crate::RoutineId(7)));
        let seven = crate::RoutineId(7);
        for (why, device, by, makes_room) in [
            (AbortReason::Cancelled, None, None, false),
            (AbortReason::Superseded(seven), None, by, true),
            (
                AbortReason::Device { device, step },
                Some(oven),
                None,
                false,
            ),
            (
                AbortReason::LeaseExpired { device, step },
                Some(oven),
                None,
                false,
            ),
            (
                AbortReason::Preempted { by, device, step },
                Some(oven),
                by,
                true,
            ),
            (
                AbortReason::Step(0, SkipReason::Down(oven)),
                Some(oven),
                None,
                false,
            ),
            (
                AbortReason::Step(0, SkipReason::StateUnknown(oven)),
                Some(oven),
                None,
                false,
            ),
            (
                AbortReason::Step(0, SkipReason::Refused),
                Some(lamp),
                None,
                false,
            ),
            (AbortReason::Step(2, SkipReason::Unknown), None, None, false),
        ] {
            assert_eq!(why.device(&routine), device, "{why:?}");
            assert_eq!(why.routine(), by, "{why:?}");
            assert_eq!(why.makes_room(), makes_room, "{why:?}");
        }
    }
}

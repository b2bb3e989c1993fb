//! Names of devices, for people, and their ids, for the hub.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use selvedge_core::NodeId;
use thiserror::Error;

use crate::{Reject, Routine, Skip, Why};

/// Which device has which name. Look-ups take O(log n).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Catalogue {
    ids: BTreeMap<String, NodeId>,
    names: BTreeMap<NodeId, String>,
}

/// A name or an id is taken. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
pub enum Taken {
    /// Another device has this name.
    #[error("the name {name:?} is that of device {by}: choose another")]
    Name {
        /// The name.
        name: String,
        /// Who has it.
        by: NodeId,
    },
    /// The device has another name.
    #[error("device {device} is called {name:?} already: choose another id")]
    Id {
        /// The device.
        device: NodeId,
        /// Its name.
        name: String,
    },
}

impl Catalogue {
    /// An empty one.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// The id of a device with this name; if there is none, a new one gets the id behind the
    /// largest: 0, 1 and so on.
    pub fn id_or_new(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.id(name) {
            return id;
        }
        let mut id = NodeId(0);
        if let Some((last, _)) = self.names.last_key_value() {
            id.0 = last.0.wrapping_add(1);
            while self.names.contains_key(&id) {
                id.0 = id.0.wrapping_add(1);
            }
        }
        self.ids.insert(name.into(), id);
        self.names.insert(id, name.into());
        id
    }

    /// Gives a device that has an id already, as those of a membership service have, a name.
    ///
    /// # Errors
    /// When the name or the id is taken. Nothing changed.
    pub fn assign(&mut self, name: &str, device: NodeId) -> Result<(), Taken> {
        if let Some(by) = self.id(name) {
            let name = name.into();
            return Err(Taken::Name { name, by });
        }
        if let Some(name) = self.name(device) {
            let name = name.into();
            return Err(Taken::Id { device, name });
        }
        self.ids.insert(name.into(), device);
        self.names.insert(device, name.into());
        Ok(())
    }

    /// The id of the device with this name.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<NodeId> {
        self.ids.get(name).copied()
    }

    /// The name of a device.
    #[must_use]
    pub fn name(&self, device: NodeId) -> Option<&str> {
        self.names.get(&device).map(String::as_str)
    }

    /// All devices, by id.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &str)> {
        self.names.iter().map(|(&id, name)| (id, name.as_str()))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Why this routine was aborted, with names, as in "the device was down at command 2, to
    /// "oven"". Commands are counted from 1, as people do. It names the device that is the cause: of
    /// a condition that could not be asked, the one that it asks about.
    #[must_use]
    pub fn why<V>(&self, why: Why, routine: &Routine<V>) -> String {
        match why {
            Why::Cancelled => "it was cancelled".into(),
            Why::Step(step, skip) => {
                let nth = u32::from(step) + 1;
                let commanded = routine.steps.get(usize::from(step)).map(|it| it.device);
                let skip = match skip {
                    Skip::StateUnknown(asked) => {
                        let asked = self.shown(asked);
                        return format!(
                            "the state of {asked}, which the condition of command {nth} asks about, was unknown"
                        );
                    }
                    Skip::Down(down) if Some(down) != commanded => {
                        let down = self.shown(down);
                        return format!(
                            "{down}, which the condition of command {nth} asks about, was down"
                        );
                    }
                    Skip::Down(_) => "the device was down",
                    Skip::Condition => "its condition did not hold",
                    Skip::Refused => "the device refused",
                    Skip::Unknown => "the device gave no answer",
                };
                let to = |device| format!(", to {}", self.shown(device));
                let device = commanded.map_or_else(String::new, to);
                format!("{skip} at command {nth}{device}")
            }
            Why::Device(device) => {
                format!(
                    "{} failed or restarted while it was needed",
                    self.shown(device)
                )
            }
            Why::LeaseOver(device) => {
                format!("it kept {} longer than it was lent for", self.shown(device))
            }
        }
    }

    /// Why an input was refused, with names.
    #[must_use]
    pub fn reject(&self, reject: &Reject) -> String {
        let said = reject.to_string();
        match reject.device().and_then(|it| Some((it, self.name(it)?))) {
            // All texts say "device 7" where they name one.
            Some((device, name)) => {
                said.replacen(&format!("device {device}"), &format!("device {name:?}"), 1)
            }
            None => said,
        }
    }

    /// The name of a device, or its id where it has none.
    #[must_use]
    pub fn shown(&self, device: NodeId) -> String {
        self.name(device)
            .map_or_else(|| format!("device {device}"), |name| format!("{name:?}"))
    }
}

#[cfg(test)]
mod tests {
    use selvedge_core::{Delta, Member};

    use super::*;
    use crate::Step;

    #[test]
    fn names_and_ids_are_taken_once() {
        let mut catalogue = Catalogue::new();
        assert_eq!(catalogue.id_or_new("lamp"), NodeId(0));
        assert_eq!(catalogue.id_or_new("lamp"), NodeId(0));
        catalogue.assign("heater", NodeId(u64::MAX)).unwrap();
        // Behind the largest there is none: the first that is free.
        assert_eq!(catalogue.id_or_new("oven"), NodeId(1));
        let before = catalogue.clone();
        let taken = catalogue.assign("lamp", NodeId(7)).unwrap_err();
        assert!(matches!(taken, Taken::Name { by: NodeId(0), .. }));
        let taken = catalogue.assign("door", NodeId(1)).unwrap_err();
        assert!(matches!(taken, Taken::Id { name, .. } if name == "oven"));
        assert_eq!(catalogue, before);
    }

    #[test]
    fn messages_name_devices() {
        let mut catalogue = Catalogue::new();
        let oven = catalogue.id_or_new("oven");
        let steps = [Step::new(oven, 1), Step::new(oven, 2)];
        let routine = Routine {
            steps: steps.into(),
        };
        let why = catalogue.why(Why::Device(oven), &routine);
        assert_eq!(why, "\"oven\" failed or restarted while it was needed");
        let why = catalogue.why(Why::Step(1, Skip::Down(oven)), &routine);
        assert_eq!(why, "the device was down at command 2, to \"oven\"");
        let (device, token) = (oven, 7);
        for reject in [
            Reject::UnknownDevice(oven),
            Reject::KnownDevice(oven),
            Reject::DeviceInUse(oven),
            Reject::UnknownToken { device, token },
            Reject::UnknownMember(Delta::Left(Member::new(oven.0, 0))),
        ] {
            let said = catalogue.reject(&reject);
            let is_named = said.contains("device \"oven\"") && !said.contains("device 0");
            assert!(is_named, "{said}");
        }
        let nameless = catalogue.reject(&Reject::UnknownDevice(NodeId(9)));
        assert!(
            nameless.starts_with("device 9 is not at the hub"),
            "{nameless}"
        );
    }
}

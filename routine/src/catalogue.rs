//! Names of devices, for people, and their ids, for protocols.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use selvedge_core::NodeId;
use thiserror::Error;

/// The names of devices. Look-ups take O(log n).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Catalogue {
    ids: BTreeMap<String, NodeId>,
    names: BTreeMap<NodeId, String>,
}

/// The error when a name or an id is taken. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Taken {
    /// Another device has this name.
    #[error("the name {name:?} is used by device {by}: choose another")]
    Name {
        /// The name.
        name: String,
        /// The device that has it.
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
    /// An empty catalogue.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ids: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// The id of the device with this name. A new name gets the id after the largest: 0, 1 and so
    /// on.
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

    /// Gives a name to a device that has an id already, for instance from a membership service.
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

    /// The number of devices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns true if there are no devices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
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
    use super::*;

    #[test]
    fn names_and_ids_are_taken_once() {
        let mut catalogue = Catalogue::new();
        assert_eq!(catalogue.id_or_new("lamp"), NodeId(0));
        assert_eq!(catalogue.id_or_new("lamp"), NodeId(0));
        catalogue.assign("heater", NodeId(u64::MAX)).unwrap();
        // There is no id after the largest: the first free one.
        assert_eq!(catalogue.id_or_new("oven"), NodeId(1));
        let before = catalogue.clone();
        let taken = catalogue.assign("lamp", NodeId(7)).unwrap_err();
        assert!(matches!(taken, Taken::Name { by: NodeId(0), .. }));
        let taken = catalogue.assign("door", NodeId(1)).unwrap_err();
        assert!(matches!(taken, Taken::Id { name, .. } if name == "oven"));
        assert_eq!(catalogue, before);
    }

    #[test]
    fn as_many_are_there_as_are_listed_and_each_is_shown_by_name() {
        let mut catalogue = Catalogue::new();
        for count in 0..4_usize {
            assert_eq!(catalogue.len(), count);
            assert_eq!(catalogue.iter().count(), count);
            assert_eq!(catalogue.is_empty(), count == 0);
            catalogue.id_or_new(&format!("lamp {count}"));
        }
        for (device, name) in catalogue.iter() {
            assert_eq!(catalogue.shown(device), format!("{name:?}"));
        }
        assert_eq!(catalogue.shown(NodeId(9)), "device 9");
    }
}

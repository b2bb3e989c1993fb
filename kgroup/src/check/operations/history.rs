//! A map at each of its versions.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use selvedge_groups::store::{Bytes, Entry, Key, Store};

use super::asked::Asked;

/// A map at each version at which a node was seen. A step may take a node over several.
#[derive(Clone, Debug)]
pub(super) struct MapHistory {
    versions: BTreeMap<u64, BTreeMap<Key, Entry>>,
    /// The version at which each value was put.
    puts: BTreeMap<Bytes, u64>,
}

impl MapHistory {
    pub(super) const fn new() -> Self {
        Self {
            versions: BTreeMap::new(),
            puts: BTreeMap::new(),
        }
    }

    pub(super) fn see(&mut self, map: &Store, asked: &Asked) -> Result<(), String> {
        let entries = map.entries().map(|(key, it)| (key.into(), it.clone()));
        let entries: BTreeMap<Key, Entry> = entries.collect();
        let version = map.version();
        if let Some(known) = self.versions.get(&version) {
            return match *known == entries {
                true => Ok(()),
                false => Err(format!("version {version} is {known:?} and {entries:?}")),
            };
        }
        for (key, entry) in &entries {
            asked.on_put(key, entry)?;
            let put = *self
                .puts
                .entry(entry.value.clone())
                .or_insert(entry.version);
            if put != entry.version {
                return Err(format!("{entry:?} was put by version {put}, too"));
            }
        }
        self.versions.insert(version, entries);
        Ok(())
    }

    pub(super) fn latest(&self) -> u64 {
        self.versions.last_key_value().map_or(0, |it| *it.0)
    }

    /// Returns true if this value was ever put.
    pub(super) fn has(&self, value: &Bytes) -> bool {
        self.puts.contains_key(value)
    }

    /// The present entry of a key.
    pub(super) fn present(&self, key: &str) -> Option<&Entry> {
        self.versions.last_key_value()?.1.get(key)
    }

    /// The entry of a key at a version, if that version was seen.
    pub(super) fn at(&self, version: u64, key: &str) -> Option<Option<&Entry>> {
        match version {
            0 => Some(None),
            _ => Some(self.versions.get(&version)?.get(key)),
        }
    }

    /// Returns true if the key had this entry at that version or later; `None` if it may have had
    /// it at a version at which no node was seen.
    pub(super) fn was(&self, key: &str, entry: Option<&Entry>, since: u64) -> Option<bool> {
        let mut has_gap = false;
        for version in since..=self.latest() {
            match self.at(version, key) {
                Some(it) if it == entry => return Some(true),
                Some(_) => {}
                None => has_gap = true,
            }
        }
        // An entry has the version that put it: an older entry had ended.
        let is_old = entry.is_some_and(|it| it.version <= since);
        (is_old || !has_gap).then_some(false)
    }
}

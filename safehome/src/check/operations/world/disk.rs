//! The storage of a host, and its contents after a crash.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Difference, DurableHub, Hub, Saved};

/// The number of steps between two bases.
const STEPS: usize = 8;

/// A base and the differences behind it.
pub(super) struct Disk {
    base: Saved<u8>,
    differences: Vec<Difference<u8>>,
    /// The state from base and differences.
    stored: Saved<u8>,
    /// The number of steps since the last base.
    steps: usize,
    bases: usize,
}

impl Disk {
    pub(super) fn new(hub: &Hub<u8>) -> Self {
        Self {
            base: hub.save(),
            differences: Vec::new(),
            stored: hub.save(),
            steps: 0,
            bases: 0,
        }
    }

    /// Stores the changes of steps: with the earlier records they are the state of the hub. Stores
    /// a new base every `STEPS` steps.
    pub(super) fn store(
        &mut self,
        facts: Vec<Difference<u8>>,
        hub: &DurableHub<u8>,
    ) -> Result<(), String> {
        for difference in facts {
            self.differences.push(difference.clone());
            let stored = self.stored.clone().apply(difference);
            self.stored = stored.map_err(|error| format!("a difference is refused: {error}"))?;
            self.steps += 1;
        }
        if self.stored != hub.hub().save() || *hub.saved() != self.stored {
            return Err(format!("{hub:?} is stored as {:?}", self.stored));
        }
        if self.steps >= STEPS {
            self.steps = 0;
            self.store_base(hub)?;
        }
        Ok(())
    }

    /// The stored state.
    pub(super) const fn stored(&self) -> &Saved<u8> {
        &self.stored
    }

    /// Stores a new base, and then drops the differences that it contains, one by one from either
    /// end. The host stops in the middle of that, restarts, and continues behind the remaining
    /// ones.
    fn store_base(&mut self, hub: &DurableHub<u8>) -> Result<(), String> {
        self.bases += 1;
        self.base = if self.bases.is_multiple_of(2) {
            hub.hub().save()
        } else {
            hub.saved().clone()
        };
        let all = core::mem::take(&mut self.differences);
        // At a different place each time.
        let (first, second) = all.split_at(self.bases * 5 % (all.len() + 1));
        for left in [&all, first, second, &[]] {
            self.differences = left.to_vec();
            if self.read()? != self.stored {
                return Err(format!("behind a new base {left:?} is not passed over"));
            }
        }
        self.differences = match self.bases % 4 {
            0 => Vec::new(),
            1 => second.to_vec(),
            2 => first.to_vec(),
            _ => all,
        };
        Ok(())
    }

    /// The state that a host reads when it restarts.
    pub(super) fn read(&self) -> Result<Saved<u8>, String> {
        let apply = |state: Saved<u8>, difference: &Difference<u8>| {
            let applied = state.apply(difference.clone());
            applied.map_err(|error| format!("what was stored is refused: {error}"))
        };
        self.differences.iter().try_fold(self.base.clone(), apply)
    }
}

//! What a host has stored, and what a crash leaves of it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Difference, DurableHub, Hub, Saved};

/// After so many steps a new base is stored.
const STEPS: usize = 8;

/// A base and the differences behind it.
pub(super) struct Disk {
    base: Saved<u8>,
    differences: Vec<Difference<u8>>,
    /// What base and differences come to.
    stored: Saved<u8>,
    /// Since the last base.
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

    /// What steps have changed is stored: with what was stored before it is the state of the hub.
    /// Now and then a new base is.
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

    /// The state that is stored.
    pub(super) const fn stored(&self) -> &Saved<u8> {
        &self.stored
    }

    /// A new base is stored, and then the differences that it contains are dropped, one by one from
    /// either end. The host stops in the midst of that, comes back, and goes on behind what is left.
    fn store_base(&mut self, hub: &DurableHub<u8>) -> Result<(), String> {
        self.bases += 1;
        self.base = if self.bases.is_multiple_of(2) {
            hub.hub().save()
        } else {
            hub.saved().clone()
        };
        let all = core::mem::take(&mut self.differences);
        // Another place each time.
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

    /// What a host finds when it comes back.
    pub(super) fn read(&self) -> Result<Saved<u8>, String> {
        let apply = |state: Saved<u8>, difference: &Difference<u8>| {
            let applied = state.apply(difference.clone());
            applied.map_err(|error| format!("what was stored is refused: {error}"))
        };
        self.differences.iter().try_fold(self.base.clone(), apply)
    }
}

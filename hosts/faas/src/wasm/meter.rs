//! The meter of a module's memory.

use wasmi::ResourceLimiter;
use wasmi::errors::{MemoryError, TableError};
use wasmi_core::LimiterError;

/// The number of bytes for an element of a table.
const ELEMENT: u64 = 8;

/// A meter that counts the memory of a module, and denies more than the limit.
#[derive(Debug)]
pub(super) struct Meter {
    most: u64,
    memory: u64,
    tables: u64,
    is_set_up: bool,
    /// True if a request was denied: the call has failed then.
    pub(super) is_exceeded: bool,
    /// True if the host lacked granted memory: the call has failed then, because other hosts may
    /// have it.
    pub(super) is_short: bool,
}

impl Meter {
    pub(super) const fn new(most: u32) -> Self {
        Self {
            most: most as u64,
            memory: 0,
            tables: 0,
            is_set_up: false,
            is_exceeded: false,
            is_short: false,
        }
    }

    /// Ends the setup: the module has its memory and its tables, and begins to run.
    pub(super) const fn set_up(&mut self) {
        self.is_set_up = true;
    }

    /// The number of bytes of the memory and the tables.
    pub(super) const fn bytes(&self) -> u64 {
        self.memory.saturating_add(self.tables)
    }

    const fn settle(&mut self, memory: u64, tables: u64) -> Result<bool, LimiterError> {
        if memory.saturating_add(tables) > self.most {
            self.is_exceeded = true;
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        (self.memory, self.tables) = (memory, tables);
        Ok(true)
    }

    /// Ends the call: after a -1 the module could return another value than at other followers.
    const fn run_short(&mut self) -> Result<(), LimiterError> {
        self.is_short = true;
        Err(LimiterError::ResourceLimiterDeniedAllocation)
    }
}

impl ResourceLimiter for Meter {
    // The interpreter asks again for the same memory after fuel ran out; there is one memory.
    fn memory_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        if maximum.is_some_and(|it| desired > it) {
            return Ok(false);
        }
        self.settle(desired as u64, self.tables)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> Result<bool, LimiterError> {
        // The interpreter does not continue correctly if `table.grow` runs out of a slice's fuel,
        // so tables do not grow. WebAssembly lets it fail at any time.
        if self.is_set_up {
            return Ok(false);
        }
        let more = desired.saturating_sub(current) as u64;
        let tables = self.tables.saturating_add(more.saturating_mul(ELEMENT));
        self.settle(self.memory, tables)
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), LimiterError> {
        if matches!(error, MemoryError::OutOfSystemMemory) {
            return self.run_short();
        }
        Ok(()) // The slice has no fuel for it, and the next one has.
    }

    fn table_grow_failed(&mut self, error: &TableError) -> Result<(), LimiterError> {
        if matches!(error, TableError::OutOfSystemMemory) {
            return self.run_short();
        }
        Ok(())
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        100
    }

    fn memories(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_memory_ends_the_call_and_a_slice_without_fuel_does_not() {
        let mut meter = Meter::new(65_536);
        let of_fuel = MemoryError::OutOfFuel { required_fuel: 1 };
        assert!(meter.memory_grow_failed(&of_fuel).is_ok());
        let of_fuel = TableError::OutOfFuel { required_fuel: 1 };
        assert!(meter.table_grow_failed(&of_fuel).is_ok());
        assert!(!meter.is_short);
        let of_memory = MemoryError::OutOfSystemMemory;
        assert!(meter.memory_grow_failed(&of_memory).is_err());
        assert!(meter.is_short && !meter.is_exceeded);
        let mut meter = Meter::new(65_536);
        let of_memory = TableError::OutOfSystemMemory;
        assert!(meter.table_grow_failed(&of_memory).is_err());
        assert!(meter.is_short && !meter.is_exceeded);
    }
}

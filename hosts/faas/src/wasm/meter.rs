//! The memory that a module has.

use wasmi::ResourceLimiter;
use wasmi::errors::{MemoryError, TableError};
use wasmi_core::LimiterError;

/// How many bytes an element of a table takes.
const ELEMENT: u64 = 8;

/// Counts the memory that a module has, and denies what goes beyond.
#[derive(Debug)]
pub(super) struct Meter {
    most: u64,
    memory: u64,
    tables: u64,
    is_set_up: bool,
    /// Whether something was denied: the call has failed then.
    pub(super) is_exceeded: bool,
}

impl Meter {
    pub(super) const fn new(most: u32) -> Self {
        Self {
            most: most as u64,
            memory: 0,
            tables: 0,
            is_set_up: false,
            is_exceeded: false,
        }
    }

    /// The module has its memory and its tables, and begins to run.
    pub(super) const fn set_up(&mut self) {
        self.is_set_up = true;
    }

    /// How many bytes the memory and the tables have.
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
}

impl ResourceLimiter for Meter {
    // It is asked again for the same when fuel ran out meanwhile; there is one memory.
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
        // The interpreter does not go on rightly where `table.grow` ran out of a slice's fuel, so
        // tables do not grow. WebAssembly lets it fail at any time.
        if self.is_set_up {
            return Ok(false);
        }
        let more = desired.saturating_sub(current) as u64;
        let tables = self.tables.saturating_add(more.saturating_mul(ELEMENT));
        self.settle(self.memory, tables)
    }

    fn memory_grow_failed(&mut self, _error: &MemoryError) -> Result<(), LimiterError> {
        Ok(())
    }

    fn table_grow_failed(&mut self, _error: &TableError) -> Result<(), LimiterError> {
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

//! Limits of a function.

use selvedge_core::settings::{self, OutOfRange, Setting};

/// The largest depth of calls in a module.
pub const MAX_CALLS: u32 = 1_024;

/// The size of the interpreter's stack in bytes: it is on the heap.
pub const MAX_STACK: u32 = 262_144;

/// The largest number of local variables of a function in a module, without its parameters. They
/// are cleared at each call, and the call's fuel does not count them.
pub const MAX_LOCALS: u32 = 1_024;

/// Limits of a function. All followers of a mesh need the same, except [`modules`](Self::modules)
/// and [`log`](Self::log): a function that fails at some of them has no majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// The fuel of a call: from 1. Default 100,000,000. About one for each instruction, and for 64
    /// bytes that are copied or added to the memory.
    pub fuel: u64,
    /// The number of bytes of a module's memory and tables, at 8 bytes an element: from 0. Default
    /// 2 MiB. Memory comes in pages of 65,536 bytes, so with less than that no module has any.
    pub memory: u32,
    /// The number of bytes of a module: from 8. Default 262,144.
    pub module: u32,
    /// The number of bytes of a result: from 1. Default 256, as in
    /// [`follower::Config`](selvedge_pcm::follower::Config::result).
    pub result: u16,
    /// The number of bytes that a call may write into the log: from 0. Default 1,024. Bytes beyond
    /// it are dropped.
    pub log: u16,
    /// The number of modules that an engine keeps: from 1. Default 4, as in
    /// [`follower::Config`](selvedge_pcm::follower::Config::libraries). The module that was not
    /// used for longest is removed first.
    pub modules: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

impl Limits {
    /// The default limits.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            fuel: 100_000_000,
            memory: 2 * 1_024 * 1_024,
            module: 262_144,
            result: 256,
            log: 1_024,
            modules: 4,
        }
    }

    selvedge_core::with_settings! {
        with_fuel fuel: u64,
        with_memory memory: u32,
        with_module module: u32,
        with_result result: u16,
        with_log log: u16,
        with_modules modules: u16,
    }

    /// Checks that these limits can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        let most = u32::MAX as u64;
        settings::check(&[
            Setting::number("fuel", self.fuel, 1, u64::MAX),
            Setting::number("module", self.module as u64, 8, most).counts("bytes"),
            Setting::number("result", self.result as u64, 1, most).counts("bytes"),
            Setting::number("modules", self.modules as u64, 1, most),
        ])
    }
}

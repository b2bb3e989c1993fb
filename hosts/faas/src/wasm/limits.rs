//! How much a function may take.

use selvedge_core::settings::{self, OutOfRange, Setting};

/// How many calls of a function may be under way in each other, in a module.
pub const MAX_CALLS: u32 = 1_024;

/// How many bytes the interpreter's stack has at most: it is on the heap.
pub const MAX_STACK: u32 = 262_144;

/// How many local variables a function of a module may have, its parameters not included. They are
/// cleared at each call, whose fuel does not count them.
pub const MAX_LOCALS: u32 = 1_024;

/// How much a function may take. All followers of a mesh need the same, but for
/// [`modules`](Self::modules) and [`log`](Self::log): a function that fails at some of them has no
/// majority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Limits {
    /// How much fuel a call may take: from 1. Default 100,000,000. About one for each instruction,
    /// and for 64 bytes that are copied or added to the memory.
    pub fuel: u64,
    /// How many bytes a module's memory and tables may take, at 8 bytes an element: from 0. Default
    /// 2 MiB. Memory comes in pages of 65,536 bytes, so less than that lets no module have any.
    pub memory: u32,
    /// How many bytes a module may have: from 8. Default 262,144.
    pub module: u32,
    /// How many bytes a result may have: from 1. Default 256, as in
    /// [`follower::Config`](selvedge_pcm::follower::Config::result).
    pub result: u16,
    /// How many bytes a call may write into the log: from 0. Default 1,024. What does not fit is
    /// dropped.
    pub log: u16,
    /// How many modules an engine keeps: from 1. Default 4, as in
    /// [`follower::Config`](selvedge_pcm::follower::Config::libraries). The one that was not used for
    /// longest goes first.
    pub modules: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

impl Limits {
    /// The defaults.
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

    /// Whether these limits can work.
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

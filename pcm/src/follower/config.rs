//! The settings of a follower.

use selvedge_core::Span;
use selvedge_core::settings::{self, OutOfRange, Setting};

use crate::DutyCycle;

/// The settings of a follower. Followers may differ in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Config {
    /// The duty cycle at first.
    pub duty: DutyCycle,
    /// The greatest number of tasks that it knows at once, ended tasks included: from 1. Default 8.
    pub jobs: u16,
    /// The greatest length of a function in bytes: from 1. Default 1,024.
    pub code: u16,
    /// The greatest length of a result in bytes: from 1. Default 256. No more than
    /// [`Limits::result`](crate::Limits::result).
    pub result: u16,
    /// The greatest memory of a function in bytes; the host enforces it. Default 32,768.
    pub memory: u32,
    /// The longest time that a function may run: above zero. Default 5 s.
    pub time: Span,
    /// The number of libraries that it keeps: from 0 to 16. Default 4. The oldest is dropped first.
    pub libraries: u16,
    /// The number of periods in which it repeats a message that is not acknowledged: from 1. Default 16.
    pub repeats: u8,
}

impl Config {
    /// The defaults, with this duty cycle.
    #[must_use]
    pub const fn new(duty: DutyCycle) -> Self {
        Self {
            duty,
            jobs: 8,
            code: 1_024,
            result: 256,
            memory: 32_768,
            time: Span::secs(5),
            libraries: 4,
            repeats: 16,
        }
    }

    selvedge_core::with_settings! {
        with_duty duty: DutyCycle,
        with_jobs jobs: u16,
        with_code code: u16,
        with_result result: u16,
        with_memory memory: u32,
        with_time time: Span,
        with_libraries libraries: u16,
        with_repeats repeats: u8,
    }

    /// Checks that these settings can work.
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub const fn check(&self) -> Result<(), OutOfRange> {
        if let Err(error) = self.duty.check() {
            return Err(error);
        }
        let most = u16::MAX as u64;
        settings::check(&[
            Setting::number("jobs", self.jobs as u64, 1, most),
            Setting::number("code", self.code as u64, 1, most).counts("bytes"),
            Setting::number("result", self.result as u64, 1, most).counts("bytes"),
            Setting::time("time", self.time, Span(1), Span(u64::MAX)),
            Setting::number("libraries", self.libraries as u64, 0, 16),
            Setting::number("repeats", self.repeats as u64, 1, u8::MAX as u64),
        ])
    }
}

//! The load of processes, by the system's account (Linux).

use core::time::Duration;
use std::fs;

/// Ticks of the system's account of time in a second, on all machines that Linux runs on today.
const TICKS: u64 = 100;

/// The memory of a process, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    /// All its resident memory, shared or not.
    pub(super) rss: u64,
    /// The same, with each shared page divided by the number of its users.
    pub(super) pss: u64,
}

/// The memory of a process, where the system provides it.
pub(super) fn memory(process: u32) -> Option<Memory> {
    parse_memory(&fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?)
}

fn parse_memory(text: &str) -> Option<Memory> {
    let line = |name: &str| {
        let rest = text.lines().find_map(|it| it.strip_prefix(name));
        rest?.trim().strip_suffix(" kB")?.parse().ok()
    };
    Some(Memory {
        rss: line("Rss:")?,
        pss: line("Pss:")?,
    })
}

/// The processor time of a process until now, where the system provides it.
pub(super) fn cpu(process: u32) -> Option<Duration> {
    parse_cpu(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

fn parse_cpu(text: &str) -> Option<Duration> {
    // The name of the program is in brackets, and may contain blanks.
    let mut words = text.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || words.next()?.parse::<u64>().ok();
    let all = ticks()?.checked_add(ticks()?)?;
    Some(Duration::from_millis(all.saturating_mul(1_000 / TICKS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_of_the_system_is_read() {
        let text =
            "00400000-7ffc ---p [rollup]\nRss:      3732 kB\nPss:       517 kB\nPss_Dirty: 9 kB\n";
        let memory = Memory {
            rss: 3_732,
            pss: 517,
        };
        assert_eq!(parse_memory(text), Some(memory));
        assert_eq!(parse_memory("Rss: 1 kB\n"), None);
        let text = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 123 45 0 0 20 0";
        assert_eq!(parse_cpu(text), Some(Duration::from_millis(1_680)));
        assert_eq!(parse_cpu("7 (a) S 1"), None);
    }
}

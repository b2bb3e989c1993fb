//! The time for which followers are awake, according to their logs.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time for which each follower was awake until now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Awake(Arc<Mutex<BTreeMap<u64, Sum>>>);

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    before: Duration,
    /// The time at which it woke; `None` while it sleeps.
    since: Option<Instant>,
}

impl Sum {
    fn receive(&mut self, line: &str, now: Instant) {
        // Its counters follow after a semicolon.
        let line = line.split(';').next().unwrap_or_default();
        if line.ends_with(" is Asleep") {
            let since = self.since.take();
            self.before += since.map_or(Duration::ZERO, |it| now.saturating_duration_since(it));
        } else if line.ends_with(" is Active") {
            self.since.get_or_insert(now);
        }
    }

    fn until(&self, now: Instant) -> Duration {
        let present = self.since.map(|it| now.saturating_duration_since(it));
        self.before + present.unwrap_or_default()
    }
}

impl Awake {
    /// Reads the log of a follower to its end, on a separate thread.
    pub(crate) fn listen(&self, id: u64, reported: ChildStderr) {
        let all = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(reported).lines().map_while(Result::ok) {
                all.receive(id, &line);
            }
        });
    }

    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn receive(&self, id: u64, line: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(id).or_default().receive(line, Instant::now());
    }

    /// The time for which each was awake until now.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn now(&self) -> BTreeMap<u64, Duration> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.iter().map(|(id, it)| (*id, it.until(now))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn a_follower_is_awake_from_active_to_asleep() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut sum = Sum::default();
        sum.receive("101#5 is Active", at(1));
        assert_eq!(sum.until(at(3)), Duration::from_secs(2));
        sum.receive("101#5 is Busy", at(3));
        sum.receive("101#5 has lost its gateway: x", at(3));
        sum.receive("101#5 is Asleep; Counters { sent: 7 }", at(4));
        assert_eq!(sum.until(at(9)), Duration::from_secs(3));
        sum.receive("101#5 is Active; Counters { sent: 7 }", at(10));
        assert_eq!(sum.until(at(11)), Duration::from_secs(4));
    }
}

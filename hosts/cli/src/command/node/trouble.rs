//! Troubles of a node's mesh that its counters show.

use core::fmt;

use selvedge_core::{Span, Time};
use selvedge_udp::traffic::TrafficReport;

/// The time between two lines about one trouble that lasts.
const EVERY: Span = Span::secs(60);
/// The number of datagrams of a former life that may still be under way after a restart.
const STRAY: u64 = 3;

/// Datagrams that arrived and were dropped, and their usual cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    count: u64,
    what: &'static str,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, what } = self;
        let datagrams = if *count == 1 { "datagram" } else { "datagrams" };
        write!(f, "{count} {datagrams} came {what}")
    }
}

/// The troubles that these counters show.
pub(super) fn troubles(counted: TrafficReport) -> Vec<Trouble> {
    let all = [
        (
            counted.wrong_key,
            1,
            "that did not open: another key file or --group?",
        ),
        (
            counted.unsealed,
            1,
            "unsealed: does another node run with --plain?",
        ),
        (
            counted.sealed,
            1,
            "sealed, and this node runs with --plain: give it the --key of the others",
        ),
        (
            counted.old_epoch,
            STRAY,
            "from an earlier start of a node: do two processes have one id, or was a clock set back?",
        ),
        (
            counted.wrong_sender,
            1,
            "sealed by one node in the name of another: which node does that?",
        ),
        (
            counted.wrong_version,
            1,
            "in another version: upgrade the older nodes",
        ),
        (
            counted.oversize,
            1,
            "that were too long: share one frame_budget in the mesh",
        ),
        (
            counted.wrong_kind + counted.malformed,
            1,
            "that were not frames of this mesh: what else sends to this port?",
        ),
    ];
    let troubles = all.into_iter().filter(|&(count, least, _)| count >= least);
    troubles
        .map(|(count, _, what)| Trouble { count, what })
        .collect()
}

/// A periodic check of the counters that reports each new trouble, at most once in [`EVERY`].
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The counters when the present interval began.
    before: TrafficReport,
    began: Time,
    reported: Option<Time>,
}

impl Watch {
    /// The troubles to report now.
    pub(super) fn look(&mut self, counted: TrafficReport, now: Time) -> Vec<Trouble> {
        if self.reported.is_some_and(|at| now.since(at) < EVERY) {
            return Vec::new();
        }
        let troubles = troubles(counted.since(self.before));
        if !troubles.is_empty() {
            self.reported = Some(now);
        }
        // Three strays within a minute are a trouble, three within a month are not.
        if !troubles.is_empty() || now.since(self.began) >= EVERY {
            (self.before, self.began) = (counted, now);
        }
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(troubles: &[Trouble]) -> Vec<String> {
        troubles.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_trouble_is_said_with_its_number_and_again_only_after_a_while() {
        let at = |seconds| Time::ZERO + Span::secs(seconds);
        let mut watch = Watch::default();
        let mut counted = TrafficReport::default();
        (counted.received, counted.old_epoch) = (1_000, 2);
        assert_eq!(watch.look(counted, at(1)), []);
        (counted.wrong_key, counted.unsealed) = (3, 1);
        let now = reported(&watch.look(counted, at(6)));
        assert_eq!(
            now,
            [
                "3 datagrams came that did not open: another key file or --group?",
                "1 datagram came unsealed: does another node run with --plain?"
            ]
        );
        counted.wrong_key = 7;
        assert_eq!(watch.look(counted, at(65)), []);
        let later = reported(&watch.look(counted, at(66)));
        assert_eq!(later.len(), 1);
        assert!(later[0].starts_with("4 datagrams came that did not open"));
        assert_eq!(watch.look(counted, at(200)), []);
        counted.old_epoch = 5;
        assert!(reported(&watch.look(counted, at(201)))[0].contains("two processes have one id"));
    }

    #[test]
    fn strays_that_come_one_an_hour_are_no_trouble() {
        let at = |seconds| Time::ZERO + Span::secs(seconds);
        let mut watch = Watch::default();
        let mut counted = TrafficReport::default();
        for second in 0..12 * 3_600 {
            counted.old_epoch += u64::from(second % 3_600 == 0);
            assert_eq!(watch.look(counted, at(second)), [], "at {second} s");
        }
        counted.old_epoch += STRAY;
        assert_eq!(watch.look(counted, at(12 * 3_600)).len(), 1);
    }
}

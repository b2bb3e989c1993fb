//! A file of the membership changes that services learned.

mod error;
mod read;
mod write;

use selvedge_core::{Delta, Member, NodeId, Time};

pub use error::MembershipTraceError;

/// The first line of a file in the format that this version writes and reads.
const HEADER: &str = "selvedge-membership-trace 1";

type Kind = fn(Member) -> Delta;

/// The kinds of [`Delta`], as they are spelt in a file.
const KINDS: [(&str, Kind); 6] = [
    ("joined", Delta::Joined),
    ("suspected", Delta::Suspected),
    ("refuted", Delta::Refuted),
    ("failed", Delta::Failed),
    ("left", Delta::Left),
    ("confirmed", Delta::Confirmed),
];

/// A membership change that an observer learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MembershipEntry {
    /// The time, in µs since the run began.
    pub at: Time,
    /// The node that learned it.
    pub observer: NodeId,
    /// The change.
    pub delta: Delta,
}

/// The membership changes that each observer learned about other nodes, in order of time.
///
/// Recorded by a network that runs a membership protocol
/// ([`Network::record_membership`](super::Network::record_membership)), it drives other protocols
/// without one ([`Network::replay`](super::Network::replay)).
///
/// # Format
///
/// Text in ASCII. The first line is `selvedge-membership-trace 1`, where 1 is the version. Every
/// other line is one entry, of five fields with one space between:
///
/// ```text
/// <time in µs> <observer> <what> <member> <incarnation>
/// ```
///
/// `<what>` is `joined`, `suspected`, `refuted`, `failed`, `left` or `confirmed`. Numbers are
/// decimal, without sign and without leading zeros: time, observer and member below 2^64,
/// incarnation below 2^32. Times never decrease. Every line ends with a line feed, the last one
/// too, and has at most 128 bytes before it. So a trace has exactly one form.
///
/// ```
/// use selvedge_core::{Delta, Member, NodeId, Time};
/// use selvedge_sim::network::MembershipTrace;
///
/// let text = "selvedge-membership-trace 1\n1500 3 joined 7 0\n";
/// let trace = MembershipTrace::read(text.as_bytes())?;
/// assert_eq!(trace.entries()[0].delta, Delta::Joined(Member::new(7, 0)));
/// let mut written = Vec::new();
/// trace.write(&mut written)?;
/// assert_eq!(written, text.as_bytes());
///
/// let error = MembershipTrace::read("selvedge-membership-trace 1\n1500 3 lost 7 0\n".as_bytes());
/// assert_eq!(
///     error.unwrap_err().to_string(),
///     "line 2: the change is `lost`; expected joined, suspected, refuted, failed, left or confirmed"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MembershipTrace {
    entries: Vec<MembershipEntry>,
}

impl MembershipTrace {
    /// The entries in order of time.
    #[must_use]
    pub fn entries(&self) -> &[MembershipEntry] {
        &self.entries
    }

    /// Appends an entry. A time before the last entry's counts as the last entry's, so that times
    /// never decrease.
    pub fn push(&mut self, at: Time, observer: NodeId, delta: Delta) {
        let last = self.entries.last().map_or(Time::ZERO, |entry| entry.at);
        self.entries.push(MembershipEntry {
            at: at.max(last),
            observer,
            delta,
        });
    }
}

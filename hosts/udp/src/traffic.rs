//! Counters of a host.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one host, shared between its task and its readers.
        #[derive(Debug, Default)]
        pub struct Traffic {
            $($(#[$doc])* pub $name: Counter,)*
            /// The longest datagram sent, in bytes.
            pub longest: Counter,
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct TrafficReport {
            $($(#[$doc])* pub $name: u64,)*
            /// The longest datagram sent, in bytes.
            pub longest: u64,
        }

        impl Traffic {
            /// Reads all counters.
            #[must_use]
            pub fn report(&self) -> TrafficReport {
                TrafficReport {
                    $($name: self.$name.get(),)*
                    longest: self.longest.get(),
                }
            }
        }

        impl TrafficReport {
            /// The counts since `earlier`; the longest datagram of all.
            #[must_use]
            pub const fn since(self, earlier: Self) -> Self {
                Self {
                    $($name: self.$name.saturating_sub(earlier.$name),)*
                    longest: self.longest,
                }
            }
        }

        impl core::ops::Add for TrafficReport {
            type Output = Self;
            /// The sum of both.
            fn add(self, other: Self) -> Self {
                Self {
                    $($name: self.$name.saturating_add(other.$name),)*
                    longest: self.longest.max(other.longest),
                }
            }
        }
    };
}

counters! {
    /// Datagrams handed to the transport.
    sent,
    /// Their bytes, without the UDP and IP headers.
    sent_bytes,
    /// Datagrams that arrived.
    received,
    /// Their bytes.
    received_bytes,
    /// Datagrams dropped: not sealed, where they must be.
    unsealed,
    /// Datagrams dropped: sealed, where they are sent in the clear.
    sealed,
    /// Datagrams dropped: no key of this node opens them.
    wrong_key,
    /// Datagrams dropped: sealed by another node than their named sender, or with an address of
    /// this node as their source.
    wrong_sender,
    /// Datagrams dropped: their sender has restarted since.
    old_epoch,
    /// Datagrams dropped: repeated, or so late that a repetition cannot be detected.
    replayed,
    /// Datagrams dropped: their sender sends more than it may.
    above_rate,
    /// Datagrams dropped: longer than the frame budget.
    oversize,
    /// Datagrams dropped: another version of the frame format.
    wrong_version,
    /// Datagrams dropped: another protocol.
    wrong_kind,
    /// Datagrams dropped: no frame.
    malformed,
    /// Messages that the machine refused because their sender misbehaves.
    refused,
    /// Messages that came before the node was in, or after it left.
    untimely,
    /// Messages not sent: the receiver's address is not known.
    unknown_destination,
    /// Probes of a seed not sent: it is a member by now, and as such on the list.
    spared,
    /// Names of seeds that were looked up again, because they do not answer.
    lookups,
    /// Messages not sent: longer than the frame budget, which is the machine's defect.
    too_long,
    /// Sends and receives that the operating system refused.
    network_errors,
    /// Notices sent: to a refused process whose node has restarted since.
    notices,
    /// Signs of another process with this node's id: notices, and later lives that another node
    /// knew.
    twins,
    /// Ticks that the machine refused, which is its defect.
    refused_ticks,
}

/// A number that only grows. One task writes it, anyone may read it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn raise_to(&self, count: u64) {
        self.0.fetch_max(count, Ordering::Relaxed);
    }

    /// Reads it.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl TrafficReport {
    /// The number of datagrams and messages dropped because of a fault of their sender. Losses,
    /// cuts and members with an unknown address are not included, nor are repeated and late
    /// datagrams, because a network may cause them by itself.
    #[must_use]
    pub fn faulty(&self) -> u64 {
        self.faults().iter().map(|(_, count)| count).sum()
    }

    /// The parts of [`faulty`](Self::faulty), each with its name.
    #[must_use]
    pub const fn faults(&self) -> [(&'static str, u64); 11] {
        [
            ("unsealed", self.unsealed),
            ("sealed", self.sealed),
            ("wrong_key", self.wrong_key),
            ("wrong_sender", self.wrong_sender),
            ("oversize", self.oversize),
            ("wrong_version", self.wrong_version),
            ("wrong_kind", self.wrong_kind),
            ("malformed", self.malformed),
            ("refused", self.refused),
            ("too_long", self.too_long),
            ("refused_ticks", self.refused_ticks),
        ]
    }
}

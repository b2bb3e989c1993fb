//! Counters that one task writes and all handles read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows. One task writes it, all threads may read it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to it.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Raises it to this number, if it is lower.
    pub fn raise_to(&self, count: u64) {
        self.0.fetch_max(count, Ordering::Relaxed);
    }

    /// Reads it.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Defines the counters of a host, and their values at one moment: those of all hosts of datagrams,
/// and its own.
#[doc(hidden)]
#[macro_export]
macro_rules! counters {
    ($vis:vis $counters:ident, $report:ident: $($own:tt)*) => {
        $crate::counters! { @all $vis $counters, $report:
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
            /// Datagrams dropped: sealed by another node than their named sender, or in the name or
            /// with an address of this node.
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
            /// Messages not sent: the receiver's address is not known.
            unknown_destination,
            /// Messages not sent: longer than the frame budget, which is a defect of the machine or
            /// of the settings.
            too_long,
            /// Sends and receives that the operating system refused.
            network_errors,
            /// Ticks that the machine refused, which is its defect.
            refused_ticks,
            $($own)*
        }
    };
    (@all $vis:vis $counters:ident, $report:ident: $($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one host, shared between its task and its readers.
        #[derive(Debug, Default)]
        $vis struct $counters {
            $($(#[$doc])* pub $name: $crate::parts::Counter,)*
            /// The longest datagram sent, in bytes.
            pub longest: $crate::parts::Counter,
        }

        /// The counters at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $report {
            $($(#[$doc])* pub $name: u64,)*
            /// The longest datagram sent, in bytes.
            pub longest: u64,
        }

        impl $counters {
            /// Reads all counters.
            #[must_use]
            $vis fn report(&self) -> $report {
                $report {
                    $($name: self.$name.get(),)*
                    longest: self.longest.get(),
                }
            }

            pub(crate) fn count_received(&self, len: usize) {
                self.received.add(1);
                self.received_bytes.add(len as u64);
            }

            pub(crate) fn count_sent(&self, len: usize) {
                self.sent.add(1);
                self.sent_bytes.add(len as u64);
                self.longest.raise_to(len as u64);
            }

            /// Counts a datagram that was not opened.
            pub(crate) fn count_unopened(&self, unopened: selvedge_seal::Unopened) {
                use selvedge_seal::Unopened;
                let counter = match unopened {
                    Unopened::NotSealed => &self.unsealed,
                    Unopened::WrongKey => &self.wrong_key,
                    Unopened::OldEpoch(_) => &self.old_epoch,
                    Unopened::Replayed(_) | Unopened::TooLate(_) => &self.replayed,
                    Unopened::TooMany(_) => &self.above_rate,
                };
                counter.add(1);
            }

            /// Counts a datagram that is no frame for this host.
            pub(crate) fn count_no_frame(&self, error: selvedge::FrameError) {
                use selvedge::FrameError;
                let counter = match error {
                    FrameError::Oversize { .. } => &self.oversize,
                    FrameError::Sealed => &self.sealed,
                    FrameError::Version { .. } => &self.wrong_version,
                    FrameError::Kind { .. } => &self.wrong_kind,
                    FrameError::Malformed => &self.malformed,
                };
                counter.add(1);
            }
        }

        impl $report {
            /// The counts since `earlier`; the longest datagram of all.
            #[must_use]
            pub const fn since(self, earlier: Self) -> Self {
                Self {
                    $($name: self.$name.saturating_sub(earlier.$name),)*
                    longest: self.longest,
                }
            }
        }

        impl core::ops::Add for $report {
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

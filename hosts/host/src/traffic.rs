//! The counters of a host.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters of a host at one moment.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Traffic {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// The counters themselves. One task writes them, every handle reads them.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Traffic {
                Traffic { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Datagrams handed to the system.
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
    /// Datagrams dropped: no key of this host opens them.
    wrong_key,
    /// Datagrams dropped: they name this node as their sender, or were sealed by another node than
    /// the one that they name.
    wrong_sender,
    /// Datagrams dropped: their sender is no peer, has another address than the one listed, or
    /// would exceed the limit of learned addresses.
    unknown_sender,
    /// Datagrams dropped: their sender has started again since.
    old_epoch,
    /// Datagrams dropped: they arrived twice, or too late to know whether they did.
    replayed,
    /// Datagrams dropped: their sender exceeds its rate limit.
    above_rate,
    /// Datagrams dropped: longer than the frame budget.
    oversize,
    /// Datagrams dropped: another version of the frame format.
    wrong_version,
    /// Datagrams dropped: another protocol.
    wrong_kind,
    /// Datagrams dropped: no frame.
    malformed,
    /// Messages that the machine refused.
    refused,
    /// Messages not sent: the receiver's address is not known.
    unknown_destination,
    /// Messages not sent: longer than the frame budget, which is a defect of the machine or of the
    /// settings.
    too_long,
    /// Sends and receives that the system refused.
    network_errors,
    /// Ticks that the machine refused, which is its defect.
    refused_ticks,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn raise_to(&self, count: u64) {
        self.0.fetch_max(count, Ordering::Relaxed);
    }
}

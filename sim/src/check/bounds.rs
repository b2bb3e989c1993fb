//! Limits on faults in a check.

use core::fmt;

/// Limits on faults and other events, in all nodes together. In a model these are the bounds of the
/// check; in a [`State`](super::State) they are the events that remain.
///
/// The default is a network without faults in which timers tick at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Bounds {
    /// Messages that are lost.
    pub drops: u32,
    /// Messages that arrive once more than they were sent.
    pub duplicates: u32,
    /// Nodes that crash.
    pub crashes: u32,
    /// Crashed nodes that come back. Needs [`Model::restart`](super::Model::restart).
    pub restarts: u32,
    /// Membership deltas that are delivered, out of the model's lists; `None` for all.
    pub deltas: Option<u32>,
    /// Timers that fire; `None` for any number.
    pub ticks: Option<u32>,
    /// Timers that fire while a message is on its way; `None` for any number.
    ///
    /// `Some(0)` means that timeouts are longer than any delivery takes. That keeps the states of a
    /// protocol that retransmits finite. It is an assumption about the environment: a property that
    /// holds under it alone may break on a slow network.
    pub early_ticks: Option<u32>,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("drops", self.drops),
            ("duplicates", self.duplicates),
            ("crashes", self.crashes),
            ("restarts", self.restarts),
        ];
        let mut faultless = true;
        for (name, count) in counts.into_iter().filter(|&(_, count)| count > 0) {
            write!(f, "{}{name} {count}", if faultless { "" } else { ", " })?;
            faultless = false;
        }
        if faultless {
            f.write_str("no faults")?;
        }
        for (name, count) in [
            ("deltas", self.deltas),
            ("ticks", self.ticks),
            ("early ticks", self.early_ticks),
        ] {
            if let Some(count) = count {
                write!(f, ", {name} {count}")?;
            }
        }
        Ok(())
    }
}

/// Limits on the resources of a run.
///
/// A run that meets a limit proves nothing, and reports this: see
/// [`Incomplete`](super::Incomplete).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Unique states; each takes about 60 bytes, and 8 more for every transition when progress is
    /// checked. States that wait for their turn are held whole, which may be much more: a search
    /// without end takes gigabytes before it meets the default.
    pub states: usize,
    /// Sequences of choices that one step may have.
    pub choices: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            states: 30_000_000,
            choices: 100_000,
        }
    }
}

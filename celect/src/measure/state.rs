//! The state of the measurement of c.

use alloc::vec::Vec;

use selvedge_core::{BoundedQueue, Member, NodeId, Pending, Ratio};

use crate::estimate::Tally;
use crate::{Ballot, Config, Source};

/// The measurement of c. All parts are empty if estimation is off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Measured {
    pub(super) known: Option<Known>,
    /// The latest bounds; the largest is used.
    pub(super) recent: BoundedQueue<u16>,
    /// The ballot and the number of the latest estimate.
    pub(super) notified: Option<(Ballot, u32)>,
    /// Initiators' reports to us.
    pub(super) reports: Vec<Report>,
    /// The last ballot whose report went into an estimate.
    pub(super) reported: Option<Ballot>,
    pub(super) sample: Option<Sample>,
    /// The number of the latest sample.
    pub(super) samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Known {
    pub(super) c: u16,
    pub(super) miss: Option<Ratio>,
    pub(super) source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Report {
    pub(super) ballot: Ballot,
    pub(super) answers: u16,
    pub(super) missing: u16,
}

impl Measured {
    pub(crate) fn new(config: &Config) -> Self {
        let window = config.estimation.map_or(0, |it| it.window);
        Self {
            known: None,
            recent: BoundedQueue::new(window.into()),
            notified: None,
            reports: Vec::new(),
            reported: None,
            sample: None,
            samples: 0,
        }
    }
}

/// A leader's bound on c.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) source: Source,
    pub(super) upper_bound: u16,
    pub(super) miss: Ratio,
}

/// A sample of lists in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sample {
    pub(super) run: u32,
    /// Nodes to ask when one of the nodes that are asked has answered.
    pub(super) waiting: Vec<Member>,
    /// True if the nodes that were not known are asked by now.
    pub(super) strangers: bool,
    pub(super) asked: Vec<Asked>,
    pub(super) tally: Tally,
}

/// A node with a list under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) member: Member,
    /// The id with which the part begins that is asked for.
    pub(super) part: Pending<NodeId>,
    pub(super) list: Vec<Member>,
    /// True if a part arrived since the timer ticked.
    pub(super) received: bool,
}

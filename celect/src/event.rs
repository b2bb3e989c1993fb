//! Commands, events, timers and errors.

use selvedge_core::roster::OwnEnd;
use selvedge_core::{Member, NodeId, Ratio};
use thiserror::Error;

#[cfg(feature = "estimate")]
use crate::estimate::{Estimate, TooFew};
use crate::{Ballot, ConfigError};

/// A command of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Runs an election. [`Event::Elected`] follows, on all nodes.
    Elect,
    /// Asks for lists to measure c, whether or not this node leads. `Event::Measured` or
    /// `Event::Unmeasured` follows; a node that leads sends the result to all nodes. Refused without
    /// the feature `estimate`.
    Measure,
    /// Replaces [`Config::missing_from`](crate::Config::missing_from) and
    /// [`Config::failures`](crate::Config::failures) at once: a run that waits for answers ends by them, and [`Event::Concluded`] has the numbers that it used. A
    /// [lease](crate::Config::lease) uses them from its next renewal or acknowledgement on. An
    /// estimate in force stays in force.
    SetBounds {
        /// The number of lists from which a live node may be missing.
        missing_from: u16,
        /// The number of nodes that may be dead.
        failures: u16,
    },
}

/// A notification for the application. Events of elections name a ballot, which fences the
/// application's writes as leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// This node runs an election, whose rounds have larger ballots than this.
    Electing(Ballot),
    /// This node gives way to the run of another initiator.
    Yielded {
        /// The ballot of this node's run.
        ballot: Ballot,
        /// The other run's ballot, which is larger.
        to: Ballot,
    },
    /// All known nodes, and the nodes that they know, are fewer than an election needs. Emitted
    /// at most once per run; the run goes on asking.
    Stalled {
        /// The ballot of this node's run.
        ballot: Ballot,
        /// The number of lists available, this node's included.
        known: u32,
        /// c + 1.
        needed: u32,
    },
    /// A node leads, perhaps this node itself, until a larger ballot arrives.
    Elected {
        /// The leader.
        leader: Member,
        /// The ballot by which it leads.
        ballot: Ballot,
    },
    /// This node no longer leads: a larger ballot appointed a leader.
    Deposed {
        /// The ballot under which this node led.
        ballot: Ballot,
        /// The ballot by which another node leads.
        by: Ballot,
    },
    /// The membership service reports that the leader failed, which may be wrong, or left; or a
    /// node that sent LEADER believes so.
    Lost {
        /// The leader.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// The leader that was [`Lost`](Self::Lost), or let its lease run [out](Self::LeaseExpired), still
    /// leads: it lives, or was renewed.
    Regained {
        /// The leader.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// The leader's lease ran out here: the leader may have failed.
    LeaseExpired {
        /// The leader.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// This node led, and fewer than c others (with c = 0: no other, although it knows some)
    /// acknowledged that for the length of a lease: work under this ballot must end now.
    Ended(Ballot),
    /// This node's election has ended: the node that it appointed leads.
    Concluded {
        /// The ballot by which that node leads.
        ballot: Ballot,
        /// The number of lists from which the lowest live node may have been missing. If it was
        /// missing from no more, the leader is that node.
        missing_from: u16,
        /// The probability that the real c is larger, where c was measured. `None` where c is
        /// [`Config::missing_from`](crate::Config::missing_from), where it was cut short by `Estimation::ceiling` or by
        /// the number of nodes, and where the estimate has been forgotten since.
        miss: Option<Ratio>,
    },
    /// The estimate from the lists that this node asked for.
    #[cfg(feature = "estimate")]
    Measured(Estimate),
    /// The reason why the lists that this node asked for give no estimate.
    #[cfg(feature = "estimate")]
    Unmeasured(NotMeasured),
    /// The bound that this node's elections use from now on. Not emitted when a measured c is cut
    /// short because fewer nodes are listed: [`Celect::bound`](crate::Celect::bound) has the
    /// value in use.
    BoundChanged {
        /// See [`Event::Concluded`].
        missing_from: u16,
        /// See [`Event::Concluded`].
        miss: Option<Ratio>,
    },
}

/// The reason why a sample gave no estimate.
#[cfg(feature = "estimate")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum NotMeasured {
    /// Too few nodes answered.
    #[error(transparent)]
    TooFew(#[from] TooFew),
    /// There are more nodes than may be remembered.
    #[error("lists name more than {limit} nodes: raise peer_limit to their number")]
    NoRoom {
        /// See [`Config::peer_limit`](crate::Config::peer_limit).
        limit: u32,
    },
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// Answers to this node's run are overdue, or the node that it appointed is.
    Answer,
    /// The leader that another initiator promised is overdue.
    Watch,
    /// The delay before a re-election has passed.
    Start,
    /// Acknowledgements of LEADER are overdue.
    Resend,
    /// This node leads, and its list has had no majority of the nodes that it knows for
    /// [`Config::patience`](crate::Config::patience).
    Majority,
    /// The time to renew this node's lease.
    Renew,
    /// The lease of the leader that this node follows ran out.
    Lease,
    /// This node leads, and a lease has passed since it sent a renewal with this number, modulo 4.
    Expiry(u8),
    /// Lists that this node asked for are overdue.
    Sample,
    /// The time for the leader to ask for lists again.
    Measure,
    /// The estimate of c is too old.
    Stale,
}

/// The reason why an input was refused. The state did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// This node already runs an election.
    #[error("this node runs an election already: wait for Elected")]
    AlreadyElecting,
    /// This node already asks for lists.
    #[error("this node asks for lists already: wait for Measured or Unmeasured")]
    AlreadyMeasuring,
    /// Estimation is not set.
    #[error("c is not measured here: set Config::estimation")]
    NoEstimation,
    /// This node knows no other node.
    #[error("this node knows no other to ask for a list: wait for others to join")]
    Alone,
    /// This node can ask no other node, and its own list is not enough.
    #[error(
        "{known} nodes are known, this node included, but an election needs {needed}: wait for \
         more to join, or correct c"
    )]
    TooFew {
        /// The number of known nodes, this node included.
        known: u32,
        /// c + 1.
        needed: u32,
    },
    /// The settings cannot work.
    #[error("the settings were refused: {0}")]
    Config(#[from] ConfigError),
    /// The membership service reports the end of this node's own life.
    #[error(transparent)]
    OwnEnd(#[from] OwnEnd),
    /// A peer sent a message that a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// A message that a correct peer never sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Misbehaviour {
    /// The peer has this node's id.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// The peer runs an election, or appoints, in another node's name.
    #[error("its ballot belongs to initiator {0}")]
    Initiator(Member),
    /// The peer names this node as leader under a ballot that did not appoint it.
    #[error("it names this node as leader under a ballot that this node never had")]
    NotAppointed,
    /// A part of a list is out of order, or claims a continuation but names no member.
    #[error("its list from {0:?} on is not sorted")]
    List(NodeId),
    /// The peer reports more answers without this node than answers.
    #[error("it reports {missing} of {answers} answers without this node, more than there are")]
    Feedback {
        /// The reported number of answers.
        answers: u16,
        /// The reported number of answers that lacked this node.
        missing: u16,
    },
    /// The peer announces c in place of the leader.
    #[error("it announces c under the ballot of leader {0}")]
    NotLeader(Member),
    /// The peer announces a miss that settings rule out.
    #[error("its miss is {0} in a million: at least 1 and at most 500,000 are possible")]
    Miss(u32),
}

//! What the application is told and may ask, and the errors.

use selvedge_core::roster::OwnEnd;
use selvedge_core::{Member, NodeId, Ratio};
use thiserror::Error;

#[cfg(feature = "estimate")]
use crate::estimate::{Estimate, TooFew};
use crate::{Ballot, ConfigError};

/// What the application may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Run an election. [`Event::Elected`] follows, on all nodes.
    Elect,
    /// Asks for lists to find out what c is, whether or not this node leads. `Event::Measured` or
    /// `Event::Unmeasured` follows; where this node leads all nodes are told. Refused without the
    /// feature `estimate`.
    Measure,
    /// Sets another [`Config::c`](crate::Config::c) and [`Config::f`](crate::Config::f), at once: a
    /// run that waits for answers ends by them, and [`Event::Concluded`] has the numbers that it used. A
    /// [lease](crate::Config::lease) is judged by them from its next renewal or acknowledgement on. An
    /// estimate that is known stays in force.
    Tolerate {
        /// From how many lists a live node may be missing.
        c: u16,
        /// How many nodes may be dead.
        f: u16,
    },
}

/// What the application is told. Events of elections name a ballot, which fences what is done on
/// its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// This node runs an election; its rounds have larger ballots than this.
    Electing(Ballot),
    /// This node gives way to the run of another initiator.
    Yielded {
        /// This node's.
        ballot: Ballot,
        /// The larger one.
        to: Ballot,
    },
    /// All known nodes, and the nodes that they know, are fewer than an election needs. Emitted
    /// once a run; the run goes on asking.
    TooFew {
        /// Of this node's run.
        ballot: Ballot,
        /// How many lists there are, this node's included.
        known: u32,
        /// c + 1.
        needed: u32,
    },
    /// A node leads, perhaps this node itself, until a larger ballot comes.
    Elected {
        /// The leader.
        leader: Member,
        /// By which ballot.
        ballot: Ballot,
    },
    /// This node led and does so no longer: a larger ballot appointed a leader.
    Deposed {
        /// The ballot under which this node led.
        ballot: Ballot,
        /// The ballot by which another leads.
        by: Ballot,
    },
    /// The membership service says that the leader failed, which may be wrong, or left; or the node
    /// that told this node of the leader believes so.
    Lost {
        /// The leader.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// The leader that was [`Lost`](Self::Lost), or let its lease run [out](Self::LeaseOver), still
    /// leads: it lives, or was renewed.
    Regained {
        /// The leader.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// The leader's lease ran out here: it may be gone.
    LeaseOver {
        /// The leader.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// This node led, and fewer than c others acknowledged that for as long as the lease is: what
    /// is done under this ballot must end now.
    Ended(Ballot),
    /// This node's election is over: the node that it appointed leads.
    Concluded {
        /// The ballot by which that node leads.
        ballot: Ballot,
        /// From how many lists the lowest live node may have been missing. The leader is the lowest
        /// live node, if that node was missing from no more.
        c: u16,
        /// How often the real c is larger, where c was measured. `None` where c is that of
        /// [`Config::c`](crate::Config::c), where it was cut short by
        /// `Estimation::ceiling` or by the number of nodes, and where
        /// what was known has been forgotten since.
        miss: Option<Ratio>,
    },
    /// This node asked for lists, and the lists say this.
    #[cfg(feature = "estimate")]
    Measured(Estimate),
    /// This node asked for lists, and the lists say nothing.
    #[cfg(feature = "estimate")]
    Unmeasured(NotMeasured),
    /// What this node's elections rest on from now on. Not told when what was measured is cut
    /// because fewer nodes are listed: [`Celect::tolerates`](crate::Celect::tolerates) says that.
    Tolerates {
        /// See [`Event::Concluded`].
        c: u16,
        /// See [`Event::Concluded`].
        miss: Option<Ratio>,
    },
}

/// Why a sample gave no estimate.
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
    /// The delay before a re-election is over.
    Start,
    /// Acknowledgements of LEADER are overdue.
    Resend,
    /// This node leads, and its list has had no majority of the nodes that it knows for a while.
    Majority,
    /// The time to renew this node's lease.
    Renew,
    /// The lease of the leader that this node follows ran out.
    Lease,
    /// This node leads, and a lease has passed since it sent a renewal whose number has this
    /// remainder.
    Expiry(u8),
    /// Lists that this node asked for are overdue.
    Sample,
    /// The time for the leader to ask for lists again.
    Measure,
    /// What is known of c is too old.
    Stale,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Reject {
    /// One run at a time.
    #[error("this node runs an election already: wait for Elected")]
    AlreadyElecting,
    /// One sample at a time.
    #[error("this node asks for lists already: wait for Measured or Unmeasured")]
    AlreadyMeasuring,
    /// Estimation is not set.
    #[error("c is not measured here: set Config::estimation")]
    NoEstimation,
    /// This node knows no other node.
    #[error("no node is known to ask for a list: wait for others to join")]
    Alone,
    /// This node can ask no other node, and its own list is not enough.
    #[error(
        "{known} nodes are known, this node included, but an election needs {needed}: wait for \
         more to join, or correct c"
    )]
    TooFew {
        /// How many nodes are known.
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
    /// A peer sent what a correct peer never sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// What a correct peer never sends.
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
    /// More answers lacked this node than there were.
    #[error("it reports {missing} of {answers} answers without this node, more than there are")]
    Feedback {
        /// As it says.
        answers: u16,
        /// As it says.
        missing: u16,
    },
    /// The peer announces c in place of the leader.
    #[error("it announces c under the ballot of leader {0}")]
    NotLeader(Member),
    /// No bound misses so often.
    #[error("its miss of {0} in a million is outside the range of settings")]
    Miss(u32),
}

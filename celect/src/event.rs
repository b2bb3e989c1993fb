//! What the application is told, what it may ask, and the errors.

use selvedge_core::{Delta, Member, NodeId, Ratio};
use thiserror::Error;

use crate::estimate::{Estimate, TooFew};
use crate::{Ballot, ConfigError};

/// What the application may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Run an election. [`Event::Elected`] follows, on all nodes.
    Elect,
    /// Asks for lists to find out what c is, whether or not this node leads. [`Event::Measured`]
    /// or [`Event::Unmeasured`] follows; where it leads all are told.
    Measure,
    /// Another [`Config::c`](crate::Config::c) and [`Config::f`](crate::Config::f), at once: a run
    /// that waits for answers ends by them, and [`Event::Concluded`] says what it rested on. An
    /// estimate that is known stays in force.
    Tolerate {
        /// From how many lists a live node may be missing.
        c: u16,
        /// How many may be dead.
        f: u16,
    },
}

/// What the application is told. Those of elections name a ballot, which fences what is done on its
/// account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This node runs an election; its rounds have larger ballots than this.
    Electing(Ballot),
    /// This node gives way to the run of another initiator.
    Yielded {
        /// Ours.
        ballot: Ballot,
        /// The larger one.
        to: Ballot,
    },
    /// All who are known, and those whom they know, are fewer than an election needs. Told once a
    /// run; it goes on asking.
    TooFew {
        /// Of our run.
        ballot: Ballot,
        /// How many lists there are, ours included.
        known: u32,
        /// c + 1.
        needed: u32,
    },
    /// This node leads, perhaps ourselves, until a larger ballot comes.
    Elected {
        /// Who.
        leader: Member,
        /// By which ballot.
        ballot: Ballot,
    },
    /// We led and do so no longer: a larger ballot appointed somebody.
    Deposed {
        /// Under which we led.
        ballot: Ballot,
        /// By which another one leads.
        by: Ballot,
    },
    /// The membership service says that the leader failed, which may be wrong, or left; or whoever
    /// told us of it believes so.
    Lost {
        /// Who.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// The leader that was [`Lost`](Self::Lost), or whose lease was [over](Self::LeaseOver), leads
    /// all the same: it lives, or was renewed.
    Regained {
        /// Who.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// The leader's lease ran out here: it may be gone.
    LeaseOver {
        /// Who.
        leader: Member,
        /// Its ballot.
        ballot: Ballot,
    },
    /// We led, and fewer than c others acknowledged that for as long as the lease is: what is done
    /// under this ballot must end now.
    Ended(Ballot),
    /// Our election is over: the one whom it appointed leads.
    Concluded {
        /// By which it leads.
        ballot: Ballot,
        /// From how many lists the lowest live node may have been missing: it is the one, if it was
        /// missing from no more.
        c: u16,
        /// How often the real c is larger, where c was measured. `None` where it is that of
        /// [`Config::c`](crate::Config::c), where it was cut short by
        /// [`Estimation::ceiling`](crate::Estimation::ceiling) or by the number of nodes, and where
        /// what was known has been forgotten since.
        miss: Option<Ratio>,
    },
    /// We asked for lists, and this is what they say.
    Measured(Estimate),
    /// We asked for lists, and they say nothing.
    Unmeasured(NotMeasured),
    /// What our elections rest on from now on. Not told when what was measured is cut because fewer
    /// nodes are listed: [`Celect::tolerates`](crate::Celect::tolerates) says that.
    Tolerates {
        /// See [`Event::Concluded`].
        c: u16,
        /// See [`Event::Concluded`].
        miss: Option<Ratio>,
    },
}

/// Why a sample gave no estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum NotMeasured {
    /// Too few answered.
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
    /// Answers to our run are overdue, or the one whom it appointed is.
    Answer,
    /// The leader that another initiator promised is overdue.
    Watch,
    /// The delay before a re-election is over.
    Start,
    /// Acknowledgements of LEADER are overdue.
    Tell,
    /// The time to renew our lease.
    Renew,
    /// The lease of the leader that we follow ran out.
    Lease,
    /// We lead, and a lease has passed since we sent a renewal, one of those whose number has this
    /// remainder.
    Expiry(u8),
    /// Lists that we asked for are overdue.
    Sample,
    /// The time for the leader to ask for lists again.
    Measure,
    /// What is known of c is too old.
    Stale,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Reject {
    /// One run at a time.
    #[error("this node runs an election already: wait for Elected")]
    AlreadyElecting,
    /// One sample at a time.
    #[error("this node asks for lists already: wait for Measured or Unmeasured")]
    AlreadyMeasuring,
    /// It was not set how.
    #[error("c is not measured here: set Config::estimation")]
    NoEstimation,
    /// Nobody is known.
    #[error("nobody is known who could be asked for a list: wait for others to join")]
    Alone,
    /// Nobody can be asked, and our own list is not enough.
    #[error(
        "{known} nodes are known, ourselves included, and an election needs {needed}: wait for \
         more to join, or correct c"
    )]
    TooFew {
        /// How many are.
        known: u32,
        /// c + 1.
        needed: u32,
    },
    /// The settings cannot work.
    #[error("the settings were not taken: {0}")]
    Config(#[from] ConfigError),
    /// The membership service speaks of this node itself as over.
    #[error("{0:?} is about this node itself: tell it only of others")]
    OwnMember(Delta),
    /// A peer sent what no sound peer sends; the host counts it.
    #[error("a peer misbehaves: {0}")]
    Misbehaviour(#[from] Misbehaviour),
}

/// What no sound peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Misbehaviour {
    /// It has our id.
    #[error("it uses the id of this node, {0}: give each node an id of its own")]
    OwnId(Member),
    /// It runs an election, or appoints, in somebody else's name.
    #[error("its ballot is that of {0}")]
    Initiator(Member),
    /// It says that we lead under a ballot by which we were not appointed.
    #[error("it says that this node leads, by a ballot that it does not know")]
    NotAppointed,
    /// A part of a list is out of order, or claims a continuation but names no member.
    #[error("its list from {0:?} on is not in order")]
    List(NodeId),
    /// More answers lacked us than there were.
    #[error("it had {answers} answers, of which {missing} lacked us")]
    Feedback {
        /// As it says.
        answers: u16,
        /// As it says.
        missing: u16,
    },
    /// It tells what c is in place of the leader.
    #[error("it tells what c is, by the ballot of {0}")]
    NotLeader(Member),
    /// No bound misses so often.
    #[error("its bound misses {0} in a million times: no settings give that")]
    Miss(u32),
}

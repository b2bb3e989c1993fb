//! What the application is told, what it may ask, and the errors.

use selvedge_core::{Delta, Member};
use thiserror::Error;

use crate::{Ballot, ConfigError};

/// What the application may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Run an election. [`Event::Elected`] follows, on all nodes.
    Elect,
    /// Another [`Config::c`](crate::Config::c) and [`Config::f`](crate::Config::f), from now on:
    /// an election that runs ends by them.
    Tolerate {
        /// From how many lists a live node may be missing.
        c: u16,
        /// How many may be dead.
        f: u16,
    },
}

/// What the application is told. Each names a ballot, which fences what is done on its account.
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
    /// The membership service says that the leader failed, which may be wrong, or left.
    Lost {
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
    /// The lease ran out.
    Lease,
}

/// Why an input was refused. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Reject {
    /// One run at a time.
    #[error("this node runs an election already: wait for Elected")]
    AlreadyElecting,
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
}

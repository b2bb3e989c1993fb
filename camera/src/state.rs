//! The state of one node in one section, and its accessors.

use selvedge_core::roster::Roster;
use selvedge_core::{BoundedMap, Full, Member, Untracked};

use crate::forest::Forest;
use crate::granted::Granted;
use crate::issued::Issued;
use crate::published::Rules;
use crate::token::Tokens;
use crate::waiting::Waiting;
use crate::{Config, ConfigError, Counters, Token};

/// One node's part in one critical section. See the [crate](crate) for its promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Camera {
    pub(crate) me: Member,
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) peers: Roster<Notified>,
    pub(crate) stage: Stage,
    pub(crate) issued: Issued,
    pub(crate) tokens: Tokens,
    pub(crate) granted: Granted,
    /// The members whose OK this node kept after its exit.
    pub(crate) kept: BoundedMap<Member, ()>,
    pub(crate) forest: Forest,
    pub(crate) counters: Untracked<Counters>,
}

/// The notifications to the application about a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Notified {
    /// True if this node entered past it, since it was last reported alive.
    pub(crate) passed: bool,
}

/// The state of this node's request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Idle,
    Waiting(Waiting),
    Inside(Inside),
}

/// The data of a node that is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inside {
    pub(crate) token: Token,
    /// The number of the request.
    pub(crate) number: u64,
    /// True if another node is known to have entered past this node.
    pub(crate) fenced: bool,
}

impl Camera {
    /// A node that knows no other yet; it learns of others by [`Delta`](selvedge_core::Delta)s.
    ///
    /// `me` must be a life that never took part before: the OKs of a former life are forgotten.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(me: Member, config: Config) -> Result<Self, ConfigError> {
        Self::under(me, config, Rules::default())
    }

    /// A node that follows these rules in place of this crate's own.
    ///
    /// # Errors
    /// The first setting that cannot work.
    #[cfg(feature = "check")]
    pub fn published(
        me: Member,
        config: Config,
        rules: &[crate::Published],
    ) -> Result<Self, ConfigError> {
        Self::under(me, config, Rules::published(rules))
    }

    /// The remains of a machine that has crashed: the member that it was.
    #[cfg(feature = "check")]
    pub(crate) fn remains(&self) -> Self {
        Self::unchecked(self.me, self.config, self.rules)
    }

    fn under(me: Member, config: Config, rules: Rules) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(me, config, rules))
    }

    /// A node with settings that are known to work.
    pub(crate) fn unchecked(me: Member, config: Config, rules: Rules) -> Self {
        let limit = config.peer_limit as usize;
        Self {
            me,
            config,
            rules,
            peers: Roster::shared(me, limit),
            stage: Stage::Idle,
            issued: Issued::default(),
            tokens: Tokens::default(),
            granted: Granted::new(limit),
            kept: BoundedMap::new(limit),
            forest: Forest::new(),
            counters: Untracked(Counters::default()),
        }
    }

    /// The member that this node is.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The token, while this node is inside.
    #[must_use]
    pub const fn token(&self) -> Option<Token> {
        match &self.stage {
            Stage::Inside(inside) => Some(inside.token),
            Stage::Idle | Stage::Waiting(_) => None,
        }
    }

    /// Returns true if this node waits to enter.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    /// The members whose OK this node still needs, in order. Empty when it does not wait.
    /// Membership may never have reported such a member to this node, or its report was forgotten
    /// ([`Config::peer_limit`]). So a host periodically, for example at each
    /// [`Timer::Resend`](crate::Timer::Resend) and [`Timer::Refresh`](crate::Timer::Refresh), looks
    /// up the state of these members, and of the members in [`granted`](Self::granted), in
    /// membership. If a member has ended, the host reports its end again,
    /// [`Delta::Left`](selvedge_core::Delta::Left) or
    /// [`Delta::Confirmed`](selvedge_core::Delta::Confirmed); if it failed,
    /// [`Delta::Failed`](selvedge_core::Delta::Failed). If membership lists it neither as live nor
    /// as ended, the host inquires about it. A delta may be reported more than once.
    pub fn waits_for(&self) -> impl Iterator<Item = Member> + '_ {
        let waiting = match &self.stage {
            Stage::Waiting(waiting) => Some(waiting),
            Stage::Idle | Stage::Inside(_) => None,
        };
        waiting
            .into_iter()
            .flat_map(Waiting::iter)
            .filter(|(_, asked)| asked.is_awaited())
            .map(|(member, _)| member)
    }

    /// The members whose requests have this node's OK and are not known to be over, in order.
    /// This node's OKs to others name these as rivals. A member that has ended, and whose RELEASE
    /// did not arrive, stays here until its end is reported: a host does as for
    /// [`waits_for`](Self::waits_for).
    pub fn granted(&self) -> impl Iterator<Item = Member> + '_ {
        self.granted.grants().iter().map(|(&member, _)| member)
    }

    /// Returns true from the beginning of a request until this node has reported that it is over.
    /// With [`Config::keep`] that is after the exit: until [`Command::GiveBack`](crate::Command::GiveBack),
    /// even when no permission is [kept](Self::kept) any more, because others asked. Until then the
    /// nodes that gave their OK may count this node as inside.
    #[must_use]
    pub const fn has_request(&self) -> bool {
        self.issued.is_open()
    }

    /// The members whose permission was kept ([`Config::keep`]), in order. While there is one,
    /// this node may enter with it, and counts on the lives that were present at the request.
    /// [`Command::GiveBack`](crate::Command::GiveBack) ends that.
    pub fn kept(&self) -> impl Iterator<Item = Member> + '_ {
        self.kept.iter().map(|(&member, ())| member)
    }

    /// The number of members on the list, without this node.
    #[must_use]
    pub const fn listed(&self) -> usize {
        self.peers.listed_len()
    }

    /// The counters since the beginning.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// The member that stands for this life: under some published rules, all lives of a node are one.
    pub(crate) fn life(&self, member: Member) -> Member {
        if self.rules.one_life() {
            return Member::new(member.id.0, 0);
        }
        member
    }

    /// Runs `what`, and counts a failure for lack of room. Returns true on success.
    pub(crate) fn note(&mut self, what: impl FnOnce(&mut Self) -> Result<(), Full>) -> bool {
        let done = what(self).is_ok();
        if !done {
            self.counters.0.no_room += 1;
        }
        done
    }
}

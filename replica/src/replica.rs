//! The state of a member, and its queries that need no step.

use core::mem;

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::{Context, Incarnation, Member, NodeId, Stamp, Untracked};

use crate::acceptor::Acceptor;
use crate::candidacy::{Candidacy, Claim};
use crate::configuration::{ConfigError, NUMBER_MAX};
use crate::counters::Counters;
use crate::lead::Leadership;
use crate::message::{Body, Message};
use crate::origin::{FOUNDING, Origin};
use crate::pages::{Fetching, Serving};
use crate::peers::Peers;
use crate::published::Rules;
use crate::work::Work;
use crate::{Ballot, Config, Configuration, Event, Fact, Reject, State, Stored, Timer, Version};

/// The leader that a member follows, or is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lead {
    pub(crate) ballot: Ballot,
    /// True if it has failed or left, as far as this member knows.
    pub(crate) is_lost: bool,
}

/// A request for a promise that was refused because the leader is present: it is answered if the
/// leader turns out to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Deferred {
    pub(crate) from: Member,
    pub(crate) ballot: Ballot,
    pub(crate) claim: Claim,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role<U> {
    Follower,
    Candidate(Candidacy<U>),
    Leader(Leadership<U>),
}

/// A member of a group that holds an `S`.
///
/// See the [crate page](crate) for its promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Replica<S: State> {
    pub(crate) config: Config,
    pub(crate) me: Member,
    pub(crate) acceptor: Acceptor<S>,
    pub(crate) role: Role<S::Update>,
    pub(crate) lead: Option<Lead>,
    pub(crate) deferred: Option<Deferred>,
    /// The highest number of a ballot that was seen in this configuration.
    pub(crate) seen: u64,
    pub(crate) peers: Peers,
    pub(crate) work: Work<S::Update>,
    pub(crate) fetching: Option<Fetching>,
    /// The states that are sent: the first to members that hold a state, the second to witnesses.
    pub(crate) serving: [Option<Serving>; 2],
    /// True if a quorum of the configuration is known to have installed the state.
    pub(crate) is_active: bool,
    /// The number of invitations that this member has sent for this configuration, while it sends
    /// them.
    pub(crate) invited: Option<u8>,
    /// The latest configuration that another node has named since the last tick here, or since this
    /// member has the present one; 0 without one.
    pub(crate) received: u64,
    /// True if the lease that this member acknowledged may still run.
    pub(crate) is_tied: bool,
    /// True if it was tied when its former life ended, and no input has come since.
    pub(crate) is_restored: bool,
    /// True while the timer runs after which this member stands.
    pub(crate) waits_to_stand: bool,
    /// The number of times that this member stood since a leader led, as far as it lengthens that
    /// timer. Nothing else depends on it, and a check lets a timer tick at any time.
    pub(crate) ballots: Untracked<u8>,
    /// True if the leader was asked if it is present.
    pub(crate) watches: bool,
    pub(crate) counters: Untracked<Counters>,
    pub(crate) rules: Rules,
    /// Bounds the states of a check: this member stands with no ballot above this number.
    #[cfg(feature = "check")]
    pub(crate) most_ballots: Option<u64>,
}

impl<S: State> Replica<S> {
    /// A member, in its first life, of a group that begins with `first` and this state; all members
    /// begin with equal ones. A node that `first` does not name in this life has no vote, and asks
    /// the group to be named.
    ///
    /// # Errors
    /// [`Reject::Config`] and [`Reject::Configuration`], if these cannot work.
    pub fn new(me: Member, config: Config, first: Configuration, state: S) -> Result<Self, Reject> {
        first.check()?;
        let origin = Origin::of(me);
        Self::begin(me, config, origin, first, Some(state)).map_err(Reject::Config)
    }

    /// A member of a group that begins with `first` and this state, in any life of the node:
    /// `first` names it in life 0. So nodes whose lives come from a clock can begin a group before
    /// they know each other's lives. All founders begin with equal configurations and states.
    ///
    /// The host ensures that no former life of this node was a member. A later life is
    /// [restored](Self::restore), or is a [newcomer](Self::newcomer), which the group names again;
    /// none of them is life 0.
    ///
    /// # Errors
    /// [`Reject::Config`] and [`Reject::Configuration`], if these cannot work, or `first` does not
    /// name this node in life 0.
    pub fn founder(
        me: Member,
        config: Config,
        first: Configuration,
        state: S,
    ) -> Result<Self, Reject> {
        first.check()?;
        let named = first.voter(me.id).map(|it| it.member.incarnation);
        if named != Some(FOUNDING) {
            return Err(ConfigError::NoFounder(me.id).into());
        }
        let origin = Origin::founder(me);
        Self::begin(me, config, origin, first, Some(state)).map_err(Reject::Config)
    }

    /// A member of a group that begins with `first` and this state, where `first` names each founder
    /// in a life that its decider knew. All founders begin with equal configurations and states. The
    /// node votes if it is named in a life from that of `since` to the present one: each of them
    /// had all memory that the lives before it stored, and there is none of this group, or only of
    /// configurations below `first`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn born(
        me: Member,
        config: Config,
        since: Member,
        first: Configuration,
        state: S,
    ) -> Result<Self, Reject> {
        first.check()?;
        let origin = Origin::behind(since, first.number.saturating_sub(1));
        Self::begin(me, config, origin, first, Some(state)).map_err(Reject::Config)
    }

    /// A node that knows of no configuration. It becomes a member when a configuration names it.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn newcomer(me: Member, config: Config) -> Result<Self, OutOfRange> {
        Self::begin(me, config, Origin::of(me), Configuration::none(), None)
    }

    /// A node that was a member, dropped its memory, and goes on in the same life. It keeps the
    /// [`mark`](Self::mark) that it had, and takes no configuration up to that number: it may have
    /// voted in them. Behind it, it becomes a member as a [newcomer](Self::newcomer) does. Its proposals
    /// are numbered from mark * 2^32 + 1, for the group remembers its former numbers.
    ///
    /// A node drops its memory when it is no member and gave the state up ([`Fact::Retired`]), or
    /// never had one. Before that the others may need its state. If the memory began in an
    /// earlier life ([`voter`](Self::voter)), the node begins again with
    /// [`newcomer_since`](Self::newcomer_since) that life: a configuration that it has not learned may
    /// name it in that life, and counts on its vote.
    ///
    /// # Errors
    /// A setting is out of its range, or the number is above [`Configuration::NUMBER_MAX`].
    pub fn newcomer_behind(me: Member, config: Config, mark: u64) -> Result<Self, OutOfRange> {
        Self::newcomer_since(me, config, me.incarnation, mark)
    }

    /// A [newcomer behind a mark](Self::newcomer_behind), 0 where it was never a member, that votes
    /// also where it is named in a former life, from `since` on. So a node whose storage is shared
    /// by many groups votes under a name that it got in one of them before it had anything to store
    /// there.
    ///
    /// Each life of the node from `since` to this one had all memory that the lives before it
    /// stored, and the storage has no memory of this group behind the mark.
    ///
    /// # Errors
    /// A setting is out of its range, or the number is above [`Configuration::NUMBER_MAX`].
    pub fn newcomer_since(
        me: Member,
        config: Config,
        since: Incarnation,
        mark: u64,
    ) -> Result<Self, OutOfRange> {
        settings::check(&[Setting::number("mark", mark, 0, NUMBER_MAX)])?;
        let began = Member {
            incarnation: since,
            ..me
        };
        let origin = Origin::behind(began, mark);
        Self::begin(me, config, origin, Configuration::none(), None)
    }

    /// A member in a later life `me`, with the memory that its former life stored. The facts that
    /// came after `stored` are [folded](selvedge_core::durable::Durable::fold) before its first
    /// input.
    ///
    /// Each life of the node since this memory began had it. Where a life began without it, as a
    /// newcomer or with the first configuration, the memory stored before has ended, and is never
    /// restored: it lacks the promises of that life.
    ///
    /// # Errors
    /// [`Reject::Config`]; [`Reject::Damaged`] and [`Reject::Configuration`] where `stored` was damaged,
    /// or is another node's.
    pub fn restore(me: Member, config: Config, stored: Stored<S>) -> Result<Self, Reject> {
        stored.check(me)?;
        let life = me.incarnation;
        let mut replica = Self::make(me, config, |window| Acceptor::restore(life, stored, window))
            .map_err(Reject::Config)?;
        replica.is_restored = true;
        Ok(replica)
    }

    /// A memory that begins now.
    fn begin(
        me: Member,
        config: Config,
        origin: Origin,
        configuration: Configuration,
        state: Option<S>,
    ) -> Result<Self, OutOfRange> {
        let life = me.incarnation;
        Self::make(me, config, |window| {
            Acceptor::new(origin, life, configuration, state, window)
        })
    }

    fn make(
        me: Member,
        config: Config,
        acceptor: impl FnOnce(usize) -> Acceptor<S>,
    ) -> Result<Self, OutOfRange> {
        config.check()?;
        let window = usize::try_from(config.window).unwrap_or(usize::MAX);
        let acceptor = acceptor(window);
        Ok(Self {
            config,
            me,
            work: Work::behind(acceptor.origin().mark),
            acceptor,
            role: Role::Follower,
            lead: None,
            deferred: None,
            seen: 0,
            peers: Peers::new(usize::try_from(config.peers).unwrap_or(usize::MAX)),
            fetching: None,
            serving: [None, None],
            is_active: false,
            invited: None,
            received: 0,
            is_tied: false,
            is_restored: false,
            waits_to_stand: false,
            ballots: Untracked(0),
            watches: false,
            counters: Untracked(Counters::default()),
            rules: Rules::default(),
            #[cfg(feature = "check")]
            most_ballots: None,
        })
    }

    /// The same member under rules that break a promise.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn published(mut self, rules: &[crate::Published]) -> Self {
        self.rules = Rules::published(rules);
        self
    }

    /// The same member, that stands with no ballot above this number.
    #[cfg(feature = "check")]
    #[must_use]
    pub(crate) const fn standing_up_to(mut self, most: Option<u64>) -> Self {
        self.most_ballots = most;
        self
    }

    /// Returns true if another configuration is in progress here: this member would propose it,
    /// accepted it, or is about to adopt it. For the model checks, which keep the assumptions of
    /// the promises.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn is_changing(&self) -> bool {
        let is_about_to = match &self.role {
            Role::Leader(lead) => lead.change.is_some(),
            Role::Candidate(it) => it
                .best
                .as_ref()
                .is_some_and(|it| it.tail.iter().any(crate::Entry::seals)),
            Role::Follower => false,
        };
        is_about_to || self.acceptor.is_sealed()
    }

    /// This node in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// This node in the life in which its memory began. It votes where a configuration names it in
    /// this life, or a later one up to the present one; a [founder](Self::founder) also where one
    /// names it in life 0.
    #[must_use]
    pub const fn voter(&self) -> Member {
        self.acceptor.voter()
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The committed state as of [`version`](Self::version), as far as this member knows. It may be
    /// behind; the answer of a [`Command::Read`](crate::Command::Read) shows when it is not. `None`
    /// at a witness, and at a node that is not a member.
    #[must_use]
    pub fn state(&self) -> Option<&S> {
        self.acceptor
            .state()
            .filter(|_| !self.acceptor.holds_in_vain())
    }

    /// The version of the state.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.acceptor.committed()
    }

    /// The latest configuration that this member knows.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        self.acceptor.configuration()
    }

    /// The highest number of a configuration in which this node may have voted: that of the
    /// configuration that it knows, or the mark that it was [given](Self::newcomer_behind). A host
    /// that drops the replica keeps it, if the node is to join the group again in the same life.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.configuration().number.max(self.acceptor.origin().mark)
    }

    /// Returns true if this member votes in the present configuration.
    #[must_use]
    pub fn votes(&self) -> bool {
        if self.rules.forgetful_votes() {
            return self.configuration().voter(self.me.id).is_some();
        }
        self.acceptor.votes()
    }

    /// Returns true if membership last reported that the node failed or left.
    #[must_use]
    pub fn has_ended(&self, id: NodeId) -> bool {
        self.peers.has_ended(id)
    }

    /// Returns true if the members for which `is_here` is true could decide without the others.
    /// O(n) for n members.
    #[must_use]
    pub fn could_decide(&self, is_here: impl Fn(NodeId) -> bool) -> bool {
        self.acceptor.group().is_quorum(is_here)
    }

    /// Returns true if this node has no part in the group any more: the latest configuration that
    /// it knows does not name it, it has given the state up, and no node waits for it to announce
    /// the next members.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let configuration = self.configuration();
        !configuration.voters.is_empty()
            && configuration.voter(self.me.id).is_none()
            && self.acceptor.state().is_none()
            && (self.is_active || self.invited.is_none())
            && self.fetching.is_none()
            && self.work.is_empty()
    }

    /// The leader that this member follows, or is, with its ballot. `None` while it knows of none,
    /// and when that leader has failed or left.
    #[must_use]
    pub fn leader(&self) -> Option<(NodeId, Ballot)> {
        let lead = self.lead.filter(|it| !it.is_lost)?;
        Some((lead.ballot.by, lead.ballot))
    }

    /// Returns true if this member leads, as far as it knows.
    #[must_use]
    pub const fn leads(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    /// Returns true if this member stands for leader, or stands after a while if no leader is known
    /// by then. It needs no [`Command::Campaign`](crate::Command::Campaign).
    #[must_use]
    pub const fn seeks_leader(&self) -> bool {
        self.waits_to_stand || matches!(self.role, Role::Candidate(_))
    }

    /// Returns true while a state arrives from another member, in pages: until it is whole, or that member has
    /// not answered [`Config::attempts`](crate::Config::attempts) questions. A member that lies can keep it so.
    #[must_use]
    pub const fn is_fetching(&self) -> bool {
        self.fetching.is_some()
    }

    /// The number that this member's next proposal has, in this life.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.work.next_number()
    }

    /// The number of own proposals and reads that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.work.proposals.len() + self.work.reads.len()
    }

    /// The number of own proposals that wait.
    #[must_use]
    pub fn waiting_proposals(&self) -> usize {
        self.work.proposals.len()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// The memory that must survive a crash, as of now: a host stores it in place of all earlier
    /// facts.
    #[must_use]
    pub fn stored(&self) -> Stored<S> {
        self.acceptor.stored()
    }

    /// Sends to a member in its latest life.
    pub(crate) fn send(&self, to: Member, body: Body<S::Update>, cx: &mut Context<'_, Self>) {
        let to = self.peers.latest(to);
        let configuration = self.configuration().number;
        cx.send(
            to,
            Message {
                configuration,
                body,
            },
        );
    }

    /// Sends to the member with this id.
    pub(crate) fn send_to(&self, to: NodeId, body: Body<S::Update>, cx: &mut Context<'_, Self>) {
        if let Some(voter) = self.configuration().voter(to) {
            self.send(voter.member, body, cx);
        }
    }

    /// Sends to all other members that are not known to have failed or left.
    pub(crate) fn send_to_all(&self, body: &Body<S::Update>, cx: &mut Context<'_, Self>) {
        for voter in self.configuration().members() {
            let to = voter.member;
            if to.id != self.me.id && !self.peers.has_ended(to.id) {
                self.send(to, body.clone(), cx);
            }
        }
    }

    pub(crate) fn emit_fact(fact: Fact<S>, cx: &mut Context<'_, Self>) {
        cx.event(Event::Fact(fact));
    }

    /// Returns true if a leader is present, as far as this member knows.
    pub(crate) fn has_leader(&self) -> bool {
        self.lead.is_some_and(|it| !it.is_lost)
    }

    /// Returns true if this member may lead.
    pub(crate) fn can_lead(&self) -> bool {
        self.votes() && self.state().is_some()
    }

    /// This member's place among the present members that may lead: 0 stands first.
    pub(crate) fn rank(&self) -> u64 {
        let here = self.configuration().members().filter(|it| {
            let id = it.member.id;
            !it.is_witness && (id == self.me.id || !self.peers.has_ended(id))
        });
        let before = here.take_while(|it| it.member.id != self.me.id);
        before.count() as u64
    }

    /// Another member that may lead: the most preferred at first, and then each in turn.
    pub(crate) fn preferred(&self) -> Option<NodeId> {
        let others = || {
            let others = self.configuration().members().filter(|it| !it.is_witness);
            let others = others.map(|it| it.member.id).filter(|&id| id != self.me.id);
            others.filter(|&id| !self.peers.has_ended(id))
        };
        let nth = usize::from(self.work.turn).checked_rem(others().count())?;
        others().nth(nth)
    }

    /// This member's claim: its accepted ballot and last version.
    pub(crate) fn claim(&self) -> Claim {
        Claim {
            accepted: self.acceptor.accepted(),
            end: self.acceptor.end(),
        }
    }

    /// A ballot above all that were seen.
    pub(crate) fn next_ballot(&self) -> Ballot {
        let number = self.seen.max(self.acceptor.promised().number);
        Stamp { number, by: () }.next(self.me.id)
    }

    /// Ends this member's candidacy or lead.
    pub(crate) fn step_down(&mut self, cx: &mut Context<'_, Self>) {
        match mem::replace(&mut self.role, Role::Follower) {
            Role::Follower => {}
            Role::Candidate(_) => cx.disarm(Timer::Campaign),
            Role::Leader(leadership) => {
                for timer in [Timer::Resend, Timer::Commit, Timer::Lease] {
                    cx.disarm(timer);
                }
                if self.lead.is_some_and(|it| it.ballot == leadership.ballot) {
                    self.lead = None;
                }
                cx.event(Event::Deposed(leadership.ballot));
            }
        }
    }
}

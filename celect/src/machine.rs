//! The state, and the dispatch of each input.

use selvedge_core::{Context, Input, Machine, Member, Ratio, Span, Untracked};

use crate::config::{MILLION, is_miss};
use crate::lease::Lease;
use crate::message::Message;
use crate::peers::Peers;
use crate::published::Rules;
use crate::run::Run;
use crate::sampling::is_in_order;
use crate::tell::Telling;
use crate::tolerance::{Bound, Tolerance};
use crate::{
    Attribute, Ballot, Command, Config, ConfigError, Counters, Event, Lowest, Misbehaviour, Reject,
    Timer,
};

/// One node: it answers initiators, is an initiator, follows a leader, or leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Celect<A = Lowest> {
    pub(crate) me: Member,
    pub(crate) config: Config,
    pub(crate) attribute: A,
    pub(crate) rules: Rules,
    pub(crate) peers: Peers,
    /// The highest epoch that was heard of.
    pub(crate) epoch: u64,
    pub(crate) leader: Option<Leadership>,
    /// This node's election.
    pub(crate) run: Option<Run>,
    /// The largest ballot of others that we gave way to or answered, while its leader is not heard
    /// of.
    pub(crate) awaited: Option<Ballot>,
    pub(crate) telling: Option<Telling>,
    /// Our own lease, while we lead with one.
    pub(crate) lease: Option<Lease>,
    /// What is known of c.
    pub(crate) tolerance: Tolerance,
    pub(crate) counters: Untracked<Counters>,
}

/// The leader, as this node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Leadership {
    pub(crate) member: Member,
    pub(crate) ballot: Ballot,
    pub(crate) renewal: u32,
    /// The leader's own lease, whatever ours would be. Zero for ever.
    pub(crate) lease: Span,
    /// The leader failed, left, or let its lease run out, as far as we know.
    pub(crate) lost: bool,
}

impl<A: Attribute> Celect<A> {
    /// A node that knows no other node yet; the host tells it [`Delta`](selvedge_core::Delta)s.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(me: Member, config: Config, attribute: A) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(me, config, attribute, Rules::default()))
    }

    /// A node that follows `rules` where they differ from this crate's.
    ///
    /// # Errors
    /// The first setting that cannot work.
    #[cfg(feature = "check")]
    pub fn published(
        me: Member,
        config: Config,
        attribute: A,
        rules: &[crate::Published],
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(
            me,
            config,
            attribute,
            Rules::published(rules),
        ))
    }

    /// With settings that are known to work.
    pub(crate) fn unchecked(me: Member, config: Config, attribute: A, rules: Rules) -> Self {
        Self {
            me,
            config,
            attribute,
            rules,
            peers: Peers::new(config.peer_limit as usize, me),
            epoch: 0,
            leader: None,
            run: None,
            awaited: None,
            telling: None,
            lease: None,
            tolerance: Tolerance::new(config.estimation),
            counters: Untracked::default(),
        }
    }

    /// Follows a node that no initiator appointed: the state that a check begins with.
    #[cfg(feature = "check")]
    pub(crate) fn follow(&mut self, member: Member) {
        let ballot = Ballot {
            epoch: 0,
            initiator: member,
            step: 0,
        };
        self.leader = Some(Leadership {
            member,
            ballot,
            renewal: 0,
            lease: self.config.lease.unwrap_or_default(),
            lost: false,
        });
    }

    /// What matters of a machine that has crashed: which node it was.
    #[cfg(feature = "check")]
    pub(crate) fn corpse(&self) -> Self {
        let mut corpse = self.clone();
        corpse.peers.clear();
        corpse.epoch = 0;
        corpse.leader = None;
        corpse.run = None;
        corpse.awaited = None;
        corpse.telling = None;
        corpse.lease = None;
        corpse.tolerance = Tolerance::new(None);
        corpse
    }

    /// The key that leaders are ordered by.
    #[cfg(feature = "check")]
    pub(crate) fn key_of(&self, member: Member) -> (selvedge_core::Rank, Member) {
        crate::attribute::key(&self.attribute, member)
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The leader, perhaps this node itself, and its ballot; `None` when no node leads, or when the
    /// leader is believed to be gone.
    #[must_use]
    pub fn leader(&self) -> Option<(Member, Ballot)> {
        let leader = self.leader.filter(|leader| !leader.lost)?;
        Some((leader.member, leader.ballot))
    }

    /// The ballot by which this node leads, if it does.
    #[must_use]
    pub fn leads(&self) -> Option<Ballot> {
        let (leader, ballot) = self.leader()?;
        (leader == self.me).then_some(ballot)
    }

    /// Whether this node runs an election.
    #[must_use]
    pub const fn is_electing(&self) -> bool {
        self.run.is_some()
    }

    /// The nodes on this node's list, by id, without itself.
    pub fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.peers.iter()
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.counters
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::Elect if self.run.is_some() => Err(Reject::AlreadyElecting),
            Command::Elect => {
                let needed = self.needed();
                if needed > 1 && self.peers.by_rank().len() < 2 && !self.rules.no_discovery() {
                    return Err(Reject::TooFew {
                        known: 1,
                        needed: u32::try_from(needed).unwrap_or(u32::MAX),
                    });
                }
                self.begin(cx);
                Ok(())
            }
            Command::Measure => self.measure(cx),
            Command::Tolerate { c, f } => {
                let config = Config {
                    c,
                    f,
                    ..self.config
                };
                config.check()?;
                self.config = config;
                self.rest_on_latest();
                // The answers that are there may be enough now.
                self.evaluate(cx);
                Ok(())
            }
        }
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        match message {
            Message::Query { ballot, .. } | Message::Notify { ballot, .. }
                if ballot.initiator != from =>
            {
                return Err(Misbehaviour::Initiator(ballot.initiator).into());
            }
            Message::Leader { ballot, leader, .. } if leader == self.me => {
                let known = self.leader.map(|known| known.ballot);
                if !self.rules.last_wins() && !self.rules.lowest_wins() && known < Some(ballot) {
                    return Err(Misbehaviour::NotAppointed.into());
                }
            }
            Message::Feedback { ballot, .. } if ballot.initiator != from => {
                return Err(Misbehaviour::Initiator(ballot.initiator).into());
            }
            Message::Feedback {
                answers, missing, ..
            } if missing > answers => {
                return Err(Misbehaviour::Feedback { answers, missing }.into());
            }
            Message::SampleResponse {
                from,
                ref members,
                more,
                ..
            } if !is_in_order(from, members, more) => {
                return Err(Misbehaviour::List(from).into());
            }
            Message::Estimate { miss, .. } if !is_miss(Ratio::new(miss, MILLION)) => {
                return Err(Misbehaviour::Miss(miss).into());
            }
            Message::Estimate { ballot, .. } => {
                let is_led = |it: &Leadership| it.ballot == ballot && it.member != from;
                if let Some(leader) = self.leader.filter(is_led) {
                    return Err(Misbehaviour::NotLeader(leader.member).into());
                }
            }
            Message::Query { .. }
            | Message::Response { .. }
            | Message::Notify { .. }
            | Message::Leader { .. }
            | Message::Heard { .. }
            | Message::SampleQuery { .. }
            | Message::SampleResponse { .. }
            | Message::Feedback { .. } => {}
        }
        match message {
            Message::Query {
                ballot,
                x,
                y,
                want,
                exclude,
            } => self.queried(from, ballot, (x, y, want), &exclude, cx),
            Message::Response {
                ballot,
                candidates,
                unhealthy,
                known,
            } => self.answered(from, ballot, [&candidates, &unhealthy, &known], cx),
            Message::Notify { ballot, life } => self.appointed(from, ballot, life, cx),
            Message::Leader {
                ballot,
                leader,
                renewal,
                lease,
                gone,
                told,
            } => {
                let heard = Leadership {
                    member: leader,
                    ballot,
                    renewal,
                    lease,
                    lost: false,
                };
                self.leader_heard(from, (heard, gone), &told, cx);
            }
            Message::Heard { ballot, renewal } => self.acknowledged(from, ballot, renewal, cx),
            Message::SampleQuery { run, from: first } => self.list_asked(from, run, first, cx),
            Message::SampleResponse {
                run,
                life,
                from: first,
                members,
                more,
            } => self.list_heard(from, (run, life, first), (&members, more), cx),
            Message::Feedback {
                ballot,
                answers,
                missing,
            } => self.reported(ballot, answers, missing, cx),
            Message::Estimate {
                ballot,
                number,
                source,
                upper,
                miss,
            } => {
                let bound = Bound {
                    source,
                    upper,
                    miss: Ratio::new(miss, MILLION),
                };
                self.churn_told((ballot, number), bound, cx);
            }
        }
        Ok(())
    }
}

impl<A: Attribute> Machine for Celect<A> {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { from, message } => return self.receive(from, message, cx),
            Input::Membership(delta) => return self.learn(delta, cx),
            Input::Command(command) => return self.command(command, cx),
            Input::Tick(Timer::Answer) => self.overdue(cx),
            Input::Tick(Timer::Watch | Timer::Start) => self.begin_if_missed(cx),
            Input::Tick(Timer::Tell) => self.tell_again(cx),
            Input::Tick(Timer::Renew) => self.renew(cx),
            Input::Tick(Timer::Lease) => self.lease_over(cx),
            Input::Tick(Timer::Expiry(slot)) => self.expired(slot, cx),
            Input::Tick(Timer::Sample) => self.lists_overdue(cx),
            Input::Tick(Timer::Measure) => self.measure_again(cx),
            Input::Tick(Timer::Stale) => self.forget_churn(cx),
        }
        Ok(())
    }
}

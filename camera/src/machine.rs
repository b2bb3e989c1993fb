//! The state, and where each input goes.

use selvedge_core::roster::{Roster, Standing};
use selvedge_core::{BoundedMap, Context, Delta, Input, Machine, Member, Untracked};

use crate::published::Rules;
use crate::room::Abstention;
use crate::slow::Sum;
use crate::tree::{Subtree, Tree};
use crate::waiting::{Answer, Waiting};
use crate::{
    Command, Config, ConfigError, Counters, Event, Message, Misbehaviour, Reject, Request, Timer,
    Token,
};

/// One node's part in one critical section. See the [crate](crate) for what it promises.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Camera {
    pub(crate) me: Member,
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) peers: Roster<()>,
    pub(crate) stage: Stage,
    /// The highest number of a request that this node has heard of.
    pub(crate) seen: u64,
    /// The number of our latest request.
    pub(crate) issued: u64,
    /// The highest number of a token that our latest request may enter with. Kept permissions are
    /// good up to this number.
    pub(crate) kept_to: u64,
    /// The highest number of a token that those of our requests that are over might have had. A
    /// request that is made later may have a higher one.
    pub(crate) over: u64,
    /// The number of the token with which we entered last; 0 for never.
    pub(crate) last: u64,
    /// The highest token that was used, as far as we know.
    pub(crate) floor: Token,
    /// The highest token that was certainly used, for the nodes that were passed over. The floor
    /// may be higher, because no node knows what a life that is over has used. Nothing without a
    /// takeover.
    pub(crate) used: Token,
    /// The members whose requests have our OK and are not known to be over.
    pub(crate) grants: BoundedMap<Member, Grant>,
    /// The members that wait for our OK.
    pub(crate) deferred: BoundedMap<Member, Request>,
    /// Which requests of each member are over.
    pub(crate) released: BoundedMap<Member, Released>,
    /// The members whose OK we kept.
    pub(crate) kept: BoundedMap<Member, ()>,
    /// Where we stand in the trees of slow requests, our own included, by root.
    pub(crate) trees: BoundedMap<Member, Tree>,
    /// Whether [`Timer::Tree`] is armed.
    pub(crate) watches_trees: bool,
    /// How often that timer has ticked since all were asked again.
    pub(crate) tree_rounds: u64,
    pub(crate) counters: Untracked<Counters>,
}

/// An OK that we gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Grant {
    /// To which request.
    pub(crate) number: u64,
    /// The highest number of a token that it may enter with.
    pub(crate) up_to: u64,
    /// How many copies of the OK were sent last: 0 where there is never more than one.
    pub(crate) copies: u8,
}

/// What a node said of its requests that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Released {
    /// The highest number of such a request.
    pub(crate) number: u64,
    /// The highest number of a token that one might have entered with.
    pub(crate) over: u64,
}

/// Where this node stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stage {
    Idle,
    Waiting(Waiting),
    Inside(Inside),
}

/// We are in the section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Inside {
    pub(crate) token: Token,
    /// The number of the request.
    pub(crate) number: u64,
    /// Whether another node is known to have entered past us.
    pub(crate) fenced: bool,
}

impl Camera {
    /// A node that knows no other yet; the host tells it [`Delta`]s.
    ///
    /// `me` must be a life that never took part before: what a former life promised is forgotten.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn new(me: Member, config: Config) -> Result<Self, ConfigError> {
        Self::under(me, config, Rules::default())
    }

    /// A node that follows these rules where they differ from ours.
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

    /// What matters of a machine that has crashed: which member it was.
    #[cfg(feature = "check")]
    pub(crate) fn corpse(&self) -> Self {
        Self::unchecked(self.me, self.config, self.rules)
    }

    fn under(me: Member, config: Config, rules: Rules) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self::unchecked(me, config, rules))
    }

    /// With settings that are known to work.
    pub(crate) fn unchecked(me: Member, config: Config, rules: Rules) -> Self {
        let limit = config.peer_limit as usize;
        Self {
            me,
            config,
            rules,
            peers: Roster::shared(me, limit),
            stage: Stage::Idle,
            seen: 0,
            issued: 0,
            kept_to: 0,
            over: 0,
            last: 0,
            floor: Token::default(),
            used: Token::default(),
            grants: BoundedMap::new(limit),
            deferred: BoundedMap::new(limit),
            released: BoundedMap::new(limit),
            kept: BoundedMap::new(limit),
            // `tree_limit` is checked where a tree of others begins: it may change.
            trees: BoundedMap::new(usize::from(u16::MAX) + 1),
            watches_trees: false,
            tree_rounds: 0,
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

    /// Whether this node waits to enter.
    #[must_use]
    pub const fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting(_))
    }

    /// The members whose OK this node still needs, in order. Empty when it does not wait.
    /// Membership may never have told of a member here, or what it told was forgotten
    /// ([`Config::peer_limit`]). So a host looks up now and then, for example at each
    /// [`Timer::Resend`] and [`Timer::Refresh`], what membership has of these members and of those
    /// in [`granted`](Self::granted). If a member is over, the host tells its end again,
    /// [`Delta::Left`] or [`Delta::Confirmed`]; if it failed, [`Delta::Failed`]. If it is neither
    /// live nor over, the host asks after it. What was told before may be told again.
    pub fn waits_for(&self) -> impl Iterator<Item = Member> + '_ {
        let waiting = match &self.stage {
            Stage::Waiting(waiting) => Some(waiting),
            Stage::Idle | Stage::Inside(_) => None,
        };
        waiting
            .into_iter()
            .flat_map(Waiting::iter)
            .filter(|(_, asked)| matches!(asked.answer, Answer::Awaited { .. }))
            .map(|(member, _)| member)
    }

    /// The members whose requests have this node's OK and are not known to be over, in order.
    /// Others are told that they have to wait for these. A member that is gone, and from which no
    /// RELEASE was heard, stays here until its end is told: a host does as for
    /// [`waits_for`](Self::waits_for).
    pub fn granted(&self) -> impl Iterator<Item = Member> + '_ {
        self.grants.iter().map(|(&member, _)| member)
    }

    /// The members whose permission was kept ([`Config::keep`]), in order. While there is one, the
    /// request that got it is open, also when this node is out: [`Command::GiveBack`] ends it.
    pub fn kept(&self) -> impl Iterator<Item = Member> + '_ {
        self.kept.iter().map(|(&member, ())| member)
    }

    /// How many members are on the list, this node excepted.
    #[must_use]
    pub const fn listed(&self) -> usize {
        self.peers.listed_len()
    }

    /// What was counted since the beginning.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters.0
    }

    /// Asks to enter. Takes O(members), as many messages, and one round trip when no other node
    /// wants to enter.
    ///
    /// # Errors
    /// [`Reject::AlreadyWaiting`], [`Reject::AlreadyInside`].
    pub fn enter(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.stage {
            Stage::Idle => {}
            Stage::Waiting(_) => return Err(Reject::AlreadyWaiting),
            Stage::Inside(_) => return Err(Reject::AlreadyInside),
        }
        self.request(cx);
        Ok(())
    }

    /// Leaves the section, and lets in the nodes that had to wait.
    ///
    /// # Errors
    /// [`Reject::NotInside`].
    pub fn exit(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Stage::Inside(inside) = self.stage else {
            return Err(Reject::NotInside);
        };
        self.stage = Stage::Idle;
        self.was_used(inside.token);
        cx.event(Event::Released(inside.token));
        if !self.config.keep || self.trees.contains(&self.me) {
            self.release(inside.number, cx);
        }
        self.grant_deferred(|_| true, cx);
        Ok(())
    }

    /// Stops waiting, and lets others go first.
    ///
    /// # Errors
    /// [`Reject::NotWaiting`].
    pub fn cancel(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Stage::Waiting(waiting) = &self.stage else {
            return Err(Reject::NotWaiting);
        };
        let number = waiting.token.number;
        self.withdraw(number, cx);
        cx.event(Event::Cancelled);
        Ok(())
    }

    /// Gives back the permissions that were kept, and tells all that the request which got them is
    /// over. Does nothing where none are kept.
    ///
    /// # Errors
    /// [`Reject::AlreadyWaiting`], [`Reject::AlreadyInside`].
    pub fn give_back(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match self.stage {
            Stage::Idle if self.kept.is_empty() => {}
            Stage::Idle => {
                self.kept.retain(|_, ()| false);
                self.release(self.issued, cx);
            }
            Stage::Waiting(_) => return Err(Reject::AlreadyWaiting),
            Stage::Inside(_) => return Err(Reject::AlreadyInside),
        }
        Ok(())
    }

    /// Takes a new bound for the number of nodes, from 1. A request that waits is held to it.
    ///
    /// # Errors
    /// [`ConfigError::Upper`] when it is 0.
    pub fn bound(&mut self, upper: u32, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        if upper == 0 {
            return Err(ConfigError::Upper.into());
        }
        self.config.upper = upper;
        self.try_enter(cx);
        Ok(())
    }

    fn tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Resend => self.ask_again(cx),
            Timer::Tree => self.ask_trees_again(cx),
            Timer::Refresh => self.refresh(cx),
            Timer::Takeover(member) => self.pass_over(member, cx),
        }
    }

    fn learned(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Some(delta) = self.peers.about_others(delta)? else {
            return Ok(());
        };
        let member = self.life(delta.member());
        match delta {
            Delta::Suspected(_) => {}
            Delta::Joined(_) | Delta::Refuted(_) => {
                if self.meet(member, cx) {
                    self.note(|it| it.peers.set(member, Standing::Listed));
                    self.is_back(member, cx);
                }
            }
            // A repeated delta changes nothing: above all no takeover begins anew.
            Delta::Failed(_) if self.peers.is_failed(member) => {}
            Delta::Failed(_) => {
                if self.meet(member, cx) {
                    self.note(|it| it.peers.set(member, Standing::Failed));
                    self.has_failed(member, cx);
                }
            }
            Delta::Left(_) | Delta::Confirmed(_) => {
                self.meet(member, cx);
                self.ended(member, cx);
            }
        }
        Ok(())
    }

    /// Takes note of a life. False when it is over, or there is no room for it.
    pub(crate) fn meet(&mut self, member: Member, cx: &mut Context<'_, Self>) -> bool {
        if self.peers.is_over(member) {
            return false;
        }
        if !self.make_room_for(member) {
            return false;
        }
        match self.peers.meet(member) {
            Ok(None) => true,
            Ok(Some(former)) => {
                self.forget(former, cx);
                true
            }
            Err(_) => false,
        }
    }

    /// A life has certainly ended.
    fn ended(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if self.rules.no_tombstones() {
            self.peers.forget(member.id);
            self.lost(member, cx);
            self.no_longer_awaited(member, cx);
            return;
        }
        self.note(|it| it.peers.set(member, Standing::Over));
        self.forget(member, cx);
    }

    /// Forgets what a life that has ended asked and was asked. It may have been inside with any
    /// number that it had OKs for.
    fn forget(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(grant) = self.grants.remove(&member) {
            self.floor = self.floor.max(Token {
                number: grant.up_to,
                by: member,
            });
        }
        self.deferred.remove(&member);
        self.released.remove(&member);
        self.kept.remove(&member);
        self.trees.remove(&member);
        self.lost(member, cx);
        self.no_longer_awaited(member, cx);
    }

    /// This life, as the rules tell lives apart.
    fn life(&self, member: Member) -> Member {
        if self.rules.one_life() {
            return Member::new(member.id.0, 0);
        }
        member
    }

    /// Runs `what`, and counts the case that it finds no room.
    pub(crate) fn note(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<(), selvedge_core::Full>,
    ) -> bool {
        let done = what(self).is_ok();
        if !done {
            self.counters.0.no_room += 1;
        }
        done
    }

    fn heard(
        &mut self,
        from: Member,
        message: Message,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let from = self.life(from);
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from).into());
        }
        message.check()?;
        if self.peers.is_over(from) {
            self.counters.0.stale += 1;
            return Ok(());
        }
        let is_known = self.meet(from, cx);
        match message {
            // Only what these say has to be remembered.
            Message::Request { request, .. } if !is_known => self.abstain(from, request, cx),
            Message::Release { last, .. } if !is_known => self.used(from, last, cx),
            Message::Request { request, after } => self.asked(from, request, after, cx),
            Message::Ok {
                life,
                number,
                after,
                rivals,
                more,
                floor,
            } => {
                let permit = crate::request::Permit {
                    life,
                    number,
                    after,
                    more,
                    floor,
                };
                self.allowed(from, permit, &rivals, cx);
            }
            Message::Wait { number } => self.is_heard(from, number),
            Message::Release { number, last, over } => {
                self.released(from, Released { number, over }, last, cx);
            }
            Message::Fence { token } => self.fence(token, cx),
            Message::Floor { token } => self.floor = self.floor.max(token),
            Message::Join { tree, up_to, last } => {
                self.joined(from, tree, tree.request(up_to, last), cx);
            }
            Message::Nack { tree } => self.declined(from, tree, cx),
            // What is said to a former life is not about a tree of ours. Other nodes have adopted
            // the children of our former life.
            Message::Echo { life, .. } | Message::Up { life, .. }
                if life != self.me.incarnation.0 && !self.rules.one_life() =>
            {
                self.counters.0.stale += 1;
            }
            Message::Echo {
                tree,
                levels,
                branches,
                ..
            } => self.echoed(from, tree, Subtree { levels, branches }, cx),
            Message::Up {
                tree,
                oks,
                after,
                rivals,
                more,
                floor,
                ..
            } => {
                let sum = Sum {
                    oks,
                    after,
                    more,
                    floor,
                };
                self.summed(from, tree, sum, &rivals, cx);
            }
            Message::Adopt {
                tree,
                up_to,
                last,
                after,
            } => self.adopted(from, tree, tree.request(up_to, last), after, cx),
            Message::Broken { tree } => self.broken(from, tree, cx),
            Message::Over {
                root,
                number,
                last,
                over,
            } => {
                if root.id != self.me.id && self.meet(root, cx) {
                    self.released(root, Released { number, over }, last, cx);
                }
            }
            Message::Abstain {
                life,
                number,
                over,
                floor,
            } => {
                let abstention = Abstention {
                    life,
                    number,
                    over,
                    floor,
                };
                self.abstained(from, abstention, cx);
            }
        }
        Ok(())
    }
}

impl Machine for Camera {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => self.heard(from, message, cx),
            Input::Tick(timer) => {
                self.tick(timer, cx);
                Ok(())
            }
            Input::Membership(delta) => self.learned(delta, cx),
            Input::Command(Command::Enter) => self.enter(cx),
            Input::Command(Command::Exit) => self.exit(cx),
            Input::Command(Command::Cancel) => self.cancel(cx),
            Input::Command(Command::GiveBack) => self.give_back(cx),
            Input::Command(Command::Bound(upper)) => self.bound(upper, cx),
        }
    }
}

//! Where each input goes.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::settings::{self, Setting};
use selvedge_core::{Context, Delta, Input, Machine, Member, Nested, NodeId, Untracked};
use selvedge_replica::{Configuration, Replica, Stored};

use super::event::{Command, Counters, Event, Misbehaviour, Reject, Timer};
use super::{Config, Voting};
use crate::{Attachment, Hops, Limits, Message, Tables, TaskId, Update};

/// So many gateways are known at most; former ones that are gone make room.
const KNOWN_MOST: usize = 64;

/// A gateway. See the [module](super).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Gateway {
    pub(super) config: Config,
    pub(super) me: Member,
    pub(super) replica: Nested<Replica<Tables>>,
    /// What the replica told in this step, and was not looked at.
    told: Untracked<VecDeque<selvedge_replica::Event<Tables>>>,
    /// Of all gateways the latest life that is known.
    pub(super) gateways: BTreeMap<NodeId, Member>,
    /// Those that failed or left.
    pub(super) gone: BTreeSet<NodeId>,
    /// What the followers of this gateway said last.
    pub(super) own: BTreeMap<NodeId, Attachment>,
    /// The tasks that clients wait for here.
    pub(super) asked: BTreeSet<TaskId>,
    pub(super) is_started: bool,
    /// Whether this gateway acts as resource manager.
    pub(super) manages: bool,
    /// Whether the replica has asked for long, and no quorum answers.
    pub(super) is_stalled: bool,
    /// How many of the manager's heartbeats in a row said that this gateway is gone, or did not come.
    pub(super) missed: u8,
    /// Whether followers and clients are served here, as the host was told; it takes that for granted.
    pub(super) is_available: bool,
    /// Whether followers came or went since units were formed.
    pub(super) has_changed: bool,
    /// Whether units are about to be formed anew.
    pub(super) is_cluster_due: bool,
    pub(super) counters: Untracked<Counters>,
}

impl Gateway {
    /// A gateway in its first life, in which `first` names it. All gateways begin with equal `first` and
    /// `limits`. A later life is [restored](Self::restore), or is a [newcomer](Self::newcomer): made here,
    /// it would have no vote after it folds the facts of a former life.
    ///
    /// # Errors
    /// [`Reject::NotNamed`] in any other life. [`Reject::Config`], [`Reject::Replica`] and
    /// [`Reject::NoRoomForResult`], if these cannot work; `replica.state_limit` has to let all in that
    /// `limits` do.
    pub fn new(
        me: Member,
        config: Config,
        first: Configuration,
        limits: Limits,
    ) -> Result<Self, Reject> {
        limits.check()?;
        let least = limits.largest_state(first.frame_budget.into());
        let size = u64::from(config.replica.state_limit);
        settings::check(&[
            Setting::number("replica.state_limit", size, least, u32::MAX.into()).counts("bytes"),
        ])?;
        let named = first.voter(me.id).map(|it| it.member);
        if named != Some(me) {
            return Err(Reject::NotNamed { me, named });
        }
        let gateways: Vec<Member> = first.members().map(|it| it.member).collect();
        let replica = Replica::new(me, config.replica, first, Tables::new(limits))?;
        check_result(&limits, replica.configuration())?;
        Self::make(me, config, replica, gateways)
    }

    /// As [`new`](Self::new), with these tables.
    #[cfg(feature = "check")]
    pub(crate) fn with_tables(
        me: Member,
        config: Config,
        first: Configuration,
        tables: Tables,
    ) -> Result<Self, Reject> {
        let gateways: Vec<Member> = first.members().map(|it| it.member).collect();
        let replica = Replica::new(me, config.replica, first, tables)?;
        Self::make(me, config, replica, gateways)
    }

    /// A gateway that lost its memory, or never had one: it takes part when the others name it. These
    /// are the others; each counts as failed until a message of it arrives.
    ///
    /// # Errors
    /// [`Reject::Config`].
    pub fn newcomer(
        me: Member,
        config: Config,
        others: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, Reject> {
        let replica = Replica::newcomer(me, config.replica)?;
        let others: Vec<NodeId> = others.into_iter().filter(|it| *it != me.id).collect();
        let unheard = others.iter().map(|id| Member::new(id.0, 0));
        let mut gateway = Self::make(me, config, replica, unheard.collect())?;
        gateway.gone.extend(others);
        Ok(gateway)
    }

    /// A gateway in a later life `me`, with what its former life stored. Facts that came after `stored` are
    /// [folded](Durable::fold) before its first input. A host that has stored facts since the
    /// first life, and no base, makes one: `Gateway::new(first_life, ..)?.replica().stored()`. `others` are all other gateways that there may
    /// be; those that no longer decide count as gone until they are heard.
    ///
    /// # Errors
    /// [`Reject::Config`], and [`Reject::Replica`] where `stored` was damaged.
    pub fn restore(
        me: Member,
        config: Config,
        stored: Stored<Tables>,
        others: impl IntoIterator<Item = NodeId>,
    ) -> Result<Self, Reject> {
        let replica = Replica::restore(me, config.replica, stored)?;
        let named: Vec<Member> = replica
            .configuration()
            .members()
            .map(|it| it.member)
            .collect();
        let is_unnamed = |id: &NodeId| named.iter().all(|it| it.id != *id) && *id != me.id;
        let others: Vec<NodeId> = others.into_iter().filter(is_unnamed).collect();
        let unnamed = others.iter().map(|id| Member::new(id.0, 0));
        let gateways = named.iter().copied().chain(unnamed).collect();
        let mut gateway = Self::make(me, config, replica, gateways)?;
        gateway.gone.extend(others);
        Ok(gateway)
    }

    fn make(
        me: Member,
        config: Config,
        replica: Replica<Tables>,
        gateways: Vec<Member>,
    ) -> Result<Self, Reject> {
        config.check()?;
        let mut gateways: BTreeMap<NodeId, Member> =
            gateways.into_iter().map(|it| (it.id, it)).collect();
        gateways.insert(me.id, me);
        Ok(Self {
            config,
            me,
            replica: Nested::new(replica),
            told: Untracked::default(),
            gateways,
            gone: BTreeSet::new(),
            own: BTreeMap::new(),
            asked: BTreeSet::new(),
            is_started: false,
            manages: false,
            is_stalled: false,
            missed: 0,
            is_available: true,
            has_changed: false,
            is_cluster_due: false,
            counters: Untracked(Counters::default()),
        })
    }

    /// This node in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// All gateways that this one knows, each in its latest life, and whether it counts as here.
    pub fn gateways(&self) -> impl Iterator<Item = (Member, bool)> + '_ {
        let all = self.gateways.values();
        all.map(|it| (*it, !self.gone.contains(&it.id)))
    }

    /// The tables, as far as this gateway knows them; nothing where it holds none.
    #[must_use]
    pub fn tables(&self) -> Option<&Tables> {
        self.replica.machine().state()
    }

    /// The replica of the tables, to read from.
    #[must_use]
    pub const fn replica(&self) -> &Replica<Tables> {
        self.replica.machine()
    }

    /// Whether this gateway acts as resource manager.
    #[must_use]
    pub const fn manages(&self) -> bool {
        self.manages
    }

    /// What is counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// How much this gateway keeps besides the tables: of followers, and of clients that wait.
    #[cfg(feature = "check")]
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.own.len(), self.asked.len())
    }

    /// The settings of this gateway.
    #[cfg(feature = "check")]
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// One step of the replica. What it tells is looked at when this step's input is dealt with.
    pub(super) fn step(
        &mut self,
        input: Input<Replica<Tables>>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), selvedge_replica::Reject> {
        let told = &mut self.told.0;
        self.replica.step(
            cx,
            input,
            |message| Message::Tables(Box::new(message)),
            Timer::Tables,
            |event, cx| {
                if let selvedge_replica::Event::Fact(fact) = event {
                    cx.event(Event::Fact(fact));
                } else {
                    told.push_back(event);
                }
            },
        )
    }

    /// Proposes an update, unless it would change nothing. What is lost is proposed again when there is
    /// reason: a follower or client says it again, or a timer does.
    pub(super) fn propose(
        &mut self,
        update: Update,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), selvedge_replica::Reject> {
        let is_known = self.tables().is_some_and(|it| it.known(&update).is_some());
        if is_known {
            return Ok(());
        }
        let command = selvedge_replica::Command::Propose(update);
        let proposed = self.step(Input::Command(command), cx);
        self.counters.0.not_proposed += u64::from(proposed.is_err());
        proposed
    }

    /// Proposes what a timer proposes again.
    pub(super) fn try_to_propose(&mut self, update: Update, cx: &mut Context<'_, Self>) {
        let _counted = self.propose(update, cx);
    }

    /// Looks at what the replica told, and at what it told about that.
    fn look_at_told(&mut self, cx: &mut Context<'_, Self>) {
        while let Some(event) = self.told.0.pop_front() {
            self.on_told(event, cx);
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
            Message::Tables(message) => {
                // The replica takes what is decided, and what is proposed, from anybody.
                if !self.gateways.contains_key(&from.id) {
                    return Err(Reject::UnknownGateway(from));
                }
                let message = *message;
                self.step(Input::Message { from, message }, cx)?;
                self.note_here(from, cx);
            }
            Message::Heartbeat { gone } => self.on_heartbeat(from, &gone, cx)?,
            Message::Here => self.on_here(from, cx)?,
            Message::KeepAlive {
                number,
                duty,
                libraries,
            } => {
                duty.check().map_err(|why| Misbehaviour::Duty(from, why))?;
                self.on_keep_alive(from, number, duty, &libraries, cx);
            }
            Message::Verdict {
                task,
                attempt,
                term,
                answer,
                voters,
            } => self.on_verdict(from, task, (attempt, term), (answer, voters), cx),
            Message::Vote {
                task,
                attempt,
                returned,
            } => self.on_vote(from, (task, attempt), returned, cx),
            Message::Submit { number, function } => self.on_submit(from, number, function, cx),
            Message::Cancel { number } => self.on_cancel(from, number, cx),
            Message::Purged { .. }
            | Message::Run(_)
            | Message::Over { .. }
            | Message::Counted { .. }
            | Message::Taken { .. }
            | Message::Answer { .. }
            | Message::Refused { .. }
            | Message::Elsewhere => return Err(Misbehaviour::Misdirected(from).into()),
        }
        Ok(())
    }

    fn on_delta(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let is_gateway = self.gateways.contains_key(&delta.member().id);
        match is_gateway && delta.member().id != self.me.id {
            true => self.learn(delta, cx),
            // The replica may remember the node, and refuses the end of this one.
            false => self.step(Input::Membership(delta), cx)?,
        }
        Ok(())
    }

    /// A gateway is here, or is gone, as membership or its silence says.
    pub(super) fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) {
        let member = delta.member();
        let Some(known) = self.gateways.get_mut(&member.id) else {
            return; // It is no gateway.
        };
        if known.supersedes(member) || member.id == self.me.id {
            return;
        }
        *known = member;
        let learned = self.step(Input::Membership(delta), cx);
        debug_assert_eq!(learned, Ok(()), "a replica refuses its own end alone");
        match delta {
            Delta::Suspected(_) => {}
            Delta::Joined(_) | Delta::Refuted(_) => {
                if self.gone.remove(&member.id) {
                    cx.event(Event::Returned(member));
                }
            }
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                if self.gone.insert(member.id) {
                    cx.event(Event::Gone(member));
                    self.on_gateway_gone(member.id, cx);
                }
            }
        }
        self.look_at_voters(cx);
    }

    /// The gateways that decide are others: all of them are known.
    pub(super) fn on_configured(&mut self, cx: &mut Context<'_, Self>) {
        let named = self.replica.machine().configuration().members();
        let named: Vec<Member> = named.map(|it| it.member).collect();
        for &member in &named {
            let known = self.gateways.entry(member.id).or_insert(member);
            if member.supersedes(*known) {
                *known = member;
            }
        }
        while self.gateways.len() > KNOWN_MOST {
            let is_named = |id: &NodeId| named.iter().any(|it| it.id == *id);
            let former = self.gone.iter().copied().find(|it| !is_named(it));
            let Some(former) = former else { break };
            self.gone.remove(&former);
            self.gateways.remove(&former);
            cx.disarm(Timer::Timeout(former));
        }
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::Start if self.is_started => Err(Reject::Started),
            Command::Start => {
                self.is_started = true;
                // Facts that were folded may have named others.
                self.on_configured(cx);
                cx.arm(Timer::Review, self.config.review);
                self.watch_own(cx);
                self.watch_gateways(cx);
                Ok(())
            }
            Command::Hops { to, hops } => self.on_hops(to, hops, cx),
            Command::Configure(next) => {
                if let Some(tables) = self.tables() {
                    check_result(tables.limits(), &next)?;
                }
                let command = selvedge_replica::Command::Configure(next);
                Ok(self.step(Input::Command(command), cx)?)
            }
        }
    }

    /// Another gateway is so many links away.
    fn on_hops(&mut self, to: NodeId, hops: u8, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let one = self.me.id;
        let hops = Hops {
            one,
            other: to,
            hops,
        };
        let configuration = self.replica.machine().configuration();
        if [one, to]
            .iter()
            .any(|it| configuration.voter(*it).is_none())
        {
            return Ok(());
        }
        if self.tables().is_some_and(|it| it.lacks_room_for(hops)) {
            self.counters.0.no_room += 1;
            return Ok(());
        }
        Ok(self.propose(Update::Hops(hops), cx)?)
    }

    fn tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match timer {
            Timer::Tables(timer) => self.step(Input::Tick(timer), cx)?,
            Timer::Purge(follower) => self.on_purge_tick(follower, cx),
            Timer::Offload(task) => self.on_offload_tick(task, cx),
            Timer::Cluster => self.on_cluster_tick(cx),
            Timer::Heartbeat => self.on_heartbeat_tick(cx),
            Timer::Manager => self.on_manager_tick(cx),
            Timer::Timeout(gateway) => self.on_timeout_tick(gateway, cx),
            Timer::Review => self.on_review_tick(cx),
        }
        Ok(())
    }

    /// Whether the voters follow the gateways that are connected.
    pub(super) fn is_dynamic(&self) -> bool {
        self.config.voting == Voting::Dynamic
    }
}

/// Whether the longest result fits into what gateways of this configuration send each other.
fn check_result(limits: &Limits, configuration: &Configuration) -> Result<(), Reject> {
    let room = configuration.update_room();
    let room = room.saturating_sub(limits.around_result());
    if usize::from(limits.result) > room {
        return Err(Reject::NoRoomForResult {
            result: limits.result,
            budget: configuration.frame_budget,
            room,
        });
    }
    Ok(())
}

impl Machine for Gateway {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let taken = match input {
            Input::Message { from, message } => self.receive(from, message, cx),
            Input::Tick(timer) => self.tick(timer, cx),
            Input::Membership(delta) => self.on_delta(delta, cx),
            Input::Command(command) => self.command(command, cx),
        };
        self.look_at_told(cx);
        // What is refused changes nothing, not even what the host was told.
        if taken.is_ok() {
            self.tell_whether_available(cx);
        }
        taken
    }
}

impl Durable for Gateway {
    type Fact = selvedge_replica::Fact<Tables>;
    type Damage = selvedge_replica::Damage;

    fn fact(event: &Event) -> Option<&Self::Fact> {
        if let Event::Fact(fact) = event {
            return Some(fact);
        }
        None
    }

    fn fold(&mut self, fact: &Self::Fact) -> Result<(), Self::Damage> {
        self.replica.fold(fact)
    }
}

//! The machine of a node: its groups, its leaders, and its own requests.
//!
//! A step of [`handle`](Machine::handle) goes round: `ask_groups` gives the input to the groups, which send
//! only what goes ahead of their facts, and keeps their events in `reported`. `settle` takes these one by one: `on_said` passes each to
//! the leader of its group (`on`, `try_on`, [`Leading::on`]), and the leader writes down its effects.
//! `carry_out` turns those into timers, events and commands to the groups, by `ask_groups` again; events of
//! these wait behind the others. When `reported` is empty, `flush` sends all other messages of these steps,
//! so that those to one node share frames and come behind the facts. Only facts do not wait in `reported`.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;

use selvedge_core::durable::Durable;
use selvedge_core::{Context, Delta, Input, Machine, Member, Nested, NodeId, Span, Untracked};
use selvedge_groups as groups;
use selvedge_groups::{
    GroupId, Groups,
    store::{ClientEffect, StoreClient},
};
use selvedge_replica as replica;

use crate::clock::Clock;
use crate::config::Config;
use crate::effect::Effect;
use crate::event::{Command, Event, Reject, Timer};
use crate::leading::{LeaderEvent, LeaderInput, LeaderTimer, Leading, Out};
use crate::message::{Message, Payload};
use crate::routines::Decided as RoutineDecided;
use crate::site::{self, Site};
use crate::state::{Decided, GroupState, Update};
use crate::{Answer, Request, TriggerId};

/// The node's part in all groups.
///
/// See the [crate page](crate) for the promises. Its facts are those of its [groups](Self::groups);
/// [`stored`](Groups::stored) returns a few facts that replace them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kgroup {
    me: Member,
    pub(crate) config: Config,
    pub(crate) site: Untracked<Arc<Site>>,
    pub(crate) groups: Nested<Groups<GroupState, Payload>>,
    leading: BTreeMap<GroupId, Leading>,
    /// The number of times that it began to lead a group: a read of a former lead may be answered in a later
    /// one.
    led: u64,
    maps: StoreClient,
    pub(crate) clock: Clock,
    /// The site that its program gave it, until the others have it: of a later generation than 0.
    pub(crate) wanted: Untracked<Option<Arc<Site>>>,
    /// Runs that this node asked for, and that were not decided.
    pub(crate) triggers: BTreeSet<(GroupId, TriggerId)>,
    /// The events of the groups in this step; empty between steps.
    reported: Untracked<VecDeque<groups::Event<GroupState, Payload>>>,
    /// The effects of the leader in this call; empty between steps.
    effects: Untracked<Out>,
}

type Inner = Groups<GroupState, Payload>;

impl Kgroup {
    /// A node of a site. Its first input should be [`Command::SetEpoch`].
    ///
    /// # Errors
    /// Settings that cannot work, among them a limit of groups below the number that the node founds,
    /// or a node that the site does not name.
    pub fn new(
        me: Member,
        config: Config,
        site: Arc<Site>,
        begin: groups::Start,
    ) -> Result<Self, Reject> {
        config.check()?;
        let plan = Arc::new(site.plan()?);
        let maps = StoreClient::new(config.maps, site.frame_budget());
        // The groups that it may ask at once: questions that take each other's room find no leader.
        let asked = site.groups().count() + 2 * usize::from(config.maps.pending);
        let leader_hints = u16::try_from(asked).unwrap_or(u16::MAX);
        let room = config
            .groups
            .with_leader_hints(config.groups.leader_hints.max(leader_hints));
        let groups = Groups::new(me, room, plan, Arc::clone(&site), begin)?;
        let wanted = (site.generation() > 0).then(|| Arc::clone(&site));
        Ok(Self {
            me,
            config,
            site: Untracked(site),
            groups: Nested::new(groups),
            leading: BTreeMap::new(),
            led: 0,
            maps,
            clock: Clock::default(),
            wanted: Untracked(wanted),
            triggers: BTreeSet::new(),
            reported: Untracked(VecDeque::new()),
            effects: Untracked::default(),
        })
    }

    /// This node.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The groups, to read from.
    #[must_use]
    pub const fn groups(&self) -> &Groups<GroupState, Payload> {
        self.groups.machine()
    }

    /// The site.
    #[must_use]
    pub fn site(&self) -> &Site {
        &self.site.0
    }

    /// The state of a group, as far as this node knows: it is a member, and may be behind.
    #[must_use]
    pub fn held(&self, group: GroupId) -> Option<&GroupState> {
        self.groups().state(group)
    }

    /// The groups that this node leads, as far as it knows.
    pub fn leads(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.leading.keys().copied()
    }

    /// Carries out a step of the groups. Their events are kept for [`settle`](Self::settle).
    pub(crate) fn ask_groups(
        &mut self,
        input: Input<Inner>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let reported = &mut self.reported.0;
        let receive = |event, cx: &mut Context<'_, Self>| {
            if matches!(event, groups::Event::Fact(_)) {
                // Facts go out before the messages that depend on them.
                return cx.event(Event::Groups(event));
            }
            reported.push_back(event);
        };
        let call = |groups: &mut Inner, cx: &mut Context<'_, Inner>| groups.take(input, cx);
        Ok((self.groups).with(cx, call, |it| it, Timer::Groups, receive)?)
    }

    /// Sends the messages of a step that wait for its facts, behind them. Items to one node share frames.
    fn flush(&mut self, cx: &mut Context<'_, Self>) {
        let call = |groups: &mut Inner, cx: &mut Context<'_, Inner>| {
            groups.flush(cx);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = (self.groups).with(cx, call, |it| it, Timer::Groups, |_, _| {});
    }

    /// The leader of a group asks: this node now knows the leader's place.
    fn received(&mut self, group: GroupId, from: Member, cx: &mut Context<'_, Self>) {
        let call = |groups: &mut Inner, _: &mut Context<'_, Inner>| {
            groups.received(group, from);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = (self.groups).with(cx, call, |it| it, Timer::Groups, |_, _| {});
    }

    /// Handles all events of the groups, and the events that follow from them.
    fn settle(&mut self, cx: &mut Context<'_, Self>) {
        while let Some(event) = self.reported.0.pop_front() {
            self.on_said(event, cx);
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all others are the application's"
    )]
    fn on_said(&mut self, event: groups::Event<GroupState, Payload>, cx: &mut Context<'_, Self>) {
        match event {
            groups::Event::Replica { group, event } => self.on_replica(group, event, cx),
            groups::Event::Asked {
                group,
                from,
                payload,
            } => match payload {
                Payload::Request(request) => {
                    if let Some(routine) = request.routine() {
                        self.received(routine, from, cx);
                    }
                    self.on_asked(group, from, request, cx);
                }
                Payload::Answer { of, answer } => {
                    self.on(group, LeaderInput::Notified(of, &answer), cx)
                }
            },
            groups::Event::Answered { payload, .. } => match payload {
                Payload::Answer { of, answer } => self.on_answered(of, &answer, cx),
                Payload::Request(_) => {} // A leader sends no request.
            },
            groups::Event::Left(group) => {
                if self.stop_leading(group, cx) {
                    cx.event(Event::Deposed { group });
                }
                cx.event(Event::Groups(event));
            }
            groups::Event::Site { generation } => self.on_site(generation, cx),
            groups::Event::Proposed { is_decided, .. } => {
                self.on_proposed(is_decided, cx);
                cx.event(Event::Groups(event));
            }
            other => {
                if let groups::Event::Entered(group) = other {
                    self.confirm_clock(group);
                    self.look_at_clock(group, cx);
                }
                cx.event(Event::Groups(other));
            }
        }
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all others are the application's"
    )]
    fn on_replica(
        &mut self,
        group: GroupId,
        event: replica::Event<GroupState>,
        cx: &mut Context<'_, Self>,
    ) {
        if let replica::Event::Elected { .. } | replica::Event::Installed(_) = event {
            self.look_at_clock(group, cx);
        }
        match &event {
            replica::Event::Elected { leader, .. } if *leader == self.me.id => {
                self.begin_to_lead(group, cx);
            }
            replica::Event::Deposed(_) => {
                if self.stop_leading(group, cx) {
                    cx.event(Event::Deposed { group });
                }
            }
            replica::Event::Applied { outcome, .. } => {
                if let Decided::Routine(RoutineDecided::Defined | RoutineDecided::Ends { .. }) =
                    outcome
                {
                    self.look_at_clock(group, cx); // Its triggers may be other ones.
                }
                self.on(group, LeaderInput::Applied(outcome), cx);
            }
            replica::Event::Readable { read, .. } => {
                self.on(group, LeaderInput::Readable(*read), cx);
            }
            _ => cx.event(Event::Groups(groups::Event::Replica { group, event })),
        }
    }

    /// An answer has arrived at this node.
    fn on_answered(&mut self, of: GroupId, answer: &Answer, cx: &mut Context<'_, Self>) {
        match answer {
            Answer::Store(answer) => {
                let mut effects = Vec::new();
                self.maps
                    .on_answered(cx.now(), of, answer.clone(), &mut effects);
                self.on_maps(effects, cx);
            }
            &Answer::Triggered(id) => {
                let routine = of;
                if self.triggers.remove(&(routine, id)) {
                    cx.event(Event::Triggered { routine, id });
                }
            }
            // An open report is repeated until the group has decided.
            Answer::Counted(due) => self.on_counted(of, *due, cx.now()),
            Answer::Progress { cluster, .. } => {
                self.on(*cluster, LeaderInput::Notified(of, answer), cx);
            }
            Answer::Granted { .. }
            | Answer::Queued { .. }
            | Answer::Busy { .. }
            | Answer::Over { .. }
            | Answer::Released { .. }
            | Answer::Acted { .. }
            | Answer::Read { .. }
            | Answer::Status { .. }
            | Answer::NoDevice { .. }
            | Answer::Asleep { .. } => {
                if let Some(routine) = answer.routine() {
                    self.on(routine, LeaderInput::Notified(of, answer), cx);
                }
            }
        }
    }

    fn begin_to_lead(&mut self, group: GroupId, cx: &mut Context<'_, Self>) {
        let Some(held) = self.groups.machine().state(group) else {
            // It led, and was replaced in the same step: before it lost power it had accepted the next
            // configuration, which a quorum of one decides at once.
            return;
        };
        self.led += 1;
        let leader = Leading::new(self.me, &self.config, group, held, &self.site.0);
        let leader = leader.map(|it| it.reading_from(self.led << u32::BITS));
        let Some(leader) = leader else {
            return;
        };
        let _led = self.stop_leading(group, cx);
        self.leading.insert(group, leader);
        cx.event(Event::Leading { group });
        self.on(group, LeaderInput::Leads, cx);
        self.on(group, LeaderInput::Site, cx);
    }

    /// Ends the lead of a group here. Returns true if the lead had been reported to the host.
    pub(crate) fn stop_leading(&mut self, group: GroupId, cx: &mut Context<'_, Self>) -> bool {
        let Some(leader) = self.leading.remove(&group) else {
            return false;
        };
        for timer in leader.timers() {
            cx.disarm(Timer::Leader(group, timer));
        }
        true
    }

    /// An input of a group; only its leader acts on it.
    pub(crate) fn on(
        &mut self,
        group: GroupId,
        input: LeaderInput<'_>,
        cx: &mut Context<'_, Self>,
    ) {
        let _refused = self.try_on(group, input, cx).is_err();
    }

    /// # Errors
    /// This node does not lead the group, or the host's report cannot be true.
    fn try_on(
        &mut self,
        group: GroupId,
        input: LeaderInput<'_>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let leader = self.leading.get_mut(&group);
        let leader = leader.ok_or(Reject::NotLeader(group))?;
        let Some(held) = self.groups.machine().state(group) else {
            return Err(Reject::NotLeader(group));
        };
        let mut effects = core::mem::take(&mut self.effects.0);
        let taken = leader.on(group, held, &self.site.0, input, &mut effects);
        for effect in effects.drain() {
            self.carry_out(group, effect, cx);
        }
        self.effects.0 = effects; // Its room is used again.
        Ok(taken?)
    }

    fn carry_out(
        &mut self,
        group: GroupId,
        effect: Effect<Update, LeaderTimer, LeaderEvent>,
        cx: &mut Context<'_, Self>,
    ) {
        match effect {
            // The leader repeats a refused proposal: on a tick, or when a peer repeats its request.
            Effect::Propose(update) => {
                self.command_groups(groups::Command::Propose { group, update }, cx);
            }
            Effect::Read(read) => self.command_groups(groups::Command::Read { group, read }, cx),
            Effect::Ask { group: to, request } => {
                let payload = Payload::Request(request);
                self.command_groups(groups::Command::Ask { group: to, payload }, cx);
            }
            Effect::Inform { group: to, answer } => {
                let payload = Payload::Answer { of: group, answer };
                self.command_groups(groups::Command::Ask { group: to, payload }, cx);
            }
            Effect::Answer { to, answer } => {
                let payload = Payload::Answer { of: group, answer };
                self.command_groups(groups::Command::Answer { to, group, payload }, cx);
            }
            Effect::Arm { timer, after } => cx.arm(Timer::Leader(group, timer), after),
            Effect::ArmAbout { timer, after } => {
                let more = Span(after.0 / SLOTS * cx.below(SLOTS + 1));
                cx.arm(Timer::Leader(group, timer), after + more);
            }
            Effect::Disarm(timer) => cx.disarm(Timer::Leader(group, timer)),
            Effect::Event(event) => cx.event(Event::Leader { group, event }),
        }
    }

    /// The leaders here learn that a member has left.
    fn on_left(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let led: Vec<GroupId> = self.leading.keys().copied().collect();
        for group in led {
            self.on(group, LeaderInput::Left(member), cx);
        }
    }

    pub(crate) fn command_groups(
        &mut self,
        command: groups::Command<Update, Payload>,
        cx: &mut Context<'_, Self>,
    ) {
        let _refused = self.ask_groups(Input::Command(command), cx).is_err();
    }

    /// Carries out the effects of this node's own questions to maps.
    fn on_maps(&mut self, effects: Vec<ClientEffect>, cx: &mut Context<'_, Self>) {
        for effect in effects {
            match effect {
                ClientEffect::Ask { map, request } => {
                    let payload = Payload::Request(Request::Store(request));
                    let group = map;
                    self.command_groups(groups::Command::Ask { group, payload }, cx);
                }
                ClientEffect::Arm { map, after } => cx.arm(Timer::Map(map), after),
                ClientEffect::Event { map, event } => cx.event(Event::Map { map, event }),
            }
        }
    }

    fn command(&mut self, command: Command, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::SetEpoch(number) => {
                self.ask_groups(Input::Command(groups::Command::SetEpoch(number)), cx)?;
                self.propose_wanted(cx);
                Ok(())
            }
            Command::ChangeSite(wanted) => self.change_site(&wanted, cx),
            Command::BeginAnew(group) => {
                self.ask_groups(Input::Command(groups::Command::BeginAnew(group)), cx)
            }
            Command::SetSpared(is_spared) => {
                let spared = groups::Command::SetSpared(is_spared);
                self.ask_groups(Input::Command(spared), cx)
            }
            Command::SetClock(shown) => {
                self.set_clock(shown, cx);
                Ok(())
            }
            Command::Reported { device, value } => {
                let group = self.cluster_of(device)?;
                self.try_on(group, LeaderInput::Reported(device, value), cx)
            }
            Command::Acted { ticket, outcome } => {
                let group = self.cluster_of(ticket.device)?;
                self.try_on(group, LeaderInput::Acted(ticket, outcome), cx)
            }
            Command::Trigger { routine, id } => {
                if !site::is_routine(routine) {
                    return Err(Reject::OtherKind(routine, "routine"));
                }
                if self.groups().has_site() && self.site.0.is_removed(routine) {
                    return Err(Reject::NoRoutine(routine));
                }
                let is_known = self.triggers.contains(&(routine, id));
                if self.triggers.len() >= TRIGGERS && !is_known {
                    return Err(Reject::Triggers { limit: TRIGGERS });
                }
                if self.triggers.is_empty() {
                    cx.arm(Timer::Trigger, self.config.routines.resend);
                }
                self.triggers.insert((routine, id));
                self.ask_for_run(routine, id, cx);
                Ok(())
            }
            Command::Map { map, command } => {
                if !map.is_map() {
                    return Err(Reject::OtherKind(map, "map"));
                }
                let mut effects = Vec::new();
                self.maps.on_command(cx.now(), map, command, &mut effects)?;
                self.on_maps(effects, cx);
                Ok(())
            }
        }
    }

    fn ask_for_run(&mut self, routine: GroupId, id: TriggerId, cx: &mut Context<'_, Self>) {
        let payload = Payload::Request(Request::Trigger(id));
        let group = routine;
        self.command_groups(groups::Command::Ask { group, payload }, cx);
    }

    fn cluster_of(&self, device: NodeId) -> Result<GroupId, Reject> {
        let group = self.site.0.cluster_of(device);
        group.ok_or(Reject::NoDevice(device))
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match timer {
            Timer::Groups(timer) => self.ask_groups(Input::Tick(timer), cx),
            Timer::Leader(group, timer) => {
                self.on(group, LeaderInput::Tick(timer), cx);
                Ok(())
            }
            Timer::Clock => {
                self.report_due(cx);
                Ok(())
            }
            Timer::Trigger => {
                for (routine, id) in self.triggers.clone() {
                    self.ask_for_run(routine, id, cx);
                }
                if !self.triggers.is_empty() {
                    cx.arm(Timer::Trigger, self.config.routines.resend);
                }
                Ok(())
            }
            Timer::Map(map) => {
                let mut effects = Vec::new();
                self.maps.on_tick(cx.now(), map, &mut effects);
                self.on_maps(effects, cx);
                Ok(())
            }
        }
    }
}

impl Machine for Kgroup {
    type Message = Message;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Reject = Reject;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match input {
            Input::Message { from, message } => {
                self.ask_groups(Input::Message { from, message }, cx)?;
            }
            Input::Membership(delta) => {
                self.ask_groups(Input::Membership(delta), cx)?;
                if let Delta::Left(member) = delta {
                    self.on_left(member, cx);
                }
            }
            Input::Command(command) => self.command(command, cx)?,
            Input::Tick(timer) => self.on_tick(timer, cx)?,
        }
        self.settle(cx);
        self.flush(cx);
        Ok(())
    }
}

impl Durable for Kgroup {
    type Fact = groups::Fact<GroupState>;
    type Damage = groups::Damage;

    fn fact(event: &Event) -> Option<&Self::Fact> {
        if let Event::Groups(groups::Event::Fact(fact)) = event {
            return Some(fact);
        }
        None
    }

    /// The requests of a former life are not restored; the host repeats them: maps, watches, runs.
    fn fold(&mut self, fact: &Self::Fact) -> Result<(), Self::Damage> {
        self.groups.fold(fact)?;
        self.site.0 = Arc::clone(self.groups().site());
        Ok(())
    }
}

/// The number of runs that a node may ask for at once.
const TRIGGERS: usize = 64;

/// The number of parts of a delay; by chance, 0 to all of them are added to it.
const SLOTS: u64 = 8;

//! Gateways with mailboxes, followers that mostly sleep, and a client, in virtual time.
//!
//! A follower's host powers it down while it sleeps. A message to a follower goes into its mailbox; it
//! gets it when it wakes, or at once while it is awake.

use std::collections::{BTreeMap, VecDeque};

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower, Phase};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{Answer, DutyCycle, Function, Limits, Message, Returned, TaskId};
use selvedge_replica::Configuration;

use super::servers::awake::Awake;
use super::servers::broker::DELAY;
use crate::claims::Fault;

/// Followers' ids begin here, and the client has that one.
const FOLLOWERS: u64 = 1_000;
const CLIENT: u64 = 1_000_000;

/// The number of their periods within which followers begin.
pub(super) const BEGINS: u64 = 10;

#[derive(Debug)]
enum What {
    Message {
        to: NodeId,
        from: Member,
        message: Message,
    },
    /// A follower begins its first period.
    Begins(usize),
    /// A function ends at a follower.
    Ends(usize, TaskId),
}

#[derive(Debug)]
struct FollowerHost {
    me: Member,
    driver: Driver<Follower>,
    is_up: bool,
    lies: bool,
    /// The function that runs.
    runs: Option<TaskId>,
    awake: Awake,
}

#[derive(Debug)]
struct GatewayHost {
    me: Member,
    driver: Driver<Gateway>,
    is_up: bool,
    mailboxes: BTreeMap<NodeId, VecDeque<(Member, Message)>>,
}

/// An observation in a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// A gateway sent its host an event.
    Gateway(usize, gateway::Event),
    /// A function has ended at a follower.
    Returned(usize),
    /// The client has an answer.
    Answered(Answer),
}

/// The settings of a world.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) gateways: u64,
    pub(super) config: gateway::Config,
    pub(super) limits: Limits,
    /// The time that a function runs.
    pub(super) length: Span,
    /// The percentage of messages that are lost.
    pub(super) lost: u64,
}

/// All nodes.
#[derive(Debug)]
pub(super) struct World {
    rng: ChaCha8Rng,
    now: Time,
    length: Span,
    lost: u64,
    gateways: Vec<GatewayHost>,
    followers: Vec<FollowerHost>,
    client: Driver<Client>,
    queue: BTreeMap<(Time, u64), What>,
    entered: u64,
    sent: u64,
    seen: Vec<(Time, Seen)>,
}

impl World {
    pub(super) fn new(setting: &Setting, rng: ChaCha8Rng) -> Result<Self, Fault> {
        let members: Vec<Member> = (1..=setting.gateways)
            .map(|id| Member::new(id, 0))
            .collect();
        let first = Configuration::of(members.iter().copied());
        let make = |&me: &Member| {
            let gateway = Gateway::new(me, setting.config, first.clone(), setting.limits);
            Ok(GatewayHost {
                me,
                driver: Driver::new(gateway.map_err(Fault::network)?),
                is_up: true,
                mailboxes: BTreeMap::new(),
            })
        };
        let gateways = members.iter().map(make).collect::<Result<Vec<_>, _>>()?;
        let me = Member::new(CLIENT, 0);
        let ids = members.iter().map(|it| it.id);
        // Nothing is lost, so it need not ask again.
        let config = client::Config::new().with_resend(Span::secs(86_400));
        let client = Client::new(me, config, ids).map_err(Fault::network)?;
        let mut world = Self {
            rng,
            now: Time::ZERO,
            length: setting.length,
            lost: setting.lost,
            gateways,
            followers: Vec::new(),
            client: Driver::new(client),
            queue: BTreeMap::new(),
            entered: 0,
            sent: 0,
            seen: Vec::new(),
        };
        for at in 0..world.gateways.len() {
            world.step_gateway(at, Input::Command(gateway::Command::Start))?;
        }
        Ok(world)
    }

    /// Adds a follower that begins at a random moment of [`BEGINS`] periods, so that the order in
    /// which followers were added does not determine when they wake.
    pub(super) fn add(&mut self, duty: DutyCycle, gateway: usize) -> Result<usize, Fault> {
        let at = self.followers.len();
        let me = Member::new(FOLLOWERS + at as u64, 0);
        // The limit on a function's time is not under test.
        let config = follower::Config::new(duty).with_time(self.length + Span::secs(1));
        let ids = self.gateways.iter().map(|it| it.me.id);
        let mut ids: Vec<NodeId> = ids.collect();
        ids.rotate_left(gateway % self.gateways.len().max(1));
        let follower = Follower::new(me, config, ids).map_err(Fault::network)?;
        self.followers.push(FollowerHost {
            me,
            driver: Driver::new(follower),
            is_up: true,
            lies: false,
            runs: None,
            awake: Awake::default(),
        });
        let after = self.below(Span(duty.period().0 * BEGINS));
        self.enter(after, What::Begins(at));
        Ok(at)
    }

    /// Makes a follower's results wrong from now on.
    pub(super) fn corrupt(&mut self, at: usize) {
        if let Some(host) = self.followers.get_mut(at) {
            host.lies = true;
        }
    }

    /// Stops a follower for good.
    pub(super) fn stop_follower(&mut self, at: usize) {
        if let Some(host) = self.followers.get_mut(at) {
            host.is_up = false;
            host.awake.sleep(self.now);
        }
    }

    /// Stops a gateway for good.
    pub(super) fn stop_gateway(&mut self, at: usize) {
        if let Some(host) = self.gateways.get_mut(at) {
            host.is_up = false;
        }
    }

    /// The client submits a function.
    pub(super) fn submit(&mut self, code: &[u8]) -> Result<(), Fault> {
        let submit = client::Command::Submit(Function::new(code));
        self.step_client(Input::Command(submit))
    }

    pub(super) fn run_for(&mut self, span: Span) -> Result<(), Fault> {
        let end = self.now + span;
        while self.next().is_some_and(|it| it <= end) {
            self.happen()?;
        }
        self.now = end;
        Ok(())
    }

    /// Lets time pass until this is seen, but no longer than so. When it was.
    pub(super) fn run_until(
        &mut self,
        most: Span,
        is_it: impl Fn(&Self, &Seen) -> bool,
    ) -> Result<Option<Time>, Fault> {
        let end = self.now + most;
        let mut looked = self.seen.len();
        while self.next().is_some_and(|it| it <= end) {
            self.happen()?;
            let new = self.seen.get(looked..).unwrap_or_default();
            if let Some((at, _)) = new.iter().find(|it| is_it(self, &it.1)) {
                return Ok(Some(*at));
            }
            looked = self.seen.len();
        }
        self.now = end;
        Ok(None)
    }

    pub(super) fn below(&mut self, bound: Span) -> Span {
        Span(self.rng.below(bound.0))
    }

    pub(super) const fn now(&self) -> Time {
        self.now
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) fn seen(&self) -> &[(Time, Seen)] {
        &self.seen
    }

    /// The time for which all followers together were awake.
    pub(super) fn awake(&self) -> Span {
        let all = self.followers.iter().map(|it| it.awake.until(self.now));
        all.fold(Span::ZERO, |sum, it| sum + it)
    }

    pub(super) fn gateway(&self, at: usize) -> Option<&Gateway> {
        let host = self.gateways.get(at).filter(|it| it.is_up)?;
        Some(host.driver.machine())
    }

    pub(super) fn manager(&self) -> Option<usize> {
        let manages = |at: &usize| self.gateway(*at).is_some_and(Gateway::manages);
        (0..self.gateways.len()).find(manages)
    }

    /// The place of a follower in the list.
    pub(super) fn place(&self, member: Member) -> Option<usize> {
        self.followers.iter().position(|it| it.me == member)
    }

    /// Returns true if all followers, in `units` units, are in the tables.
    pub(super) fn has_all(&self, units: usize) -> bool {
        let tables = self.manager().and_then(|it| self.gateway(it)?.tables());
        tables
            .is_some_and(|it| it.followers().count() == self.followers.len() && it.units() == units)
    }

    fn member(&self, at: usize) -> Option<Member> {
        self.followers.get(at).map(|it| it.me)
    }

    fn enter(&mut self, after: Span, what: What) {
        self.entered += 1;
        self.queue.insert((self.now + after, self.entered), what);
    }

    fn see(&mut self, seen: Seen) {
        self.seen.push((self.now, seen));
    }

    fn post(&mut self, from: Member, to: NodeId, message: Message) {
        self.sent += 1;
        if self.rng.below(100) < self.lost {
            return;
        }
        let (least, more) = DELAY;
        let after = least + Span(self.rng.below(more.0 + 1));
        self.enter(after, What::Message { to, from, message });
    }

    fn next(&self) -> Option<Time> {
        let gateways = self.gateways.iter().filter(|it| it.is_up);
        let gateways = gateways.filter_map(|it| it.driver.deadline());
        let followers = self.followers.iter().filter(|it| it.is_up);
        let followers = followers.filter_map(|it| it.driver.deadline());
        let message = self.queue.first_key_value().map(|it| it.0.0);
        let others = self.client.deadline().into_iter().chain(message);
        gateways.chain(followers).chain(others).min()
    }

    fn happen(&mut self) -> Result<(), Fault> {
        self.now = self.next().unwrap_or(self.now).max(self.now);
        let is_due = |(at, _): &(Time, u64)| *at <= self.now;
        let Some(entry) = self.queue.first_entry().filter(|it| is_due(it.key())) else {
            return self.expire();
        };
        match entry.remove() {
            What::Message { to, from, message } => self.deliver(to, from, message),
            What::Begins(at) => self.step_follower(at, Input::Command(follower::Command::Start)),
            What::Ends(at, task) => self.end_run(at, task),
        }
    }

    fn expire(&mut self) -> Result<(), Fault> {
        let now = self.now;
        for at in 0..self.gateways.len() {
            let mut effects = Vec::new();
            if let Some(host) = self.gateways.get_mut(at).filter(|it| it.is_up) {
                let driver = &mut host.driver;
                driver.expire_into(now, &mut self.rng, &mut effects);
            }
            self.carry_out_gateway(at, effects);
        }
        for at in 0..self.followers.len() {
            let mut effects = Vec::new();
            if let Some(host) = self.followers.get_mut(at).filter(|it| it.is_up) {
                let driver = &mut host.driver;
                driver.expire_into(now, &mut self.rng, &mut effects);
            }
            self.carry_out_follower(at, effects)?;
        }
        let mut effects = Vec::new();
        let client = &mut self.client;
        client.expire_into(now, &mut self.rng, &mut effects);
        self.carry_out_client(effects);
        Ok(())
    }

    fn deliver(&mut self, to: NodeId, from: Member, message: Message) -> Result<(), Fault> {
        match to.0 {
            CLIENT => self.step_client(Input::Message { from, message }),
            id if id < FOLLOWERS => {
                self.step_gateway(index(id, 1), Input::Message { from, message })
            }
            id => match self.mailbox_for(from, to) {
                Some(gateway) => {
                    if let Some(host) = self.gateways.get_mut(gateway) {
                        let mailbox = host.mailboxes.entry(to).or_default();
                        mailbox.push_back((from, message));
                    }
                    self.look_into_mailbox(index(id, FOLLOWERS), gateway)
                }
                None => Ok(()),
            },
        }
    }

    /// The gateway with the mailbox into which this sender's messages for a follower go.
    fn mailbox_for(&self, from: Member, to: NodeId) -> Option<usize> {
        if from.id.0 < FOLLOWERS {
            return Some(index(from.id.0, 1));
        }
        let sender = self.followers.get(index(from.id.0, FOLLOWERS))?;
        let relay = index(sender.driver.machine().attached_to().0, 1);
        let known = self.gateway(relay)?.tables()?.follower(to)?;
        Some(index(known.gateway.0, 1))
    }

    /// Passes messages at once to a follower that is awake.
    fn look_into_mailbox(&mut self, at: usize, gateway: usize) -> Result<(), Fault> {
        let host = self.followers.get(at).filter(|it| it.is_up);
        let is_awake = host.is_some_and(|it| {
            let follower = it.driver.machine();
            let is_here = index(follower.attached_to().0, 1) == gateway;
            is_here && follower.phase().is_some_and(|it| it != Phase::Asleep)
        });
        if is_awake {
            return self.fetch(at, gateway);
        }
        Ok(())
    }

    fn fetch(&mut self, at: usize, gateway: usize) -> Result<(), Fault> {
        let Some(me) = self.member(at) else {
            return Ok(());
        };
        if self.gateway(gateway).is_none() {
            return self.step_follower(at, Input::Command(follower::Command::Unreachable));
        }
        let next = |it: &mut Self| {
            let host = it.gateways.get_mut(gateway)?;
            host.mailboxes.get_mut(&me.id)?.pop_front()
        };
        while let Some((from, message)) = next(self) {
            self.step_follower(at, Input::Message { from, message })?;
        }
        Ok(())
    }

    fn step_gateway(&mut self, at: usize, input: Input<Gateway>) -> Result<(), Fault> {
        let mut effects = Vec::new();
        let Some(host) = self.gateways.get_mut(at).filter(|it| it.is_up) else {
            return Ok(());
        };
        // A late message is refused, and changes nothing.
        let _refused = host
            .driver
            .step_into(self.now, &mut self.rng, input, &mut effects);
        self.carry_out_gateway(at, effects);
        Ok(())
    }

    fn carry_out_gateway(&mut self, at: usize, effects: Vec<Effect<Gateway>>) {
        let Some(me) = self.gateways.get(at).map(|it| it.me) else {
            return;
        };
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(me, to.id, message),
                // No gateway multicasts, and none stops here with its stored facts.
                Effect::Multicast { .. } | Effect::Event(gateway::Event::Fact(_)) => {}
                Effect::Event(event) => self.see(Seen::Gateway(at, event)),
            }
        }
    }

    fn step_follower(&mut self, at: usize, input: Input<Follower>) -> Result<(), Fault> {
        let mut effects = Vec::new();
        let Some(host) = self.followers.get_mut(at).filter(|it| it.is_up) else {
            return Ok(());
        };
        let _refused = host
            .driver
            .step_into(self.now, &mut self.rng, input, &mut effects);
        self.carry_out_follower(at, effects)
    }

    fn carry_out_follower(
        &mut self,
        at: usize,
        effects: Vec<Effect<Follower>>,
    ) -> Result<(), Fault> {
        let Some(me) = self.member(at) else {
            return Ok(());
        };
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(me, to.id, message),
                Effect::Multicast { .. } => {}
                Effect::Event(event) => self.on_follower(at, event)?,
            }
        }
        Ok(())
    }

    fn on_follower(&mut self, at: usize, event: follower::Event) -> Result<(), Fault> {
        let now = self.now;
        let length = self.length;
        let Some(host) = self.followers.get_mut(at) else {
            return Ok(());
        };
        match event {
            follower::Event::PhaseChanged(Phase::Asleep) => host.awake.sleep(now),
            follower::Event::PhaseChanged(_) => host.awake.wake(now),
            follower::Event::Fetch(gateway) => return self.fetch(at, index(gateway.0, 1)),
            follower::Event::Run { task, .. } => {
                host.runs = Some(task);
                self.enter(length, What::Ends(at, task));
            }
            follower::Event::Stop(_) => host.runs = None,
            // No function here needs a library.
            follower::Event::Load(_) | follower::Event::Unload(_) | _ => {}
        }
        Ok(())
    }

    fn end_run(&mut self, at: usize, task: TaskId) -> Result<(), Fault> {
        let Some(host) = self.followers.get_mut(at).filter(|it| it.is_up) else {
            return Ok(());
        };
        if host.runs.take_if(|it| *it == task).is_none() {
            return Ok(()); // It was stopped.
        }
        let value = if host.lies { at as u64 + 1 } else { 0 };
        let value = value.to_be_bytes().into_iter().collect();
        let returned = follower::Command::Returned {
            task,
            returned: Returned::Value(value),
        };
        self.see(Seen::Returned(at));
        self.step_follower(at, Input::Command(returned))
    }

    fn step_client(&mut self, input: Input<Client>) -> Result<(), Fault> {
        let mut effects = Vec::new();
        let client = &mut self.client;
        client
            .step_into(self.now, &mut self.rng, input, &mut effects)
            .map_err(Fault::network)?;
        self.carry_out_client(effects);
        Ok(())
    }

    fn carry_out_client(&mut self, effects: Vec<Effect<Client>>) {
        let me = self.client.machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(me, to.id, message),
                Effect::Event(client::Event::Answered { answer, .. }) => {
                    self.see(Seen::Answered(answer));
                }
                Effect::Multicast { .. } | Effect::Event(_) => {}
            }
        }
    }
}

/// The place of the node with this id among its kind.
fn index(id: u64, first: u64) -> usize {
    id.saturating_sub(first) as usize
}

/// Returns true for the result of a function without faults.
pub(super) fn is_right(answer: &Answer) -> bool {
    matches!(answer, Answer::Value(it) if **it == 0_u64.to_be_bytes())
}

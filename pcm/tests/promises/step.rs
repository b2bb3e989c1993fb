//! A host: when it steps its machine, and what it does with the effects.

use chacha20::ChaCha8Rng;
use selvedge_core::durable::Durable as _;
use selvedge_core::{Driver, Effect, Input, Member, Time};
use selvedge_pcm::{Message, TaskId, client, follower, gateway};
use selvedge_replica::Fact;

use crate::node::{Host, In, Item, Machine};
use crate::world::{What, World};

/// One step of a driver: an input, or what is due.
fn drive<M: selvedge_core::Machine>(
    driver: &mut Driver<M>,
    now: Time,
    rng: &mut ChaCha8Rng,
    input: Option<Input<M>>,
) -> (Vec<Effect<M>>, Result<(), M::Reject>) {
    let mut effects = Vec::new();
    let outcome = match input {
        Some(input) => driver.step(now, rng, input, |it| effects.push(it)),
        None => {
            driver.expire(now, rng, |it| effects.push(it));
            Ok(())
        }
    };
    assert_eq!(driver.refused_ticks(), 0, "a timer is refused");
    assert!(outcome.is_ok() || effects.is_empty());
    (effects, outcome)
}

fn items<M: selvedge_core::Machine<Message = Message>>(
    effects: Vec<Effect<M>>,
    event: impl Fn(M::Event) -> Item,
) -> Vec<Item> {
    let items = effects.into_iter().map(|it| match it {
        Effect::Send { to, message } => Item::Send { to, message },
        Effect::Multicast { .. } => panic!("nothing is multicast"),
        Effect::Event(it) => event(it),
    });
    items.collect()
}

fn plain<M: selvedge_core::Machine<Message = Message>>(
    input: In,
    command: impl Fn(In) -> M::Command,
) -> Input<M> {
    match input {
        In::Message { from, message } => Input::Message { from, message },
        In::Membership(delta) => Input::Membership(delta),
        other => Input::Command(command(other)),
    }
}

impl World {
    pub(crate) fn input(&mut self, to: u64, input: In) {
        if let Some(host) = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut()) {
            host.inbox.push_back(input);
            self.run(to);
        }
    }

    /// Hands something to this life of a node alone.
    pub(crate) fn hand(&mut self, to: Member, input: In) {
        if self.is_up(to) {
            self.input(to.id.0, input);
        }
    }

    pub(crate) fn is_up(&self, who: Member) -> bool {
        let host = self.nodes.get(&who.id.0).and_then(|it| it.host.as_ref());
        host.is_some_and(|it| it.me == who)
    }

    fn is_running(&self, id: u64) -> bool {
        let node = &self.nodes[&id];
        let ready = |host: &Host| host.barrier.ready().is_ok();
        !node.paused && node.host.as_ref().is_some_and(ready)
    }

    /// Takes what waits, as far as storage allows.
    pub(crate) fn run(&mut self, id: u64) {
        if !self.weather.burst_first {
            self.expire(id);
        }
        while self.is_running(id) {
            let Some(input) = self.next_input(id) else {
                break;
            };
            self.step(id, Some(input)).ok();
        }
        self.expire(id);
    }

    /// What a follower that sleeps is sent waits, or is lost. So does what its mailbox says.
    fn next_input(&mut self, id: u64) -> Option<In> {
        let drops = self.weather.drops_asleep;
        let host = self.nodes.get_mut(&id)?.host.as_mut()?;
        let asleep = host.work.phase == Some(selvedge_pcm::follower::Phase::Asleep);
        if asleep && drops {
            host.inbox.retain(|it| !matches!(it, In::Message { .. }));
        }
        let at = host.inbox.iter().position(|it| !asleep || !waits(it));
        host.inbox.remove(at?)
    }

    pub(crate) fn expire(&mut self, id: u64) {
        if !self.is_running(id) {
            return;
        }
        let node = &self.nodes[&id];
        let now = node.local(self.now);
        let due = node.host.as_ref().unwrap().machine.deadline();
        if due.is_some_and(|it| it <= now) {
            self.step(id, None).ok();
        }
        self.schedule(id);
    }

    pub(crate) fn schedule(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(due) = node.host.as_ref().and_then(|it| it.machine.deadline()) else {
            return;
        };
        let when = node.real(due, now);
        let host = node.host.as_mut().unwrap();
        if !node.paused && host.tick_at.is_none_or(|it| when < it) {
            host.tick_at = Some(when);
            self.at(when, What::Tick(id));
        }
    }

    /// One step of a machine: an input, or what is due.
    pub(crate) fn step(&mut self, id: u64, input: Option<In>) -> Result<(), String> {
        let node = self.nodes.get_mut(&id).unwrap();
        let now = node.local(self.now);
        let stores = node.stores();
        let host = node.host.as_mut().unwrap();
        let me = host.me;
        let from = input.as_ref().and_then(sender);
        if self.trace {
            let what = input.as_ref().map(|it| format!("{it:?}"));
            eprintln!(
                "{:>12} {me:?} <- {}",
                self.now,
                what.as_deref().unwrap_or("due")
            );
        }
        let rng = &mut self.rng;
        let accuses;
        let (mut items, outcome) = match &mut host.machine {
            Machine::Gateway(driver) => {
                let input = input.map(|it| {
                    plain(it, |it| match it {
                        In::Gateway(it) => it,
                        other => panic!("{other:?} for a gateway"),
                    })
                });
                let (effects, outcome) = drive(driver, now, rng, input);
                let items = items(effects, Item::Gateway);
                check_answers(driver.machine(), &items);
                check_facts(driver.machine(), host.folded.as_mut().unwrap(), &items);
                accuses = matches!(
                    outcome,
                    Err(gateway::Reject::Misbehaviour(_)
                        | gateway::Reject::Replica(selvedge_replica::Reject::Misbehaviour(_)))
                );
                (items, outcome.map_err(|it| it.to_string()))
            }
            Machine::Follower(driver) => {
                let input = input.map(|it| {
                    plain(it, |it| match it {
                        In::Follower(it) => it,
                        other => panic!("{other:?} for a follower"),
                    })
                });
                let (effects, outcome) = drive(driver, now, rng, input);
                let items = items(effects, Item::Follower);
                accuses = matches!(outcome, Err(follower::Reject::Misbehaviour(_)));
                (items, outcome.map_err(|it| it.to_string()))
            }
            Machine::Client(driver) => {
                let input = input.map(|it| {
                    plain(it, |it| match it {
                        In::Client(it) => it,
                        other => panic!("{other:?} for a client"),
                    })
                });
                let (effects, outcome) = drive(driver, now, rng, input);
                let items = items(effects, Item::Client);
                accuses = matches!(
                    outcome,
                    Err(client::Reject::Misdirected(_) | client::Reject::TooMany(..))
                );
                (items, outcome.map_err(|it| it.to_string()))
            }
        };
        if let (true, Err(why)) = (self.trace, &outcome) {
            eprintln!("{:>12} {me:?} refused: {why}", self.now);
        }
        if let Some(from) = from.filter(|_| accuses) {
            self.is_accused(me, from, &outcome);
        }
        let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
        observe(host, &mut items);
        let mut out = Vec::new();
        for item in items {
            match &item {
                Item::Gateway(gateway::Event::Fact(_)) if stores => host.barrier.push_fact(item),
                _ => host.barrier.push(item, |it| out.push(it)),
            }
        }
        for item in out {
            self.carry_out(me, item);
        }
        self.write(id);
        self.schedule(id);
        outcome
    }

    /// Checks that no honest node accuses an honest peer. A liar gets answers to questions that its own machine
    /// did not send.
    fn is_accused(&mut self, me: Member, from: Member, why: &Result<(), String>) {
        let is_honest = |id: u64| self.nodes.get(&id).is_some_and(|it| !it.is_liar());
        let are_honest = is_honest(me.id.0) && is_honest(from.id.0);
        assert!(!are_honest, "{me:?} accuses {from:?}: {why:?}");
        self.oracle.count("accused");
    }

    pub(crate) fn carry_out(&mut self, me: Member, item: Item) {
        match item {
            Item::Send { to, message } => self.send(me, to, message),
            Item::Gateway(event) => self.gateway_event(me, event),
            Item::Follower(event) => self.follower_event(me, event),
            Item::Client(event) => {
                self.say(|| format!("{me:?} {event:?}"));
                self.client_event(me, event);
            }
            Item::Observe { version, tables } => {
                self.oracle.examine(me, version, &tables);
            }
        }
    }

    fn client_event(&mut self, me: Member, event: client::Event) {
        match event {
            client::Event::Answered {
                number,
                answer,
                voters,
            } => {
                let task = TaskId { client: me, number };
                self.oracle.answered(task, &(answer, voters));
            }
            client::Event::Refused { number, why } => {
                self.oracle.refused(TaskId { client: me, number }, why);
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn pause(&mut self, id: u64, long: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.paused && node.host.is_some() {
            node.paused = true;
            self.say(|| format!("{id} pauses for {long}"));
            self.at(self.now + long, What::Wake(id));
        }
    }

    pub(crate) fn wake(&mut self, id: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.paused {
            return;
        }
        node.paused = false;
        if let Some(host) = node.host.as_mut() {
            host.tick_at = None;
        }
        self.say(|| format!("{id} wakes"));
        self.run(id);
    }

    /// A node's clock is set forward, or its host slept where no event reached it.
    pub(crate) fn jump(&mut self, id: u64, by: u64) {
        let node = self.nodes.get_mut(&id).unwrap();
        node.offset += by;
        if let Some(host) = node.host.as_mut() {
            host.tick_at = None;
        }
        self.say(|| format!("the clock of {id} jumps by {by}"));
        self.run(id);
    }
}

const fn sender(input: &In) -> Option<Member> {
    match input {
        In::Message { from, .. } => Some(*from),
        _ => None,
    }
}

/// A gateway answers what stands in its tables.
fn check_answers(gateway: &gateway::Gateway, items: &[Item]) {
    for item in items {
        let Item::Send {
            message:
                Message::Answer {
                    task,
                    answer,
                    voters,
                },
            ..
        } = item
        else {
            continue;
        };
        let known = gateway
            .tables()
            .and_then(|it| Some((it.answer(*task)?, it.voters(*task))));
        assert!(
            known.is_none_or(|it| it == (answer, &**voters)),
            "{task:?}: says {answer:?} of {voters:?}, and knows {known:?}"
        );
    }
}

/// Compares the facts of a gateway with its state. Versions that it has committed without a fact are among the
/// entries that it has accepted.
fn check_facts(gateway: &gateway::Gateway, folded: &mut gateway::Gateway, items: &[Item]) {
    let mut is_other = false;
    for item in items {
        if let Item::Gateway(gateway::Event::Fact(fact)) = item {
            let taken = folded.fold(fact);
            assert_eq!(taken, Ok(()), "{:?}: {fact:?}", gateway.me());
            is_other = true;
        }
    }
    if is_other {
        let mut folded = folded.clone();
        let committed = Fact::Committed(gateway.replica().version());
        assert_eq!(folded.fold(&committed), Ok(()), "{:?}", gateway.me());
        assert_eq!(folded.replica().stored(), gateway.replica().stored());
    }
}

/// A gateway's tables are other ones.
fn observe(host: &mut Host, items: &mut Vec<Item>) {
    let Machine::Gateway(driver) = &host.machine else {
        return;
    };
    let machine = driver.machine();
    let version = machine.replica().version();
    if version == host.shown {
        return;
    }
    host.shown = version;
    if let Some(tables) = machine.tables() {
        items.push(Item::Observe {
            version,
            tables: Box::new(tables.clone()),
        });
    }
}

/// What is not for a follower that sleeps.
const fn waits(input: &In) -> bool {
    matches!(input, In::Message { .. } | In::Follower(_))
}

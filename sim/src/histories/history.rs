//! The loop of a host, and a protocol's additions to it.

use alloc::collections::{BTreeMap, VecDeque};
use core::fmt::Debug;
use core::ops::DerefMut;

use selvedge_core::durable::{Barrier, Mark};
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Machine, Member};

use super::{Disk, Host, Hosts, Item, Life, Node, Real, Waiting, What, Write};

type Message<H> = <<H as History>::Machine as Machine>::Message;
type Event<H> = <<H as History>::Machine as Machine>::Event;
type Reject<H> = <<H as History>::Machine as Machine>::Reject;

/// The number of messages that are remembered.
const KEPT: usize = 1_000;

/// A step that a machine has taken.
#[derive(Debug)]
pub struct Step<'a, H: History> {
    /// The life that took it.
    pub me: Member,
    /// The sender, if the input was a message.
    pub from: Option<Member>,
    /// The effects, in order.
    pub effects: &'a [Effect<H::Machine>],
    /// The refusal, if the machine refused its input.
    pub refusal: Option<&'a Reject<H>>,
}

/// The protocol of [`Hosts`]: its machines, their commands, and their promises.
///
/// A broken promise panics. The methods with a body are the harness; a protocol calls them, and
/// implements the others.
#[allow(unused_variables, reason = "most protocols need few of these")]
pub trait History: Sized + DerefMut<Target = Hosts<Self>> {
    /// The machine of a node.
    type Machine: Machine;
    /// A fact, which a host stores.
    type Fact: Clone + Debug;
    /// A base, which storage keeps in place of facts.
    type Base: Debug;
    /// Output of a host that waits until all facts before it are stored.
    type Note: Debug;
    /// An event of the protocol itself.
    type Happening: Debug;
    /// The protocol's data of a node, in all its lives.
    type Node: Debug;
    /// The protocol's data of one life.
    type Life: Default + Debug;

    /// The fact in an event.
    fn fact(event: &Event<Self>) -> Option<&Self::Fact>;

    /// Makes the machine of a life that begins, from the node's storage if it stores.
    fn make(&mut self, life: Life) -> Self::Machine;

    /// Sends a message: [`Hosts::carry`], if nothing else is done with it.
    fn send(&mut self, from: Member, to: Member, message: Message<Self>);

    /// Handles an event that a machine emitted at that time.
    fn event(&mut self, me: Member, reported: Real, event: Event<Self>);

    /// Returns true if a note rests on no fact of its own step: it goes out as soon as the facts of earlier
    /// steps are stored, as a message that a machine sends ahead of its fact.
    fn goes_ahead(note: &Self::Note) -> bool {
        false
    }

    /// Handles a note whose facts are stored.
    fn note(&mut self, me: Member, note: Self::Note) {}

    /// Called when a life has begun.
    fn began(&mut self, me: Member) {}

    /// Called after a step, before its effects are carried out. Returns notes that go out with them.
    fn stepped(&mut self, step: &Step<'_, Self>) -> Vec<Self::Note> {
        Vec::new()
    }

    /// Handles an event of the protocol.
    fn happens(&mut self, what: Self::Happening) {}

    /// Stores a base in place of all facts so far.
    fn replace(disk: &mut Disk<Self>, base: Self::Base) {
        disk.base = Some(base);
        disk.facts.clear();
    }

    /// Draws a number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.choices.below(bound)
    }

    /// Returns true in this share of 100 cases.
    fn percent(&mut self, percent: u64) -> bool {
        self.choices.percent(percent)
    }

    /// Draws one of these.
    fn pick<T: Clone + Default>(&mut self, of: &[T]) -> T {
        self.choices.pick(of)
    }

    /// Draws the id of a node.
    fn a_node(&mut self) -> u64 {
        let ids = self.ids();
        self.pick(&ids)
    }

    /// Schedules something at a time.
    fn at(&mut self, when: Real, what: What<Self>) {
        self.push(when, what);
    }

    /// Schedules something after a span.
    fn after(&mut self, span: Real, what: What<Self>) {
        self.at(self.now + span, what);
    }

    /// Notifies a node of a change, now or later, or not.
    fn notify(&mut self, to: u64, delta: Delta) {
        if self.percent(self.weather.deltas_lost) {
            return;
        }
        let after = self.below(300_000);
        let after = if self.percent(10) { after * 20 } else { after };
        self.after(after, What::Notified(to, delta));
    }

    /// Runs on until then.
    fn run_until(&mut self, end: Real) {
        while let Some(what) = self.next(end) {
            match what {
                What::Deliver {
                    to,
                    from,
                    message,
                    sent,
                } => self.arrive(to, Input::Message { from, message }, sent),
                What::Tick(id) => self.tick(id),
                What::Written(who) => self.written(who),
                What::Wake(id) => self.wake(id),
                What::Restart(id) => self.start(id),
                What::Notified(to, delta) => {
                    let host = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut());
                    if let Some(host) = host {
                        host.notified.insert(delta.member().id.0, delta);
                        self.input(to, Input::Membership(delta));
                    }
                }
                What::Own(what) => self.happens(what),
            }
        }
    }

    /// Runs on for a span.
    fn run_for(&mut self, span: Real) {
        self.run_until(self.now + span);
    }

    /// Gives a node an input, now.
    fn input(&mut self, to: u64, input: Input<Self::Machine>) {
        let sent = self.now;
        self.arrive(to, input, sent);
    }

    /// Gives a node an input that was sent earlier.
    fn arrive(&mut self, to: u64, input: Input<Self::Machine>, sent: Real) {
        let depth = self.depth;
        if let Some(host) = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut()) {
            host.inbox.push_back(Waiting { input, sent, depth });
            self.run(to);
        }
    }

    /// Lets the machine take its inbox, as far as storage allows.
    fn run(&mut self, id: u64) {
        if !self.weather.burst_first {
            self.expire(id);
        }
        while self.is_running(id) {
            let Some(Waiting { input, sent, depth }) = self.next_input(id) else {
                break;
            };
            self.depth = depth;
            let is_message = matches!(input, Input::Message { .. });
            if is_message && self.now - sent > self.weather.latest {
                continue; // No message is under way for longer.
            }
            self.step(id, Some(input)).ok();
        }
        self.expire(id);
    }

    /// Takes the next input that the host gives its machine.
    fn next_input(&mut self, id: u64) -> Option<Waiting<Self>> {
        self.nodes.get_mut(&id)?.host.as_mut()?.inbox.pop_front()
    }

    /// Handles a moment at which timers of a node may be due.
    fn tick(&mut self, id: u64) {
        let now = self.now;
        let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut()) else {
            return;
        };
        if host.tick_at.is_none_or(|it| it > now) {
            return; // Another one is scheduled.
        }
        host.tick_at = None;
        self.expire(id);
        self.ticked(id);
    }

    /// Called after the timers of a node were looked at.
    fn ticked(&mut self, id: u64) {}

    /// Lets the timers tick that are due.
    fn expire(&mut self, id: u64) {
        if !self.is_running(id) {
            return;
        }
        let now = self.now;
        let is_due = self.nodes.get(&id).is_some_and(|node| {
            let due = node.host.as_ref().and_then(|it| it.driver.deadline());
            due.is_some_and(|it| it <= node.local(now))
        });
        if is_due {
            self.depth = 0;
            self.step(id, None).ok();
        }
        self.schedule(id);
    }

    /// Looks at the timers of a node when the next one is due.
    fn schedule(&mut self, id: u64) {
        let now = self.now;
        let Some(node) = self.nodes.get(&id).filter(|it| it.paused_at.is_none()) else {
            return;
        };
        let Some(due) = node.host.as_ref().and_then(|it| it.driver.deadline()) else {
            return;
        };
        let when = node.real(due, now);
        if let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut())
            && host.tick_at.is_none_or(|it| when < it)
        {
            host.tick_at = Some(when);
            self.at(when, What::Tick(id));
        }
    }

    /// Takes one step of a machine that is up: an input, or its timers. Its effects are carried out as far
    /// as they need not wait for facts.
    ///
    /// # Errors
    /// Why the machine refused the input.
    fn step(&mut self, id: u64, input: Option<Input<Self::Machine>>) -> Result<(), Reject<Self>> {
        let hosts: &mut Hosts<Self> = self;
        let now = hosts.now;
        let Some(node) = hosts.nodes.get_mut(&id) else {
            return Ok(());
        };
        let (local, stores) = (node.local(now), node.stores);
        let Some(host) = &mut node.host else {
            return Ok(());
        };
        let me = host.me;
        hosts.trace.line(|| match &input {
            Some(input) => format!("{now:>12} {me:?} <- {input:?}"),
            None => {
                let due = host.driver.timers().filter(|it| it.1 <= local);
                format!("{now:>12} {me:?} <- due {:?}", due.collect::<Vec<_>>())
            }
        });
        let from = match &input {
            Some(Input::Message { from, .. }) => Some(*from),
            _ => None,
        };
        let mut effects = Vec::new();
        let choices = &mut hosts.choices;
        let taken = match input {
            Some(input) => (host.driver).step_into(local, choices, input, &mut effects),
            None => {
                (host.driver).expire_into(local, choices, &mut effects);
                Ok(())
            }
        };
        assert_eq!(host.driver.refused_ticks(), 0, "{me:?}: a timer is refused");
        if let Err(why) = &taken {
            hosts.say(|| format!("{me:?} refused: {why:?}"));
            assert!(effects.is_empty(), "{me:?}: a refusal has effects: {why:?}");
        }
        let notes = self.stepped(&Step {
            me,
            from,
            effects: &effects,
            refusal: taken.as_ref().err(),
        });
        let depth = self.depth;
        let effects = (effects.into_iter()).map(|it| Item::Effect(it, now, depth));
        let (ahead, behind): (Vec<_>, Vec<_>) = notes.into_iter().partition(Self::goes_ahead);
        let items = ahead.into_iter().map(Item::Note).chain(effects);
        let items = items.chain(behind.into_iter().map(Item::Note));
        let mut out = Vec::new();
        if let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut()) {
            for item in items {
                if stores && fact_in(&item).is_some() {
                    host.barrier.push_fact(item);
                } else {
                    host.barrier.push(item, |it| out.push(it));
                }
            }
        }
        self.let_out(me, out);
        self.write(id);
        self.schedule(id);
        taken
    }

    /// Carries out effects that wait for nothing.
    fn let_out(&mut self, me: Member, items: Vec<Item<Self>>) {
        for item in items {
            if let Item::Effect(_, _, depth) = &item {
                self.depth = *depth;
            }
            match item {
                Item::Effect(Effect::Send { to, message }, ..) => self.send(me, to, message),
                Item::Effect(Effect::Multicast { message }, ..) => {
                    for other in self.ids() {
                        if let Some(to) = self.nodes.get(&other).map(Node::member)
                            && to.id != me.id
                        {
                            self.send(me, to, message.clone());
                        }
                    }
                }
                Item::Effect(Effect::Event(event), reported, _) => {
                    if Self::fact(&event).is_none() {
                        self.say(|| format!("{me:?} {event:?}"));
                    }
                    self.event(me, reported, event);
                }
                Item::Note(note) => self.note(me, note),
            }
        }
        self.went(me.id.0);
    }

    /// Called after effects were carried out.
    fn went(&mut self, id: u64) {}

    /// Hands new facts to storage, if it is idle, or else sometimes.
    fn write(&mut self, id: u64) {
        let more = self.percent(30);
        let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut()) else {
            return;
        };
        if !host.writes.is_empty() && !more {
            return;
        }
        let mut facts = Vec::new();
        let mark = (host.barrier).write(|item| facts.extend(fact_in(item).cloned()));
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(facts));
        }
    }

    /// Queues a write for storage.
    fn queue_write(&mut self, id: u64, mark: Mark, write: Write<Self>) {
        let Some(host) = self.nodes.get_mut(&id).and_then(|it| it.host.as_mut()) else {
            return;
        };
        host.writes.push_back((mark, write));
        if host.writes.len() == 1 {
            let me = host.me;
            self.begin_write(me);
        }
    }

    /// Begins the first write that waits.
    fn begin_write(&mut self, me: Member) {
        let most = self.weather.write + 1;
        let took = self.below(most);
        self.after(took, What::Written(me));
    }

    /// Completes a write.
    fn written(&mut self, who: Member) {
        let Some(node) = self.nodes.get_mut(&who.id.0) else {
            return;
        };
        let Some(host) = node.host.as_mut().filter(|it| it.me == who) else {
            return;
        };
        let Some((mark, write)) = host.writes.pop_front() else {
            return;
        };
        let mut out = Vec::new();
        host.barrier.stored(mark, |it| out.push(it));
        let more = !host.writes.is_empty();
        take(&mut node.disk, write);
        self.let_out(who, out);
        if more {
            self.begin_write(who);
        }
        self.write(who.id.0);
        self.run(who.id.0);
    }

    /// Stops a node, which begins its next life after a span. What is not stored is lost, with all
    /// that waits for it; storage may have kept a part of what it was handed. Returns the life that
    /// stopped.
    fn stop(&mut self, id: u64, restart_after: Real) -> Option<Member> {
        let hosts: &mut Hosts<Self> = self;
        let node = hosts.nodes.get_mut(&id)?;
        let host = node.host.take()?;
        let me = host.me;
        if let Some((_, Write::Facts(mut facts))) = host.writes.into_iter().next() {
            let kept = hosts.choices.below(facts.len() as u64 + 1);
            facts.truncate(usize::try_from(kept).unwrap_or_default());
            node.disk.facts.extend(facts);
        }
        node.life = node.life.wrapping_add(1);
        if !node.stores {
            node.born = node.life;
        }
        node.goes_on(hosts.now);
        hosts.say(|| format!("{me:?} stops"));
        hosts.push(hosts.now + restart_after, What::Restart(id));
        Some(me)
    }

    /// Begins the next life of a node that is down.
    fn start(&mut self, id: u64) {
        let is_down = |it: &&Node<Self>| it.host.is_none() && !it.never;
        let Some(node) = self.nodes.get(&id).filter(is_down) else {
            return;
        };
        let me = node.member();
        let is_first = node.life == node.begins;
        let machine = self.make(Life { me, is_first });
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.host = Some(Host {
            me,
            driver: Driver::new(machine),
            barrier: Barrier::new(node.limit),
            writes: VecDeque::new(),
            inbox: VecDeque::new(),
            tick_at: None,
            notified: BTreeMap::new(),
            own: Self::Life::default(),
        });
        node.asleep = false;
        self.restarts += u64::from(!is_first);
        self.say(|| format!("{me:?} begins"));
        self.began(me);
    }

    /// Notifies most nodes that are up of a life that began, and that life of them.
    fn meet(&mut self, me: Member) {
        for other in self.ids() {
            if other == me.id.0 {
                continue;
            }
            if self.percent(70) {
                self.notify(other, Delta::Joined(me));
            }
            if let Some(there) = self.me(other)
                && self.percent(70)
            {
                self.notify(me.id.0, Delta::Joined(there));
            }
        }
    }

    /// Puts a node to sleep for a span: its messages wait, and its timers are late.
    fn sleep(&mut self, id: u64, long: Real) {
        let hosts: &mut Hosts<Self> = self;
        let Some(node) = hosts.nodes.get_mut(&id) else {
            return;
        };
        if node.asleep || node.host.is_none() {
            return;
        }
        node.asleep = true;
        if hosts.weather.clocks_stop {
            node.paused_at = Some(hosts.now);
        }
        hosts.say(|| format!("{id} sleeps for {long}"));
        hosts.push(hosts.now + long, What::Wake(id));
    }

    /// Wakes a node.
    fn wake(&mut self, id: u64) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id).filter(|it| it.asleep) else {
            return;
        };
        node.goes_on(now);
        if let Some(host) = &mut node.host {
            host.tick_at = None;
        }
        self.say(|| format!("{id} wakes"));
        self.run(id);
    }

    /// Sets the clock of a node forward, as if its host slept without notice.
    fn jump(&mut self, id: u64, by: u64) {
        let Some(node) = self.nodes.get_mut(&id) else {
            return;
        };
        node.offset += by;
        if let Some(host) = &mut node.host {
            host.tick_at = None;
        }
        self.say(|| format!("the clock of {id} jumps by {by}"));
        self.run(id);
    }

    /// Wakes and starts all nodes that may be up.
    fn wake_all(&mut self) {
        for id in self.ids() {
            self.wake(id);
            self.start(id);
        }
    }

    /// Remembers a message: the network may deliver it again, however late.
    fn remember(&mut self, from: Member, to: u64, message: &Message<Self>) {
        if self.old.len() < KEPT {
            self.old.push((from, to, message.clone()));
            return;
        }
        let at = self.below(KEPT as u64 * 4);
        let slot = usize::try_from(at).ok();
        if let Some(slot) = slot.and_then(|at| self.old.get_mut(at)) {
            *slot = (from, to, message.clone());
        }
    }

    /// Delivers an old message again.
    fn echo(&mut self) {
        let many = self.old.len() as u64;
        let at = usize::try_from(self.below(many));
        let old = at.ok().and_then(|at| self.old.get(at));
        if let Some((from, to, message)) = old.cloned() {
            self.say(|| format!("{from:?} sent long ago: {message:?}"));
            self.input(to, Input::Message { from, message });
        }
    }
}

fn fact_in<H: History>(item: &Item<H>) -> Option<&H::Fact> {
    match item {
        Item::Effect(Effect::Event(event), ..) => H::fact(event),
        Item::Effect(..) | Item::Note(_) => None,
    }
}

fn take<H: History>(disk: &mut Disk<H>, write: Write<H>) {
    match write {
        Write::Facts(facts) => disk.facts.extend(facts),
        Write::Base(base) => H::replace(disk, *base),
    }
}

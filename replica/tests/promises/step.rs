//! A host: when it steps its machine, and what it does with the effects.

use selvedge_core::{Effect, Input, Member};
use selvedge_replica::{Event, Reject};

use crate::node::{Host, Item};
use crate::oracle::{End, Log};
use crate::world::{Machine, Real, What, World};

impl World {
    pub(crate) fn input(&mut self, to: u64, input: Input<Machine>) {
        if let Some(host) = self.nodes.get_mut(&to).and_then(|it| it.host.as_mut()) {
            host.inbox.push_back(input);
            self.run(to);
        }
    }

    /// Whether nothing keeps the host from running.
    pub(crate) fn is_running(&self, id: u64) -> bool {
        let node = &self.nodes[&id];
        let ready = |host: &Host| host.barrier.ready().is_ok();
        !node.asleep && node.host.as_ref().is_some_and(ready)
    }

    /// Takes what waits, as far as storage allows.
    pub(crate) fn run(&mut self, id: u64) {
        let timers_first = !self.weather.burst_first;
        if timers_first {
            self.expire(id);
        }
        while self.is_running(id) {
            let host = self.nodes.get_mut(&id).unwrap().host.as_mut().unwrap();
            let Some(input) = host.inbox.pop_front() else {
                break;
            };
            self.step(id, Some(input)).ok();
        }
        self.expire(id);
    }

    pub(crate) fn expire(&mut self, id: u64) {
        if !self.is_running(id) {
            return;
        }
        let node = &self.nodes[&id];
        let now = node.local(self.now);
        let due = node.host.as_ref().unwrap().driver.deadline();
        if due.is_some_and(|it| it <= now) {
            self.step(id, None).ok();
        }
        self.schedule(id);
    }

    pub(crate) fn schedule(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_ref() else {
            return;
        };
        let Some(due) = host.driver.deadline() else {
            return;
        };
        if node.paused_at.is_some() {
            return;
        }
        let when = node.real(due, now);
        let scheduled = host.tick_at;
        if scheduled.is_none_or(|it| when < it) {
            node.host.as_mut().unwrap().tick_at = Some(when);
            self.at(when, What::Tick(id));
        }
    }

    /// One step of a machine: an input, or what is due.
    pub(crate) fn step(&mut self, id: u64, input: Option<Input<Machine>>) -> Result<(), Reject> {
        let real = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        let now = node.local(real);
        let stores = node.stores;
        let host = node.host.as_mut().unwrap();
        let me = host.me;
        let budget = host.driver.machine().configuration().frame_budget;
        if self.trace {
            match &input {
                Some(input) => eprintln!("{real:>10} {me:?} <- {input:?}"),
                None => eprintln!(
                    "{real:>10} {me:?} <- due {:?}",
                    host.driver
                        .timers()
                        .filter(|it| it.1 <= now)
                        .collect::<Vec<_>>()
                ),
            }
        }
        let mut effects = Vec::new();
        let outcome = match input {
            Some(input) => host
                .driver
                .step(now, &mut self.rng, input, |it| effects.push(it)),
            None => {
                host.driver
                    .expire(now, &mut self.rng, |it| effects.push(it));
                Ok(())
            }
        };
        assert_eq!(host.driver.refused_ticks(), 0);
        if let Err(reject) = &outcome {
            if self.trace {
                eprintln!("{real:>10} {me:?} refused: {reject}");
            }
            assert!(effects.is_empty());
            let accuses = matches!(reject, Reject::Misbehaviour(_)) && !self.weather.liars;
            assert!(!accuses, "{me:?} accuses a correct peer: {reject}");
        }
        let machine = host.driver.machine();
        let budget = budget.max(machine.configuration().frame_budget);
        let (mut readable, mut forgotten) = (Vec::new(), Vec::new());
        for effect in &effects {
            match effect {
                Effect::Send { message, .. } => {
                    let len = message.frame_len(me);
                    assert!(len <= budget.into(), "{len} of {budget}: {message:?}");
                }
                Effect::Event(Event::Readable { read, version }) => {
                    readable.push((*read, *version));
                }
                Effect::Event(Event::Forgotten { by, number }) => forgotten.push((*by, *number)),
                _ => {}
            }
        }
        let version = machine.version();
        let mut items: Vec<Item> = effects.into_iter().map(Item::Effect).collect();
        if version != host.shown || !readable.is_empty() || !forgotten.is_empty() {
            host.shown = version;
            items.push(Item::Observe {
                version,
                state: machine.state().cloned(),
                readable,
                forgotten,
            });
        }
        let mut out = Vec::new();
        for item in items {
            match &item {
                Item::Effect(Effect::Event(Event::Fact(_))) if stores => {
                    host.barrier.push_fact(item);
                }
                _ => host.barrier.push(item, |it| out.push(it)),
            }
        }
        for item in out {
            self.carry_out(me, item);
        }
        self.write(id);
        self.schedule(id);
        self.check_invariant();
        outcome
    }

    /// Checks the invariant behind the promises on the machines in memory.
    fn check_invariant(&self) {
        if self.weather.liars {
            return;
        }
        let hosts = self.nodes.values().filter_map(|it| it.host.as_ref());
        let machines: Vec<&Machine> = hosts.map(|it| it.driver.machine()).collect();
        let broken = selvedge_replica::check::broken(&machines, []);
        assert_eq!(broken, None);
    }

    pub(crate) fn carry_out(&mut self, me: Member, item: Item) {
        match item {
            Item::Effect(Effect::Send { to, message }) => self.send(me, to.id.0, message),
            Item::Effect(Effect::Multicast { .. }) => panic!("nothing is multicast"),
            Item::Effect(Effect::Event(event)) => self.event(me, event),
            Item::Observe {
                version,
                state,
                readable,
                forgotten,
            } => {
                if let Some(state) = state {
                    self.oracle.state(me, version, &state);
                    for (by, number) in forgotten {
                        self.oracle.forgotten(by, number, &state);
                    }
                }
                for (read, least) in readable {
                    self.oracle.readable(me, read, least, version);
                }
            }
        }
    }

    pub(crate) fn event(&mut self, me: Member, event: Event<Log>) {
        if !matches!(event, Event::Fact(_)) {
            self.say(|| format!("{me:?} {event:?}"));
        }
        match event {
            Event::Applied {
                version,
                by,
                number,
                outcome,
            } => {
                self.oracle.applied(me, version, by, number, outcome);
                self.client_ends(by, number, true);
            }
            Event::Overtaken { by, number } => {
                self.oracle.end(me, by, number, End::Overtaken);
                self.client_ends(by, number, true);
            }
            Event::Forgotten { by, number } => {
                self.oracle.end(me, by, number, End::Forgotten);
                self.client_ends(by, number, false);
            }
            Event::Abandoned { by, number } => self.oracle.end(me, by, number, End::Abandoned),
            Event::Unreadable(read) => self.oracle.unreadable(me, read),
            Event::Configured { number, version } => self.oracle.configured(number, version),
            Event::Unavailable { .. } | Event::Available => {
                let host = self.nodes.get_mut(&me.id.0).unwrap().host.as_mut().unwrap();
                let is = matches!(event, Event::Unavailable { .. });
                assert_ne!(host.unavailable, is, "{me:?}: {event:?} twice");
                host.unavailable = is;
            }
            _ => {}
        }
    }

    pub(crate) fn sleep(&mut self, id: u64, long: Real) {
        let stop = self.weather.clocks_stop;
        let node = self.nodes.get_mut(&id).unwrap();
        if node.asleep || node.host.is_none() {
            return;
        }
        node.asleep = true;
        if stop {
            node.paused_at = Some(self.now);
        }
        self.say(|| format!("{id} sleeps for {long}"));
        self.at(self.now + long, What::Wake(id));
    }

    pub(crate) fn wake(&mut self, id: u64) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.asleep {
            return;
        }
        node.asleep = false;
        if let Some(since) = node.paused_at.take() {
            node.paused += now - since;
        }
        if let Some(host) = node.host.as_mut() {
            host.tick_at = None;
        }
        self.say(|| format!("{id} wakes"));
        self.run(id);
    }
}

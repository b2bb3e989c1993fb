//! The effects of machines, carried out by their hosts.

use selvedge_core::{Choose as _, Effect, Input, Member, Span};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::{Returned, TaskId};

use super::{FOLLOWERS, What, World, bytes, value};

impl World {
    pub(super) fn step_gateway(&mut self, at: usize, input: Input<Gateway>) {
        let mut effects = Vec::new();
        let Some(driver) = &mut self.gateways[at].driver else {
            return;
        };
        let stepped = driver.step_into(self.now, &mut self.rng, input, &mut effects);
        if let Err(
            why @ (gateway::Reject::Misbehaviour(_)
            | gateway::Reject::Replica(selvedge_replica::Reject::Misbehaviour(_))),
        ) = stepped
        {
            panic!(
                "{} accuses one that keeps the rules: {why}",
                self.gateways[at].me
            );
        }
        self.carry_out_gateway(at, effects);
    }

    pub(super) fn carry_out_gateway(&mut self, at: usize, effects: Vec<Effect<Gateway>>) {
        let me = self.gateways[at].me;
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(me, to.id, message),
                Effect::Multicast { .. } => panic!("gateways multicast nothing"),
                Effect::Event(gateway::Event::Fact(fact)) => self.gateways[at].stored.push(fact),
                Effect::Event(gateway::Event::Purged(_)) => self.gateways[at].purged += 1,
                Effect::Event(_) => {}
            }
        }
        if self.gateways[at].stored.len() > 200 {
            let stored = self.machine(at).map(|it| it.replica().stored());
            self.gateways[at].base = stored;
            self.gateways[at].stored.clear();
        }
        self.look_at_answers(at);
    }

    /// Checks that each task has one answer, the same at all gateways.
    fn look_at_answers(&mut self, at: usize) {
        let Some(driver) = &self.gateways[at].driver else {
            return;
        };
        let Some(tables) = driver.machine().tables() else {
            return;
        };
        for client in &self.clients {
            for &number in client.asked.keys() {
                let task = TaskId {
                    client: client.me,
                    number,
                };
                if let Some(answer) = tables.answer(task) {
                    let first = self.ended.entry(task).or_insert_with(|| answer.clone());
                    assert_eq!(first, answer, "{task:?} has two answers");
                }
            }
        }
    }

    pub(super) fn step_follower(&mut self, at: usize, input: Input<Follower>) {
        let mut effects = Vec::new();
        let Some(driver) = &mut self.followers[at].driver else {
            return;
        };
        let stepped = driver.step_into(self.now, &mut self.rng, input, &mut effects);
        if let Err(why @ follower::Reject::Misbehaviour(_)) = stepped {
            let me = self.followers[at].me;
            panic!("{me} accuses one that keeps the rules: {why}");
        }
        self.carry_out_follower(at, effects);
    }

    pub(super) fn carry_out_follower(&mut self, at: usize, effects: Vec<Effect<Follower>>) {
        let me = self.followers[at].me;
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(me, to.id, message),
                Effect::Multicast { .. } => panic!("followers multicast nothing"),
                Effect::Event(event) => self.on_follower(at, event),
            }
        }
    }

    fn on_follower(&mut self, at: usize, event: follower::Event) {
        let me = self.followers[at].me;
        match event {
            follower::Event::Fetch(gateway) => self.fetch(at, gateway.0 as usize - 1),
            follower::Event::Run { task, function, .. } => {
                let takes = Span(self.rng.below(self.run_time.0 + 1));
                self.followers[at].begun += 1;
                self.followers[at].runs.insert(task, function);
                self.enter(takes, What::Ends(me, task));
            }
            follower::Event::Stop(task) => {
                self.followers[at].runs.remove(&task);
            }
            follower::Event::Load(library) => {
                self.enter(Span::millis(30), What::Loaded(me, library));
            }
            _ => {}
        }
    }

    pub(super) fn end_run(&mut self, me: Member, task: TaskId) {
        let at = (me.id.0 - FOLLOWERS) as usize;
        let host = &mut self.followers[at];
        if host.me != me {
            return;
        }
        let Some(function) = host.runs.remove(&task) else {
            return;
        };
        let value = match host.lies {
            true => bytes(&[b"wrong", &me.id.0.to_be_bytes()[..]].concat()),
            false => value(&function),
        };
        let returned = Returned::Value(value);
        self.command_follower(at, follower::Command::Returned { task, returned });
    }

    pub(super) fn step_client(&mut self, at: usize, input: Input<Client>) {
        let mut effects = Vec::new();
        let host = &mut self.clients[at];
        let stepped = host
            .driver
            .step_into(self.now, &mut self.rng, input, &mut effects);
        if let Err(why @ (client::Reject::Misdirected(_) | client::Reject::TooMany(..))) = stepped {
            panic!("{} accuses one that keeps the rules: {why}", host.me);
        }
        self.carry_out_client(at, effects);
    }

    pub(super) fn carry_out_client(&mut self, at: usize, effects: Vec<Effect<Client>>) {
        let me = self.clients[at].me;
        for effect in effects {
            match effect {
                Effect::Send { to, message } => self.post(me, to.id, message),
                Effect::Multicast { .. } => panic!("clients multicast nothing"),
                Effect::Event(client::Event::Answered { number, answer, .. }) => {
                    let task = TaskId { client: me, number };
                    assert_eq!(
                        self.ended.get(&task),
                        Some(&answer),
                        "a client receives the decided answer"
                    );
                    let former = self.clients[at].answered.insert(number, answer);
                    assert_eq!(former, None, "a client receives it once");
                }
                Effect::Event(client::Event::Refused { number, why }) => {
                    self.clients[at].refused.insert(number, why);
                }
                Effect::Event(_) => {}
            }
        }
    }
}

//! A node of a Selvedge protocol: a driver, and the codec.

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_core::{Driver, Effect, Input, Machine, Member, NodeId, Time as Moment};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::network::{Out, Peer, Time};

/// A machine that travels as frames of this kind.
pub(crate) trait Hosted: Machine<Message: Serialize + DeserializeOwned> {
    const KIND: u8;

    fn me(&self) -> Member;

    /// The member that this event declares failed.
    fn failed(_event: &Self::Event) -> Option<Member> {
        None
    }
}

pub(crate) struct Host<M: Machine> {
    driver: Driver<M>,
    rng: ChaCha8Rng,
    /// The time that its alarm is set for; alarms that were replaced have no effect.
    alarm: Option<Time>,
}

pub(crate) fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 1)
}

pub(crate) fn place(id: NodeId) -> usize {
    id.0 as usize - 1
}

impl<M: Hosted> Host<M> {
    pub(crate) fn new(node: usize, seed: u64, machine: M) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(node as u64);
        Self {
            driver: Driver::new(machine),
            rng,
            alarm: None,
        }
    }

    pub(crate) fn machine(&self) -> &M {
        self.driver.machine()
    }

    pub(crate) fn step(&mut self, now: Time, input: Input<M>, out: &mut Out<Time>) {
        let from = self.driver.machine().me();
        // Refused inputs are dropped, as a host does.
        let _taken = (self.driver).step(Moment(now), &mut self.rng, input, |effect| {
            carry_out(from, effect, out);
        });
        self.set_alarm(out);
    }

    fn set_alarm(&mut self, out: &mut Out<Time>) {
        if let Some(Moment(at)) = self.driver.deadline()
            && self.alarm.is_none_or(|alarm| at < alarm)
        {
            self.alarm = Some(at);
            out.timers.push((at, at));
        }
    }
}

/// No node here begins another life, so the sender before a step is the one after it.
fn carry_out<M: Hosted>(from: Member, effect: Effect<M>, out: &mut Out<Time>) {
    match effect {
        Effect::Send { to, message } => {
            let mut frame = Vec::with_capacity(64);
            frame.extend([VERSION, M::KIND]);
            let message = &message;
            let frame = postcard::to_extend(&Envelope { from, message }, frame);
            out.sends.push((place(to.id), frame.expect("memory")));
        }
        Effect::Multicast { .. } => {}
        Effect::Event(event) => out.failed.extend(M::failed(&event).map(|it| place(it.id))),
    }
}

impl<M: Hosted> Peer for Host<M> {
    type Timer = Time;

    fn receive(&mut self, now: Time, datagram: &[u8], out: &mut Out<Time>) {
        let Some(frame) = datagram.strip_prefix(&[VERSION, M::KIND]) else {
            return;
        };
        if let Ok(Envelope { from, message }) = postcard::from_bytes(frame) {
            self.step(now, Input::Message { from, message }, out);
        }
    }

    fn tick(&mut self, now: Time, timer: Time, out: &mut Out<Time>) {
        if self.alarm == Some(timer) {
            self.alarm = None;
        }
        let from = self.driver.machine().me();
        (self.driver).expire(Moment(now), &mut self.rng, |effect| {
            carry_out(from, effect, out);
        });
        self.set_alarm(out);
    }
}

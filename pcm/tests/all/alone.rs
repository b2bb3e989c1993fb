//! A node by itself: inputs by hand, and the messages that it sends.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Delta, Driver, Effect, Input, Machine, Member, Span, Time};
use selvedge_pcm::gateway::{Command, Config, Gateway};
use selvedge_pcm::{DutyCycle, Function, Libraries, Limits, Message};
use selvedge_replica::Configuration;

pub(crate) const HUB: Member = Member::new(1, 0);
pub(crate) const SECOND: Member = Member::new(2, 0);
pub(crate) const THIRD: Member = Member::new(3, 0);
pub(crate) const APP: Member = Member::new(21, 0);

/// A node by itself, and its output.
pub(crate) struct Alone<M: Machine<Message = Message>> {
    pub(crate) driver: Driver<M>,
    now: Time,
    rng: ChaCha8Rng,
    pub(crate) sent: Vec<(u64, Message)>,
    pub(crate) notified: Vec<M::Event>,
}

impl<M: Machine<Message = Message>> Alone<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self {
            driver: Driver::new(machine),
            now: Time::ZERO,
            rng: ChaCha8Rng::seed_from_u64(1),
            sent: Vec::new(),
            notified: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, input: Input<M>) -> Result<(), M::Reject> {
        let (sent, notified) = (&mut self.sent, &mut self.notified);
        let take = |it| take(it, sent, notified);
        self.driver.step(self.now, &mut self.rng, input, take)
    }

    pub(crate) fn command(&mut self, command: M::Command) {
        self.step(Input::Command(command)).unwrap();
    }

    pub(crate) fn receive(&mut self, from: Member, message: Message) {
        self.step(Input::Message { from, message }).unwrap();
    }

    pub(crate) fn learn(&mut self, delta: Delta) {
        self.step(Input::Membership(delta)).unwrap();
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        let (sent, notified) = (&mut self.sent, &mut self.notified);
        let take = |it| take(it, sent, notified);
        self.driver.expire(self.now, &mut self.rng, take);
    }

    /// Drops the output up to now.
    pub(crate) fn forget(&mut self) {
        self.sent.clear();
        self.notified.clear();
    }

    /// The messages sent since the last call, and their receivers.
    pub(crate) fn taken(&mut self) -> Vec<(u64, Message)> {
        core::mem::take(&mut self.sent)
    }
}

fn take<M: Machine>(
    effect: Effect<M>,
    sent: &mut Vec<(u64, M::Message)>,
    notified: &mut Vec<M::Event>,
) {
    match effect {
        Effect::Send { to, message } => sent.push((to.id.0, message)),
        Effect::Multicast { .. } => panic!("nothing is multicast"),
        Effect::Event(event) => notified.push(event),
    }
}

/// The first of these gateways, which is started.
pub(crate) fn hub(gateways: &[Member], config: Config, limits: Limits) -> Alone<Gateway> {
    let first = Configuration::of(gateways.iter().copied());
    let mut it = Alone::new(Gateway::new(HUB, config, first, limits).unwrap());
    it.command(Command::Start);
    if gateways.len() == 1 {
        it.pass(Span::secs(10));
        assert!(it.driver.machine().manages());
    }
    it.forget();
    it
}

pub(crate) fn keep_alive(number: u32) -> Message {
    Message::KeepAlive {
        number,
        duty: DutyCycle::always(),
        libraries: Libraries::new(),
    }
}

pub(crate) fn submit(number: u64, function: Function) -> Message {
    Message::Submit { number, function }
}

//! A node by itself: what it is told by hand, and to whom it says what.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{Driver, Effect, Input, Machine, Member, Span, Time};
use selvedge_pcm::Message;

/// A node by itself, and what came out of it.
pub(crate) struct Alone<M: Machine<Message = Message>> {
    pub(crate) driver: Driver<M>,
    now: Time,
    pub(crate) sent: Vec<(u64, Message)>,
    pub(crate) told: Vec<M::Event>,
}

impl<M: Machine<Message = Message>> Alone<M> {
    pub(crate) fn new(machine: M) -> Self {
        Self {
            driver: Driver::new(machine),
            now: Time::ZERO,
            sent: Vec::new(),
            told: Vec::new(),
        }
    }

    pub(crate) fn step(&mut self, input: Input<M>) -> Result<(), M::Reject> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (sent, told) = (&mut self.sent, &mut self.told);
        let take = |it| take(it, sent, told);
        self.driver.step(self.now, &mut rng, input, take)
    }

    pub(crate) fn command(&mut self, command: M::Command) {
        self.step(Input::Command(command)).unwrap();
    }

    pub(crate) fn hear(&mut self, from: Member, message: Message) {
        self.step(Input::Message { from, message }).unwrap();
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let (sent, told) = (&mut self.sent, &mut self.told);
        let take = |it| take(it, sent, told);
        self.driver.expire(self.now, &mut rng, take);
    }

    /// What came out so far is of no interest.
    pub(crate) fn forget(&mut self) {
        self.sent.clear();
        self.told.clear();
    }
}

fn take<M: Machine>(
    effect: Effect<M>,
    sent: &mut Vec<(u64, M::Message)>,
    told: &mut Vec<M::Event>,
) {
    match effect {
        Effect::Send { to, message } => sent.push((to.id.0, message)),
        Effect::Multicast { .. } => {}
        Effect::Event(event) => told.push(event),
    }
}

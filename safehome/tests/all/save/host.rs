//! A host that feeds a test's inputs to a hub, and collects its events.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, NodeId, Time};
use selvedge_safehome::{Command, Config, Event, Hub, Reject, Routine, Step};

pub(crate) struct Host {
    pub(crate) hub: Driver<Hub<u8>>,
    pub(crate) now: Time,
    pub(crate) rng: ChaCha8Rng,
}

pub(crate) const A: NodeId = NodeId(0);
pub(crate) const B: NodeId = NodeId(1);

impl Host {
    pub(crate) fn new(config: Config) -> Self {
        let mut host = Self::of(Hub::new(config).unwrap());
        for device in [A, B] {
            let state = Some(0);
            host.notify(Command::AddDevice { device, state }).unwrap();
        }
        host
    }

    pub(crate) fn of(hub: Hub<u8>) -> Self {
        Self {
            hub: Driver::new(hub),
            now: Time::ZERO,
            rng: ChaCha8Rng::seed_from_u64(0),
        }
    }

    pub(crate) fn notify(&mut self, command: Command<u8>) -> Result<Vec<Event<u8>>, Reject> {
        self.input(Input::Command(command))
    }

    pub(crate) fn input(&mut self, input: Input<Hub<u8>>) -> Result<Vec<Event<u8>>, Reject> {
        let mut events = Vec::new();
        let notified = self.hub.step(self.now, &mut self.rng, input, |it| {
            let Effect::Event(event) = it;
            events.push(event);
        });
        notified.map(|()| events)
    }

    pub(crate) fn submit(&mut self, steps: &[(NodeId, u8)]) -> Vec<Event<u8>> {
        let steps = steps.iter().map(|it| Step::new(it.0, it.1)).collect();
        self.notify(Command::Submit(Routine { steps })).unwrap()
    }

    pub(crate) fn restarted(&self) -> (Self, Vec<Event<u8>>) {
        let hub = self.hub.machine();
        let mut host = Self::of(Hub::restore(*hub.config(), hub.save()).unwrap());
        let events = host.notify(Command::Resume).unwrap();
        (host, events)
    }
}

pub(crate) fn issues(events: &[Event<u8>]) -> Vec<(NodeId, u8, u64)> {
    let issue = |event: &Event<u8>| match event {
        Event::Issue {
            device,
            token,
            value,
            ..
        } => Some((*device, *value, *token)),
        _ => None,
    };
    events.iter().filter_map(issue).collect()
}

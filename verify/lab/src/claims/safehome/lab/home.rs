//! A hub, and devices that take the time of each command.

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{Command, Config, Hub, Outcome, Priority, Routine, Step};

use super::super::scenario::{Arrivals, Scenario};
use super::world::{ANSWER, Happening, World};
use super::{Model, Setting};
use crate::claims::Fault;

/// The failure detector asks each second, and waits for 100 ms (section 6).
const PING: Span = Span::secs(1);
/// A run that is not over by then has failed.
const PATIENCE: Span = Span::secs(100_000_000);

pub(super) struct Home {
    hub: Driver<Hub<u32>>,
    rng: ChaCha8Rng,
    must: u64,
    pub(super) world: World,
}

impl Home {
    pub(super) fn new(
        scenario: Scenario,
        setting: &Setting,
        rng: ChaCha8Rng,
    ) -> Result<Self, Fault> {
        let Model {
            visibility,
            scheduler,
            pre_leases,
            post_leases,
            stretch,
            ..
        } = setting.model;
        let config = Config::default()
            .with_visibility(visibility)
            .with_scheduler(scheduler)
            .with_pre_leases(pre_leases)
            .with_post_leases(post_leases)
            .with_stretch(stretch)
            .with_short(ANSWER);
        let hub = Hub::new(config).map_err(Fault::network)?;
        let devices = scenario.devices;
        let mut home = Self {
            hub: Driver::new(hub),
            rng,
            must: setting.must,
            world: World::new(scenario),
        };
        for device in 0..devices {
            home.command(Command::AddDevice {
                device: node(device),
                state: Some(0),
            })?;
        }
        let times = match &home.world.scenario.arrivals {
            Arrivals::At(times) => times.clone(),
            Arrivals::Concurrent(count) => vec![Span::ZERO; *count],
        };
        for at in times {
            home.world.happens(Time::ZERO + at, Happening::Comes);
        }
        Ok(home)
    }

    /// Makes a share of the devices fail, each at a moment within this time.
    pub(super) fn fail_some(&mut self, percent: u64, length: Span) {
        let devices = self.world.scenario.devices;
        let mut left: Vec<u32> = (0..devices).collect();
        for _ in 0..u64::from(devices) * percent / 100 {
            let device = left.swap_remove(self.rng.below(left.len() as u64) as usize);
            let at = Time::ZERO + Span(self.rng.below(length.0));
            self.world.happens(at, Happening::Fails(device));
        }
    }

    pub(super) fn run(&mut self) -> Result<(), Fault> {
        loop {
            let (next, is_answer) = self.world.next();
            let due = self.hub.deadline();
            if next.is_none() && self.world.is_over() {
                return Ok(());
            }
            let is_tick = due.is_some_and(|due| next.is_none_or(|next| due < next));
            let Some(now) = (if is_tick { due } else { next }) else {
                let open = self.world.open;
                return Err(Fault::Outcome(format!("{open} routines never ended")));
            };
            if now > Time::ZERO + PATIENCE {
                return Err(Fault::Outcome("the run does not end".to_owned()));
            }
            self.world.now = now;
            if is_tick {
                let (mut received, world) = (Ok(()), &mut self.world);
                self.hub
                    .expire(now, &mut self.rng, |it| receive(&mut received, world, it));
                received?;
            } else if let Some(happening) = self.world.pop(is_answer) {
                self.happen(happening)?;
            }
        }
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Fault> {
        match happening {
            Happening::Comes => self.submit(),
            Happening::Answers {
                device,
                token,
                state,
                routine,
            } => {
                let routine = routine.map(|it| it as usize - 1);
                let is_done = self.world.change(device, state, routine);
                let outcome = if is_done {
                    Outcome::Done
                } else {
                    Outcome::Refused
                };
                let device = node(device);
                self.command(Command::Acted {
                    device,
                    token,
                    outcome,
                })
            }
            Happening::Fails(device) => {
                if let Some(thing) = self.world.things.get_mut(device as usize) {
                    thing.is_down = true;
                }
                let after = Span(self.rng.below(PING.0)) + ANSWER;
                let at = self.world.now + after;
                self.world.happens(at, Happening::Noticed(device));
                Ok(())
            }
            Happening::Noticed(device) => {
                let member = Member::new(node(device).0, 0);
                self.step(Input::Membership(Delta::Failed(member)))
            }
        }
    }

    fn submit(&mut self) -> Result<(), Fault> {
        let Some((number, needs)) = self.world.submit() else {
            return Ok(());
        };
        let state = number as u32 + 1;
        let must = self.must;
        let rng = &mut self.rng;
        let steps = needs.iter().map(|&(device, seconds)| Step {
            hold: Span(Span::secs(seconds.into()).0.saturating_sub(ANSWER.0)),
            priority: if must == 100 || rng.below(100) < must {
                Priority::Must
            } else {
                Priority::BestEffort
            },
            ..Step::new(node(device), state)
        });
        let routine = Routine {
            steps: steps.collect(),
        };
        self.command(Command::Submit(routine))
    }

    fn command(&mut self, command: Command<u32>) -> Result<(), Fault> {
        self.step(Input::Command(command))
    }

    fn step(&mut self, input: Input<Hub<u32>>) -> Result<(), Fault> {
        let (mut received, world) = (Ok(()), &mut self.world);
        let (now, rng) = (world.now, &mut self.rng);
        let taken = self
            .hub
            .step(now, rng, input, |it| receive(&mut received, world, it));
        taken.map_err(Fault::network)?;
        received
    }
}

const fn node(device: u32) -> NodeId {
    NodeId(device as u64 + 1)
}

/// Hears of an effect, unless one before it was wrong.
fn receive(received: &mut Result<(), Fault>, world: &mut World, effect: Effect<Hub<u32>>) {
    match effect {
        Effect::Event(event) if received.is_ok() => *received = world.receive(event),
        Effect::Event(_) => {}
        Effect::Send { message, .. } => match message {},
        Effect::Multicast { message } => match message {},
    }
}

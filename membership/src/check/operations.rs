//! Lists of operations on a small mesh, beside a model of what each node was told.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both.
//! After every step the promises that hold at one node, whatever others send, are held against
//! the model.

mod decoder;
mod model;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::wire::frame_len;
use selvedge_core::{Driver, Effect, Incarnation, Input, Member, NodeId, Time};

use crate::{Command, Config, Membership, Message, Metadata, Phase, Selection};
use decoder::Bytes;
use model::Told;

/// How many nodes there are.
const NODES: u64 = 4;
/// At most so many messages are in flight; older ones are lost.
const IN_FLIGHT: usize = 64;

/// What a run did: for tests that want to know that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations carried out.
    pub operations: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Inputs refused.
    pub refused: u64,
    /// Changes of lists.
    pub deltas: u64,
    /// The longest frame in bytes.
    pub longest_frame: usize,
}

struct Seat {
    driver: Option<Driver<Membership>>,
    me: Member,
    told: Told,
}

struct Mesh {
    config: Config,
    now: Time,
    seats: Vec<Seat>,
    in_flight: Vec<(Member, NodeId, Message)>,
    summary: Summary,
}

/// Carries out the operations that `bytes` stand for. Any bytes do.
///
/// # Errors
/// The promise that broke, in words.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut mesh = Mesh::new(&mut bytes)?;
    while !bytes.is_empty() {
        mesh.summary.operations += 1;
        mesh.operate(&mut bytes)
            .map_err(|broken| format!("operation {}: {broken}", mesh.summary.operations))?;
    }
    Ok(mesh.summary)
}

fn config(bytes: &mut Bytes<'_>) -> Config {
    let base = if bytes.flip() {
        Config::radio()
    } else {
        Config::default()
    };
    let selection = match bytes.take() % 3 {
        0 => Selection::Plain,
        1 => Selection::TimeBounded,
        _ => Selection::BoundedMix { every: 2 },
    };
    let mut config = Config {
        selection,
        publish_after: 1 + bytes.take() % 2,
        ..base
    };
    if bytes.flip() {
        // As long as fits. After another Configure what is stored may be too long.
        config.metadata_limit = config.frame_budget - 80;
        config.broadcast_len = config.metadata_limit;
    }
    if bytes.flip() {
        // So tight that the limits are met.
        config.member_limit = 6;
        config.tombstone_limit = 2;
        config.gossip_limit = 3;
        config.hearsay_limit = 2;
        config.broadcast_limit = 2;
        config.sync_after = 1;
    }
    config
}

impl Mesh {
    fn new(bytes: &mut Bytes<'_>) -> Result<Self, String> {
        let config = config(bytes);
        // Small ids, or the longest there are.
        let offset = if bytes.flip() { 0 } else { u64::MAX - 15 };
        let mut mesh = Self {
            config,
            now: Time::ZERO,
            seats: Vec::new(),
            in_flight: Vec::new(),
            summary: Summary::default(),
        };
        for node in 0..NODES {
            let me = Member::new(offset + node, u32::MAX - 1);
            let driver = Some(mesh.new_driver(me)?);
            mesh.seats.push(Seat {
                driver,
                me,
                told: Told::default(),
            });
        }
        Ok(mesh)
    }

    fn new_driver(&self, me: Member) -> Result<Driver<Membership>, String> {
        let machine = Membership::new(me, self.config.clone());
        machine.map(Driver::new).map_err(|error| format!("{error}"))
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = usize::from(bytes.take()) % self.seats.len();
        match bytes.take() % 16 {
            0..=5 => self.deliver(bytes, false),
            6 => self.deliver(bytes, true),
            7 => {
                // The others keep their order, as when one is delivered.
                self.pick(bytes).map(|at| self.in_flight.remove(at));
                Ok(())
            }
            8 | 9 => self.pass_time(bytes),
            10 => {
                if let Some(seat) = self.seats.get_mut(seat) {
                    seat.driver = None;
                }
                Ok(())
            }
            11 => self.restart(seat, bytes),
            12..=14 => {
                let command = self.command(bytes);
                self.step(seat, Input::Command(command), bytes)
            }
            _ => {
                let offset = self.seats.first().map_or(0, |seat| seat.me.id.0);
                let (from, message) = bytes.message(offset);
                self.step(seat, Input::Message { from, message }, bytes)
            }
        }
    }

    fn pick(&self, bytes: &mut Bytes<'_>) -> Option<usize> {
        usize::from(bytes.take()).checked_rem(self.in_flight.len())
    }

    fn deliver(&mut self, bytes: &mut Bytes<'_>, again: bool) -> Result<(), String> {
        let Some(at) = self.pick(bytes) else {
            return Ok(());
        };
        let letter = self.in_flight.get(at).cloned();
        if !again {
            self.in_flight.remove(at);
        }
        let Some((from, to, message)) = letter else {
            return Ok(());
        };
        let Some(seat) = self.seats.iter().position(|seat| seat.me.id == to) else {
            return Ok(());
        };
        self.summary.delivered += 1;
        self.step(seat, Input::Message { from, message }, bytes)
    }

    fn pass_time(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let quarters = u64::from(bytes.take() % 16);
        self.now = self.now + selvedge_core::Span(self.config.period.0 / 4 * quarters);
        for seat in 0..self.seats.len() {
            self.call(
                seat,
                |driver, now, sink, bytes| {
                    driver.expire(now, bytes, |effect| sink.push(effect));
                    Ok(())
                },
                bytes,
            )?;
        }
        Ok(())
    }

    /// With memory, without, or under a number from before.
    fn restart(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let step = u32::from(bytes.take() % 4).wrapping_sub(2);
        let Some(me) = self.seats.get(seat).map(|seat| seat.me) else {
            return Ok(());
        };
        let incarnation = Incarnation(me.incarnation.0.wrapping_add(step));
        let me = Member { incarnation, ..me };
        let driver = Some(self.new_driver(me)?);
        if let Some(seat) = self.seats.get_mut(seat) {
            seat.driver = driver;
            seat.me = me;
            seat.told = Told::default();
        }
        let seeds = self.seats.iter().map(|seat| seat.me.id).collect();
        self.step(seat, Input::Command(Command::Join { seeds }), bytes)
    }

    fn command(&self, bytes: &mut Bytes<'_>) -> Command {
        let seats = self.seats.len() as u64;
        let first = self.seats.first().map_or(0, |seat| seat.me.id.0);
        let id = NodeId(first + u64::from(bytes.take()) % (seats + 1));
        match bytes.take() % 8 {
            0..=2 => Command::Join { seeds: vec![id] },
            3 => Command::Leave,
            4 => Command::SetMetadata(Metadata(bytes.payload())),
            5 => Command::SetDistance {
                id,
                distance: bytes.take().into(),
            },
            6 => Command::Broadcast(bytes.payload()),
            _ if bytes.flip() => Command::Configure(Box::new(config(bytes))),
            _ => {
                let known = self.seats.iter().find(|seat| seat.me.id == id);
                let member = known.map_or(Member::default(), |seat| seat.me);
                if bytes.flip() {
                    Command::Inquire(member)
                } else {
                    Command::Confirm(member)
                }
            }
        }
    }

    fn step(
        &mut self,
        seat: usize,
        input: Input<Membership>,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        self.call(
            seat,
            |driver, now, sink, bytes| {
                let before = driver.machine().clone();
                let taken = driver.step(now, bytes, input, |effect| sink.push(effect));
                if taken.is_err() && (*driver.machine() != before || !sink.is_empty()) {
                    return Err(format!("a refusal changed something: {taken:?}"));
                }
                taken.map_err(|_| String::new())
            },
            bytes,
        )
    }

    /// Lets a node that is up do something, and holds what came of it against the model. An empty
    /// error of `act` is a refusal.
    fn call<'b>(
        &mut self,
        at: usize,
        act: impl FnOnce(
            &mut Driver<Membership>,
            Time,
            &mut Vec<Effect<Membership>>,
            &mut Bytes<'b>,
        ) -> Result<(), String>,
        bytes: &mut Bytes<'b>,
    ) -> Result<(), String> {
        let Some(seat) = self.seats.get_mut(at) else {
            return Ok(());
        };
        let Some(driver) = &mut seat.driver else {
            return Ok(());
        };
        let was_idle = driver.machine().phase() == Phase::Idle;
        let mut effects = Vec::new();
        match act(driver, self.now, &mut effects, bytes) {
            Err(refused) if refused.is_empty() => self.summary.refused += 1,
            outcome => outcome?,
        }
        if driver.refused_ticks() > 0 {
            return Err("a tick was refused".into());
        }
        let machine = driver.machine();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    let len = frame_len(machine.me(), &message);
                    let budget = usize::from(machine.config().frame_budget);
                    if len > budget {
                        return Err(format!(
                            "a frame of {len} bytes, {budget} allowed: {message:?}"
                        ));
                    }
                    if to.id == machine.me().id {
                        return Err(format!("a message to itself: {message:?}"));
                    }
                    self.summary.longest_frame = self.summary.longest_frame.max(len);
                    self.in_flight.push((machine.me(), to.id, message));
                }
                Effect::Multicast { .. } => return Err("a multicast".into()),
                Effect::Event(event) => {
                    self.summary.deltas += u64::from(seat.told.event(&event)?);
                }
            }
        }
        let surplus = self.in_flight.len().saturating_sub(IN_FLIGHT);
        self.in_flight.drain(..surplus);
        if machine.phase() == Phase::Idle && !was_idle {
            // It forgot the mesh, and its next life begins.
            seat.told = Told::default();
        }
        seat.told.compare(machine)?;
        let (before, me) = (seat.me, machine.me());
        if me != before && !me.supersedes(before) {
            return Err(format!("it was {before:?} and is {me:?}"));
        }
        seat.me = me;
        Ok(())
    }
}

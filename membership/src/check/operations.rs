//! Lists of operations on a small mesh, beside a model of the events of each node.
//!
//! Bytes become operations and choices, so a fuzzer steers both, and a property test draws both.
//! After every step the model checks the promises that hold at one node, whatever other nodes send.

mod decoder;
mod model;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::wire::frame_len;
use selvedge_core::{Driver, Effect, Incarnation, Member, NodeId, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Step, Watch};

use super::promises::is_timed;
use crate::{Command, Config, ConfigError, Membership, Metadata, Phase, Published, Selection};
use model::Notified;

/// The number of nodes.
const NODES: u64 = 4;
/// The largest number of messages in flight; older ones are lost.
const IN_FLIGHT: usize = 64;

selvedge_sim::counts! {
    /// Counts of a run, for tests that check that it was not empty.
    pub struct Summary {
        /// Operations carried out.
        operations,
        /// Messages delivered.
        delivered,
        /// Inputs refused.
        refused,
        /// Changes of lists.
        deltas,
        /// The longest frame in bytes.
        longest_frame: max usize,
    }
}

/// Carries out the operations that `bytes` encode. Any bytes are valid.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[])
}

/// The same under published rules, to show that the model detects them.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run_under(bytes: &[u8], rules: &[Published]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(&mut bytes, rules)?;
    while !bytes.is_empty() {
        world
            .operate(&mut bytes)
            .map_err(|broken| Broken::new(broken, &world.mesh).to_string())?;
        world.watch.summary.operations += 1;
    }
    let mut summary = world.watch.summary;
    summary.delivered = world.mesh.delivered();
    summary.refused = world.mesh.refused();
    Ok(summary)
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
        // The longest that fits. After another Configure the stored data may be too long.
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
        config.round_trip_unit = Some(Config::ROUND_TRIP_UNIT);
    }
    config
}

/// A mesh, and its watcher.
struct World<'a> {
    mesh: Mesh<Membership>,
    watch: Watcher<'a>,
}

/// A check of each node against its events.
struct Watcher<'a> {
    config: Config,
    rules: &'a [Published],
    notified: Vec<Notified>,
    /// The life before the step, and whether it had no mesh.
    before: (Member, bool),
    /// The distance of the next life's number from the one before.
    step: u32,
    summary: Summary,
}

impl<'a> World<'a> {
    fn new(bytes: &mut Bytes<'_>, rules: &'a [Published]) -> Result<Self, String> {
        let config = config(bytes);
        // Small ids, or the longest there are.
        let offset = if bytes.flip() { 0 } else { u64::MAX - 15 };
        let watch = Watcher {
            config,
            rules,
            notified: (0..NODES).map(|_| Notified::default()).collect(),
            before: (Member::default(), false),
            step: 1,
            summary: Summary::default(),
        };
        let mut mesh = Mesh::new(IN_FLIGHT);
        for node in 0..NODES {
            let me = Member::new(offset + node, u32::MAX - 1);
            let machine = watch.machine(me);
            mesh.add(me, machine.map_err(|error| format!("{error}"))?);
        }
        Ok(Self { mesh, watch })
    }

    fn play(
        &mut self,
        operation: Operation<Membership>,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        self.mesh.play(operation, bytes, &mut self.watch)
    }

    /// Carries out the next operation: two bytes encode its node and its kind.
    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = bytes.pick(self.mesh.seats().len());
        let operation = match bytes.take() % 16 {
            0..=5 => Operation::Deliver(bytes.take().into()),
            6 => Operation::Duplicate(bytes.take().into()),
            7 => Operation::Lose(bytes.take().into()),
            8 | 9 => {
                let quarters = u64::from(bytes.take() % 16);
                Operation::Wait(Span(self.watch.config.period.0 / 4 * quarters))
            }
            10 => Operation::Crash(seat),
            11 => {
                // With memory, without, or under a number from before.
                self.watch.step = u32::from(bytes.take() % 4).wrapping_sub(2);
                self.play(Operation::Restart(seat), bytes)?;
                let seats = self.mesh.seats().iter();
                let seeds = seats.map(|seat| seat.me().id).collect();
                Operation::Command(seat, Command::Join { seeds })
            }
            12..=14 => Operation::Command(seat, self.command(bytes)),
            _ => {
                let (from, message) = decoder::message(bytes, self.offset());
                Operation::Forge(seat, from, Box::new(message))
            }
        };
        self.play(operation, bytes)
    }

    fn offset(&self) -> u64 {
        self.mesh.seat(0).map_or(0, |seat| seat.me().id.0)
    }

    fn command(&self, bytes: &mut Bytes<'_>) -> Command {
        let seats = self.mesh.seats();
        let id = NodeId(self.offset() + u64::from(bytes.take()) % (seats.len() as u64 + 1));
        match bytes.take() % 8 {
            0..=1 => Command::Join { seeds: vec![id] },
            2 => Command::SetSeeds { seeds: vec![id] },
            3 => Command::Leave,
            4 => Command::SetMetadata(Metadata(decoder::payload(bytes))),
            5 => Command::SetDistance {
                id,
                distance: bytes.take().into(),
            },
            6 => Command::Broadcast(decoder::payload(bytes)),
            _ if bytes.flip() => Command::SetConfig(Box::new(config(bytes))),
            _ => {
                let known = seats.iter().find(|seat| seat.me().id == id);
                let member = known.map_or(Member::default(), |seat| seat.me());
                if bytes.flip() {
                    Command::Inquire(member)
                } else {
                    Command::Confirm(member)
                }
            }
        }
    }
}

impl Watcher<'_> {
    fn machine(&self, me: Member) -> Result<Membership, ConfigError> {
        Membership::published(me, self.config.clone(), self.rules)
    }
}

impl Watch<Membership> for Watcher<'_> {
    fn before(&mut self, _: usize, driver: &Driver<Membership>) {
        let machine = driver.machine();
        self.before = (machine.me(), machine.phase() == Phase::Idle);
    }

    fn after(&mut self, step: &Step<'_, Membership>) -> Result<(), String> {
        let machine = step.machine();
        let Some(notified) = self.notified.get_mut(step.at) else {
            return Ok(());
        };
        for effect in step.effects {
            match effect {
                Effect::Send { message, .. } => {
                    let len = frame_len(machine.me(), message);
                    let budget = usize::from(machine.config().frame_budget);
                    if len > budget {
                        return Err(format!(
                            "a frame of {len} bytes, {budget} allowed: {message:?}"
                        ));
                    }
                    self.summary.longest_frame = self.summary.longest_frame.max(len);
                }
                Effect::Multicast { .. } => return Err("a multicast".into()),
                Effect::Event(event) => self.summary.deltas += u64::from(notified.event(event)?),
            }
        }
        let (before, was_idle) = self.before;
        if machine.phase() == Phase::Idle && !was_idle {
            // It forgot the mesh, and its next life begins.
            *notified = Notified::default();
        }
        notified.compare(machine)?;
        if !is_timed(machine, step.driver.timers().map(|(timer, _)| timer)) {
            return Err(format!(
                "{:?} has a suspicion without a timer, or a timer without one",
                machine.me()
            ));
        }
        let me = machine.me();
        if me != before && !me.supersedes(before) {
            return Err(format!("it was {before:?} and is {me:?}"));
        }
        Ok(())
    }

    /// The machine may take a later number by itself.
    fn member(&self, _: Member, machine: &Membership) -> Member {
        machine.me()
    }

    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, Membership)> {
        let incarnation = Incarnation(before.incarnation.0.wrapping_add(self.step));
        let me = Member {
            incarnation,
            ..before
        };
        if let Some(notified) = self.notified.get_mut(seat) {
            *notified = Notified::default();
        }
        // The settings were taken at the beginning.
        Some((me, self.machine(me).ok()?))
    }
}

//! Lists of operations on a small mesh, with a watch on the nodes that lead.
//!
//! Bytes are decoded into operations and choices, so a fuzzer steers both, and a property test draws
//! both. After every step a watcher checks the promises against the steps of all nodes. When the
//! bytes run out, faults end and all nodes know each other. Then all follow the same live leader,
//! and again after a node starts an election, which the lowest node wins.
//!
//! The assumptions of the promises are kept: no live node is reported as left, a node that restarts
//! has a new incarnation or another id, and where nothing is acknowledged no multicast is lost. A
//! run with hostile messages promises only that nothing panics, that a refusal changes nothing, and
//! that memory and frames stay within their limits.

mod decoder;
mod end;
mod limits;
mod lives;
mod oracle;
mod settings;
mod summary;
mod watcher;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};

use selvedge_core::{Delta, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Seat};

use crate::{Celect, Command, Published};
use settings::{Order, Settings};
use watcher::Watcher;

pub use summary::Summary;

/// The largest number of messages in flight; older messages are lost.
const IN_FLIGHT: usize = 256;
const ROUND: Span = Span::millis(250);

/// A mesh and its watcher.
struct World {
    mesh: Mesh<Celect<Order>>,
    watch: Watcher,
}

/// Carries out the operations that `bytes` encode. Any bytes are valid.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[])
}

/// Does the same under published rules, to show that the watcher notices broken promises.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run_under(bytes: &[u8], rules: &[Published]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(&mut bytes, rules)?;
    let played = world.run(&mut bytes);
    played.map_err(|broken| Broken::new(broken, &world.mesh).to_string())?;
    Ok(world.watch.summarize(&world.mesh))
}

impl World {
    fn new(bytes: &mut Bytes<'_>, rules: &[Published]) -> Result<Self, String> {
        let settings = Settings::new(bytes);
        for node in 0..settings.nodes {
            let checked = settings.config(node).check();
            checked.map_err(|error| format!("{error}"))?;
        }
        let mut world = Self {
            mesh: Mesh::new(IN_FLIGHT),
            watch: Watcher::new(settings, rules),
        };
        for node in 0..world.watch.settings.nodes {
            let me = world.watch.settings.member(node);
            world.mesh.add(me, world.watch.machine(node, me));
        }
        for node in 0..world.mesh.seats().len() {
            let unknown = world.watch.settings.lists.rotate_right(node as u32);
            for other in 0..world.mesh.seats().len() {
                if other != node && unknown >> (other % 8) & 1 == 0 {
                    let joined = Delta::Joined(world.watch.settings.member(other));
                    world.play(Operation::Learn(node, joined), bytes)?;
                }
            }
        }
        Ok(world)
    }

    fn run(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        while !bytes.is_empty() {
            self.watch.summary.operations += 1;
            self.operate(bytes)?;
        }
        if self.watch.settings.do_all_agree() {
            self.end()
                .map_err(|broken| format!("after the last fault: {broken}"))?;
        }
        Ok(())
    }

    fn play(
        &mut self,
        operation: Operation<Celect<Order>>,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        self.watch.is_delivering = matches!(
            operation,
            Operation::Deliver(_) | Operation::Duplicate(_) | Operation::DeliverAll
        );
        self.mesh.play(operation, bytes, &mut self.watch)
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = usize::from(bytes.take());
        // Three bits select the node, five the operation.
        let seat = (byte >> 5) % self.mesh.seats().len();
        let operation = match byte & 31 {
            0..=6 => Operation::Deliver(self.pick(bytes)),
            7..=11 => Operation::DeliverAll,
            12 | 13 => Operation::Duplicate(self.pick(bytes)),
            // One message, or all from and to one node.
            14 if bytes.take() > 64 => Operation::Lose(self.pick(bytes)),
            14 => Operation::Cut(seat),
            15..=18 => Operation::Wait(Span(ROUND.0 * u64::from(bytes.take() % 32))),
            19..=21 => Operation::Command(seat, Command::Elect),
            22 => {
                let (c, f) = self.watch.settings.tolerance(bytes.take());
                Operation::Command(
                    seat,
                    Command::SetBounds {
                        missing_from: c,
                        failures: f,
                    },
                )
            }
            23..=25 => {
                let delta = self.delta(bytes);
                return self.learn(seat, delta, bytes);
            }
            26 => Operation::Announce(seat),
            27 | 28 => return self.fall(seat, bytes),
            29 | 30 if self.watch.settings.is_hostile => {
                let (from, message) = decoder::message(bytes, self.watch.settings.member(0));
                self.watch.summary.hostile += 1;
                Operation::Forge(seat, from, Box::new(message))
            }
            _ => Operation::Introduce(seat),
        };
        self.play(operation, bytes)
    }

    /// Picks a message; takes a byte if any message is in flight.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    fn is_up(&self, at: usize) -> bool {
        self.mesh.seat(at).is_some_and(Seat::is_up)
    }
}

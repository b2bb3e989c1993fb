//! Lists of operations on a small site, with a watch on the results at routines, devices and a map.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both.
//! Each of three to five nodes runs the whole machine, [`Kgroup`]; around them are devices, and
//! hosts that carry out the commands of leaders, at once or late. After every step the promises are
//! compared with the actions of all nodes together:
//!
//! - a group has one state at each version, and one configuration of each number;
//! - a routine that executes holds all its devices, and a device does nothing for a claim while
//!   another claim holds it (theorem 3), as long as hosts and messages are within `act_timeout`;
//! - a command with delivery once at most is given once; a report has the outcomes at the devices;
//!   a trigger starts one run;
//! - a change of the map is done once and has the outcome that was answered, and an answer to a
//!   read is no older than the question;
//! - memory stays within the settings, and frames within their length.
//!
//! When the bytes run out, faults are over: then each group has one leader, all requests are
//! answered, all devices are free and known, each routine runs once more, and then nodes are
//! silent.
//!
//! The assumptions of that are kept: a node loses its memory only while a quorum of the others has
//! its own, in each group; where hosts store, it may lose power at any time. Careless runs do not
//! keep them: there groups may stand still, and their decisions hold. In hostile runs messages come
//! that no node sent: then only limits are promised.

mod asked;
mod asks;
mod end;
mod forge;
mod history;
mod home;
mod hosts;
mod limits;
mod lives;
mod oracle;
mod settings;
mod summary;
mod watcher;

use alloc::format;
use alloc::string::String;

use selvedge_core::{Choose, Member, Span};
use selvedge_groups::{Start, store::Expected};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation};

use self::settings::Settings;
pub use self::summary::Summary;
use self::watcher::Watcher;
use crate::{Command, Kgroup};

/// The largest number of messages in flight; older ones are lost.
const IN_FLIGHT: usize = 256;
const ROUND: Span = Span::millis(50);

/// A mesh, and the watch over it.
struct World {
    mesh: Mesh<Kgroup>,
    watch: Watcher,
    /// The latest epoch of any clock.
    epoch: u64,
    triggers: u64,
}

/// Carries out the operations that `bytes` stand for. Any bytes do.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(&mut bytes);
    let played = world.run(&mut bytes);
    played.map_err(|broken| {
        let settings = format!("{:?}", world.watch.settings);
        format!("{} in {settings}", Broken::new(broken, &world.mesh))
    })?;
    Ok(Summary {
        stored: world.watch.asked.stored,
        found: world.watch.asked.found,
        ..world.watch.summary
    })
}

impl World {
    fn new(bytes: &mut Bytes<'_>) -> Self {
        let settings = Settings::new(bytes);
        let mut mesh = Mesh::new(IN_FLIGHT);
        for node in 0..settings.nodes {
            let me = Member::new(node as u64 + 1, 0);
            mesh.add(me, settings.machine(node, me, Start::Fresh));
        }
        Self {
            mesh,
            watch: Watcher::new(settings),
            epoch: 1,
            triggers: 0,
        }
    }

    fn run(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        self.begin(bytes)?;
        while !bytes.is_empty() {
            self.watch.summary.operations += 1;
            self.operate(bytes)?;
        }
        if self.watch.settings.is_hostile || self.watch.settings.is_careless {
            return Ok(());
        }
        self.end()
            .map_err(|broken| format!("after the last fault: {broken}"))
    }

    /// All nodes learn of each other, and the map is founded while its founders know that they are.
    fn begin(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for at in 0..self.mesh.seats().len() {
            self.play(Operation::Command(at, Command::SetEpoch(1)), bytes)?;
            self.play(Operation::Introduce(at), bytes)?;
        }
        let (key, expected) = ("a".into(), Expected::Any);
        self.change(0, (key, expected, true), bytes)?;
        self.rounds(20, bytes)
    }

    fn play<C: Choose>(
        &mut self,
        operation: Operation<Kgroup>,
        choices: &mut C,
    ) -> Result<(), String> {
        if let Operation::Wait(span) = operation {
            self.watch.now = self.watch.now + span;
        }
        self.mesh.play(operation, choices, &mut self.watch)
    }

    fn rounds<C: Choose>(&mut self, count: u64, choices: &mut C) -> Result<(), String> {
        self.rounds_with(count, true, choices)
    }

    /// Runs a number of rounds, in which hosts carry out commands as well, or pings alone.
    fn rounds_with<C: Choose>(
        &mut self,
        count: u64,
        acts: bool,
        choices: &mut C,
    ) -> Result<(), String> {
        for _ in 0..count {
            self.play(Operation::DeliverAll, choices)?;
            self.play(Operation::Wait(ROUND), choices)?;
            self.host_all(acts, choices)?;
        }
        Ok(())
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = usize::from(bytes.take());
        // Three bits choose the node, five the operation.
        let seat = (byte >> 5) % self.mesh.seats().len();
        let operation = match byte & 31 {
            24..=27 | 31 if self.watch.settings.is_hostile => return self.forge(seat, bytes),
            0..=4 => Operation::Deliver(self.pick(bytes)),
            5..=7 => Operation::DeliverAll,
            8 => Operation::Duplicate(self.pick(bytes)),
            9 if bytes.take() > 64 => Operation::Lose(self.pick(bytes)),
            9 => Operation::Cut(seat),
            10..=12 => {
                let byte = bytes.take();
                let acts = self.watch.settings.is_prompt || byte & 16 == 0;
                return self.rounds_with(1 + u64::from(byte % 16), acts, bytes);
            }
            13 | 14 => Operation::Wait(Span(ROUND.0 * u64::from(bytes.take() % 32))),
            15 => Operation::Wait(Span::secs(u64::from(bytes.take() % 16))),
            16 | 17 => return self.trigger(seat, bytes),
            18 | 19 => return self.ask_map(seat, bytes),
            20..=22 => return self.host_one(bytes),
            23 => Operation::Fail(seat, usize::from(bytes.take())),
            24 => Operation::Refute(seat, usize::from(bytes.take())),
            25 => return self.fall(seat, bytes),
            26 => Operation::Announce(seat),
            27 => Operation::Introduce(seat),
            28 => match bytes.flip() {
                true => Operation::Pause(seat),
                false => Operation::Resume(seat),
            },
            29 => return self.by_hand(bytes),
            30 => return self.next_epoch(seat, bytes),
            _ => return self.oust(seat, bytes),
        };
        self.play(operation, bytes)?;
        match self.watch.settings.is_prompt {
            true => self.host_all(true, bytes),
            false => Ok(()),
        }
    }

    /// The message that the next byte chooses; it takes a byte if a message is in flight.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    /// Returns true if a node takes commands of its application.
    fn listens(&self, at: usize) -> bool {
        let seat = self.mesh.seat(at);
        seat.is_some_and(|it| it.is_up() && !it.is_paused())
    }

    /// Gives a command to a node that takes commands. Returns true if the node took it.
    fn command<C: Choose>(
        &mut self,
        at: usize,
        command: Command,
        choices: &mut C,
    ) -> Result<bool, String> {
        let refused = self.mesh.refused();
        self.play(Operation::Command(at, command), choices)?;
        Ok(self.mesh.refused() == refused)
    }
}

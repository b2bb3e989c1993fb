//! Lists of operations on a small mesh, with a watch on updates and reads.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both.
//! After every step the promises are compared with the actions of all nodes together. When the
//! bytes run out, faults end: then every proposal is applied, and every read is answered.
//!
//! The assumptions of the promises are kept: where nothing is stored, a member loses its memory
//! only while a quorum of the others has its own.

mod limits;
mod settings;
mod summary;
mod watcher;

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Member, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Seat};

use self::limits::sketch;
use self::settings::Settings;
pub use self::summary::Summary;
use self::watcher::Watcher;
use super::Journal;
use super::invariant::broken;
use crate::encoding::encode;
use crate::message::{Body, Message};
use crate::{Command, Entry, Published, QuorumRule, Replica, Voter};

/// The most messages in flight; older ones are lost.
const IN_FLIGHT: usize = 256;
const ROUND: Span = Span::millis(25);

/// A mesh, and its watcher.
struct World {
    mesh: Mesh<Replica<Journal>>,
    watch: Watcher,
}

/// Carries out the operations that `bytes` stand for. Any bytes do.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[])
}

/// Carries out the operations under published rules, to see that it notices.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run_under(bytes: &[u8], rules: &[Published]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(&mut bytes, rules);
    let played = world.run(&mut bytes);
    played.map_err(|broken| {
        let settings = format!("{:?}", world.watch.settings);
        format!("{} in {settings}", Broken::new(broken, &world.mesh))
    })?;
    Ok(world.watch.summary)
}

impl World {
    fn new(bytes: &mut Bytes<'_>, rules: &[Published]) -> Self {
        let settings = Settings::new(bytes);
        let mut mesh = Mesh::new(IN_FLIGHT);
        let mut stored = Vec::new();
        for node in 0..settings.nodes {
            let me = Member::new(node as u64 + 1, 1);
            let machine = settings.machine(node, me, rules);
            stored.push((machine.stored(), vec![]));
            mesh.add(me, machine);
        }
        let watch = Watcher::new(settings, rules, stored);
        Self { mesh, watch }
    }

    fn run(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        while !bytes.is_empty() {
            self.watch.summary.operations += 1;
            self.operate(bytes)?;
        }
        if self.watch.settings.is_hostile {
            return Ok(());
        }
        self.end(bytes)
            .map_err(|broken| format!("after the last fault: {broken}"))
    }

    fn play(
        &mut self,
        operation: Operation<Replica<Journal>>,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        self.mesh.play(operation, bytes, &mut self.watch)?;
        if self.watch.settings.is_hostile {
            return Ok(());
        }
        let machines: Vec<_> = (self.mesh.seats().iter())
            .filter_map(Seat::machine)
            .collect();
        let messages = self.mesh.in_flight().iter().map(|it| &it.message);
        broken(&machines, messages).map_or(Ok(()), Err)
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = usize::from(bytes.take());
        // Three bits choose the node, five the operation.
        let seat = (byte >> 5) % self.mesh.seats().len();
        let operation = match byte & 31 {
            0..=7 => Operation::Deliver(self.pick(bytes)),
            8..=11 => Operation::DeliverAll,
            12 => Operation::Duplicate(self.pick(bytes)),
            13 if bytes.take() > 64 => Operation::Lose(self.pick(bytes)),
            13 => Operation::Cut(seat),
            14..=16 => Operation::Wait(Span(ROUND.0 * u64::from(bytes.take() % 32))),
            17..=19 => return self.propose(seat, 1, bytes),
            20 => return self.propose(seat, 3, bytes),
            21 | 22 => return self.read(seat, bytes),
            23 => Operation::Fail(seat, usize::from(bytes.take())),
            24 => Operation::Refute(seat, usize::from(bytes.take())),
            25 => return self.fall(seat, bytes),
            26 => Operation::Announce(seat),
            27 => Operation::Pause(seat),
            28 => Operation::Resume(seat),
            29 if self.watch.settings.is_hostile => return self.forge(seat, bytes),
            29 => Operation::Command(seat, Command::Campaign),
            30 if self.watch.settings.changes => return self.configure(seat, bytes),
            30 => {
                let to = 1 + usize::from(bytes.take()) % self.mesh.seats().len();
                Operation::Command(
                    seat,
                    Command::TransferLeadership(selvedge_core::NodeId(to as u64)),
                )
            }
            _ => Operation::Introduce(seat),
        };
        self.play(operation, bytes)
    }

    /// A message that no node sent: the next bytes as a message, or one in flight with other bytes
    /// in it.
    fn forge(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let from = Member::new(u64::from(bytes.take() % 8), u32::from(bytes.take() % 4));
        let letter = match self.mesh.in_flight().len() {
            0 => None,
            some => self.mesh.in_flight().get(bytes.pick(some)),
        };
        let mut frame = letter
            .and_then(|it| encode(&it.message))
            .unwrap_or_default();
        for _ in 0..1 + bytes.take() % 8 {
            let at = usize::from(bytes.take());
            match frame.get_mut(at) {
                Some(byte) => *byte = bytes.take(),
                None => frame.push(bytes.take()),
            }
        }
        let Ok((message, _)) = postcard::take_from_bytes::<Message<u16>>(&frame) else {
            return Ok(());
        };
        self.watch.summary.hostile += 1;
        self.play(Operation::Forge(seat, from, message.into()), bytes)
    }

    /// Chooses a message; it takes a byte where there is one.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    /// Proposes this number of updates in one command.
    fn propose(&mut self, seat: usize, count: u16, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let Some(machine) = self.mesh.machine(seat) else {
            return Ok(());
        };
        let (by, first) = (machine.me(), machine.next_number());
        let updates = self.watch.next_update..self.watch.next_update + count;
        self.watch.next_update += count;
        for (number, update) in (first..).zip(updates.clone()) {
            self.watch.proposed.insert((by, number), update);
            self.watch.waiting.insert((by, number), seat);
        }
        let command = match count {
            1 => Command::Propose(updates.start),
            _ => Command::ProposeAll(updates.collect()),
        };
        self.play(Operation::Command(seat, command), bytes)?;
        let next = self.mesh.machine(seat).map_or(first, Replica::next_number);
        // All are taken, or none.
        for number in next..first + u64::from(count) {
            self.watch.waiting.remove(&(by, number));
        }
        Ok(())
    }

    fn read(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let number = self.watch.next_read;
        self.watch.next_read += 1;
        self.watch
            .reads
            .insert((seat, number), self.watch.highest());
        self.play(Operation::Command(seat, Command::Read(number)), bytes)?;
        let waits = |it: &Replica<Journal>| it.work.reads.iter().any(|asked| asked.read == number);
        if !self.mesh.machine(seat).is_some_and(waits) {
            // It was answered, refused, or the node is paused or down.
            self.watch.reads.remove(&(seat, number));
        }
        Ok(())
    }

    /// A node crashes, and begins its next life.
    fn fall(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        if self.watch.settings.is_durable {
            let is_up = self.mesh.seat(seat).is_some_and(Seat::is_up);
            return match is_up && bytes.take() & 1 == 0 {
                true => self.play(Operation::Crash(seat), bytes),
                false => self.play(Operation::Restart(seat), bytes),
            };
        }
        let newest = &self.watch.newest;
        let remembers = |id: selvedge_core::NodeId| {
            let at = self.mesh.position(id);
            let machine = at.and_then(|at| self.mesh.machine(at));
            machine.is_some_and(|it| it.configuration() == newest && it.votes())
        };
        let me = self.mesh.seat(seat).map(Seat::me).unwrap_or_default();
        let group = crate::group::Group::new(newest.clone());
        let holders = newest
            .members()
            .filter(|it| !it.is_witness && it.member.id != me.id && remembers(it.member.id));
        if !group.is_quorum(|id| id != me.id && remembers(id)) || holders.count() == 0 {
            return Ok(());
        }
        if newest.members().any(|it| it.is_witness) {
            return Ok(()); // An entry that only a witness and this node accepted would be lost.
        }
        if self.is_changing() {
            return Ok(()); // The next configuration may name this life.
        }
        self.play(Operation::Restart(seat), bytes)?;
        self.play(Operation::Announce(seat), bytes)
    }

    /// Returns true if another configuration is in progress.
    fn is_changing(&self) -> bool {
        let seals = |entries: &[Entry<u16>]| entries.iter().any(Entry::seals);
        let carries = |body: &Body<u16>| {
            let (Body::Accept { entries, .. }
            | Body::Learn { entries, .. }
            | Body::Promise { tail: entries, .. }) = body
            else {
                return false;
            };
            seals(entries)
        };
        let in_flight = self
            .mesh
            .in_flight()
            .iter()
            .any(|it| carries(&it.message.body));
        let mut members = self.mesh.seats().iter().filter_map(Seat::machine);
        in_flight || members.any(Replica::is_changing)
    }

    fn configure(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let chosen = bytes.take();
        let in_present_lives = bytes.take() & 1 == 1;
        let mut voters = Vec::new();
        for at in 0..self.mesh.seats().len() {
            if chosen >> at & 1 == 1
                && let Some(machine) = self.mesh.machine(at)
            {
                let voter = match in_present_lives {
                    true => machine.me(),
                    false => machine.acceptor.voter(),
                };
                voters.push(Voter::new(voter));
            }
        }
        if chosen & 128 == 128 {
            voters.reverse();
        }
        if chosen & 64 == 64
            && voters.len() > 2
            && self.watch.settings.is_durable
            && let Some(voter) = voters.last_mut()
        {
            voter.is_witness = true;
        }
        let mut next = self.watch.newest.clone();
        if chosen & 32 == 32 {
            next.also = next.voters.clone();
            next.also.retain(|it| {
                voters
                    .iter()
                    .all(|other| other.member.id != it.member.id || other == it)
            });
        } else {
            next.also.clear();
        }
        next.quorum = QuorumRule::Majority;
        next.voters = voters;
        self.play(Operation::Command(seat, Command::Configure(next)), bytes)
    }

    /// Ends all faults: all nodes learn of each other, and messages arrive in time.
    fn end(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for at in 0..self.mesh.seats().len() {
            self.play(Operation::Resume(at), bytes)?;
            if !self.mesh.seat(at).is_some_and(Seat::is_up) {
                self.play(Operation::Restart(at), bytes)?;
            }
        }
        for at in 0..self.mesh.seats().len() {
            self.play(Operation::Announce(at), bytes)?;
            for other in 0..self.mesh.seats().len() {
                self.play(Operation::Refute(at, other), bytes)?;
            }
        }
        for round in 0..600 {
            self.play(Operation::DeliverAll, bytes)?;
            self.play(Operation::Wait(ROUND), bytes)?;
            if round > 40 && self.is_settled() {
                return self.check_quiet(bytes);
            }
        }
        let machines: Vec<_> = self
            .mesh
            .seats()
            .iter()
            .filter_map(Seat::machine)
            .map(sketch)
            .collect();
        Err(format!(
            "{:?} wait to be applied, {:?} to be read; {}; newest {:?}; in flight {:?}",
            self.watch.waiting,
            self.watch.reads,
            machines.join(""),
            self.watch.newest,
            self.mesh.in_flight()
        ))
    }

    /// Returns true if nothing waits, and all members of the newest configuration hold the same
    /// state.
    fn is_settled(&self) -> bool {
        let newest = &self.watch.newest;
        let highest = self.watch.highest();
        let has_all = |voter: Voter| {
            let at = self.mesh.position(voter.member.id);
            let machine = at.and_then(|at| self.mesh.machine(at));
            machine.is_some_and(|it| {
                it.version() >= highest && it.configuration().number >= newest.number
            })
        };
        // A node outside may have forgotten all nodes that know of the group.
        let is_member = |at: usize| {
            let id = self.mesh.seat(at).map(|it| it.me().id);
            id.is_some_and(|id| newest.voter(id).is_some())
        };
        !self.watch.waiting.values().any(|&at| is_member(at))
            && !self.watch.reads.keys().any(|&(at, _)| is_member(at))
            && newest.members().all(has_all)
    }

    /// Checks that a group that has nothing to do sends nothing, sooner or later.
    fn check_quiet(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for _ in 0..20 {
            self.watch.sent.clear();
            self.watch.is_recording = true;
            let before = self.mesh.delivered();
            for _ in 0..40 {
                self.play(Operation::DeliverAll, bytes)?;
                self.play(Operation::Wait(ROUND), bytes)?;
            }
            let waits = |it: &Replica<Journal>| it.waiting() > 0;
            let busy = self
                .mesh
                .seats()
                .iter()
                .filter_map(Seat::machine)
                .any(waits);
            if busy || self.mesh.delivered() == before {
                return Ok(());
            }
        }
        let machines: Vec<_> = self
            .mesh
            .seats()
            .iter()
            .filter_map(Seat::machine)
            .map(sketch)
            .collect();
        let sent = &self.watch.sent;
        Err(format!(
            "an idle group sends {sent:#?} {}",
            machines.join("")
        ))
    }
}

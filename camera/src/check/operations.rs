//! Lists of operations on a small mesh, with checks of the nodes that are inside.
//!
//! Bytes become operations, so a fuzzer can steer them, and a property test can draw them. After
//! every step the promises are checked against the events of all nodes. When the bytes run out,
//! faults are over and all nodes want to enter; each has to enter or be refused with a reason. In
//! some meshes all know each other then; in others no node ever learns of more than a few
//! neighbours.
//!
//! The assumptions of the promises hold: a node does not restart while a request is open that has
//! seen as many lives as its bound allows, and membership reports only nodes that have left as
//! `Left`. A run with hostile messages checks only that nothing panics, that a refusal changes
//! nothing, and that memory and frames stay within their limits.

mod decoder;
mod limits;
mod oracle;
mod settings;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use selvedge_core::{Delta, Driver, Effect, Incarnation, Member, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Seat, Step, Watch};

use crate::published::Rules;
use crate::state::Stage;
use crate::{Camera, Command, Event, Published};
use limits::{check_frame, check_limits};
use oracle::{Oracle, is_idle};
use settings::Settings;

/// The largest number of messages in flight; older messages are lost. Five trees through five nodes
/// take some 100.
const IN_FLIGHT: usize = 512;
/// The number of rounds after the last fault in which each node is served. In a round a message goes
/// one hop: a turn takes one round for each level of the tree, and in short frames some more for
/// each rival at each level.
const ROUNDS: usize = 2_000;

selvedge_sim::counts! {
    /// Counts of a run, for tests that check its coverage.
    pub struct Summary {
        /// Operations carried out.
        operations,
        /// Messages delivered.
        delivered,
        /// Hostile messages among them.
        hostile,
        /// Inputs refused.
        refused,
        /// Times that a node entered.
        entries,
        /// Entries by the slow path.
        slow,
        /// Entries while nodes that are not rivals had not answered yet.
        eager,
        /// Trees that were built again.
        rebuilt,
        /// Entries with a token that had to exceed the token before.
        compared,
        /// Crashes of a node inside.
        died_inside,
        /// Nodes that came back without memory.
        restarts,
        /// Nodes that were up and were declared failed.
        false_failures,
        /// Holders that were passed over.
        passed_over,
        /// Nodes that waited when faults were over, and entered or were refused with a reason.
        served,
        /// The sum of the nodes' counters `no_room`.
        no_room,
        /// The longest frame in bytes.
        longest_frame: max usize,
    }
}

/// A mesh and its watcher.
struct World {
    mesh: Mesh<Camera>,
    watch: Watcher,
}

/// The watcher, which checks the promises against the events of all nodes.
struct Watcher {
    settings: Settings,
    rules: Rules,
    oracle: Oracle,
    summary: Summary,
    before: Before,
}

/// Facts about a node before a step.
#[derive(Clone, Copy, Default)]
struct Before {
    /// It had no request and kept no permission.
    is_idle: bool,
    is_slow: bool,
    /// The number of answers for which it waited.
    awaited: usize,
}

/// Carries out the operations that `bytes` stand for. Any bytes do.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[])
}

/// Does the same as [`run`] under rules that break a promise, to show that the check notices it.
///
/// # Errors
/// The promise that broke, in words, with the last operations.
pub fn run_under(bytes: &[u8], rules: &[Published]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(&mut bytes, rules)?;
    let played = world.run(&mut bytes);
    played.map_err(|broken| Broken::new(broken, &world.mesh).to_string())?;
    let World { mesh, mut watch } = world;
    for machine in mesh.seats().iter().filter_map(Seat::machine) {
        watch.count(machine);
    }
    Ok(Summary {
        delivered: mesh.delivered(),
        refused: mesh.refused(),
        entries: watch.oracle.entries,
        compared: watch.oracle.compared,
        ..watch.summary
    })
}

impl World {
    fn new(bytes: &mut Bytes<'_>, rules: &[Published]) -> Result<Self, String> {
        let settings = Settings::new(bytes);
        settings
            .config
            .check()
            .map_err(|error| format!("{error}"))?;
        let mut world = Self {
            mesh: Mesh::new(IN_FLIGHT),
            watch: Watcher {
                rules: Rules::published(rules),
                oracle: Oracle::new(settings.config.takeover.is_some()),
                summary: Summary::default(),
                before: Before::default(),
                settings,
            },
        };
        for node in 0..world.watch.settings.nodes {
            let me = world.watch.settings.member(node);
            world.mesh.add(me, world.watch.machine(me));
            world.watch.oracle.begins(me);
        }
        for node in 0..world.mesh.seats().len() {
            let known = world.watch.settings.lists.rotate_right(node as u32);
            for other in 0..world.mesh.seats().len() {
                let is_notified = other != node && known >> (other % 8) & 1 == 0;
                if is_notified && world.watch.settings.may_know(node, other) {
                    let joined = Delta::Joined(world.watch.settings.member(other));
                    world.play(Operation::Learn(node, joined))?;
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
        if self.watch.settings.are_all_served() {
            self.end()
                .map_err(|broken| format!("after the last fault: {broken}"))?;
        }
        Ok(())
    }

    /// Camera draws nothing.
    fn play(&mut self, operation: Operation<Camera>) -> Result<(), String> {
        self.mesh
            .play(operation, &mut Bytes::new(&[]), &mut self.watch)
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = usize::from(bytes.take());
        // Three bits select a seat, five the operation there.
        let seat = (byte >> 5) % self.mesh.seats().len();
        let operation = match byte & 31 {
            0..=6 => Operation::Deliver(self.pick(bytes)),
            7..=11 => Operation::DeliverAll,
            12 => Operation::Duplicate(self.pick(bytes)),
            // One message, or all from and to one node.
            13 if bytes.take() > 64 => Operation::Lose(self.pick(bytes)),
            13 => Operation::Cut(seat),
            14 | 15 => Operation::Wait(Span::millis(250 * u64::from(bytes.take() % 32))),
            16..=19 => Operation::Command(seat, Command::Enter),
            20..=23 => Operation::Command(seat, Command::Exit),
            24 => {
                self.play(Operation::Command(seat, Command::Cancel))?;
                // A node that is inside refuses both.
                Operation::Command(seat, Command::GiveBack)
            }
            25 => {
                let more = bytes.take() % 8 / 6;
                let max_lives = self.watch.settings.config.max_lives + u32::from(more);
                Operation::Command(seat, Command::SetMaxLives(max_lives))
            }
            26 | 27 => {
                let delta = self.delta(bytes);
                return self.learn(seat, delta);
            }
            28 => Operation::Announce(seat),
            29 => return self.fall(seat, bytes),
            30 if self.watch.settings.is_hostile => {
                let first = self.watch.settings.member(0);
                let (from, message) = decoder::message(bytes, first);
                self.watch.summary.hostile += 1;
                Operation::Forge(seat, from, Box::new(message))
            }
            _ => Operation::Introduce(seat),
        };
        self.play(operation)
    }

    /// Selects a message in flight. Takes a byte if there is any message.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    /// A delta that membership may report about a node. `Left` and `Confirmed` come only for lives that
    /// have ended.
    fn delta(&self, bytes: &mut Bytes<'_>) -> Delta {
        let about = bytes.pick(self.mesh.seats().len());
        let byte = bytes.take();
        let Some(seat) = self.mesh.seat(about) else {
            return Delta::Suspected(Member::default());
        };
        let (first, now) = (seat.first().incarnation, seat.me().incarnation);
        let lives = now.0.wrapping_sub(first.0).saturating_add(1);
        // Mostly the present life.
        let back = match byte >> 5 {
            0 => u32::from(byte >> 3).checked_rem(lives).unwrap_or_default(),
            1 => lives.saturating_sub(1).min(1),
            _ => 0,
        };
        let incarnation = Incarnation(now.0.wrapping_sub(back));
        let member = Member {
            incarnation,
            ..seat.me()
        };
        let is_over = back > 0 || !seat.is_up();
        match byte & 7 {
            0 | 1 if is_over => Delta::Confirmed(member),
            2 if is_over => Delta::Left(member),
            0 => Delta::Suspected(member),
            1 | 3 => Delta::Refuted(member),
            2 | 4 => Delta::Joined(member),
            _ => Delta::Failed(member),
        }
    }

    fn learn(&mut self, seat: usize, delta: Delta) -> Result<(), String> {
        let about = self.mesh.position(delta.member().id);
        let there = about.and_then(|about| self.mesh.seat(about));
        let is_of_someone_up = there.is_some_and(|it| it.is_up() && it.me() == delta.member());
        let may_know = |about| self.watch.settings.may_know(seat, about);
        if is_of_someone_up && !about.is_some_and(may_know) {
            // A false report would never be taken back.
            return Ok(());
        }
        let is_false = is_of_someone_up && matches!(delta, Delta::Failed(_));
        self.watch.summary.false_failures += u64::from(is_false);
        self.play(Operation::Learn(seat, delta))
    }

    /// Crashes the node for some bytes. It comes back without memory, if the promises allow one more
    /// life.
    fn fall(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let is_up = self.mesh.seat(at).is_some_and(Seat::is_up);
        if is_up && byte & 12 != 0 {
            return Ok(());
        }
        self.play(Operation::Crash(at))?;
        let max_lives = self.watch.settings.config.max_lives;
        if is_up && byte & 16 != 0 || !self.watch.oracle.may_begin(max_lives) {
            return Ok(());
        }
        self.play(Operation::Restart(at))?;
        // It may know no node, and no node may know it.
        if byte & 1 == 0 {
            self.play(Operation::Introduce(at))?;
        }
        if byte & 2 == 0 {
            self.play(Operation::Announce(at))?;
        }
        Ok(())
    }

    /// Ends the run without faults: all know each other as far as they may, all want to enter, and
    /// each must be served.
    fn end(&mut self) -> Result<(), String> {
        let seats = 0..self.mesh.seats().len();
        for seat in seats.clone() {
            self.play(Operation::Announce(seat))?;
        }
        if self.watch.settings.config.tree_patience == 0 {
            self.tell_former_ends()?;
        }
        for seat in seats.clone() {
            // A node that waits or is inside refuses.
            self.play(Operation::Command(seat, Command::Enter))?;
        }
        let waiting = |seat: &&Seat<Camera>| seat.machine().is_some_and(Camera::is_waiting);
        let wait = self.mesh.seats().iter().filter(waiting).count();
        for _ in 0..ROUNDS {
            if !self.mesh.seats().iter().any(|seat| waiting(&seat)) {
                break;
            }
            for seat in seats.clone() {
                // A node that is not inside refuses.
                self.play(Operation::Command(seat, Command::Exit))?;
            }
            self.play(Operation::DeliverAll)?;
            self.play(Operation::Wait(self.watch.settings.config.resend))?;
            if self.watch.settings.may_forget() {
                self.repeat_ends()?;
            }
        }
        if let Some(seat) = self.mesh.seats().iter().find(waiting) {
            let machine = seat.machine();
            let waits_for: Vec<Member> = machine.into_iter().flat_map(Camera::waits_for).collect();
            return Err(format!("{:?} waits for {waits_for:?}", seat.me()));
        }
        self.watch.summary.served += wait as u64;
        Ok(())
    }

    /// Reports each restart to each node, as a tree without patience needs it
    /// ([`tree_patience`](crate::Config::tree_patience)).
    fn tell_former_ends(&mut self) -> Result<(), String> {
        let former = |(at, seat): (usize, &Seat<Camera>)| {
            let (first, now) = (seat.first(), seat.me());
            let next = |it: &Member| {
                let incarnation = it.incarnation.next();
                Some(Member { incarnation, ..*it })
            };
            let lives = core::iter::successors(Some(first), next);
            lives
                .take_while(move |&it| it != now)
                .map(move |it| (at, it))
        };
        let ends: Vec<_> = self
            .mesh
            .seats()
            .iter()
            .enumerate()
            .flat_map(former)
            .collect();
        for (at, member) in ends {
            for seat in (0..self.mesh.seats().len()).filter(|&seat| seat != at) {
                self.play(Operation::Learn(seat, Delta::Confirmed(member)))?;
            }
        }
        Ok(())
    }

    /// Reports ended lives again, as a host has to do ([`Camera::waits_for`]): to each node that
    /// waits for such a life, or has given it its OK.
    fn repeat_ends(&mut self) -> Result<(), String> {
        let is_up = |member| {
            let mut seats = self.mesh.seats().iter();
            seats.any(|seat| seat.is_up() && seat.me() == member)
        };
        let ends = |(at, seat): (usize, &Seat<Camera>)| {
            let machine = seat.machine().into_iter();
            let met = machine.flat_map(|it| it.waits_for().chain(it.granted()));
            let over: Vec<_> = met.filter(|&member| !is_up(member)).collect();
            over.into_iter().map(move |member| (at, member))
        };
        let ends: Vec<_> = self
            .mesh
            .seats()
            .iter()
            .enumerate()
            .flat_map(ends)
            .collect();
        for (seat, member) in ends {
            let is_latest = self.mesh.seats().iter().any(|it| it.me() == member);
            let over = if is_latest {
                self.watch.over(member)
            } else {
                Delta::Confirmed(member)
            };
            self.play(Operation::Learn(seat, over))?;
        }
        Ok(())
    }
}

impl Watcher {
    fn machine(&self, me: Member) -> Camera {
        Camera::unchecked(me, self.settings.config(me.id), self.rules)
    }

    /// Adds the counters of a node's present life.
    fn count(&mut self, machine: &Camera) {
        let counters = machine.counters();
        self.summary.no_room += counters.no_room;
        self.summary.rebuilt += counters.rebuilt;
    }

    fn note(&mut self, event: &Event, machine: &Camera) {
        self.summary.passed_over += u64::from(matches!(event, Event::PassedOver(_)));
        let has_entered = matches!(event, Event::Entered(_));
        self.summary.slow += u64::from(has_entered && self.before.is_slow);
        // One of them may have answered just now.
        let is_eager = machine.config.eager && self.before.awaited > 1;
        self.summary.eager += u64::from(has_entered && is_eager);
    }
}

impl Watch<Camera> for Watcher {
    fn before(&mut self, _: usize, driver: &Driver<Camera>) {
        let machine = driver.machine();
        let (is_slow, awaited) = match &machine.stage {
            Stage::Waiting(waiting) => (waiting.slow, waiting.awaited()),
            Stage::Idle | Stage::Inside(_) => (false, 0),
        };
        self.before = Before {
            is_idle: is_idle(machine),
            is_slow,
            awaited,
        };
    }

    fn after(&mut self, step: &Step<'_, Camera>) -> Result<(), String> {
        check_limits(step.driver)?;
        let machine = step.machine();
        self.oracle.step(machine, self.before.is_idle);
        if !self.settings.is_hostile {
            self.oracle.counted(machine)?;
        }
        for effect in step.effects {
            match effect {
                Effect::Event(event) => {
                    self.note(event, machine);
                    if !self.settings.is_hostile {
                        self.oracle.notified(step.me, event)?;
                    }
                }
                Effect::Send { message, .. } => {
                    let len = check_frame(machine, message)?;
                    self.summary.longest_frame = self.summary.longest_frame.max(len);
                }
                Effect::Multicast { message } => {
                    check_frame(machine, message)?;
                }
            }
        }
        self.oracle.settle(machine);
        Ok(())
    }

    fn restart(&mut self, _: usize, before: Member) -> Option<(Member, Camera)> {
        let incarnation = before.incarnation.next();
        let me = Member {
            incarnation,
            ..before
        };
        self.summary.restarts += 1;
        self.oracle.begins(me);
        Some((me, self.machine(me)))
    }

    fn crashed(&mut self, _: usize, me: Member, machine: &Camera) {
        self.count(machine);
        self.summary.died_inside += u64::from(machine.token().is_some());
        self.oracle.dies(me);
    }

    fn may_know(&self, seat: usize, about: usize) -> bool {
        self.settings.may_know(seat, about)
    }

    /// The end of a member: declared failed if a takeover lets others pass it, else confirmed.
    fn over(&self, member: Member) -> Delta {
        if self.settings.config.takeover.is_some() {
            Delta::Failed(member)
        } else {
            Delta::Confirmed(member)
        }
    }
}

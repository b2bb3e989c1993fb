//! Lists of operations on a small mesh, with a watch on who is inside.
//!
//! Bytes become operations; so a fuzzer steers what happens, and a property test draws it. After
//! every step the promises are held against what all nodes together did. When the bytes run out
//! faults are over and all want to enter; each has to get in or be told why not. In some meshes
//! then all know each other; in others nobody is ever told of more than a few neighbours.
//!
//! What the promises rest on is kept: a node does not restart while a request is open that has
//! seen as many lives as its bound allows, and nobody is said to have left who has not. A run with
//! hostile messages promises no more than that nothing panics, that a refusal changes nothing, and
//! that memory and frames stay within their limits.

mod decoder;
mod limits;
mod oracle;
mod settings;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Delta, Driver, Effect, Incarnation, Input, Member, NodeId, Span, Time};

use crate::published::Rules;
use crate::state::Stage;
use crate::{Camera, Command, Event, Message, Published};
use decoder::Bytes;
use limits::{check_frame, check_limits};
use oracle::{Oracle, is_idle};
use settings::Settings;

/// At most so many messages are in flight; older ones are lost. Five trees through five nodes take
/// some 100.
const IN_FLIGHT: usize = 512;
/// In so many rounds after the last fault everyone is served. In each a message goes one hop: a turn
/// takes as many as the tree has levels, and in short frames some for each rival at each level.
const ROUNDS: usize = 2_000;

/// What a run did: for tests that want to know that it did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations carried out.
    pub operations: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Hostile messages among them.
    pub hostile: u64,
    /// Inputs refused.
    pub refused: u64,
    /// Times that somebody entered.
    pub entries: u64,
    /// Entries by the slow path.
    pub slow: u64,
    /// Entries while others than rivals had not answered yet.
    pub eager: u64,
    /// Trees that were built anew.
    pub rebuilt: u64,
    /// Entries whose token had to exceed the one before.
    pub compared: u64,
    /// Crashes of a node inside.
    pub died_inside: u64,
    /// Nodes that came back without memory.
    pub restarts: u64,
    /// Nodes that were up and were declared failed.
    pub false_failures: u64,
    /// Holders that were passed over.
    pub passed_over: u64,
    /// Nodes that waited when faults were over, and got in or were told why not.
    pub served: u64,
    /// What found no room.
    pub no_room: u64,
    /// The longest frame in bytes.
    pub longest_frame: usize,
}

struct Seat {
    driver: Option<Driver<Camera>>,
    me: Member,
    /// In which life it began.
    first: Member,
}

struct Letter {
    from: Member,
    to: NodeId,
    message: Message,
}

struct Mesh {
    settings: Settings,
    rules: Rules,
    now: Time,
    seats: Vec<Seat>,
    in_flight: Vec<Letter>,
    oracle: Oracle,
    summary: Summary,
}

/// Carries out the operations that `bytes` stand for. Any bytes do.
///
/// # Errors
/// The promise that broke, in words.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    run_under(bytes, &[])
}

/// The same under rules that differ from ours, to see that it notices.
///
/// # Errors
/// The promise that broke, in words.
pub fn run_under(bytes: &[u8], rules: &[Published]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut mesh = Mesh::new(&mut bytes, rules)?;
    while !bytes.is_empty() {
        mesh.summary.operations += 1;
        mesh.operate(&mut bytes)
            .map_err(|broken| format!("operation {}: {broken}", mesh.summary.operations))?;
    }
    if mesh.settings.are_all_served() {
        mesh.end()
            .map_err(|broken| format!("after the last fault: {broken}"))?;
    }
    for seat in 0..mesh.seats.len() {
        mesh.count(seat);
    }
    mesh.summary.entries = mesh.oracle.entries;
    mesh.summary.compared = mesh.oracle.compared;
    Ok(mesh.summary)
}

impl Mesh {
    fn new(bytes: &mut Bytes<'_>, rules: &[Published]) -> Result<Self, String> {
        let settings = Settings::new(bytes);
        settings
            .config
            .check()
            .map_err(|error| format!("{error}"))?;
        let mut mesh = Self {
            rules: Rules::published(rules),
            now: Time::ZERO,
            seats: Vec::new(),
            in_flight: Vec::new(),
            oracle: Oracle::new(settings.config.takeover.is_some()),
            summary: Summary::default(),
            settings,
        };
        for node in 0..mesh.settings.nodes {
            let me = mesh.settings.member(node);
            let driver = Some(mesh.new_driver(me));
            let first = me;
            mesh.seats.push(Seat { driver, me, first });
            mesh.oracle.begins(me);
        }
        for node in 0..mesh.seats.len() {
            let known = mesh.settings.lists.rotate_right(node as u32);
            mesh.introduce(node, |other| known >> (other % 8) & 1 == 0)?;
        }
        Ok(mesh)
    }

    fn new_driver(&self, me: Member) -> Driver<Camera> {
        let config = self.settings.config(me.id);
        Driver::new(Camera::unchecked(me, config, self.rules))
    }

    /// Tells a node of all others that are up and that it may and is to know.
    fn introduce(&mut self, seat: usize, knows: impl Fn(usize) -> bool) -> Result<(), String> {
        for other in 0..self.seats.len() {
            let Some(there) = self.seats.get(other) else {
                continue;
            };
            let is_told = self.settings.may_know(seat, other) && knows(other);
            if other != seat && is_told && there.driver.is_some() {
                let joined = Input::Membership(Delta::Joined(there.me));
                self.step(seat, joined)?;
            }
        }
        Ok(())
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = usize::from(bytes.take());
        // Three bits say who, five say what.
        let seat = (byte >> 5) % self.seats.len();
        match byte & 31 {
            0..=6 => self.deliver(bytes, false),
            7..=11 => self.deliver_all(),
            12 => self.deliver(bytes, true),
            13 => {
                self.lose(seat, bytes);
                Ok(())
            }
            14 | 15 => self.pass_time(Span::millis(250 * u64::from(bytes.take() % 32))),
            16..=19 => self.step(seat, Input::Command(Command::Enter)),
            20..=23 => self.step(seat, Input::Command(Command::Exit)),
            24 => {
                self.step(seat, Input::Command(Command::Cancel))?;
                // Whoever is inside refuses both.
                self.step(seat, Input::Command(Command::GiveBack))
            }
            25 => {
                let more = bytes.take() % 8 / 6;
                let upper = self.settings.config.upper + u32::from(more);
                self.step(seat, Input::Command(Command::Bound(upper)))
            }
            26 | 27 => {
                let delta = self.delta(bytes);
                self.learn(seat, delta)
            }
            28 => self.announce(seat),
            29 => self.fall(seat, bytes),
            30 if self.settings.is_hostile => {
                let first = self.settings.member(0);
                let (from, message) = bytes.message(first);
                self.summary.hostile += 1;
                self.step(seat, Input::Message { from, message })
            }
            _ => self.introduce(seat, |_| true),
        }
    }

    fn pick(&self, bytes: &mut Bytes<'_>) -> Option<usize> {
        (!self.in_flight.is_empty()).then(|| bytes.pick(self.in_flight.len()))
    }

    /// One message, or all from and to one node.
    fn lose(&mut self, seat: usize, bytes: &mut Bytes<'_>) {
        if bytes.take() > 64 {
            self.pick(bytes).map(|at| self.in_flight.remove(at));
            return;
        }
        let cut = self.settings.id(seat);
        let is_cut = |it: &Letter| it.to == cut || it.from.id == cut;
        self.in_flight.retain(|letter| !is_cut(letter));
    }

    fn deliver(&mut self, bytes: &mut Bytes<'_>, again: bool) -> Result<(), String> {
        let Some(at) = self.pick(bytes) else {
            return Ok(());
        };
        if again && let Some(letter) = self.in_flight.get(at) {
            let Letter { from, to, .. } = *letter;
            let message = letter.message.clone();
            return self.hand_over(Letter { from, to, message });
        }
        let letter = self.in_flight.remove(at);
        self.hand_over(letter)
    }

    /// What is in flight now arrives in order.
    fn deliver_all(&mut self) -> Result<(), String> {
        for letter in core::mem::take(&mut self.in_flight) {
            self.hand_over(letter)?;
        }
        Ok(())
    }

    /// A message is for a node, whichever life it is in.
    fn hand_over(&mut self, letter: Letter) -> Result<(), String> {
        let Letter { from, to, message } = letter;
        let Some(seat) = self.seats.iter().position(|seat| seat.me.id == to) else {
            return Ok(());
        };
        self.summary.delivered += 1;
        self.step(seat, Input::Message { from, message })
    }

    fn pass_time(&mut self, span: Span) -> Result<(), String> {
        self.now = self.now + span;
        for seat in 0..self.seats.len() {
            self.call(seat, |driver, now, sink| {
                driver.expire(now, &mut Bytes::new(&[]), |effect| sink.push(effect));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Anything that membership may say of a node; only of those that are gone that it is sure.
    fn delta(&self, bytes: &mut Bytes<'_>) -> Delta {
        let about = bytes.pick(self.seats.len());
        let byte = bytes.take();
        let Some(seat) = self.seats.get(about) else {
            return Delta::Suspected(Member::default());
        };
        let (first, now) = (seat.first.incarnation, seat.me.incarnation);
        let lives = now.0.wrapping_sub(first.0).saturating_add(1);
        // Mostly the present one.
        let back = match byte >> 5 {
            0 => u32::from(byte >> 3).checked_rem(lives).unwrap_or_default(),
            1 => lives.saturating_sub(1).min(1),
            _ => 0,
        };
        let incarnation = Incarnation(now.0.wrapping_sub(back));
        let member = Member {
            incarnation,
            ..seat.me
        };
        let is_over = back > 0 || seat.driver.is_none();
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
        let about = self
            .seats
            .iter()
            .position(|it| it.me.id == delta.member().id);
        let is_of_someone_up = about
            .and_then(|about| self.seats.get(about))
            .is_some_and(|it| it.driver.is_some() && it.me == delta.member());
        if is_of_someone_up && about.is_some_and(|about| !self.settings.may_know(seat, about)) {
            // What is false would never be taken back.
            return Ok(());
        }
        let is_false = is_of_someone_up && matches!(delta, Delta::Failed(_));
        self.summary.false_failures += u64::from(is_false);
        self.step(seat, Input::Membership(delta))
    }

    fn crash(&mut self, at: usize) {
        self.count(at);
        if let Some(seat) = self.seats.get_mut(at)
            && let Some(driver) = seat.driver.take()
        {
            self.summary.died_inside += u64::from(driver.machine().token().is_some());
            self.oracle.dies(seat.me);
        }
    }

    /// Adds up what a node counted in the life that it is in.
    fn count(&mut self, at: usize) {
        let driver = self.seats.get(at).and_then(|seat| seat.driver.as_ref());
        if let Some(counters) = driver.map(|it| it.machine().counters()) {
            self.summary.no_room += counters.no_room;
            self.summary.rebuilt += counters.rebuilt;
        }
    }

    /// Dies now and then; comes back without memory, if the promises allow one more life.
    fn fall(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let is_up = self.seats.get(at).is_some_and(|it| it.driver.is_some());
        if is_up && byte & 12 != 0 {
            return Ok(());
        }
        self.crash(at);
        if is_up && byte & 16 != 0 || !self.oracle.may_begin(self.settings.config.upper) {
            return Ok(());
        }
        self.begin(at)?;
        // It may know nobody, and nobody of it.
        if byte & 1 == 0 {
            self.introduce(at, |_| true)?;
        }
        if byte & 2 == 0 {
            self.announce(at)?;
        }
        Ok(())
    }

    fn begin(&mut self, at: usize) -> Result<(), String> {
        let Some(before) = self.seats.get(at).map(|seat| seat.me) else {
            return Ok(());
        };
        let incarnation = before.incarnation.next();
        let me = Member {
            incarnation,
            ..before
        };
        let driver = Some(self.new_driver(me));
        if let Some(seat) = self.seats.get_mut(at) {
            seat.driver = driver;
            seat.me = me;
        }
        self.summary.restarts += 1;
        self.oracle.begins(me);
        Ok(())
    }

    /// Tells all that may know it of a node that is up. If it is down it is dead for certain, or
    /// declared failed where that lets others pass in time: then all are told.
    fn announce(&mut self, at: usize) -> Result<(), String> {
        let has_takeover = self.settings.config.takeover.is_some();
        let Some(delta) = self.seats.get(at).map(|seat| match seat.driver {
            Some(_) => Delta::Joined(seat.me),
            None if has_takeover => Delta::Failed(seat.me),
            None => Delta::Confirmed(seat.me),
        }) else {
            return Ok(());
        };
        let is_up = matches!(delta, Delta::Joined(_));
        for other in (0..self.seats.len()).filter(|&other| other != at) {
            if is_up && !self.settings.may_know(at, other) {
                continue;
            }
            self.step(other, Input::Membership(delta))?;
        }
        Ok(())
    }

    fn step(&mut self, seat: usize, input: Input<Camera>) -> Result<(), String> {
        self.call(seat, |driver, now, sink| {
            let before = driver.machine().clone();
            let mut choices = Bytes::new(&[]);
            let taken = driver.step(now, &mut choices, input, |effect| sink.push(effect));
            if taken.is_err() && (*driver.machine() != before || !sink.is_empty()) {
                return Err(format!("a refusal changed something: {taken:?}"));
            }
            taken.map_err(|_| String::new())
        })
    }

    /// Lets a node that is up do something, and looks at what came of it. An empty error of `act`
    /// is a refusal.
    fn call(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Driver<Camera>, Time, &mut Vec<Effect<Camera>>) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(seat) = self.seats.get_mut(at) else {
            return Ok(());
        };
        let me = seat.me;
        let Some(driver) = &mut seat.driver else {
            return Ok(());
        };
        let was_idle = is_idle(driver.machine());
        let (is_slow, awaited) = match &driver.machine().stage {
            Stage::Waiting(waiting) => (waiting.slow, waiting.awaited()),
            Stage::Idle | Stage::Inside(_) => (false, 0),
        };
        let mut effects = Vec::new();
        match act(driver, self.now, &mut effects) {
            Err(refused) if refused.is_empty() => self.summary.refused += 1,
            outcome => outcome?,
        }
        check_limits(driver)?;
        let machine = driver.machine();
        self.oracle.step(machine, was_idle);
        if !self.settings.is_hostile {
            self.oracle.counted(machine)?;
        }
        for effect in effects {
            match effect {
                Effect::Event(event) => {
                    self.summary.passed_over += u64::from(matches!(event, Event::PassedOver(_)));
                    let has_entered = matches!(event, Event::Entered(_));
                    self.summary.slow += u64::from(has_entered && is_slow);
                    // One of them may have answered just now.
                    let is_eager = machine.config.eager && awaited > 1;
                    self.summary.eager += u64::from(has_entered && is_eager);
                    if !self.settings.is_hostile {
                        self.oracle.told(me, &event)?;
                    }
                }
                Effect::Send { to, message } => {
                    if to.id == me.id {
                        return Err(format!("a message to itself: {message:?}"));
                    }
                    let len = check_frame(machine, &message)?;
                    self.summary.longest_frame = self.summary.longest_frame.max(len);
                    let (from, to) = (me, to.id);
                    self.in_flight.push(Letter { from, to, message });
                }
                Effect::Multicast { message } => {
                    check_frame(machine, &message)?;
                    for to in (0..self.settings.nodes).map(|node| self.settings.id(node)) {
                        if to != me.id {
                            let (from, message) = (me, message.clone());
                            self.in_flight.push(Letter { from, to, message });
                        }
                    }
                }
            }
        }
        self.oracle.settle(machine);
        let surplus = self.in_flight.len().saturating_sub(IN_FLIGHT);
        self.in_flight.drain(..surplus);
        Ok(())
    }

    /// Nothing goes wrong any more, all know each other as far as they may, and all want to enter:
    /// each is served.
    fn end(&mut self) -> Result<(), String> {
        for seat in 0..self.seats.len() {
            self.announce(seat)?;
        }
        for seat in 0..self.seats.len() {
            // Who waits or is inside refuses.
            self.step(seat, Input::Command(Command::Enter))?;
        }
        let waiting = |seat: &&Seat| {
            let machine = seat.driver.as_ref().map(Driver::machine);
            machine.is_some_and(Camera::is_waiting)
        };
        let wait = self.seats.iter().filter(waiting).count();
        for _ in 0..ROUNDS {
            if !self.seats.iter().any(|seat| waiting(&seat)) {
                break;
            }
            for seat in 0..self.seats.len() {
                // Who is not inside refuses.
                self.step(seat, Input::Command(Command::Exit))?;
            }
            self.deliver_all()?;
            self.pass_time(self.settings.config.resend)?;
        }
        if let Some(Seat { me, driver, .. }) = self.seats.iter().find(waiting) {
            let machine = driver.as_ref().map(Driver::machine);
            let waits_for: Vec<Member> = machine.into_iter().flat_map(Camera::waits_for).collect();
            return Err(format!("{me:?} waits for {waits_for:?}"));
        }
        self.summary.served += wait as u64;
        Ok(())
    }
}

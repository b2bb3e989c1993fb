//! Lists of operations on a small mesh, with a watch on who leads.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both.
//! After every step the promises are held against what all nodes together did. When the bytes run
//! out faults are over and all know each other; then all follow the same leader, which lives, and
//! once more when somebody asks for an election, which the lowest wins.
//!
//! What the promises rest on is kept: nobody is said to have left who has not, a node that restarts
//! has a new incarnation or another id, and where nothing is acknowledged no multicast is lost. A run with hostile
//! messages promises no more than that nothing panics, that a refusal changes nothing, and that
//! memory and frames stay within their limits.

mod decoder;
mod end;
mod limits;
mod oracle;
mod settings;
mod summary;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Delta, Driver, Effect, Incarnation, Input, Member, NodeId, Span, Time};
use selvedge_sim::Bytes;

use crate::published::Rules;
use crate::{Celect, Command, Event, Message, Published};
use limits::{check_frame, check_limits};
use oracle::Oracle;
use settings::{Order, Settings};

pub use summary::Summary;

/// At most so many messages are in flight; older ones are lost.
const IN_FLIGHT: usize = 256;
const ROUND: Span = Span::millis(250);

struct Seat {
    driver: Option<Driver<Celect<Order>>>,
    me: Member,
    /// In which life it began.
    first: Member,
}

struct Letter {
    from: Member,
    to: NodeId,
    message: Message,
    /// It cannot be lost.
    is_safe: bool,
}

struct Mesh {
    settings: Settings,
    rules: Rules,
    now: Time,
    seats: Vec<Seat>,
    /// Who died with an id that does not come back, in order.
    gone: Vec<Member>,
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
    if mesh.settings.do_all_agree() {
        mesh.end()
            .map_err(|broken| format!("after the last fault: {broken}"))?;
    }
    for seat in 0..mesh.seats.len() {
        mesh.count(seat);
    }
    mesh.oracle.report(&mut mesh.summary);
    Ok(mesh.summary)
}

impl Mesh {
    fn new(bytes: &mut Bytes<'_>, rules: &[Published]) -> Result<Self, String> {
        let settings = Settings::new(bytes);
        for node in 0..settings.nodes {
            let checked = settings.config(node).check();
            checked.map_err(|error| format!("{error}"))?;
        }
        let mut mesh = Self {
            rules: Rules::published(rules),
            now: Time::ZERO,
            seats: Vec::new(),
            gone: Vec::new(),
            in_flight: Vec::new(),
            oracle: Oracle::default(),
            summary: Summary::default(),
            settings,
        };
        for node in 0..mesh.settings.nodes {
            let me = mesh.settings.member(node);
            let driver = Some(mesh.new_driver(node, me));
            let first = me;
            mesh.seats.push(Seat { driver, me, first });
        }
        for node in 0..mesh.seats.len() {
            let unknown = mesh.settings.lists.rotate_right(node as u32);
            mesh.introduce(node, bytes, |other| unknown >> (other % 8) & 1 == 0)?;
        }
        Ok(mesh)
    }

    fn new_driver(&self, node: usize, me: Member) -> Driver<Celect<Order>> {
        let config = self.settings.config(node);
        Driver::new(Celect::unchecked(
            me,
            config,
            self.settings.order,
            self.rules,
        ))
    }

    /// Tells a node of all others that are up and that it is to know.
    fn introduce(
        &mut self,
        seat: usize,
        bytes: &mut Bytes<'_>,
        knows: impl Fn(usize) -> bool,
    ) -> Result<(), String> {
        for other in 0..self.seats.len() {
            let Some(there) = self.seats.get(other) else {
                continue;
            };
            if other != seat && knows(other) && there.driver.is_some() {
                let joined = Input::Membership(Delta::Joined(there.me));
                self.step(seat, joined, bytes)?;
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
            7..=11 => self.deliver_all(bytes),
            12 | 13 => self.deliver(bytes, true),
            14 => {
                self.lose(seat, bytes);
                Ok(())
            }
            15..=18 => {
                let quarters = u64::from(bytes.take() % 32);
                self.pass_time(Span(ROUND.0 * quarters), bytes)
            }
            19..=21 => self.step(seat, Input::Command(Command::Elect), bytes),
            22 => {
                let (c, f) = self.settings.tolerance(bytes.take());
                self.step(seat, Input::Command(Command::Tolerate { c, f }), bytes)
            }
            23..=25 => {
                let delta = self.delta(bytes);
                self.learn(seat, delta, bytes)
            }
            26 => self.announce(seat, bytes),
            27 | 28 => self.fall(seat, bytes),
            29 | 30 if self.settings.is_hostile => {
                let (from, message) = decoder::message(bytes, self.settings.member(0));
                self.summary.hostile += 1;
                self.step(seat, Input::Message { from, message }, bytes)
            }
            _ => self.introduce(seat, bytes, |_| true),
        }
    }

    fn pick(&self, bytes: &mut Bytes<'_>) -> Option<usize> {
        (!self.in_flight.is_empty()).then(|| bytes.pick(self.in_flight.len()))
    }

    /// One message, or all from and to one node.
    fn lose(&mut self, seat: usize, bytes: &mut Bytes<'_>) {
        if bytes.take() > 64 {
            let picked = self.pick(bytes);
            let is_safe = |at: &usize| self.in_flight.get(*at).is_some_and(|it| it.is_safe);
            if let Some(at) = picked.filter(|at| !is_safe(at)) {
                self.in_flight.remove(at);
            }
            return;
        }
        let Some(cut) = self.seats.get(seat).map(|it| it.me.id) else {
            return;
        };
        let is_cut = |it: &Letter| it.to == cut || it.from.id == cut;
        self.in_flight
            .retain(|letter| letter.is_safe || !is_cut(letter));
    }

    fn deliver(&mut self, bytes: &mut Bytes<'_>, again: bool) -> Result<(), String> {
        let Some(at) = self.pick(bytes) else {
            return Ok(());
        };
        if again && let Some(letter) = self.in_flight.get(at) {
            let Letter { from, to, .. } = *letter;
            let message = letter.message.clone();
            return self.hand_over(from, to, message, bytes);
        }
        let Letter {
            from, to, message, ..
        } = self.in_flight.remove(at);
        self.hand_over(from, to, message, bytes)
    }

    /// What is in flight now arrives in order.
    fn deliver_all(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for letter in core::mem::take(&mut self.in_flight) {
            let Letter {
                from, to, message, ..
            } = letter;
            self.hand_over(from, to, message, bytes)?;
        }
        Ok(())
    }

    /// A message is for a node, whichever life it is in.
    fn hand_over(
        &mut self,
        from: Member,
        to: NodeId,
        message: Message,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        let Some(seat) = self.seats.iter().position(|seat| seat.me.id == to) else {
            return Ok(());
        };
        self.summary.delivered += 1;
        let refused = self.summary.refused;
        let said = (!self.settings.is_hostile).then(|| message.clone());
        self.step(seat, Input::Message { from, message }, bytes)?;
        if let Some(said) = said
            && self.summary.refused > refused
        {
            return Err(format!("{to:?} refused {said:?} of {from:?}"));
        }
        Ok(())
    }

    fn pass_time(&mut self, span: Span, bytes: &mut Bytes<'_>) -> Result<(), String> {
        self.now = self.now + span;
        for seat in 0..self.seats.len() {
            self.call(seat, |driver, now, sink| {
                driver.expire(now, bytes, |effect| sink.push(effect));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Anything that membership may say of a node; only of those that are gone that it is sure.
    fn delta(&self, bytes: &mut Bytes<'_>) -> Delta {
        let about = bytes.pick(self.seats.len() + self.gone.len());
        let byte = bytes.take();
        let Some(seat) = self.seats.get(about) else {
            let gone = self.gone.get(about - self.seats.len());
            let gone = gone.copied().unwrap_or_default();
            return match byte & 7 {
                0 => Delta::Suspected(gone),
                1 => Delta::Joined(gone),
                2 => Delta::Left(gone),
                3 => Delta::Confirmed(gone),
                _ => Delta::Failed(gone),
            };
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

    fn learn(&mut self, seat: usize, delta: Delta, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let is_up = |it: &Seat| it.driver.is_some() && it.me == delta.member();
        let is_false = matches!(delta, Delta::Failed(_)) && self.seats.iter().any(is_up);
        self.summary.false_failures += u64::from(is_false);
        self.step(seat, Input::Membership(delta), bytes)
    }

    fn crash(&mut self, at: usize) {
        self.count(at);
        if let Some(seat) = self.seats.get_mut(at)
            && let Some(driver) = seat.driver.take()
        {
            let machine = driver.machine();
            self.summary.leaders_died += u64::from(machine.leads().is_some());
            self.summary.initiators_died += u64::from(machine.is_electing());
            self.oracle.dies(seat.me);
        }
    }

    /// Adds up what a node counted in the life that it is in.
    fn count(&mut self, at: usize) {
        let driver = self.seats.get(at).and_then(|seat| seat.driver.as_ref());
        if let Some(counters) = driver.map(|it| it.machine().counters()) {
            self.summary.no_room += counters.no_room;
            self.summary.rounds += counters.rounds;
        }
    }

    /// Dies now and then; comes back without memory.
    fn fall(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let is_up = self.seats.get(at).is_some_and(|it| it.driver.is_some());
        if is_up && byte & 12 != 0 {
            return Ok(());
        }
        self.crash(at);
        if is_up && byte & 16 != 0 || self.settings.is_forgetting_fatal() {
            return Ok(());
        }
        let Some(before) = self.seats.get(at).map(|seat| seat.me) else {
            return Ok(());
        };
        let incarnation = before.incarnation.next();
        let is_renamed = self.settings.is_renamed && byte & 32 == 0;
        let me = if is_renamed {
            let id = self.settings.next_id(self.gone.len());
            self.gone.push(before);
            Member { id, incarnation }
        } else {
            Member {
                incarnation,
                ..before
            }
        };
        let driver = Some(self.new_driver(at, me));
        if let Some(seat) = self.seats.get_mut(at) {
            seat.driver = driver;
            seat.me = me;
            if is_renamed {
                seat.first = me;
            }
        }
        self.summary.restarts += 1;
        self.summary.renamed += u64::from(is_renamed);
        self.look();
        // It may know nobody, and nobody of it.
        if byte & 1 == 0 {
            self.introduce(at, bytes, |_| true)?;
        }
        if byte & 2 == 0 {
            self.announce(at, bytes)?;
        }
        Ok(())
    }

    /// Tells all of a node that is up, or that it is dead for certain.
    fn announce(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let Some(delta) = self.seats.get(at).map(|seat| match seat.driver {
            Some(_) => Delta::Joined(seat.me),
            None => Delta::Confirmed(seat.me),
        }) else {
            return Ok(());
        };
        for other in (0..self.seats.len()).filter(|&other| other != at) {
            self.step(other, Input::Membership(delta), bytes)?;
        }
        Ok(())
    }

    fn step(
        &mut self,
        seat: usize,
        input: Input<Celect<Order>>,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        self.call(seat, |driver, now, sink| {
            let before = driver.machine().clone();
            let taken = driver.step(now, bytes, input, |effect| sink.push(effect));
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
        act: impl FnOnce(
            &mut Driver<Celect<Order>>,
            Time,
            &mut Vec<Effect<Celect<Order>>>,
        ) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some(seat) = self.seats.get_mut(at) else {
            return Ok(());
        };
        let me = seat.me;
        let Some(driver) = &mut seat.driver else {
            return Ok(());
        };
        let before = driver.machine().clone();
        let mut effects = Vec::new();
        match act(driver, self.now, &mut effects) {
            Err(refused) if refused.is_empty() => self.summary.refused += 1,
            outcome => outcome?,
        }
        check_limits(driver)?;
        let after = driver.machine().clone();
        if !self.settings.is_hostile {
            self.look();
            self.oracle.step(&before, &after, &effects)?;
            self.check_given_up(me, &effects)?;
        }
        for effect in effects {
            match effect {
                Effect::Event(_) => {}
                Effect::Send { to, message } => {
                    if to.id == me.id {
                        return Err(format!("a message to itself: {message:?}"));
                    }
                    self.measure(&after, &message)?;
                    let (from, to) = (me, to.id);
                    self.in_flight.push(Letter {
                        from,
                        to,
                        message,
                        is_safe: false,
                    });
                }
                Effect::Multicast { message } => {
                    self.measure(&after, &message)?;
                    for to in self.seats.iter().map(|it| it.me.id) {
                        if to != me.id {
                            let (from, message) = (me, message.clone());
                            self.in_flight.push(Letter {
                                from,
                                to,
                                message,
                                is_safe: true,
                            });
                        }
                    }
                }
            }
        }
        let mut surplus = self.in_flight.len().saturating_sub(IN_FLIGHT);
        self.in_flight.retain(|letter| {
            let is_lost = surplus > 0 && !letter.is_safe;
            surplus -= usize::from(is_lost);
            !is_lost
        });
        Ok(())
    }

    /// Who lets a leader's lease run out is none of those on whose account it still leads.
    fn check_given_up(
        &mut self,
        me: Member,
        effects: &[Effect<Celect<Order>>],
    ) -> Result<(), String> {
        for effect in effects {
            let Effect::Event(Event::LeaseOver { leader, ballot }) = effect else {
                continue;
            };
            let mut seats = 0..self.seats.len();
            let machine = seats.find_map(|at| self.machine(at).filter(|it| it.me == *leader));
            let Some(machine) = machine.filter(|it| it.leads() == Some(*ballot)) else {
                continue;
            };
            let until = machine.leads_until().filter(|&until| until > self.now);
            let rests_on_us = machine.lease.as_ref().is_some_and(|it| it.rests_on(me));
            if let Some(until) = until.filter(|_| rests_on_us) {
                return Err(format!(
                    "{me:?} gave {leader:?} up at {:?}, which rests on it until {until:?}",
                    self.now
                ));
            }
            self.summary.given_up_early += 1;
        }
        Ok(())
    }

    fn measure(&mut self, machine: &Celect<Order>, message: &Message) -> Result<(), String> {
        let len = check_frame(machine, message)?;
        self.summary.longest_frame = self.summary.longest_frame.max(len);
        Ok(())
    }

    /// Takes note of who lacks whom.
    fn look(&mut self) {
        let machines = self.seats.iter().filter_map(|it| it.driver.as_ref());
        self.oracle.look(machines.map(Driver::machine));
    }

    fn machine(&self, at: usize) -> Option<&Celect<Order>> {
        let driver = self.seats.get(at)?.driver.as_ref()?;
        Some(driver.machine())
    }
}

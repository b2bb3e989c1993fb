//! Lists of operations on a small mesh, with a watch on the nodes that lead.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both.
//! After every step the promises are compared with what all nodes together did. When the bytes run
//! out, faults are over and all nodes know each other. Then all follow the same leader, which lives,
//! and once more when a node asks for an election, which the lowest node wins.
//!
//! What the promises rest on is kept: no node is said to have left that has not, a node that restarts
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

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
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
    /// The nodes that died with an id that does not come back, in order.
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
        // Three bits say which node, five say what.
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

    /// A node that lets a leader's lease run out is none of those on which that lease still rests.
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

    /// Takes note of which nodes lack which others.
    fn look(&mut self) {
        let machines = self.seats.iter().filter_map(|it| it.driver.as_ref());
        self.oracle.look(machines.map(Driver::machine));
    }

    fn machine(&self, at: usize) -> Option<&Celect<Order>> {
        let driver = self.seats.get(at)?.driver.as_ref()?;
        Some(driver.machine())
    }
}

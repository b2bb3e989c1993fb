//! Lists of operations on gateways, followers and clients, with an oracle of the tasks' answers.
//!
//! Bytes become operations and choices, so a fuzzer steers both, and a property test draws both. One to
//! three gateways, three to five followers and one or two clients are one mesh. A mailbox is the messages
//! in flight to a follower: they wait, or are lost together. After every step the history of all nodes is
//! compared with the promises:
//!
//! - gateways have equal tables at equal versions, and no table contradicts itself;
//! - a task has one answer for ever, decided in its present attempt and under its present orchestrator;
//!   enough followers of a unit returned the unit's answer;
//! - a client receives only decided answers, one for each task;
//! - a task is given to present followers of one unit, not more often than its attempts allow, and not
//!   after it has ended;
//! - a late message about a follower does not bring it back;
//! - memory stays within the settings, and frames within their length.
//!
//! When the bytes run out, faults end: then one gateway manages, each follower has a unit, every request
//! of a client is answered, and if all nodes are honest a last function returns its value.
//!
//! Gateways store facts, and may lose power in the middle of a step. Followers and clients store
//! nothing. Some followers return wrong values; in some runs they, and strangers, send any message: then
//! the answer of an orchestrator that lies need not be the result of its unit. In hostile runs messages
//! come from any id, gateways' too: then only limits are promised.

mod backed;
mod end;
mod forge;
mod hosts;
mod limits;
mod oracle;
mod settings;
mod summary;
mod watcher;

use alloc::format;
use alloc::string::String;

use selvedge_core::{Choose, Driver, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Seat};

use self::hosts::{value, wrong};
pub use self::limits::sketch;
use self::settings::Settings;
pub use self::summary::Summary;
pub use self::watcher::accused;
use self::watcher::{Tear, Watcher};
use crate::node::{Command, Node};
use crate::{Failure, Function, Library, Message, Returned, TaskId, client, follower, gateway};

/// The greatest number of messages in flight; older ones are lost.
const IN_FLIGHT: usize = 128;

/// The longest period of a follower.
const PERIOD_MAX: Span = Span::millis(3_300);

/// A mesh, and the watcher that checks its steps.
struct World {
    mesh: Mesh<Node>,
    watch: Watcher,
}

/// Carries out the operations that `bytes` encode. Any bytes are valid.
///
/// # Errors
/// Returns a description of the promise that broke, with the last operations.
pub fn run(bytes: &[u8]) -> Result<Summary, String> {
    let mut bytes = Bytes::new(bytes);
    let mut world = World::new(&mut bytes);
    let played = world.run(&mut bytes);
    played.map_err(|broken| {
        let settings = format!("{:?}", world.watch.settings);
        format!("{} in {settings}", Broken::new(broken, &world.mesh))
    })?;
    Ok(Summary {
        applied: world.watch.oracle.applied,
        backed: world.watch.oracle.backed,
        again: world.watch.oracle.again,
        ..world.watch.summary
    })
}

impl World {
    fn new(bytes: &mut Bytes<'_>) -> Self {
        let settings = Settings::new(bytes);
        let mut mesh = Mesh::new(IN_FLIGHT);
        for (seat, me) in settings.members().into_iter().enumerate() {
            mesh.add(me, settings.machine(seat, me, seat));
        }
        let watch = Watcher::new(settings);
        Self { mesh, watch }
    }

    fn run(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for seat in 0..self.watch.settings.first_client() {
            self.start(seat, bytes)?;
        }
        if self.watch.settings.is_formed {
            self.form(bytes)?;
        }
        while !bytes.is_empty() {
            self.watch.summary.operations += 1;
            self.operate(bytes)?;
            if self.watch.settings.is_prompt {
                self.serve_all(bytes)?;
            }
        }
        if self.watch.settings.is_hostile() {
            return Ok(());
        }
        self.end()
            .map_err(|broken| format!("after the last fault: {broken}"))
    }

    fn play<C: Choose>(
        &mut self,
        operation: Operation<Node>,
        choices: &mut C,
    ) -> Result<(), String> {
        self.mesh.play(operation, choices, &mut self.watch)
    }

    fn ask<C: Choose>(&mut self, seat: usize, ask: Command, choices: &mut C) -> Result<(), String> {
        self.play(Operation::Command(seat, ask), choices)
    }

    fn start<C: Choose>(&mut self, seat: usize, choices: &mut C) -> Result<(), String> {
        let ask = match seat {
            _ if seat < self.watch.settings.gateways => Command::Gateway(gateway::Command::Start),
            _ if seat < self.watch.settings.first_client() => {
                Command::Follower(follower::Command::Start)
            }
            _ => return Ok(()),
        };
        self.ask(seat, ask, choices)
    }

    /// Forms units without faults.
    fn form(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for _ in 0..60 {
            if self.watch.oracle.tables.units() > 0 || self.watch.settings.is_hostile() {
                break;
            }
            self.rounds(1, bytes)?;
        }
        Ok(())
    }

    /// Delivers all messages in flight and then waits for the next deadline, `count` times.
    fn rounds<C: Choose>(&mut self, count: u8, choices: &mut C) -> Result<(), String> {
        for _ in 0..count {
            for _ in 0..4 {
                if self.mesh.in_flight().is_empty() {
                    break;
                }
                self.play(Operation::DeliverAll, choices)?;
                if self.watch.settings.is_prompt {
                    self.serve_all(choices)?;
                }
            }
            self.play(Operation::Wait(self.next_due()), choices)?;
        }
        Ok(())
    }

    /// The time until the next deadline of a node, at most a second.
    fn next_due(&self) -> Span {
        let awake = self.mesh.seats().iter().filter(|it| !it.is_paused());
        let due = awake.filter_map(|it| {
            let deadline = it.driver().and_then(Driver::deadline)?;
            Some(deadline.0.saturating_sub(it.now().0))
        });
        Span(due.min().unwrap_or(0).min(1_000_000))
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        // Three bits of the first byte are for some operations.
        let bits = byte >> 5;
        let operation = match byte & 31 {
            17..=24 if self.watch.settings.is_hostile() => return self.forge(bytes),
            0..=4 => Operation::Deliver(self.pick(bytes)),
            5..=7 => Operation::DeliverAll,
            8 => Operation::Duplicate(self.pick(bytes)),
            9 => Operation::Lose(self.pick(bytes)),
            10 => return self.empty_mailbox(bits, bytes),
            11 => Operation::Wait(Span::millis(50 * u64::from(bytes.take() % 80))),
            12..=14 => return self.rounds(1 + 3 * bits, bytes),
            15..=18 => return self.submit(bits, bytes),
            19 => return self.cancel(bytes),
            20 => return self.submit_elsewhere(bytes),
            21 | 22 => return self.serve_one(bits, bytes),
            23 => return self.fall(self.watch.settings.gateways, bytes),
            24 => return self.fall(0, bytes),
            25 => return self.tear(usize::from(bits >> 1), bytes),
            26 if bits < 2 => Operation::Command(
                self.client(bytes),
                Command::Client(client::Command::Unreachable),
            ),
            26 => Operation::Command(
                self.follower(bytes),
                Command::Follower(follower::Command::Unreachable),
            ),
            27 => {
                let seat = self.follower(bytes);
                let duty = self.watch.settings.duty(seat, bits);
                Operation::Command(
                    seat,
                    Command::Follower(follower::Command::SetDutyCycle(duty)),
                )
            }
            28 => return self.notify(bits, bytes),
            29 if bits & 1 == 0 => Operation::Pause(bytes.pick(self.mesh.seats().len())),
            29 => Operation::Resume(bytes.pick(self.mesh.seats().len())),
            30 => return self.forge(bytes),
            _ => return self.measure(bits, bytes),
        };
        self.play(operation, bytes)
    }

    /// The place of a message in flight. It takes a byte only if there is a message.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    fn follower(&self, bytes: &mut Bytes<'_>) -> usize {
        self.watch.settings.first_follower() + bytes.pick(self.watch.settings.followers)
    }

    fn client(&self, bytes: &mut Bytes<'_>) -> usize {
        self.watch.settings.first_client() + bytes.pick(self.watch.settings.clients)
    }

    /// Loses all messages in flight to a follower or another node. A follower's host may be notified.
    fn empty_mailbox(&mut self, how: u8, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = bytes.pick(self.mesh.seats().len());
        let id = self.mesh.seat(seat).map(|it| it.me().id);
        for at in (0..self.mesh.in_flight().len()).rev() {
            if self.mesh.in_flight().get(at).map(|it| it.to) == id {
                self.play(Operation::Lose(at), bytes)?;
            }
        }
        let settings = &self.watch.settings;
        let is_follower = (settings.first_follower()..settings.first_client()).contains(&seat);
        match is_follower && how & 1 == 1 {
            true => self.ask(seat, Command::Follower(follower::Command::Emptied), bytes),
            false => Ok(()),
        }
    }

    fn submit(&mut self, like: u8, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = self.client(bytes);
        let libraries = match like {
            0..=5 => 0,
            more => u64::from(more - 5),
        };
        let libraries = (0..libraries).map(Library);
        let function = Function {
            libraries: libraries.collect(),
            ..Function::new(&[bytes.take() % 4])
        };
        self.submit_function(seat, function, bytes)
    }

    fn submit_function<C: Choose>(
        &mut self,
        seat: usize,
        function: Function,
        choices: &mut C,
    ) -> Result<(), String> {
        let asks = Command::Client(client::Command::Submit(function.clone()));
        let client = self.mesh.machine(seat).and_then(Node::client);
        if let Some(client) = client {
            let task = TaskId {
                client: client.me(),
                number: client.next_number(),
            };
            self.watch.oracle.tasks.entry(task).or_default();
        }
        self.ask(seat, asks, choices)
    }

    fn cancel(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = self.client(bytes);
        let byte = usize::from(bytes.take());
        let client = self.mesh.machine(seat).and_then(Node::client);
        let waiting = client.map_or(0, |it| it.waiting().count());
        let nth = byte.checked_rem(waiting).unwrap_or(0);
        let number = client.and_then(|it| it.waiting().nth(nth));
        match number {
            Some(number) => self.ask(
                seat,
                Command::Client(client::Command::Cancel(number)),
                bytes,
            ),
            None => Ok(()),
        }
    }

    /// Delivers a client's request that is in flight to another gateway as well.
    fn submit_elsewhere(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let asks =
            |message: &Message| matches!(message, Message::Submit { .. } | Message::Cancel { .. });
        let to = bytes.pick(self.watch.settings.gateways);
        let asked = self.mesh.in_flight().iter().find(|it| asks(&it.message));
        match asked.map(|it| (it.from, it.message.clone())) {
            Some((from, message)) => self.play(Operation::Forge(to, from, message.into()), bytes),
            None => Ok(()),
        }
    }

    /// The host of a follower carries out one of its follower's events.
    fn serve_one(&mut self, how: u8, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let seat = self.follower(bytes);
        self.serve(seat, how, bytes)
    }

    /// The host of each follower carries out one of its follower's events.
    fn serve_all<C: Choose>(&mut self, choices: &mut C) -> Result<(), String> {
        let settings = &self.watch.settings;
        for seat in settings.first_follower()..settings.first_client() {
            self.serve(seat, 0, choices)?;
        }
        Ok(())
    }

    fn serve<C: Choose>(&mut self, seat: usize, how: u8, choices: &mut C) -> Result<(), String> {
        if self.mesh.seat(seat).is_none_or(Seat::is_paused) {
            return Ok(());
        }
        let me = self.mesh.seat(seat).map(Seat::me).unwrap_or_default();
        let lies = self.watch.settings.lies(me.id);
        let Some(host) = self.watch.hosts.get_mut(seat) else {
            return Ok(());
        };
        if let Some(library) = host.loads.take() {
            let command = match how {
                7 => follower::Command::Missing(library),
                _ => follower::Command::Loaded(library),
            };
            return self.ask(seat, Command::Follower(command), choices);
        }
        let Some((task, function)) = host.runs.pop() else {
            return Ok(());
        };
        let returned = match how {
            7 => Returned::Failed(Failure::Trapped),
            6 => Returned::Value([b'l'; 5].into_iter().collect()),
            _ if lies => Returned::Value(wrong()),
            _ => Returned::Value(value(&function)),
        };
        let command = follower::Command::Returned { task, returned };
        self.ask(seat, Command::Follower(command), choices)
    }

    /// Crashes or restarts a node: a gateway if `first` is 0, otherwise a follower or client.
    fn fall(&mut self, first: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let count = match first {
            0 => self.watch.settings.gateways,
            _ => self.mesh.seats().len() - first,
        };
        let seat = first + bytes.pick(count);
        let how = bytes.take();
        self.watch.begins_at = usize::from(how >> 4);
        let is_up = self.mesh.seat(seat).is_some_and(Seat::is_up);
        if is_up && how & 3 == 0 {
            return self.play(Operation::Crash(seat), bytes);
        }
        self.restart(seat, bytes)
    }

    fn restart<C: Choose>(&mut self, seat: usize, choices: &mut C) -> Result<(), String> {
        self.play(Operation::Restart(seat), choices)?;
        if !self.mesh.seat(seat).is_some_and(Seat::is_up) {
            return Err(format!("seat {seat} cannot restart"));
        }
        self.start(seat, choices)?;
        match self.watch.settings.has_membership() && seat < self.watch.settings.gateways {
            true => self.play(Operation::Announce(seat), choices),
            false => Ok(()),
        }
    }

    /// A gateway's host loses power while it carries out a step: it has stored `stored` facts of that step,
    /// and sends no message that comes after them.
    fn tear(&mut self, stored: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let gateways = self.watch.settings.gateways as u64;
        let in_flight = self.mesh.in_flight();
        let count = in_flight.iter().filter(|it| it.to.0 <= gateways).count();
        let nth = bytes.pick(count);
        let to_gateways = in_flight.iter().enumerate();
        let mut to_gateways = to_gateways.filter(|it| it.1.to.0 <= gateways);
        let Some((at, _)) = to_gateways.nth(nth) else {
            return Ok(());
        };
        self.watch.tear = Some(Tear::Asked(stored));
        self.play(Operation::Deliver(at), bytes)?;
        let Some(Tear::Done { seat, lost }) = self.watch.tear.take() else {
            return Ok(());
        };
        for _ in 0..lost {
            let last = self.mesh.in_flight().len().saturating_sub(1);
            self.play(Operation::Lose(last), bytes)?;
        }
        self.watch.summary.torn += 1;
        self.play(Operation::Crash(seat), bytes)?;
        match bytes.flip() {
            true => self.restart(seat, bytes),
            false => Ok(()),
        }
    }

    /// A membership service reports a gateway's state, rightly or wrongly.
    fn notify(&mut self, how: u8, bytes: &mut Bytes<'_>) -> Result<(), String> {
        if !self.watch.settings.has_membership() {
            return self.rounds(1 + how, bytes);
        }
        let gateways = self.watch.settings.gateways;
        let (to, about) = (bytes.pick(gateways), bytes.pick(gateways));
        let operation = match how {
            0..=2 => Operation::Fail(to, about),
            3 => Operation::Suspect(to, about),
            4 | 5 => Operation::Refute(to, about),
            _ => Operation::Announce(about),
        };
        self.play(operation, bytes)
    }

    /// A gateway's host reports its distance from another gateway.
    fn measure(&mut self, how: u8, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let gateways = self.watch.settings.gateways;
        let (seat, to) = (bytes.pick(gateways), bytes.pick(gateways));
        let to = self.mesh.seat(to).map(|it| it.me().id).unwrap_or_default();
        let hops = gateway::Command::SetHops { to, hops: 1 + how };
        self.ask(seat, Command::Gateway(hops), bytes)
    }
}

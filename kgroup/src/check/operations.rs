//! Lists of operations on a small site, with a watch on what routines, devices and a map come to.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both. Each
//! of three to five nodes runs the whole machine, [`Kgroup`]; around them are devices, and hosts that
//! do what leaders tell them, at once or late. After every step the promises are compared with what
//! all nodes together did:
//!
//! - a group has one state at each version, and one configuration of each number;
//! - a routine that executes holds all its devices, and a device does nothing for a claim while
//!   another one has it (theorem 3), as long as hosts and messages are within `act_timeout`;
//! - a command that is to be given once is given once; a report says what devices did; a trigger
//!   starts one run;
//! - a change of the map is done once and as it is answered, and what is read is no older than the
//!   question;
//! - memory stays within the settings, and frames within their length.
//!
//! When the bytes run out, faults are over: then each group has one leader, all that was asked is
//! answered, all devices are free and known, each routine runs once more, and then nodes are silent.
//!
//! What that rests on is kept: a node loses its memory only while a quorum of the others has its own,
//! in each group. Careless runs do not keep it: there groups may stand still, and what they decided
//! holds. In hostile runs messages come that no node sent: then only limits are promised.

mod asked;
mod end;
mod history;
mod home;
mod limits;
mod oracle;
mod settings;
mod summary;
mod watcher;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Choose, Member, NodeId, Span};
use selvedge_replica::{Body, Entry};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Seat};

use self::asked::{Question, value_of};
use self::home::{Task, What};
use self::settings::{ACT_TIMEOUT, Settings, state};
pub use self::summary::Summary;
use self::watcher::Watcher;
use crate::groups::{Begin, Item};
use crate::store::{self, Expected, Key, StoreCommand};
use crate::{Command, GroupId, Kgroup, Message, Outcome, Parcel, TriggerId, Update};

/// At most so many messages are in flight; older ones are lost.
const IN_FLIGHT: usize = 256;
const ROUND: Span = Span::millis(50);

/// So many runs of one routine are asked for by name; a group remembers as many.
const TRIGGERS: u64 = crate::routines::TRIGGERS_MAX as u64;

/// A mesh, and what watches it.
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
            mesh.add(me, settings.machine(node, me, Begin::First));
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

    /// All nodes know each other, and the map is founded while its founders know that they are.
    fn begin(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for at in 0..self.mesh.seats().len() {
            self.play(Operation::Command(at, Command::Epoch(1)), bytes)?;
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

    /// So many rounds, in which hosts see to commands as well, or to pings alone.
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
        // Three bits say which node, five say what.
        let seat = (byte >> 5) % self.mesh.seats().len();
        let operation = match byte & 31 {
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
            _ if self.watch.settings.is_hostile => return self.forge(seat, bytes),
            _ => return self.oust(seat, bytes),
        };
        self.play(operation, bytes)?;
        match self.watch.settings.is_prompt {
            true => self.host_all(true, bytes),
            false => Ok(()),
        }
    }

    /// Which message; it takes a byte where there is one.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    /// Whether a node hears its application.
    fn listens(&self, at: usize) -> bool {
        let seat = self.mesh.seat(at);
        seat.is_some_and(|it| it.is_up() && !it.is_paused())
    }

    /// Asks a node that listens: whether it took it.
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

    fn trigger(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let routines: Vec<GroupId> = self.watch.settings.routines().collect();
        let byte = bytes.take();
        let routine = routines.get(usize::from(byte) % routines.len().max(1));
        // Some are asked for twice, by two nodes.
        if self.triggers == 0 || byte & 6 != 0 && self.triggers < TRIGGERS - 1 {
            self.triggers += 1;
        }
        let Some(&routine) = routine.filter(|_| self.listens(seat)) else {
            return Ok(());
        };
        self.ask_for_run(seat, routine, bytes)
    }

    fn ask_for_run<C: Choose>(
        &mut self,
        seat: usize,
        routine: GroupId,
        choices: &mut C,
    ) -> Result<(), String> {
        let id = TriggerId(self.triggers);
        self.watch.asked.triggers.insert((routine, id));
        self.watch.asked.runs.insert((seat, routine, id));
        let command = Command::Trigger { routine, id };
        if !self.command(seat, command, choices)? {
            self.watch.asked.runs.remove(&(seat, routine, id));
        }
        Ok(())
    }

    fn ask_map(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        if !self.listens(seat) {
            return Ok(());
        }
        let key: Key = ["a", "b"][usize::from(byte & 1)].into();
        match byte >> 1 & 7 {
            0..=3 => {
                let map = self.watch.oracle.map();
                let present = map.present(&key).map(|it| it.version);
                let expected = match (byte >> 4 & 3, present) {
                    (0, _) => Expected::Any,
                    (1 | 2, Some(version)) => Expected::Version(version),
                    _ => Expected::Absent,
                };
                self.change(seat, (key, expected, byte >> 6 != 3), bytes)
            }
            4 | 5 => {
                let ticket = self.next_ticket();
                let since = self.watch.oracle.map().latest();
                let question = Question::Get(key.clone(), since);
                self.ask(
                    seat,
                    ticket,
                    question,
                    StoreCommand::Get { ticket, key },
                    bytes,
                )
            }
            6 => {
                self.watch.asked.watches.insert((seat, key.clone()));
                self.command_map(seat, StoreCommand::Watch(key), bytes)
            }
            _ => {
                self.watch.asked.watches.remove(&(seat, key.clone()));
                self.command_map(seat, StoreCommand::Unwatch(key), bytes)
            }
        }
    }

    /// Each change puts what no other one puts, or takes an entry away.
    fn change<C: Choose>(
        &mut self,
        seat: usize,
        (key, expected, puts): (Key, Expected, bool),
        choices: &mut C,
    ) -> Result<(), String> {
        let ticket = self.next_ticket();
        let value = puts.then(|| format!("{ticket}").bytes().collect());
        let operation = store::Operation {
            key,
            expected,
            value,
        };
        if let Some(value) = value_of(&operation) {
            self.watch.asked.puts.insert(value, operation.clone());
        }
        let question = Question::Change(operation.clone());
        let command = StoreCommand::Change { ticket, operation };
        self.ask(seat, ticket, question, command, choices)
    }

    const fn next_ticket(&mut self) -> u64 {
        self.watch.asked.tickets += 1;
        self.watch.asked.tickets
    }

    fn ask<C: Choose>(
        &mut self,
        seat: usize,
        ticket: u64,
        question: Question,
        command: StoreCommand,
        choices: &mut C,
    ) -> Result<(), String> {
        self.watch.asked.waiting.insert((seat, ticket), question);
        let map = self.watch.settings.map;
        if !self.command(seat, Command::Map { map, command }, choices)? {
            self.watch.asked.waiting.remove(&(seat, ticket));
        }
        Ok(())
    }

    fn command_map<C: Choose>(
        &mut self,
        seat: usize,
        command: StoreCommand,
        choices: &mut C,
    ) -> Result<(), String> {
        let map = self.watch.settings.map;
        self.command(seat, Command::Map { map, command }, choices)?;
        Ok(())
    }

    /// A host sees to one of its tasks: what becomes of it is in a byte.
    fn host_one(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let at = bytes.pick(self.watch.home.tasks.len());
        let how = bytes.take();
        if self
            .watch
            .home
            .tasks
            .get(at)
            .is_none_or(|it| !self.listens(it.at))
        {
            return Ok(());
        }
        let task = self.watch.home.tasks.remove(at);
        self.host(task, how, bytes)
    }

    /// All hosts that are awake see to their tasks, or to pings alone, and all goes well.
    fn host_all<C: Choose>(&mut self, acts: bool, choices: &mut C) -> Result<(), String> {
        let mut waiting = Vec::new();
        // What a host reports may give it the next task.
        while let Some(task) = self.watch.home.tasks.pop() {
            let is_ping = matches!(task.what, What::Ping(_));
            match self.listens(task.at) && (acts || is_ping) {
                true => self.host(task, GOOD, choices)?,
                false => waiting.push(task),
            }
        }
        waiting.reverse();
        self.watch.home.tasks = waiting;
        Ok(())
    }

    fn host<C: Choose>(&mut self, task: Task, how: u8, choices: &mut C) -> Result<(), String> {
        let now = self.watch.now;
        let me = self.mesh.seat(task.at).map(Seat::me);
        // A host carries nothing out too late, and the host of another life knows of nothing.
        if me != Some(task.me) || now.since(task.given) >= ACT_TIMEOUT {
            return Ok(());
        }
        let (succeeds, is_heard) = (how & 3 != 1, how & 12 != 4);
        let command = match task.what {
            What::Ping(device) => {
                let there = self.watch.home.devices.get(&device);
                let there = there.filter(|it| it.is_up && succeeds);
                there.map(|it| Command::Reported {
                    device,
                    value: Some(it.value.clone()),
                })
            }
            What::Act(ticket, value) => {
                let is_there = self.watch.home.act(ticket, &value, succeeds);
                let outcome = match succeeds {
                    true => Outcome::Done,
                    false => Outcome::Failed,
                };
                if is_there && succeeds {
                    self.watch.summary.done += 1;
                    if task.is_in_time {
                        self.watch.oracle.on_done(ticket)?;
                    }
                }
                is_there.then_some(Command::Acted { ticket, outcome })
            }
        };
        match command.filter(|_| is_heard) {
            Some(command) => self.command(task.at, command, choices).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Somebody changes a device, or it stops, or is there again.
    fn by_hand(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let devices = &mut self.watch.home.devices;
        let at = usize::from(byte >> 4) % devices.len().max(1);
        if let Some(device) = devices.values_mut().nth(at) {
            match byte & 15 {
                0..=4 => device.is_up = !device.is_up,
                like => device.value = state(like),
            }
        }
        Ok(())
    }

    fn next_epoch(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        if byte & 3 == 0 {
            // One clock runs ahead, or goes back.
            let epoch = self.epoch + u64::from(byte >> 4);
            let epoch = Command::Epoch(epoch.saturating_sub(4));
            return self.play(Operation::Command(seat, epoch), bytes);
        }
        self.epoch += 1;
        for at in 0..self.mesh.seats().len() {
            if byte >> 3 & 1 << at == 0 {
                let epoch = Command::Epoch(self.epoch);
                self.play(Operation::Command(at, epoch), bytes)?;
            }
        }
        Ok(())
    }

    /// All others hear that a node failed, whether it did or not: what it leads others lead soon.
    fn oust(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        for at in 0..self.mesh.seats().len() {
            self.play(Operation::Fail(at, seat), bytes)?;
        }
        Ok(())
    }

    /// A node stops, or begins its next life.
    fn fall(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let is_up = self.mesh.seat(seat).is_some_and(Seat::is_up);
        let byte = bytes.take();
        if is_up && !self.watch.settings.is_careless && !self.may_forget(seat) {
            return Ok(());
        }
        if is_up && byte & 3 == 0 {
            self.play(Operation::Crash(seat), bytes)?;
            return match byte & 4 {
                0 => self.play(Operation::Announce(seat), bytes),
                _ => Ok(()),
            };
        }
        self.start(seat, bytes)
    }

    /// A node begins its next life.
    fn start<C: Choose>(&mut self, seat: usize, choices: &mut C) -> Result<(), String> {
        self.play(Operation::Restart(seat), choices)?;
        let epoch = Command::Epoch(self.epoch);
        self.play(Operation::Command(seat, epoch), choices)?;
        self.play(Operation::Introduce(seat), choices)?;
        self.play(Operation::Announce(seat), choices)
    }

    /// Whether of each group a quorum of the others has its memory, and no others are about to take
    /// their places: they would be counted on in their former lives.
    fn may_forget(&self, seat: usize) -> bool {
        let me = self.mesh.seat(seat).map(Seat::me).unwrap_or_default();
        self.watch.settings.groups().all(|group| {
            let Some(newest) = self.watch.oracle.configuration(group) else {
                return false;
            };
            let remembers = |id: NodeId| {
                let at = self.mesh.position(id);
                let machine = at.and_then(|at| self.mesh.machine(at));
                let replica = machine.and_then(|it| it.groups().replica(group));
                replica.is_some_and(|it| it.configuration() == newest && it.votes())
            };
            let members = newest.members().map(|it| it.member.id);
            let others = members.filter(|id| *id != me.id && remembers(*id)).count();
            others * 2 > newest.voters.len() && !self.is_changing(group)
        })
    }

    /// Whether another configuration of a group is on its way.
    fn is_changing(&self, group: GroupId) -> bool {
        let mut machines = self.mesh.seats().iter().filter_map(Seat::machine);
        let mut letters = self.mesh.in_flight().iter();
        machines.any(|it| it.groups().is_changing(group))
            || letters.any(|it| it.message.items.iter().any(|it| carries(it, group)))
    }

    /// A message that no node sent: the next bytes as a message, or one in flight with other bytes in
    /// it.
    fn forge(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let from = Member::new(u64::from(bytes.take() % 8), u32::from(bytes.take() % 4));
        let letter = match self.mesh.in_flight().len() {
            0 => None,
            some => self.mesh.in_flight().get(bytes.pick(some)),
        };
        let message = letter.map(|it| &it.message);
        let frame = message.map(postcard::to_allocvec);
        let mut frame = frame.and_then(Result::ok).unwrap_or_default();
        for _ in 0..1 + bytes.take() % 8 {
            let at = usize::from(bytes.take());
            match frame.get_mut(at) {
                Some(byte) => *byte = bytes.take(),
                None => frame.push(bytes.take()),
            }
        }
        let Ok((mut message, _)) = postcard::take_from_bytes::<Message>(&frame) else {
            return Ok(());
        };
        if let (0..=250, Ok(plan)) = (bytes.take(), self.watch.settings.site.plan()) {
            message.plan = plan.digest();
        }
        self.watch.summary.hostile += 1;
        self.play(Operation::Forge(seat, from, message.into()), bytes)
    }
}

/// A host that does what it is told, and says so.
const GOOD: u8 = 0;

/// Whether a part of a message has a group's next configuration in it.
fn carries(item: &Item<Update, Parcel>, group: GroupId) -> bool {
    let Item::Replica { group: of, message } = item else {
        return false;
    };
    let (Body::Accept { entries, .. }
    | Body::Learn { entries, .. }
    | Body::Promise { tail: entries, .. }) = &message.body
    else {
        return false;
    };
    let seals = |it: &Entry<Update>| matches!(it, Entry::Configure(_));
    *of == group && entries.iter().any(seals)
}

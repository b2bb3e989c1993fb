//! Lists of operations on a small mesh, with a watch on what is applied and read.
//!
//! Bytes become operations, and choices; so a fuzzer steers both, and a property test draws both.
//! After every step the promises are compared with what all nodes together did. When the bytes run
//! out, faults are over: then everything that was proposed is applied, and every read is answered.
//!
//! What the promises rest on is kept: where nothing is stored, a member loses its memory only while
//! a quorum of the others has its own.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::{Driver, Effect, Member, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Broken, Mesh, Operation, Seat, Step, Watch};

use super::Journal;
use crate::encoding::{encode, encoded_len};
use crate::message::{Body, Message};
use crate::replica::Role;
use crate::{
    Command, Config, Configuration, Entry, Event, Fact, Lease, Published, QuorumRule, Replica,
    Stored, Version, Voter,
};

/// At most so many messages are in flight; older ones are lost.
const IN_FLIGHT: usize = 256;
const ROUND: Span = Span::millis(25);

/// What a run is like.
#[derive(Clone, Debug)]
struct Settings {
    nodes: usize,
    /// How many of them are members at first.
    members: usize,
    /// Whether facts are stored.
    is_durable: bool,
    /// Whether configurations change.
    changes: bool,
    /// Whether messages come that no node sent: then only limits are promised.
    is_hostile: bool,
    window: u32,
    first: Configuration,
}

impl Settings {
    fn new(bytes: &mut Bytes<'_>) -> Self {
        let shape = bytes.take();
        let nodes = 3 + usize::from(shape % 3);
        let members = if shape & 4 == 0 { nodes } else { 3 };
        let more = bytes.take();
        let witness = more & 1 == 1 && members > 3 || more & 6 == 6;
        let mut first = Configuration::new((0..members).map(|at| {
            let member = Member::new(at as u64 + 1, 1);
            match witness && at + 1 == members {
                true => Voter::witness(member),
                false => Voter::new(member),
            }
        }));
        first.lease = (more & 8 == 8).then_some(Lease {
            span: Span::millis(400),
            drift: 10_000,
        });
        if more & 16 == 16 {
            first.frame_budget = 127;
        }
        if more & 32 == 32 {
            first.proposers = 2;
        }
        if more & 64 == 64 && members == 4 {
            first.quorum = QuorumRule::AtLeast(3);
        }
        Self {
            nodes,
            members,
            is_durable: shape & 8 == 8,
            changes: shape & 16 == 16,
            is_hostile: more & 128 == 128,
            window: u32::from(shape >> 5),
            first,
        }
    }

    fn config(&self, node: usize) -> Config {
        // Settings differ from node to node.
        Config::new()
            .with_window(self.window + node as u32)
            .with_attempts(3 + node as u8)
            .with_pending(8 + node as u32)
    }

    fn machine(&self, node: usize, me: Member, rules: &[Published]) -> Replica<Journal> {
        let config = self.config(node);
        let made = match node < self.members {
            true => Replica::new(me, config, self.first.clone(), Journal::default()).ok(),
            false => Replica::newcomer(me, config).ok(),
        };
        let Some(machine) = made else {
            unreachable_settings()
        };
        machine.published(rules)
    }
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
fn unreachable_settings() -> ! {
    panic!("the settings of a run can work")
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Operations that were carried out.
    pub operations: u64,
    /// Updates that a member applied first.
    pub applied: u64,
    /// Reads that were answered.
    pub read: u64,
    /// Configurations that a member was told of first.
    pub configured: u64,
    /// States that were received whole.
    pub installed: u64,
    /// Leaders, each ballot once at itself.
    pub led: u64,
    /// Lives that began after a crash.
    pub restarts: u64,
    /// Times that a group was said to be unavailable.
    pub unavailable: u64,
    /// Messages that no node sent.
    pub hostile: u64,
}

impl Summary {
    /// What was counted, by name.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 9] {
        [
            ("operations", self.operations),
            ("applied", self.applied),
            ("read", self.read),
            ("configured", self.configured),
            ("installed", self.installed),
            ("led", self.led),
            ("restarts", self.restarts),
            ("unavailable", self.unavailable),
            ("hostile", self.hostile),
        ]
    }

    /// Counts another run as well.
    pub const fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.applied += other.applied;
        self.read += other.read;
        self.configured += other.configured;
        self.installed += other.installed;
        self.led += other.led;
        self.restarts += other.restarts;
        self.unavailable += other.unavailable;
        self.hostile += other.hostile;
    }
}

type Key = (Member, u64);

struct Watcher {
    settings: Settings,
    rules: Vec<Published>,
    /// What each version applied.
    applied: BTreeMap<Version, (Key, u16)>,
    versions: BTreeMap<Key, Version>,
    /// What was proposed, and by which seat.
    proposed: BTreeMap<Key, u16>,
    waiting: BTreeMap<Key, usize>,
    /// The highest version that was applied anywhere when a read was asked, by seat and number.
    reads: BTreeMap<(usize, u64), Version>,
    next_read: u64,
    next_update: u16,
    /// What each seat has stored.
    stored: Vec<(Stored<Journal>, Vec<Fact<Journal>>)>,
    newest: Configuration,
    summary: Summary,
    broken: Option<String>,
    /// What was sent lately, for the reports.
    sent: Vec<String>,
    is_recording: bool,
}

impl Watcher {
    fn highest(&self) -> Version {
        self.applied.keys().next_back().copied().unwrap_or_default()
    }

    fn on_applied(
        &mut self,
        version: Version,
        key: Key,
        outcome: usize,
        machine: &Replica<Journal>,
    ) -> Result<(), String> {
        let Some(&update) = self.proposed.get(&key) else {
            return Err(format!(
                "version {version} applies {key:?}, which was never proposed"
            ));
        };
        match self.applied.get(&version) {
            Some(&(other, _)) if other != key => {
                return Err(format!("version {version} applies {other:?} and {key:?}"));
            }
            Some(_) => {}
            None => {
                self.summary.applied += 1;
                self.applied.insert(version, (key, update));
            }
        }
        if let Some(other) = self.versions.insert(key, version)
            && other != version
        {
            return Err(format!(
                "{key:?} is applied by versions {other} and {version}"
            ));
        }
        self.waiting.remove(&key);
        let _ = (outcome, machine);
        Ok(())
    }

    /// The state of a member is what the versions up to its own say.
    fn check_state(&self, machine: &Replica<Journal>) -> Result<(), String> {
        let Some(state) = machine.state() else {
            return Ok(());
        };
        let known = self
            .applied
            .range(..=machine.version())
            .map(|(_, (_, update))| *update);
        if state.0.iter().copied().eq(known) {
            return Ok(());
        }
        Err(format!(
            "the state of {:?} at version {} is {:?}",
            machine.me(),
            machine.version(),
            state.0
        ))
    }
}

impl Watch<Replica<Journal>> for Watcher {
    fn before(&mut self, _seat: usize, _driver: &Driver<Replica<Journal>>) {}

    fn after(&mut self, step: &Step<'_, Replica<Journal>>) -> Result<(), String> {
        let machine = step.machine();
        check_limits(machine)?;
        if self.settings.is_hostile {
            return Ok(());
        }
        let mut changed = false;
        for effect in step.effects {
            let event = match effect {
                Effect::Event(event) => event,
                Effect::Send { to, message } => {
                    if self.is_recording {
                        self.sent
                            .push(format!("{:?} to {to:?}: {message:?}", step.me));
                    }
                    let len = message.frame_len(step.me);
                    let budget = machine.configuration().frame_budget;
                    if len > budget.into() && machine.configuration().number > 0 {
                        return Err(format!("a frame of {len} bytes: {message:?}"));
                    }
                    continue;
                }
                Effect::Multicast { .. } => return Err("a multicast".into()),
            };
            match event {
                Event::Fact(fact) => {
                    if let Some((_, facts)) = self.stored.get_mut(step.at) {
                        facts.push(fact.clone());
                    }
                }
                Event::Applied {
                    version,
                    by,
                    number,
                    outcome,
                } => {
                    changed = true;
                    self.on_applied(*version, (*by, *number), *outcome, machine)?;
                }
                Event::Overtaken { by, number }
                | Event::Forgotten { by, number }
                | Event::Abandoned { by, number } => {
                    self.waiting.remove(&(*by, *number));
                }
                Event::Unreadable(read) => {
                    self.reads.remove(&(step.at, *read));
                }
                Event::Installed(_) => {
                    changed = true;
                    self.summary.installed += 1;
                }
                Event::Readable { read, version } => {
                    self.summary.read += 1;
                    let Some(least) = self.reads.remove(&(step.at, *read)) else {
                        return Err(format!("read {read} is answered, and was not asked"));
                    };
                    if *version < least || machine.version() < least {
                        return Err(format!(
                            "read {read} sees version {version}, when it was asked there was {least}"
                        ));
                    }
                }
                Event::Leads { leader, .. } => {
                    self.summary.led += u64::from(*leader == step.me.id);
                }
                Event::Configured { number, .. } => {
                    if *number > self.newest.number {
                        self.summary.configured += 1;
                        self.newest = machine.configuration().clone();
                    }
                }
                Event::Unavailable { .. } => self.summary.unavailable += 1,
                Event::Deposed(_) | Event::Available => {}
            }
        }
        if changed {
            self.check_state(machine)?;
        }
        if self.settings.is_durable && !step.effects.is_empty() {
            self.check_folded(step)?;
        }
        match self.broken.take() {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }

    fn crashed(&mut self, seat: usize, me: Member, _machine: &Replica<Journal>) {
        self.waiting.retain(|(by, _), _| *by != me);
        self.reads.retain(|(at, _), _| *at != seat);
    }

    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, Replica<Journal>)> {
        self.summary.restarts += 1;
        let me = Member {
            incarnation: before.incarnation.next(),
            ..before
        };
        if !self.settings.is_durable {
            let machine = self.settings.machine(seat, me, &self.rules);
            return Some((me, machine));
        }
        let machine = self.folded(seat, me)?;
        let (base, facts) = self.stored.get_mut(seat)?;
        // A host stores the whole now and then in place of all facts.
        if facts.len() > 8 {
            *base = machine.stored();
            facts.clear();
        }
        Some((me, machine))
    }
}

impl Watcher {
    fn folded(&self, seat: usize, me: Member) -> Option<Replica<Journal>> {
        let (base, facts) = self.stored.get(seat)?;
        let restored = Replica::restore(me, self.settings.config(seat), base.clone());
        let mut machine = restored.ok()?.published(&self.rules);
        for fact in facts {
            machine.fold(fact).ok()?;
        }
        Some(machine)
    }

    /// What is stored says all that was promised.
    fn check_folded(&self, step: &Step<'_, Replica<Journal>>) -> Result<(), String> {
        let Some(folded) = self.folded(step.at, step.me) else {
            return Err("what is stored cannot be folded".into());
        };
        let (stored, now) = (folded.acceptor, &step.machine().acceptor);
        let len: usize = stored.tail().map(encoded_len).sum();
        let room = stored.group().entry_room();
        if len > room {
            return Err(format!(
                "{len} bytes are on their way, a frame has room for {room}"
            ));
        }
        let same = stored.promised() == now.promised()
            && stored.accepted() == now.accepted()
            && stored.end() == now.end()
            && stored.configuration() == now.configuration()
            && stored.committed() <= now.committed();
        match same {
            true => Ok(()),
            false => Err(format!("stored is {stored:?}, held is {now:?}")),
        }
    }
}

/// A mesh, and what watches it.
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

/// The same under rules that differ from ours, to see that it notices.
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
        let newest = settings.first.clone();
        let watch = Watcher {
            settings,
            rules: rules.to_vec(),
            applied: BTreeMap::new(),
            versions: BTreeMap::new(),
            proposed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_read: 1,
            next_update: 1,
            stored,
            newest,
            summary: Summary::default(),
            broken: None,
            sent: Vec::new(),
            is_recording: false,
        };
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
        self.mesh.play(operation, bytes, &mut self.watch)
    }

    fn operate(&mut self, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = usize::from(bytes.take());
        // Three bits say which node, five say what.
        let seat = (byte >> 5) % self.mesh.seats().len();
        let operation = match byte & 31 {
            0..=7 => Operation::Deliver(self.pick(bytes)),
            8..=11 => Operation::DeliverAll,
            12 => Operation::Duplicate(self.pick(bytes)),
            13 if bytes.take() > 64 => Operation::Lose(self.pick(bytes)),
            13 => Operation::Cut(seat),
            14..=16 => Operation::Wait(Span(ROUND.0 * u64::from(bytes.take() % 32))),
            17..=20 => return self.propose(seat, bytes),
            21 | 22 => return self.read(seat, bytes),
            23 => Operation::Fail(seat, usize::from(bytes.take())),
            24 => Operation::Refute(seat, usize::from(bytes.take())),
            25 => return self.fall(seat, bytes),
            26 => Operation::Announce(seat),
            27 => Operation::Pause(seat),
            28 => Operation::Resume(seat),
            29 if self.watch.settings.is_hostile => return self.forge(seat, bytes),
            29 => Operation::Command(seat, Command::Stand),
            30 if self.watch.settings.changes => return self.configure(seat, bytes),
            30 => {
                let to = 1 + usize::from(bytes.take()) % self.mesh.seats().len();
                Operation::Command(seat, Command::HandOver(selvedge_core::NodeId(to as u64)))
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

    /// Which message; it takes a byte where there is one.
    fn pick(&self, bytes: &mut Bytes<'_>) -> usize {
        match self.mesh.in_flight().len() {
            0 => 0,
            some => bytes.pick(some),
        }
    }

    fn propose(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let Some(machine) = self.mesh.machine(seat) else {
            return Ok(());
        };
        let key = (machine.me(), machine.next_number());
        let update = self.watch.next_update;
        self.watch.next_update += 1;
        self.watch.proposed.insert(key, update);
        self.watch.waiting.insert(key, seat);
        self.play(Operation::Command(seat, Command::Propose(update)), bytes)?;
        let taken = self
            .mesh
            .machine(seat)
            .is_some_and(|it| it.next_number() > key.1);
        if !taken {
            self.watch.waiting.remove(&key);
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
            return Ok(()); // What only a witness and the one that forgets accepted is lost.
        }
        if self.is_changing() {
            return Ok(()); // The next configuration may name this life.
        }
        self.play(Operation::Restart(seat), bytes)?;
        self.play(Operation::Announce(seat), bytes)
    }

    /// Whether another configuration is on its way.
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
        in_flight
            || self.mesh.seats().iter().filter_map(Seat::machine).any(|it| {
                let change = matches!(&it.role, Role::Leader(lead) if lead.change.is_some());
                let adopts = matches!(&it.role, Role::Candidate(it) if it.best.as_ref().is_some_and(|it| seals(&it.tail)));
                it.acceptor.is_sealed() || change || adopts
            })
    }

    fn configure(&mut self, seat: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let chosen = bytes.take();
        let mut voters = Vec::new();
        for at in 0..self.mesh.seats().len() {
            if chosen >> at & 1 == 1
                && let Some(machine) = self.mesh.machine(at)
            {
                voters.push(Voter::new(machine.acceptor.voter()));
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

    /// Faults are over: all hear of each other, and messages arrive in time.
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

    /// Whether nothing waits, and all members of the newest configuration hold the same.
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
        // A node outside may have forgotten all that know of the group.
        let is_member = |at: usize| {
            let id = self.mesh.seat(at).map(|it| it.me().id);
            id.is_some_and(|id| newest.voter(id).is_some())
        };
        !self.watch.waiting.values().any(|&at| is_member(at))
            && !self.watch.reads.keys().any(|&(at, _)| is_member(at))
            && newest.members().all(has_all)
    }

    /// A group that has nothing to do sends nothing, sooner or later.
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

/// What a member keeps stays within its settings.
fn check_limits(it: &Replica<Journal>) -> Result<(), String> {
    let pending = it.config.pending as usize;
    let budget = usize::from(it.configuration().frame_budget);
    let held = match &it.role {
        Role::Leader(lead) => lead.backlog.len() <= pending && lead.questions.len() <= pending,
        Role::Candidate(candidacy) => {
            candidacy.promises.len() <= it.configuration().members().count()
        }
        Role::Follower => true,
    };
    let fetched = it
        .fetching
        .as_ref()
        .is_none_or(|it_| it_.len() <= it.config.state_limit as usize);
    if held && fetched && it.waiting() <= pending && it.acceptor.tail().count() <= budget {
        return Ok(());
    }
    Err(format!("a limit is passed: {}", sketch(it)))
}

/// A machine in a line.
fn sketch(it: &Replica<Journal>) -> String {
    let role = match &it.role {
        Role::Follower => "follows".to_string(),
        Role::Candidate(candidacy) => format!("{candidacy:?}"),
        Role::Leader(leadership) => format!("{leadership:?}"),
    };
    let acceptor = &it.acceptor;
    format!(
        "\n  {:?} (voter {:?}, votes {}, c{}) promised {:?} accepted {:?} committed {} end {} lead {:?} \
         waits {} watches {} tied {} fetching {:?} active {} work {:?} {role}",
        it.me(),
        it.voter(),
        it.votes(),
        it.configuration().number,
        acceptor.promised(),
        acceptor.accepted(),
        acceptor.committed(),
        acceptor.end(),
        it.lead,
        it.waits_to_stand,
        it.watches,
        it.is_tied,
        it.fetching,
        it.is_active,
        it.work,
    )
}

//! The task that runs one node: waits for inputs, steps the driver, and performs effects.

mod inbound;
mod notices;
mod outbound;
mod queries;
mod sessions;
mod sites;

use core::future::{self, poll_fn};
use std::net::SocketAddr;
use std::sync::Arc;

use chacha20::ChaCha12Rng;
use selvedge_camera::Camera;
use selvedge_camera::sections::{self, Name};
use selvedge_core::shared::{Reply, Request};
use selvedge_core::{Driver, Effect, Input, Member, Span, Time};
use selvedge_groups::store::StoreCommand;
use selvedge_kgroup as kgroup;
use selvedge_membership as membership;
use tokio::time::{Duration, sleep, sleep_until};

use selvedge::Node;

use crate::clock::LocalClock;
use crate::directory::Directory;
use crate::facts::{Facts, Keeping};
use crate::gates::{Gate, Gates, Settings};
use crate::keeper::Keeper;
use crate::notice::Paces;
use crate::pending::Pending;
use crate::places::Own;
use crate::publisher::Publisher;
use crate::query::Queries;
use crate::sealing::Sealing;
use crate::seeds::{self, Found, Lookups, SeedFound, Turns};
use crate::sends::Sends;
use crate::service::{Answer, Command, NodeService, Reject};
use crate::sites::Sites;
use crate::traffic::Traffic;
use crate::transport::Datagrams;
use crate::{Clock, NodeEvent, Tags, address, clock};

/// The number of errors in a row of the socket before the node pauses after each.
const ERRORS: u32 = 16;
/// For how long: an error that stays must not take the whole processor.
const PAUSE: Duration = Duration::from_millis(1);

pub(crate) struct Task {
    pub(crate) driver: Driver<Node>,
    pub(crate) socket: Box<dyn Datagrams>,
    pub(crate) directory: Directory,
    pub(crate) lookups: Lookups,
    pub(crate) turns: Turns,
    pub(crate) own: Own,
    pub(crate) sends: Sends,
    pub(crate) rng: ChaCha12Rng,
    /// The longest datagram.
    pub(crate) budget: usize,
    /// The longest frame; shorter where it is sealed.
    pub(crate) frame_budget: usize,
    pub(crate) publisher: Publisher,
    pub(crate) gates: Gates,
    pub(crate) pending: Pending,
    pub(crate) kept: Keeper,
    pub(crate) queries: Queries,
    pub(crate) sites: Sites,
    pub(crate) epoch: Option<Epochs>,
    /// The local clock, if the node takes part in k-groups.
    pub(crate) local_clock: Option<LocalClock>,
    pub(crate) keeping: Option<Keeping>,
    /// The folder of a node without k-groups, which no other process uses meanwhile.
    pub(crate) folder: Option<Facts>,
    pub(crate) sealing: Option<Sealing>,
    pub(crate) paces: Paces,
    pub(crate) clock: Clock,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) progress: Progress,
    /// The life of the node after the last effects.
    pub(crate) life: Member,
    /// Effects of the last step, until they are carried out.
    pub(crate) effects: Vec<Effect<Node>>,
    /// The frame that is being written.
    pub(crate) frame: Vec<u8>,
}

/// The epochs of k-groups.
#[derive(Debug)]
pub(crate) struct Epochs {
    length: Span,
    /// The epoch that the machine knows.
    reported: Option<u64>,
}

impl Epochs {
    pub(crate) const fn new(length: Span) -> Self {
        Self {
            length,
            reported: None,
        }
    }
}

/// The progress of the node, from joining to its end.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// True if it has been in the mesh.
    is_in: bool,
    /// The callers that wait for it to leave. It leaves when it is outside of all sections.
    leaving: Vec<Reply<Answer, Reject>>,
    /// It leaves no later for sessions that have not ended.
    patience: Option<Time>,
    /// True if it has left.
    has_left: bool,
    /// True if it stops, for this or another reason.
    is_over: bool,
    /// Why it did not leave when it was asked to.
    refused: Option<selvedge::Reject>,
    /// The callers that wait for its end.
    killing: Vec<Reply<Answer, Reject>>,
}

impl Task {
    /// Runs until the node has left, or its last handle is dropped. When callers are answered its
    /// socket is closed, and its folder is free.
    pub(crate) async fn run(mut self) {
        self.run_on().await;
        let keeping = self.keeping.take();
        let Progress {
            leaving,
            refused,
            killing,
            has_left,
            patience: _,
            is_in: _,
            is_over: _,
        } = core::mem::take(&mut self.progress);
        // Before the disk, which may be stuck: guards are fenced, and questions have outcomes.
        drop(self);
        if let Some(keeping) = keeping {
            keeping.close().await;
        }
        for reply in leaving {
            match refused {
                Some(reject) => reply.send(Err(reject.into())),
                None if has_left => reply.send(Ok(Answer::Done)),
                // It was killed meanwhile, so the caller gets no answer.
                None => drop(reply),
            }
        }
        for reply in killing {
            reply.send(Ok(Answer::Done));
        }
    }

    async fn run_on(&mut self) {
        // One byte more than a frame may have shows that a datagram is too long.
        let mut buffer = vec![0; self.budget.saturating_add(1)];
        let mut errors = 0_u32;
        self.carry_out(None).await;
        while !self.progress.is_over {
            // A look at least each minute.
            let turn = self.begin_epoch();
            self.read_clock();
            self.carry_out(None).await;
            if self.store().await {
                continue;
            }
            let deadline = self.driver.deadline().map(|at| self.clock.instant(at));
            let due = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => future::pending().await,
                }
            };
            let next_lapse = self.next_lapse().map(|at| self.clock.instant(at));
            let lapses = async {
                match next_lapse {
                    Some(at) => sleep_until(at).await,
                    None => future::pending().await,
                }
            };
            let next_query = self.queries.next().map(|at| self.clock.instant(at));
            let asks = async {
                match next_query {
                    Some(at) => sleep_until(at).await,
                    None => future::pending().await,
                }
            };
            let next_epoch = async {
                match turn {
                    Some(left) => sleep(left.into()).await,
                    None => future::pending().await,
                }
            };
            let (socket, keeping) = (&mut self.socket, &mut self.keeping);
            let written = async {
                match keeping {
                    Some(keeping) => keeping.written().await,
                    None => future::pending().await,
                }
            };
            tokio::select! {
                request = self.publisher.next() => match request {
                    Some(request) => self.answer(request).await,
                    None => return,
                },
                received = poll_fn(|cx| socket.poll_recv(cx, &mut buffer)) => {
                    errors = if received.is_err() { errors.saturating_add(1) } else { 0 };
                    self.receive(received, &buffer).await;
                    if errors > ERRORS {
                        sleep(PAUSE).await;
                    }
                }
                written = written => self.on_written(written).await,
                () = due => self.expire(&mut buffer).await,
                () = next_epoch => {}
                () = lapses => self.lapse(),
                () = asks => self.ask_again().await,
                () = self.kept.0.errand() => {}
                (nth, found) = self.lookups.next(&self.clock) => self.on_lookup(nth, found),
                wish = self.gates.next() => self.on_wish(wish).await,
            }
            self.keep_sessions().await;
            self.open_sections().await;
            self.leave_if_outside().await;
        }
    }

    /// Begins to store new facts. Returns true if too many effects waited for the disk, so that nothing else
    /// was done meanwhile.
    async fn store(&mut self) -> bool {
        let Some(keeping) = &mut self.keeping else {
            return false;
        };
        keeping.write(self.driver.machine());
        let is_behind = keeping.is_behind();
        if is_behind {
            let written = keeping.written().await;
            self.on_written(written).await;
        }
        is_behind
    }

    async fn answer(&mut self, request: Request<NodeService>) {
        // What was dropped before makes room.
        self.keep_sessions().await;
        let Request { command, reply } = request;
        match command {
            Command::Machine(selvedge::Command::Membership(membership::Command::SetMetadata(
                _,
            ))) => reply.send(Err(Reject::Metadata)),
            // Its watch was dropped before it came.
            Command::Machine(selvedge::Command::Groups(kgroup::Command::Map {
                command: StoreCommand::WatchPrefix { ticket, .. },
                ..
            })) if !self.kept.0.is_watched(ticket) => reply.send(Ok(Answer::Done)),
            Command::Machine(command) => {
                let outcome = self.command(command);
                self.carry_out(None).await;
                reply.send(outcome.map(|()| Answer::Done).map_err(Reject::from));
            }
            Command::Gate { name, settings } => {
                reply.send(self.gate(name, settings).map(Answer::Gate));
            }
            Command::WaitsFor(name) => {
                let sections = self.driver.machine().sections();
                let section = sections.and_then(|it| it.get(name));
                let members = section.into_iter().flat_map(Camera::waits_for);
                reply.send(Ok(Answer::Members(members.collect())));
            }
            Command::ChangeSite(site) => {
                match self.propose(&site) {
                    Ok(number) => self.sites.wait(number, reply),
                    Err(reject) => reply.send(Err(reject)),
                }
                self.carry_out(None).await;
            }
            Command::BeginAnew(group) => {
                reply.send(self.begin_anew(group).map(|()| Answer::Done));
                self.carry_out(None).await;
            }
            Command::Group { group, question } => {
                if let Some(other) = self.sites.refusal(self.driver.machine()) {
                    return reply.send(Err(Reject::OtherSite(other)));
                }
                if question.begins_session() && self.is_leaving() {
                    return reply.send(Err(Reject::Leaving));
                }
                let (asked, command) = self.pending.request(group, question);
                match self.command(selvedge::Command::Groups(command)) {
                    Ok(()) => self.pending.wait(asked, reply),
                    Err(reject) => reply.send(Err(reject.into())),
                }
                self.carry_out(None).await;
            }
            Command::SetTags(tags) => {
                let outcome = self.set_tags(tags);
                self.carry_out(None).await;
                reply.send(outcome.map(|()| Answer::Done));
            }
            Command::SetKeys(keys) => {
                let outcome = match &mut self.sealing {
                    Some(sealing) => {
                        sealing.datagrams.rotate(keys);
                        Ok(Answer::Done)
                    }
                    None => Err(Reject::NotSealed),
                };
                reply.send(outcome);
            }
            Command::Resume(name) => {
                reply.send(self.resume(name).map(Answer::Session));
                self.carry_out(None).await;
            }
            Command::Query {
                payload,
                wait,
                answers,
            } => {
                let asked = self.query(&payload, wait, answers);
                reply.send(asked.map(Answer::Members));
                self.ask_again().await;
            }
            Command::Answer { question, payload } => {
                reply.send(self.answer_query(question, &payload).await);
            }
            Command::Leave => {
                self.gates.close();
                self.end_sessions();
                self.progress.leaving.push(reply);
            }
            Command::Kill => {
                self.progress.killing.push(reply);
                self.progress.is_over = true;
            }
        }
    }

    /// Gives the machine a command; its effects wait for [`carry_out`](Self::carry_out).
    pub(crate) fn command(&mut self, command: selvedge::Command) -> Result<(), selvedge::Reject> {
        let effects = &mut self.effects;
        self.driver.step_into(
            self.clock.now(),
            &mut self.rng,
            Input::Command(command),
            effects,
        )
    }

    /// Tells the machine which epoch it is, if that is another one. Returns how long to wait before
    /// the next look; nothing where there are no epochs.
    pub(crate) fn begin_epoch(&mut self) -> Option<Span> {
        let epochs = self.epoch.as_mut()?;
        let (number, left) = clock::epoch(epochs.length);
        if epochs.reported.replace(number) != Some(number) {
            let epoch = kgroup::Command::SetEpoch(number);
            let taken = self.command(selvedge::Command::Groups(epoch));
            debug_assert!(taken.is_ok(), "an epoch is refused: {taken:?}");
        }
        Some(left)
    }

    /// Gives the machine the time of the local clock, if that is news: before a timer that counts by a
    /// former zone expires.
    pub(crate) fn read_clock(&mut self) {
        let now = self.clock.now();
        let clock = self.local_clock.as_mut().filter(|_| self.sites.has_times);
        if let Some(shown) = clock.and_then(|it| it.news(now)) {
            let set = kgroup::Command::SetClock(shown);
            let taken = self.command(selvedge::Command::Groups(set));
            debug_assert!(taken.is_ok(), "a clock is refused: {taken:?}");
        }
    }

    /// Returns true if the node leaves, or waits to leave.
    pub(crate) const fn is_leaving(&self) -> bool {
        !self.progress.leaving.is_empty()
    }

    /// A gate to a section. It is opened when the node is in the mesh.
    fn gate(&mut self, name: Name, wanted: Option<Settings>) -> Result<Gate, Reject> {
        if !self.progress.leaving.is_empty() {
            return Err(selvedge::Reject::Leaving(name).into());
        }
        let (former, others) = (self.gates.settings(name), self.gates.others(name));
        if former.is_some_and(|former| wanted.is_some_and(|wanted| wanted != former))
            && self.gates.is_in_use(name)
        {
            return Err(Reject::OtherSettings(name));
        }
        let settings = wanted.or(former).unwrap_or_default();
        let machine = self.driver.machine();
        machine.check_section(name, settings.0, others)?;
        match self.gates.get(name) {
            Some(gate) if former == Some(settings) => Ok(gate),
            Some(_) | None => Ok(self.gates.add(name, settings)),
        }
    }

    /// Performs a command of the users that queue for a section.
    async fn on_wish(&mut self, wish: sections::Command) {
        if let sections::Command::Close(name) = wish {
            self.gates.remove(name);
        }
        if let Err(reject) = self.command(selvedge::Command::Sections(wish)) {
            self.gates.on_refused(wish, reject);
        }
        self.carry_out(None).await;
    }

    /// Opens the sections that have a gate, once the node has joined.
    async fn open_sections(&mut self) {
        if self.driver.machine().sections().is_none() {
            return;
        }
        for (name, open) in self.gates.to_open() {
            match self.command(selvedge::Command::Sections(open)) {
                Ok(()) => self.gates.opened(name),
                // There is room as soon as another one is closed.
                Err(selvedge::Reject::Sections(sections::Reject::Full { .. }))
                    if self.gates.is_closing() => {}
                // The gate returns that it is closed.
                Err(_) => self.gates.remove(name),
            }
            self.carry_out(None).await;
        }
    }

    /// Leaves when that was asked for and nothing is held.
    async fn leave_if_outside(&mut self) {
        if self.progress.leaving.is_empty()
            || self.progress.is_over
            || self.driver.machine().membership().phase() == membership::Phase::Leaving
            || !self.gates.is_empty()
            || self.driver.machine().in_use().is_some()
            || self.waits_for_sessions()
        {
            return;
        }
        let leave = selvedge::Command::Membership(membership::Command::Leave);
        if let Err(reject) = self.command(leave) {
            self.progress.refused = Some(reject);
            self.progress.is_over = true;
        }
        self.carry_out(None).await;
    }

    /// A seed that did not answer was looked up again.
    fn on_lookup(&mut self, nth: usize, found: Found) {
        let Some(id) = Directory::stand_in(nth) else {
            return;
        };
        let found = self.found(found);
        if let SeedFound::Others(addresses) = &found {
            self.directory.move_seed(id, addresses.clone());
        }
        if let Some(news) = self.lookups.note(nth, found) {
            self.emit(NodeEvent::Seed(news));
        }
        let is_joining = self.driver.machine().membership().phase() == membership::Phase::Joining;
        if is_joining && self.lookups.are_itself() {
            self.begin_alone();
        }
    }

    /// The outcome of a look-up: addresses of other nodes, of this node alone, or no usable one.
    fn found(&self, found: Found) -> SeedFound {
        let mut all = match found {
            Ok(all) => all.into_iter().map(address::canonical),
            Err(error) => return SeedFound::Nothing(error.to_string()),
        };
        let is_own = |address| self.own.is(address, &*self.socket);
        let is_usable = |address| {
            address::reachable(address) && self.socket.reaches(address) && !is_own(address)
        };
        let others = all.clone().filter(|&address| is_usable(address));
        let others: Vec<_> = others.take(seeds::ADDRESSES).collect();
        if !others.is_empty() {
            SeedFound::Others(others)
        } else if all.any(is_own) {
            SeedFound::Itself
        } else {
            SeedFound::Nothing("it has no address that this node can send to".to_owned())
        }
    }

    /// Begins a mesh, as each seed is this node. The seeds stay: their names may have other addresses
    /// later.
    pub(crate) fn begin_alone(&mut self) {
        for seeds in [Vec::new(), self.turns.stand_ins().collect()] {
            let seeds = membership::Command::SetSeeds { seeds };
            let taken = self.command(selvedge::Command::Membership(seeds));
            debug_assert!(taken.is_ok(), "a node that joins has seeds: {taken:?}");
        }
    }

    /// Looks for the address at which the member at `source` reaches this node, and announces it.
    pub(crate) fn look_for_itself(&mut self, source: SocketAddr) {
        let (now, room) = (self.clock.now(), self.metadata_room());
        if !self.own.look(source, &*self.socket, now, room) {
            return;
        }
        let taken = self.announce();
        debug_assert!(taken.is_ok(), "there is room for it: {taken:?}");
        let addresses = self.own.announced().addresses.clone();
        self.emit(NodeEvent::Announced(addresses));
    }

    /// Replaces this node's tags.
    fn set_tags(&mut self, tags: Tags) -> Result<(), Reject> {
        tags.check(self.metadata_room())?;
        if tags == self.own.announced().tags {
            return Ok(());
        }
        self.own.set_tags(tags.clone());
        self.announce()?;
        let member = self.driver.machine().membership().me();
        self.emit(NodeEvent::TagsChanged { member, tags });
        Ok(())
    }

    /// Makes this node's addresses and tags its metadata.
    pub(crate) fn announce(&mut self) -> Result<(), selvedge::Reject> {
        let announced = self.own.announced();
        let metadata = membership::Metadata(announced.encode());
        let me = self.driver.machine().membership().me();
        self.publisher.set_tags(me, &announced.tags);
        let announce = membership::Command::SetMetadata(metadata);
        self.command(selvedge::Command::Membership(announce))
    }

    /// The longest metadata in bytes.
    fn metadata_room(&self) -> usize {
        let membership = self.driver.machine().membership();
        membership.config().metadata_limit.into()
    }
}

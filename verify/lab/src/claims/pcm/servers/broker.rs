//! Servers with mailboxes, in virtual time.
//!
//! A server wakes once in its period, receives the messages in its mailbox, and further ones while
//! it is awake. It begins a function only while it is active, and runs it to its end, even when
//! that is later; then it sleeps as long as usual. So do PCM's followers.

use std::collections::{BTreeMap, VecDeque};

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Span, Time};

use super::awake::{Awake, Cycle};

/// The shortest time that a message takes into a mailbox, and by how much more it may be.
pub(crate) const DELAY: (Span, Span) = (Span::millis(5), Span::millis(10));

/// A server, as its host sees it.
pub(crate) trait Server {
    type Message;
    /// Called when it wakes. The messages in its mailbox follow.
    fn wake(&mut self, out: &mut Out<Self::Message>);
    /// A message is read.
    fn receive(&mut self, from: usize, message: Self::Message, out: &mut Out<Self::Message>);
    /// A client's request is read.
    fn request(&mut self, task: u64, out: &mut Out<Self::Message>);
    /// The function of a task has ended.
    fn returned(&mut self, task: u64, out: &mut Out<Self::Message>);
}

/// The effects of a server.
#[derive(Debug)]
pub(crate) struct Out<M> {
    /// Messages and their receivers.
    pub(crate) sends: Vec<(usize, M)>,
    /// The tasks whose functions the host must run, one after another.
    pub(crate) runs: Vec<u64>,
    /// The tasks that are agreed on.
    pub(crate) answers: Vec<u64>,
}

impl<M> Default for Out<M> {
    fn default() -> Self {
        Self {
            sends: Vec::new(),
            runs: Vec::new(),
            answers: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Active,
    /// Awake only because a function runs.
    Late,
    Asleep,
}

#[derive(Debug)]
enum Post<M> {
    Message(usize, M),
    Request(u64),
}

#[derive(Debug)]
enum What<M> {
    /// Something comes into a mailbox.
    Posted(usize, Post<M>),
    /// A server wakes, or its active phase ends.
    Phase(usize),
    /// A function ends at a server.
    Ends(usize, u64),
    /// A client has an answer.
    Answered(u64),
}

#[derive(Debug)]
struct Host<S: Server> {
    server: S,
    phase: Phase,
    is_up: bool,
    mailbox: VecDeque<Post<S::Message>>,
    runs: bool,
    waiting: VecDeque<u64>,
    awake: Awake,
}

/// The servers, and the broker between them.
#[derive(Debug)]
pub(crate) struct Broker<S: Server> {
    now: Time,
    cycle: Cycle,
    /// The time that a function runs.
    length: Span,
    rng: ChaCha8Rng,
    hosts: Vec<Host<S>>,
    queue: BTreeMap<(Time, u64), What<S::Message>>,
    entered: u64,
    answered: BTreeMap<u64, Time>,
    sent: u64,
}

impl<S: Server> Broker<S> {
    /// Servers that begin their periods at random moments.
    pub(crate) fn new(
        servers: impl IntoIterator<Item = S>,
        cycle: Cycle,
        length: Span,
        rng: ChaCha8Rng,
    ) -> Self {
        let host = |server| Host {
            server,
            phase: Phase::Asleep,
            is_up: true,
            mailbox: VecDeque::new(),
            runs: false,
            waiting: VecDeque::new(),
            awake: Awake::default(),
        };
        let mut broker = Self {
            now: Time::ZERO,
            cycle,
            length,
            rng,
            hosts: servers.into_iter().map(host).collect(),
            queue: BTreeMap::new(),
            entered: 0,
            answered: BTreeMap::new(),
            sent: 0,
        };
        for at in 0..broker.hosts.len() {
            let after = Span(broker.rng.below(cycle.period().0));
            broker.enter(after, What::Phase(at));
        }
        broker
    }

    /// A client's request goes into a server's mailbox.
    pub(crate) fn submit(&mut self, to: usize, task: u64) {
        self.post(to, Post::Request(task));
    }

    /// Lets some time pass.
    pub(crate) fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.next().is_some_and(|it| it <= end) {
            self.happen();
        }
        self.now = end;
    }

    /// Lets time pass until the client has its answer, but no longer than this. Whether it has.
    pub(crate) fn run_until_answered(&mut self, task: u64, most: Span) -> bool {
        let end = self.now + most;
        while !self.answered.contains_key(&task) && self.next().is_some_and(|it| it <= end) {
            self.happen();
        }
        self.answered.contains_key(&task)
    }

    /// Something below this, from the generator that all else is drawn from.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// The time for which all servers together were awake.
    pub(crate) fn awake(&self) -> Span {
        let all = self.hosts.iter().map(|it| it.awake.until(self.now));
        all.fold(Span::ZERO, |sum, it| sum + it)
    }

    /// The number of messages to mailboxes and to clients.
    pub(crate) const fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &S> {
        self.hosts.iter().map(|it| &it.server)
    }

    fn next(&self) -> Option<Time> {
        self.queue.first_key_value().map(|it| it.0.0)
    }

    fn enter(&mut self, after: Span, what: What<S::Message>) {
        self.entered += 1;
        self.queue.insert((self.now + after, self.entered), what);
    }

    fn post(&mut self, to: usize, post: Post<S::Message>) {
        self.deliver_later(What::Posted(to, post));
    }

    fn deliver_later(&mut self, what: What<S::Message>) {
        self.sent += 1;
        let (least, more) = DELAY;
        let after = least + Span(self.rng.below(more.0 + 1));
        self.enter(after, what);
    }

    fn happen(&mut self) {
        let Some(((at, _), what)) = self.queue.pop_first() else {
            return;
        };
        self.now = at;
        match what {
            What::Posted(to, post) => {
                let Some(host) = self.hosts.get_mut(to) else {
                    return;
                };
                host.mailbox.push_back(post);
                if host.is_up && host.phase != Phase::Asleep {
                    self.fetch(to);
                }
            }
            What::Phase(at) => self.end_phase(at),
            What::Ends(at, task) => self.end_run(at, task),
            What::Answered(task) => {
                self.answered.entry(task).or_insert(self.now);
            }
        }
    }

    fn end_phase(&mut self, at: usize) {
        let Some(host) = self.hosts.get_mut(at).filter(|it| it.is_up) else {
            return;
        };
        match host.phase {
            Phase::Active if host.runs => host.phase = Phase::Late,
            Phase::Active => self.fall_asleep(at),
            Phase::Asleep | Phase::Late => self.begin_period(at),
        }
    }

    fn begin_period(&mut self, at: usize) {
        let Some(host) = self.hosts.get_mut(at) else {
            return;
        };
        host.phase = Phase::Active;
        host.awake.wake(self.now);
        self.enter(self.cycle.active, What::Phase(at));
        self.step(at, |server, out| server.wake(out));
        self.fetch(at);
        self.run_next(at);
    }

    fn fall_asleep(&mut self, at: usize) {
        if self.cycle.asleep == Span::ZERO {
            return self.begin_period(at);
        }
        if let Some(host) = self.hosts.get_mut(at) {
            host.phase = Phase::Asleep;
            host.awake.sleep(self.now);
        }
        self.enter(self.cycle.asleep, What::Phase(at));
    }

    fn fetch(&mut self, at: usize) {
        let next = |it: &mut Self| it.hosts.get_mut(at)?.mailbox.pop_front();
        while let Some(post) = next(self) {
            match post {
                Post::Message(from, message) => {
                    self.step(at, |server, out| server.receive(from, message, out));
                }
                Post::Request(task) => self.step(at, |server, out| server.request(task, out)),
            }
        }
    }

    fn run_next(&mut self, at: usize) {
        let Some(host) = self.hosts.get_mut(at) else {
            return;
        };
        if host.runs || host.phase != Phase::Active {
            return;
        }
        if let Some(task) = host.waiting.pop_front() {
            host.runs = true;
            self.enter(self.length, What::Ends(at, task));
        }
    }

    fn end_run(&mut self, at: usize, task: u64) {
        let Some(host) = self.hosts.get_mut(at).filter(|it| it.is_up) else {
            return;
        };
        host.runs = false;
        let is_late = host.phase == Phase::Late;
        self.step(at, |server, out| server.returned(task, out));
        if is_late {
            self.fall_asleep(at);
        } else {
            self.run_next(at);
        }
    }

    fn step(&mut self, at: usize, step: impl FnOnce(&mut S, &mut Out<S::Message>)) {
        let mut out = Out::default();
        let Some(host) = self.hosts.get_mut(at) else {
            return;
        };
        step(&mut host.server, &mut out);
        host.waiting.extend(out.runs);
        for (to, message) in out.sends {
            self.post(to, Post::Message(at, message));
        }
        for task in out.answers {
            self.deliver_later(What::Answered(task));
        }
        self.run_next(at);
    }
}

#[cfg(test)]
impl<S: Server> Broker<S> {
    /// Stops a server for good.
    pub(crate) fn stop(&mut self, at: usize) {
        if let Some(host) = self.hosts.get_mut(at) {
            host.is_up = false;
            host.awake.sleep(self.now);
        }
    }
}

//! Histories of the clients of a map, and of recipes on it, as a linearizability tester judges them: each operation
//! takes effect at one moment between its request and its answer, as in a sequential specification. Messages are
//! lost, doubled and late, leaders change and do not notice, and nodes restart without an answer: their requests may
//! have been carried out, or are later, or never.

mod counter;
mod election;
mod lock;
mod map;
mod queue;

use core::fmt::Debug;
use std::collections::BTreeMap;

use selvedge_core::Choose as _;
use selvedge_groups::store::{
    Entry, Expected, Operation, SessionId, StoreCommand, StoreEvent, Stored,
};
use selvedge_sim::histories::{Choices, Trace, random, seeds};
use stateright::semantics::{ConsistencyTester as _, LinearizabilityTester, SequentialSpec};

use crate::store_histories::{NODES, World};

/// The tickets of operations follow those of other changes.
const TICKETS: u64 = 1_000;

/// A question to the map.
#[derive(Clone, Debug, PartialEq)]
enum Ask {
    Change(Operation),
    Get(String),
    List(String),
}

/// Its answer.
#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Stored(Stored),
    Found(Option<Entry>),
    Listed(Vec<(String, Entry)>),
}

/// The next step of a client after some answers.
enum Next<R> {
    Ask(Ask),
    Return(R),
}

/// The session by which a client acts, while it knows that the session is alive.
enum Held<O> {
    Same,
    Nothing,
    /// With the operation that happens when the session ends.
    By(SessionId, O),
}

/// A sequential specification, and the recipe that is to keep it.
trait Recipe: SequentialSpec<Op: Clone + Debug, Ret: Clone + Debug> + Clone {
    /// The number of operations of each client: the tester takes exponential time.
    const OPERATIONS: usize = 4;

    /// An operation of a client, after the last one that returned.
    fn draw(choices: &mut Choices, last: Option<&(Self::Op, Self::Ret)>) -> Self::Op;

    /// The recipe: the next step of an operation, after these answers.
    fn next(
        op: &Self::Op,
        answers: &[Answer],
        is_alive: &dyn Fn(SessionId) -> bool,
    ) -> Next<Self::Ret>;

    /// Returns true if the operation changes nothing where it has no answer.
    fn is_void(op: &Self::Op) -> bool;

    /// The change of the entry that the client holds, when the operation begins or returns.
    fn held(_: &Self::Op, _: Option<&Self::Ret>) -> Held<Self::Op> {
        Held::Same
    }
}

/// An operation of a client begins or returns.
enum Event<S: Recipe> {
    Begins(S::Op),
    Returns(S::Ret),
}

struct Client<S: Recipe> {
    /// Its name in the history: a client whose operation has no answer goes on by another name.
    thread: u64,
    left: usize,
    doing: Option<(S::Op, Vec<Answer>)>,
    last: Option<(S::Op, S::Ret)>,
    held: Option<(SessionId, S::Op)>,
    /// The changes that end sessions which lapsed, by ticket.
    ends: BTreeMap<u64, (u64, S::Op)>,
    ticket: u64,
}

#[derive(Debug, Default)]
struct Totals {
    returned: usize,
    unanswered: usize,
    lapsed: usize,
}

struct History<S: Recipe> {
    world: World,
    spec: S,
    events: Vec<(u64, Event<S>)>,
    clients: Vec<Client<S>>,
    threads: u64,
    trace: Trace,
    totals: Totals,
}

impl<S: Recipe> History<S> {
    fn new(choices: Choices, spec: S) -> Self {
        let clients = (0..NODES).map(|thread| Client {
            thread,
            left: S::OPERATIONS,
            doing: None,
            last: None,
            held: None,
            ends: BTreeMap::new(),
            ticket: TICKETS,
        });
        Self {
            world: World::new(choices, 4_000),
            spec,
            events: Vec::new(),
            clients: clients.collect(),
            threads: NODES,
            trace: Trace::new(),
            totals: Totals::default(),
        }
    }

    fn run(mut self) -> Totals {
        for _ in 0..400 {
            self.step(true);
        }
        self.world.calm();
        for _ in 0..200 {
            self.step(false);
        }
        self.totals
    }

    /// Judges the history up to now. An operation without an answer doubles the work of the tester, or more: those
    /// that change nothing are left out.
    fn judge(&self) {
        let mut tester = LinearizabilityTester::new(self.spec.clone());
        for (nth, (thread, event)) in self.events.iter().enumerate() {
            let returns = || {
                self.events[nth..]
                    .iter()
                    .any(|it| it.0 == *thread && it.1.returns())
            };
            match event {
                Event::Begins(op) if !S::is_void(op) || returns() => {
                    tester.on_invoke(*thread, op.clone()).unwrap();
                }
                Event::Begins(_) => {}
                Event::Returns(ret) => {
                    tester.on_return(*thread, ret.clone()).unwrap();
                }
            }
        }
        assert!(tester.is_consistent(), "it is not linearizable");
    }

    fn step(&mut self, is_faulty: bool) {
        let restarted = is_faulty.then(|| self.world.fail()).flatten();
        self.world.step();
        if let Some(at) = restarted
            && let Some((op, _)) = self.clients[at].doing.take()
        {
            self.trace
                .line(|| format!("{at} begins anew and has no answer to {op:?}"));
            self.forget(at);
        }
        for at in 0..self.clients.len() {
            self.lapse(at);
        }
        for at in 0..self.clients.len() {
            for answer in self.world.take_answers(at) {
                self.on_answer(at, answer);
            }
            // A late answer may be of a session that has lapsed.
            self.lapse(at);
            let is_idle = self.clients[at].doing.is_none() && self.clients[at].left > 0;
            if is_idle && self.world.choices.percent(20) {
                let op = S::draw(&mut self.world.choices, self.clients[at].last.as_ref());
                self.invoke(at, op);
            }
        }
    }

    /// The operation of a client stays without an answer.
    fn forget(&mut self, at: usize) {
        self.totals.unanswered += 1;
        self.clients[at].thread = self.threads;
        self.threads += 1;
    }

    /// A client acts no longer by a session that may have ended, and ends it: it ends at any time from now on.
    fn lapse(&mut self, at: usize) {
        let client = &mut self.clients[at];
        if let Some((session, ends)) = (client.held).take_if(|it| !self.world.is_alive(at, it.0)) {
            client.last = None;
            let ticket = self.world.change(at, Operation::EndSession(session));
            client.ends.insert(ticket, (self.threads, ends.clone()));
            self.trace
                .line(|| format!("{at} knows nothing of its session: {ends:?}"));
            self.events.push((self.threads, Event::Begins(ends)));
            self.threads += 1;
            self.totals.lapsed += 1;
        }
    }

    fn invoke(&mut self, at: usize, op: S::Op) {
        self.trace.line(|| format!("{at} begins {op:?}"));
        self.hold(at, &op, None);
        let client = &mut self.clients[at];
        client.left -= 1;
        self.events.push((client.thread, Event::Begins(op.clone())));
        client.doing = Some((op, Vec::new()));
        self.go_on(at);
    }

    fn hold(&mut self, at: usize, op: &S::Op, ret: Option<&S::Ret>) {
        match S::held(op, ret) {
            Held::Same => {}
            Held::Nothing => self.clients[at].held = None,
            Held::By(session, ends) => self.clients[at].held = Some((session, ends)),
        }
    }

    fn go_on(&mut self, at: usize) {
        let Some((op, answers)) = self.clients[at].doing.take() else {
            return;
        };
        match S::next(&op, &answers, &|it| self.world.is_alive(at, it)) {
            Next::Ask(ask) => {
                let client = &mut self.clients[at];
                client.doing = Some((op, answers));
                client.ticket += 1;
                let ticket = client.ticket;
                let command = match ask {
                    Ask::Change(operation) => StoreCommand::Change { ticket, operation },
                    Ask::Get(key) => StoreCommand::Get { ticket, key },
                    Ask::List(prefix) => StoreCommand::List {
                        ticket,
                        prefix,
                        after: None,
                    },
                };
                self.world.command(at, command);
            }
            Next::Return(ret) => {
                self.trace
                    .line(|| format!("{at} returns {ret:?} of {op:?}"));
                self.totals.returned += 1;
                self.hold(at, &op, Some(&ret));
                let client = &mut self.clients[at];
                self.events
                    .push((client.thread, Event::Returns(ret.clone())));
                client.last = Some((op, ret));
                self.judge();
            }
        }
    }

    fn on_answer(&mut self, at: usize, event: StoreEvent) {
        let (ticket, answer) = match event {
            StoreEvent::Changed { ticket, stored } => (ticket, Answer::Stored(stored)),
            StoreEvent::Found { ticket, entry } => (ticket, Answer::Found(entry)),
            StoreEvent::Listed { ticket, page } => {
                assert!(page.is_last);
                (ticket, Answer::Listed(page.entries.into_iter().collect()))
            }
            other => panic!("{other:?}"),
        };
        let client = &mut self.clients[at];
        if let Some((thread, ends)) = client.ends.remove(&ticket) {
            let ret = self.spec.clone().invoke(&ends);
            self.events.push((thread, Event::Returns(ret)));
            return;
        }
        assert_eq!(ticket, client.ticket);
        assert_ne!(answer, Answer::Stored(Stored::Over));
        let (_, answers) = client.doing.as_mut().unwrap();
        answers.push(answer);
        self.go_on(at);
    }
}

impl<S: Recipe> Event<S> {
    const fn returns(&self) -> bool {
        matches!(self, Self::Returns(_))
    }
}

/// Judges histories of a recipe.
fn judge<S: Recipe>(spec: &S) {
    let mut totals = Totals::default();
    let many = random(seeds(60), |choices| {
        let of = History::new(choices, spec.clone()).run();
        totals.returned += of.returned;
        totals.unanswered += of.unanswered;
        totals.lapsed += of.lapsed;
    });
    println!("{totals:?}");
    let is_enough = totals.returned > 300 && totals.unanswered > 10;
    assert!(is_enough || many < 60, "{totals:?}");
}

fn version(entry: Option<&Entry>) -> Expected {
    entry.map_or(Expected::Absent, |it| Expected::Version(it.version))
}

fn bytes(value: u8) -> selvedge_groups::store::Bytes {
    [value].into_iter().collect()
}

//! Tests of a follower. The test plays its gateways.

use core::time::Duration;
use std::thread::sleep;

use selvedge_pcm::{DutyCycle, Run};

use super::*;
use crate::executor::{Hash, Stop};
use crate::link::Address;

const INBOX: &str = "selvedge/faas/1/101";
const GATEWAY: Member = Member::new(1, 0);
/// A module with nothing but its head.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// An executor that waits for its host until it is stopped.
struct Waits;

impl Executor for Waits {
    fn execute(&self, _: &Job, stop: &Stop) -> Returned {
        stop.set_waiting(true);
        while !stop.is_stopped() {
            sleep(Duration::from_millis(1));
        }
        Returned::Failed(Failure::Host)
    }
}

/// A follower with gateways 1 and 2, which do not exist.
fn new() -> Host {
    with(Arc::new(Hash))
}

fn with(executor: Arc<dyn Executor>) -> Host {
    Host::new(options(), executor).unwrap()
}

fn options() -> Options {
    let nowhere = |id| {
        let (host, port) = ("127.0.0.1".into(), 1);
        (NodeId(id), Address { host, port })
    };
    Options {
        id: NodeId(101),
        gateways: Gateways::new([nowhere(1), nowhere(2)]).unwrap(),
        access: Access::default(),
        config: Config::new(DutyCycle::always()),
        room: None,
        is_verbose: false,
    }
}

impl Host {
    fn receive(&mut self, message: &Message) {
        let payload = frame::message(GATEWAY, message).unwrap();
        self.on_published(INBOX, &payload);
    }

    /// Assigns a function, which begins.
    fn begin(&mut self) {
        self.command(Command::Start).unwrap();
        let electors = [self.driver.machine().me()].into_iter().collect();
        self.receive(&Message::Run(Box::new(Run {
            task: task(),
            attempt: 1,
            term: 0,
            electors,
            to_gateway: false,
            function: Function::new(b"x"),
        })));
        assert_eq!(self.worker.number, 1);
    }

    fn receive_notice(&mut self, notice: &Notice) {
        let payload = frame::notice(GATEWAY, notice).unwrap();
        self.on_published(INBOX, &payload);
    }
}

/// A message that is counted as received.
fn published() -> LinkEvent {
    let library = Library(7);
    LinkEvent::Published {
        topic: INBOX.into(),
        payload: frame::notice(GATEWAY, &Notice::NoModule(library)).unwrap(),
        is_retained: false,
    }
}

fn task() -> TaskId {
    let (client, number) = (Member::new(9, 1), 1);
    TaskId { client, number }
}

fn up(is_kept: bool) -> LinkEvent {
    LinkEvent::Up { is_kept }
}

#[test]
fn what_is_published_is_counted_as_what_it_is() {
    let mut host = new();
    host.receive_notice(&Notice::NoModule(Library(7)));
    assert_eq!((host.counters.received, host.counters.refused), (1, 0));
    host.receive_notice(&Notice::Get(Library(7))); // For gateways.
    assert_eq!((host.counters.received, host.counters.refused), (2, 1));
    host.receive(&Message::Here); // For gateways.
    assert_eq!((host.counters.received, host.counters.refused), (3, 2));
    host.on_published(INBOX, &[1]);
    assert_eq!(host.counters.malformed, 1);
    let payload = frame::message(GATEWAY, &Message::Here).unwrap();
    for topic in ["selvedge/faas/1/102", "selvedge/faas/1/1/status", "recipes"] {
        host.on_published(topic, &payload);
    }
    assert_eq!(
        (host.counters.received, host.counters.foreign_topics),
        (3, 3)
    );
    host.go_to(NodeId(1));
    host.on_link(host.links, LinkEvent::Retained);
    assert_eq!(host.counters.retained, 1);
}

#[test]
fn what_a_link_brought_as_it_was_closed_is_taken_when_the_follower_is_back() {
    let mut host = new();
    host.go_to(NodeId(1));
    host.on_phase(Phase::Asleep);
    assert!(host.stay.is_none());
    for _ in 0..2 {
        host.on_link(1, published());
    }
    // The queue has a bound, and no other link adds to it.
    host.on_link(2, published());
    assert_eq!((host.late.len(), host.counters.received), (2, 0));
    for _ in 0..2_000 {
        host.on_link(1, published());
    }
    assert_eq!(host.late.len(), WAKES);
    host.late.truncate(2);
    host.go_to(NodeId(1));
    assert_eq!((host.links, host.late.len()), (2, 2));
    host.on_link(2, up(true));
    assert_eq!((host.late.len(), host.counters.received), (0, 2));
    // A message that the closed link still brings is handled at once.
    host.on_link(1, published());
    assert_eq!(host.counters.received, 3);
    host.on_link(1, up(true));
    assert_eq!(host.counters.received, 3);
}

#[test]
fn what_a_link_brought_is_nothing_at_another_gateway() {
    let mut host = new();
    host.go_to(NodeId(1));
    host.on_phase(Phase::Asleep);
    host.on_link(1, published());
    host.go_to(NodeId(2));
    assert_eq!(host.late.len(), 0);
    host.on_link(1, published());
    host.on_link(2, up(false));
    assert_eq!(host.counters.received, 0);
    host.on_link(2, published());
    assert_eq!(host.counters.received, 1);
}

#[test]
fn a_mailbox_is_relied_on_where_the_follower_was_last() {
    let mut host = new();
    let relies = |host: &Host| host.stay.as_ref().unwrap().relies;
    host.go_to(NodeId(1));
    assert!(!relies(&host));
    host.go_to(NodeId(1));
    assert_eq!(host.links, 1, "it is there");
    host.on_phase(Phase::Active);
    assert!(host.stay.is_some());
    host.on_phase(Phase::Asleep);
    host.go_to(NodeId(1));
    assert!(relies(&host));
    host.go_to(NodeId(2));
    assert!(!relies(&host));
    host.on_phase(Phase::Asleep);
    host.go_to(NodeId(1));
    assert!(!relies(&host), "it was at another gateway");
    host.on_link(host.links, LinkEvent::Down(Lost::by(&"it is away")));
    assert!(host.stay.is_none());
    assert_eq!(host.counters.lost_links, 1);
    host.go_to(NodeId(1));
    assert!(!relies(&host), "it may come back without the mailbox");
}

#[test]
fn a_mailbox_that_is_gone_is_told_to_the_machine() {
    let reported = |host: &Host| host.counters.sent + host.counters.unsent;
    let mut host = new();
    host.command(Command::Start).unwrap();
    let number = host.links;
    assert!(number > 0);
    let before = reported(&host);
    host.on_link(number, up(false));
    assert_eq!(reported(&host), before, "it left nothing there");
    host.on_phase(Phase::Asleep);
    host.go_to(NodeId(1));
    host.on_link(host.links, up(true));
    assert_eq!(reported(&host), before, "all is there");
    host.on_link(host.links, up(false));
    assert!(reported(&host) > before);
}

#[test]
fn a_broker_that_refuses_is_remembered_with_its_reason() {
    let mut host = new();
    let mut lose = |why: &str, is_refused| {
        host.go_to(NodeId(1));
        let why = why.into();
        host.on_link(host.links, LinkEvent::Down(Lost { why, is_refused }));
        host.refused.clone()
    };
    assert_eq!(lose("it is away", false), None);
    assert_eq!(lose("no", true).as_deref(), Some("no"));
    assert_eq!(lose("it is away", false).as_deref(), Some("no"));
}

#[test]
fn a_module_is_asked_for_by_who_is_awake_and_taken_when_it_was_wanted() {
    let mut host = new();
    let reported = |host: &Host| host.counters.sent + host.counters.unsent;
    let library = crate::library(MODULE);
    let module = || Notice::Module(MODULE.iter().copied().collect());
    host.receive_notice(&module());
    assert_eq!(host.counters.fetched_modules, 0);
    host.load(library);
    host.look_at_shelf();
    assert_eq!(reported(&host), 0, "it sleeps");
    host.go_to(NodeId(1));
    host.look_at_shelf();
    assert_eq!(reported(&host), 1);
    host.look_at_shelf();
    assert_eq!(reported(&host), 1, "it has asked just now");
    host.receive_notice(&Notice::NoModule(Library(7)));
    assert!(
        host.shelf.wait(host.clock.now()).is_some(),
        "another module"
    );
    host.receive_notice(&module());
    host.receive_notice(&module());
    assert_eq!(host.counters.fetched_modules, 1);
    assert!(host.shelf.has(library));
    host.load(library);
    assert_eq!(host.commands.len(), 1, "it is here");
}

#[test]
fn a_module_is_read_from_the_disk_in_a_later_life_unless_it_is_damaged() {
    let dir = std::env::temp_dir();
    let dir = dir.join(format!("selvedge-faas-life-{}", std::process::id()));
    let (bytes, library) = (100, crate::library(MODULE));
    let mut options = options();
    options.room = Some(Room {
        dir: dir.clone(),
        bytes,
    });
    let life = || Host::new(options.clone(), Arc::new(Hash)).unwrap();
    let mut first = life();
    first.load(library);
    assert!(first.commands.is_empty(), "it is asked for");
    first.receive_notice(&Notice::Module(MODULE.iter().copied().collect()));
    let mut second = life();
    second.load(library);
    assert_eq!(second.commands, [Command::Loaded(library)]);
    second.load(library);
    assert_eq!(second.counters.read_modules, 1, "it is here");
    let file = std::fs::read_dir(&dir).unwrap().next().unwrap().unwrap();
    std::fs::write(file.path(), "damaged").unwrap();
    let mut third = life();
    third.load(library);
    assert!(third.commands.is_empty(), "it is asked for");
    let counters = third.counters;
    assert_eq!((counters.read_modules, counters.damaged_modules), (0, 1));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_function_whose_modules_are_not_here_has_failed() {
    let (mut host, task) = (new(), task());
    let mut function = Function::new(b"x");
    host.start(task, function.clone(), 0);
    assert_eq!((host.worker.number, host.commands.len()), (1, 0));
    function.libraries = [Library(7)].into_iter().collect();
    host.start(task, function, 0);
    let returned = Returned::Failed(Failure::Host);
    let failed = Command::Returned { task, returned };
    assert_eq!(host.worker.number, 1);
    assert_eq!(host.commands, [failed]);
}

#[test]
fn what_the_machine_wants_is_done() {
    let mut host = with(Arc::new(Waits));
    host.on_event(Event::Fetch(NodeId(2)));
    assert_eq!(host.stay.as_ref().map(|it| it.gateway), Some(NodeId(2)));
    host.on_event(Event::PhaseChanged(Phase::Asleep));
    assert!(host.stay.is_none());
    let library = crate::library(MODULE);
    host.on_event(Event::Load(library));
    host.receive_notice(&Notice::Module(MODULE.iter().copied().collect()));
    assert!(host.shelf.has(library));
    host.on_event(Event::Unload(library));
    assert!(!host.shelf.has(library));
    let (task, memory) = (task(), 0);
    host.on_event(Event::Run {
        task,
        function: Function::new(b"x"),
        memory,
    });
    while host.worker.waiting().is_none() {
        sleep(Duration::from_millis(1));
    }
    host.on_event(Event::Stop(task));
    assert_eq!(host.worker.waiting(), None);
}

#[test]
fn what_a_function_returns_counts_unless_another_one_has_begun() {
    let mut host = with(Arc::new(Waits));
    host.begin();
    let returned = || Wake::Returned(1, task(), Returned::Failed(Failure::Trapped));
    host.worker.number = 2;
    host.on_wake(returned());
    assert_eq!((host.counters.ended, host.counters.refused), (0, 0));
    host.worker.number = 1;
    host.on_wake(returned());
    assert_eq!((host.counters.ended, host.counters.refused), (1, 0));
    host.on_wake(returned());
    assert_eq!((host.counters.ended, host.counters.refused), (2, 1));
    host.worker.stop(task());
}

#[test]
fn a_function_that_has_not_begun_when_its_time_ends_is_stopped_then() {
    let mut host = with(Arc::new(Waits));
    host.begin();
    while host.worker.waiting().is_none() {
        sleep(Duration::from_millis(1));
    }
    let due = {
        let mut timers = host.driver.timers();
        timers.find(|it| it.0 == Timer::Run).unwrap().1
    };
    host.look_at_waiting(Time(due.0 - 1));
    assert!(host.worker.waiting().is_some());
    host.look_at_waiting(due);
    assert!(host.worker.waiting().is_none());
    assert_eq!(host.counters.refused, 0);
    assert!(host.driver.timers().all(|it| it.0 != Timer::Run));
}

#[test]
fn what_cannot_be_said_is_counted() {
    let mut host = new();
    let topic = Topic::Inbox(NodeId(1));
    for _ in 0..2 {
        host.publish(&topic, Some(Vec::new()));
    }
    assert_eq!((host.counters.sent, host.counters.unsent), (0, 2));
    host.go_to(NodeId(1));
    host.publish(&topic, None);
    assert_eq!((host.counters.sent, host.counters.unsent), (0, 3));
}

//! Messages to and from a broker that accepts as many as the test wants.

use core::time::Duration;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;

use selvedge_mqtt::link::LinkEvent;
use selvedge_safehome::RoutineId;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

use super::receiving::LeftOut;
use super::topic::Asked;
use super::*;
use crate::house::{Cause, Counts};

const PATIENCE: Duration = Duration::from_secs(20);

fn topics() -> Arc<Topics> {
    let names = |all: &[&str]| -> BTreeSet<String> { all.iter().map(|it| (*it).into()).collect() };
    let topics = Topics::new("own".into(), "ha".into(), &names(&["lamp"]), &names(&["r"]));
    Arc::new(topics.unwrap())
}

#[test]
fn the_topics_are_those_that_are_documented() {
    let names = |all: &[&str]| -> BTreeSet<String> { all.iter().map(|it| (*it).into()).collect() };
    let of = |discovery: &str| {
        let (devices, routines) = (names(&["a/b"]), names(&["r", "go+\n#"]));
        Topics::new("my/hub".into(), discovery.into(), &devices, &routines).unwrap()
    };
    let topics = of("ha");
    assert_eq!(topics.own(), "my/hub");
    for (topic, is) in [
        (topics.status(), "my/hub/status"),
        (topics.runs(), "my/hub/runs"),
        (topics.one_run(7), "my/hub/run/7"),
        (topics.device("a/b"), "my/hub/device/a_b/state"),
        (topics.last("r"), "my/hub/routine/r/last"),
        (topics.run("go+\n#"), "my/hub/routine/go___/run"),
        (topics.cancel("r"), "my/hub/routine/r/cancel"),
        (topics.answer("r"), "my/hub/routine/r/answer"),
        (topics.button("r"), "ha/button/my_2fhub/r/config"),
        (topics.sensor("r"), "ha/sensor/my_2fhub/last-r/config"),
        (topics.count("runs"), "ha/sensor/my_2fhub/count-runs/config"),
    ] {
        assert_eq!(topic, is);
    }
    assert!(topics.has_routine("r") && !topics.has_routine("other"));
    assert_eq!(topics.asked(&topics.cancel("r")), Some(Asked::Cancel("r")));
    assert_eq!(topics.asked("my/hub/routine/other/run"), None);
    assert_eq!(topics.asked("ha/status"), Some(Asked::Anew));
    let gone = "ha/sensor/my_2fhub/gone/config";
    assert_eq!(topics.asked(gone), Some(Asked::Announced));
    for topic in [
        "ha/sensor/my_2fhub/gone/state",
        "ha/sensor/my_2fhub/gone/more/config",
        // Topics of other programs.
        "ha/sensor/other/gone/config",
        "ha/light/my_2fhub/gone/config",
        "my/hub/device/a_b/c/state",
        "my/hub/device/a_b",
        "my/hub/runs",
        "my/device/a_b/state",
    ] {
        assert_eq!(topics.asked(topic), None, "{topic}");
    }
    for topic in ["my/hub/device/gone/state", "my/hub/routine/gone/last"] {
        assert_eq!(topics.asked(topic), Some(Asked::Kept));
        assert!(!topics.is_kept(topic));
    }
    assert!(topics.is_kept(&topics.last("r")) && topics.is_kept(&topics.device("a/b")));
    let topics = topics.with_gone(["gone"]);
    assert!(topics.is_kept("my/hub/device/gone/state"));
    let own: Vec<_> = topics.own_filters().collect();
    assert_eq!(own, ["my/hub/device/+/state", "my/hub/routine/+/last"]);
    assert!(topics.is_announced(&topics.button("r")));
    assert!(topics.is_announced(&topics.count("waits")));
    assert!(!topics.is_announced("ha/button/my_2fhub/gone/config"));
    // A hub without announcements does not listen to them.
    let topics = of("");
    assert!(!topics.announces());
    let filters: Vec<_> = topics.filters().collect();
    assert_eq!(filters, ["my/hub/routine/+/run", "my/hub/routine/+/cancel"]);
    assert_eq!(topics.asked("/button/my_2fhub/r/config"), None);
    assert_eq!(announce::discovery(&topics), []);
}

/// A broker that receives everything, and answers when the test wants it.
#[derive(Default)]
struct Broker {
    answers: AtomicBool,
    /// Topics, in their order.
    received: Mutex<Vec<String>>,
}

impl Broker {
    fn start() -> (Arc<Self>, Address) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let broker = Arc::<Self>::default();
        let state = Arc::clone(&broker);
        thread::spawn(move || {
            let stream = listener.accept().unwrap().0;
            let moment = Duration::from_millis(5);
            stream.set_read_timeout(Some(moment)).unwrap();
            state.serve(stream)
        });
        (broker, address.parse().unwrap())
    }

    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut waits = Vec::new();
        loop {
            if self.answers.load(Ordering::SeqCst) {
                for number in waits.drain(..) {
                    let [high, low] = number;
                    stream.write_all(&[0x40, 2, high, low]).ok()?;
                }
            }
            let (kind, body) = match self.packet(&mut stream) {
                Ok(it) => it,
                Err(it) if matches!(it.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    continue;
                }
                Err(_) => return None,
            };
            match kind >> 4 {
                1 => stream.write_all(&[0x20, 2, 0, 0]).ok()?,
                3 => {
                    let end = 2 + usize::from(u16::from_be_bytes([body[0], body[1]]));
                    let topic = String::from_utf8(body[2..end].into()).unwrap();
                    self.received.lock().unwrap().push(topic);
                    if kind & 6 != 0 {
                        waits.push([body[end], body[end + 1]]);
                    }
                }
                12 => stream.write_all(&[0xd0, 0]).ok()?,
                _ => {}
            }
        }
    }

    fn packet(&self, stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        // The rest comes soon.
        stream.set_read_timeout(None)?;
        let (mut len, mut shift, mut byte) = (0, 0, [0x80]);
        while byte[0] & 0x80 != 0 {
            stream.read_exact(&mut byte)?;
            len |= usize::from(byte[0] & 0x7f) << shift;
            shift += 7;
        }
        let mut body = vec![0; len];
        stream.read_exact(&mut body)?;
        stream.set_read_timeout(Some(Duration::from_millis(5)))?;
        Ok((kind[0], body))
    }

    fn has_received(&self, topic: &str) -> bool {
        self.received.lock().unwrap().iter().any(|it| it == topic)
    }
}

/// A link that is up, to a broker that does not answer; nothing more finds room.
fn a_link_that_is_full() -> (Arc<Link>, Arc<Broker>) {
    let (broker, address) = Broker::start();
    let setup = Setup {
        name: "test".into(),
        address,
        access: Access::default(),
        session: Session::Clean,
        filters: Vec::new(),
        asides: Vec::new(),
        will: None,
        stays: true,
        dialect: DIALECT,
    };
    let (notify, told) = channel();
    let link = Link::open(setup, move |it| notify.send(it).is_ok()).unwrap();
    let up = told.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(up, LinkEvent::Up { .. }), "{up:?}");
    // Its thread takes some out of the queue.
    let mut refused = 0;
    while refused < 20 {
        match link.publish(&"filler", vec![1]) {
            Ok(()) => refused = 0,
            Err(_) => {
                refused += 1;
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
    (Arc::new(link), broker)
}

struct Desk {
    receiving: Receiving,
    again: Arc<Notify>,
    stale: mpsc::Receiver<String>,
    left_out: Arc<LeftOut>,
    requests: Receiver<Request>,
}

fn desk(link: Option<Arc<Link>>) -> Desk {
    let (again, left_out) = (Arc::new(Notify::new()), Arc::<LeftOut>::default());
    let (notify, stale) = mpsc::channel(4);
    let (to, requests) = channel();
    let shared = Arc::new(OnceLock::new());
    if let Some(link) = link {
        shared.set(link).unwrap();
    }
    let receiving = Receiving {
        topics: topics(),
        ears: Vec::new(),
        by_topic: BTreeMap::new(),
        requests: to,
        asked: Arc::new(Semaphore::new(ASKED)),
        runtime: Handle::current(),
        again: Arc::clone(&again),
        stale: notify,
        link: shared,
        left_out: Arc::clone(&left_out),
    };
    Desk {
        receiving,
        again,
        stale,
        left_out,
        requests,
    }
}

fn published(topic: &str, payload: &str, is_retained: bool) -> LinkEvent {
    LinkEvent::Published {
        topic: topic.into(),
        payload: payload.into(),
        is_retained,
    }
}

#[tokio::test]
async fn that_all_is_to_be_said_anew_is_not_lost_behind_what_is_stale() {
    let mut desk = desk(None);
    let is_anew = async |desk: &Desk| {
        let moment = Duration::from_millis(20);
        timeout(moment, desk.again.notified()).await.is_ok()
    };
    assert!(!is_anew(&desk).await);
    for event in [
        LinkEvent::Up { is_kept: false },
        published("ha/status", "online", false),
    ] {
        for nth in 0..7 {
            let topic = format!("ha/button/own/{nth}/config");
            desk.receiving.receive(published(&topic, "{}", true));
        }
        desk.receiving.receive(event);
        assert!(is_anew(&desk).await);
        for nth in 0..4 {
            let topic = desk.stale.try_recv().unwrap();
            assert_eq!(topic, format!("ha/button/own/{nth}/config"));
        }
    }
    assert_eq!(desk.left_out.all(), 6);
}

#[tokio::test]
async fn what_the_hub_announces_is_not_taken_back_and_all_is_said_anew_for_one_that_comes() {
    let mut desk = desk(None);
    for (topic, payload) in [
        ("ha/button/own/r/config", "{}"),
        ("ha/sensor/own/last-r/config", "{}"),
        ("ha/sensor/own/count-runs/config", "{}"),
        ("own/device/lamp/state", "{}"),
        ("own/routine/r/last", "{}"),
        // It was removed.
        ("ha/button/own/gone/config", ""),
        ("own/device/gone/state", ""),
        ("ha/status", "offline"),
    ] {
        desk.receiving.receive(published(topic, payload, true));
        let stale = desk.stale.try_recv();
        assert!(stale.is_err(), "{stale:?}");
        let moment = Duration::from_millis(20);
        assert!(
            timeout(moment, desk.again.notified()).await.is_err(),
            "{topic}"
        );
    }
}

#[tokio::test]
async fn what_is_retained_of_what_is_gone_is_taken_back_and_what_is_said_now_is_not() {
    let mut desk = desk(None);
    for topic in ["own/device/gone/state", "own/routine/gone/last"] {
        desk.receiving.receive(published(topic, "{}", false));
        assert!(desk.stale.try_recv().is_err());
        desk.receiving.receive(published(topic, "{}", true));
        assert_eq!(desk.stale.try_recv().as_deref(), Ok(topic));
    }
}

#[tokio::test]
async fn what_is_asked_for_is_a_run_or_its_end_by_a_press_or_nothing_or_a_number() {
    let (link, _broker) = a_link_that_is_full();
    let desk = desk(Some(link));
    let asked = |what: &str, payload: &str, is_retained| {
        let topic = format!("own/routine/r/{what}");
        desk.receiving
            .receive(published(&topic, payload, is_retained));
        let all: Vec<_> = desk.requests.try_iter().collect();
        assert!(all.len() < 2);
        match all.into_iter().next()? {
            Request::Run(name, _) => Some((name, None)),
            Request::CancelOf(name, id, _) => Some((name, Some(id))),
            other @ (Request::Reports(..)
            | Request::Cancel(..)
            | Request::Preview(..)
            | Request::Show(..)
            | Request::Stop) => panic!("{other:?}"),
        }
    };
    let run = Some((String::from("r"), None));
    let cancel = |id: Option<u64>| Some((String::from("r"), Some(id)));
    for (what, payload, told) in [
        ("run", "", run.clone()),
        ("run", "PRESS", run),
        ("run", "7", None),
        ("cancel", "", cancel(None)),
        ("cancel", "PRESS", cancel(None)),
        ("cancel", " 7\n", cancel(Some(7))),
        ("cancel", "-7", None),
        ("cancel", "all", None),
    ] {
        assert_eq!(asked(what, payload, false), told, "{what} {payload:?}");
        assert_eq!(asked(what, payload, true), None, "{what} {payload:?}");
    }
}

/// On a clock that runs ahead when all tasks wait.
#[allow(
    clippy::disallowed_methods,
    reason = "the broker has a clock of its own"
)]
#[tokio::test(start_paused = true)]
async fn an_answer_that_finds_no_room_is_counted_and_another_one_is_said() {
    let (link, broker) = a_link_that_is_full();
    let desk = desk(Some(link));
    let press = || {
        desk.receiving
            .receive(published("own/routine/r/run", "PRESS", false));
        let Request::Run(_, to) = desk.requests.recv_timeout(PATIENCE).unwrap() else {
            panic!("it asks for a run");
        };
        to.send(Ok(RoutineId(7))).unwrap();
    };
    press();
    let asked = &desk.receiving.asked;
    let until = Instant::now() + Duration::from_secs(5);
    while asked.available_permits() < ASKED && Instant::now() < until + PATIENCE {
        assert_eq!(desk.left_out.all(), 0);
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(desk.left_out.all(), 1);
    assert!(Instant::now() >= until);
    assert!(!broker.has_received("own/routine/r/answer"));
    broker.answers.store(true, Ordering::SeqCst);
    let begun = std::time::Instant::now();
    while !broker.has_received("filler") || broker.received.lock().unwrap().len() < 1_000 {
        assert!(begun.elapsed() < PATIENCE);
        thread::sleep(Duration::from_millis(20));
    }
    press();
    while !broker.has_received("own/routine/r/answer") {
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(1)).await;
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(desk.left_out.all(), 1);
}

fn a_run(name: &str) -> RunView {
    RunView {
        id: 7,
        name: name.into(),
        cause: Cause::Hand,
        came: 1,
        started: Some(1),
        ended: Some(2),
        what: "done",
        why: None,
        since: None,
        until: None,
        notes: Vec::new(),
        steps: Vec::new(),
        at: None,
        place: Some(1),
    }
}

#[tokio::test]
async fn what_found_no_room_is_said_again_while_more_and_more_is_asked_for() {
    let (link, broker) = a_link_that_is_full();
    let again = Arc::new(Notify::new());
    let (notify, stale) = mpsc::channel(WAITING);
    let (_runs, runs) = runs();
    let view = Arc::new(View {
        devices: Vec::new(),
        routines: Vec::new(),
        runs: Vec::new(),
        refused: 0,
        counts: Counts::default(),
    });
    let (_view, view) = watch::channel(view);
    again.notify_one();
    let publisher = Publisher::new(link, topics());
    let told = Notified {
        view,
        runs,
        latest: ["r", "gone"].map(a_run).into(),
    };
    tokio::spawn(publisher.run(Arc::clone(&again), stale, told));
    sleep(Duration::from_millis(300)).await;
    broker.answers.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while !broker.has_received("own/status") {
        assert!(
            begun.elapsed() < PATIENCE,
            "{:?}",
            broker.received.lock().unwrap().len()
        );
        // More often than it tries again.
        sleep(Duration::from_millis(20)).await;
        notify.send("stale".into()).await.unwrap();
    }
    // Before the hub is reported as online.
    assert!(broker.has_received("own/routine/r/last"));
    assert!(!broker.has_received("own/routine/gone/last"));
}

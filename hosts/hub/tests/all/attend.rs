//! Devices that hang, lie and send reports by themselves, and the reports about them.

use core::future;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use selvedge_core::Span;
use selvedge_hub::device::{Care, Device, Order, Received, Report, attend};
use selvedge_routine::State;
use selvedge_safehome::Outcome;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// The reaction of a device to a command or a question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Obeys,
    Refuses,
    /// It takes longer than the hub waits, and then does it.
    Slow,
    Hangs,
    /// It does it at once, and does not answer.
    Mute,
    /// It is not there, and the hub knows why.
    Away,
    /// It takes a moment for each answer.
    Calm,
}

struct Thing {
    state: State,
    mood: Mood,
    /// The times of its commands, and their deadlines.
    sets: Vec<(Instant, Instant)>,
}

/// A device that the test and `attend` share.
struct Rude {
    thing: Arc<Mutex<Thing>>,
    reports: mpsc::UnboundedReceiver<Received>,
}

impl Rude {
    fn mood(&self) -> Mood {
        self.thing.lock().unwrap().mood
    }
}

impl Device for Rude {
    fn lateness(&self) -> Span {
        Span::ZERO
    }

    async fn set(&mut self, state: &State, until: std::time::Instant) -> Outcome {
        let sets = (Instant::now(), until.into());
        self.thing.lock().unwrap().sets.push(sets);
        let mood = self.mood();
        match mood {
            Mood::Obeys | Mood::Refuses | Mood::Calm => sleep(Duration::from_millis(30)).await,
            Mood::Slow => sleep(Duration::from_secs(9)).await,
            Mood::Hangs => future::pending().await,
            Mood::Mute | Mood::Away => {}
        }
        if matches!(mood, Mood::Refuses | Mood::Away) {
            return Outcome::Refused;
        }
        self.thing.lock().unwrap().state = state.clone();
        if mood == Mood::Mute {
            future::pending().await
        }
        Outcome::Done
    }

    async fn ask(&mut self) -> Option<State> {
        match self.mood() {
            Mood::Slow => sleep(Duration::from_secs(9)).await,
            Mood::Hangs => future::pending().await,
            Mood::Refuses | Mood::Away => return None,
            Mood::Calm => sleep(Duration::from_millis(30)).await,
            Mood::Obeys | Mood::Mute => {}
        }
        Some(self.thing.lock().unwrap().state.clone())
    }

    fn trouble(&self) -> Option<&str> {
        (self.mood() == Mood::Away).then_some("nobody is there")
    }

    async fn receive(&mut self) -> Received {
        match self.reports.recv().await {
            Some(it) => it,
            None => future::pending().await,
        }
    }
}

/// A device under `attend`, and all reports about it with their times.
struct Desk {
    thing: Arc<Mutex<Thing>>,
    reports: mpsc::UnboundedSender<Received>,
    orders: mpsc::UnboundedSender<Order>,
    notified: Arc<Mutex<Vec<(Instant, Report)>>>,
    token: u64,
}

impl Desk {
    fn open(mood: Mood) -> Self {
        let (reports, receives) = mpsc::unbounded_channel();
        let (orders, takes) = mpsc::unbounded_channel();
        let thing = Thing {
            state: "off".into(),
            mood,
            sets: Vec::new(),
        };
        let (thing, notified) = (Arc::new(Mutex::new(thing)), Arc::<Mutex<Vec<_>>>::default());
        let rude = Rude {
            thing: Arc::clone(&thing),
            reports: receives,
        };
        let notifies = Arc::clone(&notified);
        let notify = move |it| notifies.lock().unwrap().push((Instant::now(), it));
        tokio::spawn(attend(rude, Care::default(), takes, notify));
        Self {
            thing,
            reports,
            orders,
            notified,
            token: 0,
        }
    }

    fn mood(&self, mood: Mood) {
        self.thing.lock().unwrap().mood = mood;
    }

    fn set(&mut self, state: &str, within: Duration) -> u64 {
        self.token += 1;
        let until = (Instant::now() + within).into_std();
        let (token, state) = (self.token, state.into());
        self.orders
            .send(Order::Set {
                token,
                state,
                until,
            })
            .unwrap();
        token
    }

    fn ask(&mut self) -> u64 {
        self.token += 1;
        self.orders.send(Order::Ask { token: self.token }).unwrap();
        self.token
    }

    fn notified(&self) -> Vec<Report> {
        self.notified
            .lock()
            .unwrap()
            .iter()
            .map(|it| it.1.clone())
            .collect()
    }

    /// The time and the outcome of a command, which must be reported once.
    fn outcome(&self, of: u64) -> (Instant, Outcome) {
        let notified = self.notified.lock().unwrap();
        let mut all = notified.iter().filter_map(|(at, it)| {
            let Report::Outcome { token, outcome } = it else {
                return None;
            };
            (*token == of).then_some((*at, *outcome))
        });
        let first = all.next().expect("no outcome");
        assert_eq!(all.next(), None);
        first
    }
}

fn paused(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

const fn secs(of: u64) -> Duration {
    Duration::from_secs(of)
}

#[test]
fn each_command_has_one_outcome_in_time() {
    paused(async {
        for mood in [
            Mood::Obeys,
            Mood::Refuses,
            Mood::Slow,
            Mood::Hangs,
            Mood::Mute,
            Mood::Calm,
        ] {
            let mut desk = Desk::open(mood);
            sleep(secs(3)).await;
            let began = Instant::now();
            let first = desk.set("on", secs(5));
            let second = desk.set("dim", secs(5));
            sleep(secs(30)).await;
            let (at, outcome) = desk.outcome(first);
            assert!(
                at - began <= Duration::from_millis(5_002),
                "{mood:?} {:?}",
                at - began
            );
            let proven = match mood {
                Mood::Obeys | Mood::Calm => Outcome::Done,
                Mood::Refuses => Outcome::Refused,
                Mood::Slow | Mood::Hangs | Mood::Mute | Mood::Away => Outcome::Unknown,
            };
            assert_eq!(outcome, proven, "{mood:?}");
            // If the first command took all the time, the second one is not sent.
            let is_sent = matches!(mood, Mood::Obeys | Mood::Refuses | Mood::Calm);
            let proven = if is_sent { proven } else { Outcome::Refused };
            assert_eq!(desk.outcome(second).1, proven, "{mood:?}");
            let thing = desk.thing.lock().unwrap();
            assert_eq!(thing.sets.len(), 1 + usize::from(is_sent));
            assert!(thing.sets.iter().all(|it| it.0 < it.1));
            // A command that was given up does not continue.
            let end = match mood {
                Mood::Obeys | Mood::Calm => "dim",
                Mood::Mute => "on",
                Mood::Refuses | Mood::Slow | Mood::Hangs | Mood::Away => "off",
            };
            assert_eq!(thing.state, State::from(end), "{mood:?}");
        }
    });
}

#[test]
fn a_device_that_hangs_is_down_and_comes_back_with_its_state() {
    paused(async {
        for mood in [Mood::Refuses, Mood::Slow, Mood::Hangs] {
            let mut desk = Desk::open(Mood::Obeys);
            sleep(secs(1)).await;
            assert_eq!(
                desk.notified(),
                [Report::Up, Report::Observed("off".into())]
            );
            desk.mood(mood);
            let asked = desk.ask();
            sleep(secs(5)).await;
            assert_eq!(desk.outcome(asked).1, Outcome::Unknown);
            assert_eq!(desk.notified()[3..], [Report::Down], "{mood:?}");
            desk.mood(Mood::Obeys);
            let asked = desk.ask();
            sleep(secs(3)).await;
            let state = State::from("off");
            let answered = Report::Answered {
                token: asked,
                state,
            };
            let notified = desk.notified();
            assert!(
                notified[4..].contains(&answered) && notified[4..].contains(&Report::Up),
                "{notified:?}"
            );
        }
    });
}

#[test]
fn a_device_may_take_a_moment_for_its_answers() {
    paused(async {
        let mut desk = Desk::open(Mood::Calm);
        sleep(secs(1)).await;
        let state = State::from("off");
        assert_eq!(
            desk.notified(),
            [Report::Up, Report::Observed(state.clone())]
        );
        let token = desk.ask();
        sleep(Duration::from_millis(50)).await;
        assert_eq!(desk.notified()[2..], [Report::Answered { token, state }]);
    });
}

#[test]
fn a_device_that_misses_one_question_is_not_down() {
    paused(async {
        let mut desk = Desk::open(Mood::Obeys);
        sleep(secs(1)).await;
        // The command is no question, and the look after it is one.
        desk.mood(Mood::Hangs);
        let token = desk.set("on", secs(5));
        sleep(Duration::from_millis(6_500)).await;
        assert_eq!(desk.outcome(token).1, Outcome::Unknown);
        desk.mood(Mood::Obeys);
        sleep(secs(10)).await;
        assert!(
            !desk.notified().contains(&Report::Down),
            "{:?}",
            desk.notified()
        );
    });
}

#[test]
fn why_a_device_does_not_answer_is_told_at_each_change_and_a_command_finds_it_out() {
    paused(async {
        let mut desk = Desk::open(Mood::Obeys);
        sleep(secs(1)).await;
        for _ in 0..2 {
            let before = desk.notified().len();
            desk.mood(Mood::Away);
            let token = desk.set("on", secs(5));
            // The command is one question without an answer, and the look after it is another.
            sleep(Duration::from_millis(100)).await;
            let outcome = Outcome::Refused;
            let why = Report::Trouble("nobody is there".into());
            let notified = [Report::Outcome { token, outcome }, why, Report::Down];
            assert_eq!(desk.notified()[before..], notified);
            sleep(secs(30)).await;
            assert_eq!(desk.notified()[before..], notified, "it is told once");
            desk.mood(Mood::Obeys);
            sleep(secs(3)).await;
        }
    });
}

#[test]
fn what_a_device_says_before_a_command_is_told_before_its_outcome() {
    paused(async {
        let mut desk = Desk::open(Mood::Obeys);
        sleep(secs(1)).await;
        desk.reports.send(Received::State("dim".into())).unwrap();
        let token = desk.set("on", secs(5));
        sleep(Duration::from_millis(500)).await;
        let outcome = Outcome::Done;
        let notified = [
            Report::Observed("dim".into()),
            Report::Outcome { token, outcome },
        ];
        assert_eq!(desk.notified()[2..], notified);
    });
}

/// A device that always has another report, up to a thousand times.
struct Chatter(u32);

impl Device for Chatter {
    fn lateness(&self) -> Span {
        Span::ZERO
    }

    async fn set(&mut self, _: &State, _: std::time::Instant) -> Outcome {
        match self.0 < 200 {
            true => Outcome::Done,
            false => Outcome::Refused,
        }
    }

    async fn ask(&mut self) -> Option<State> {
        Some("on".into())
    }

    async fn receive(&mut self) -> Received {
        if self.0 == 1_000 {
            return future::pending().await;
        }
        self.0 += 1;
        Received::State("on".into())
    }
}

#[test]
fn a_device_that_does_not_stop_talking_is_told_something() {
    paused(async {
        let (orders, takes) = mpsc::unbounded_channel();
        let until = (Instant::now() + secs(5)).into_std();
        let (token, state) = (1, "on".into());
        let order = Order::Set {
            token,
            state,
            until,
        };
        orders.send(order).unwrap();
        let notified = Arc::<Mutex<Vec<Report>>>::default();
        let notifies = Arc::clone(&notified);
        let notify = move |it| notifies.lock().unwrap().push(it);
        tokio::spawn(attend(Chatter(0), Care::default(), takes, notify));
        sleep(secs(60)).await;
        let outcome = Outcome::Done;
        let report = Report::Outcome { token, outcome };
        assert!(notified.lock().unwrap().contains(&report));
        let states = Report::Observed("on".into());
        let all = notified.lock().unwrap();
        assert!(
            all.iter().filter(|it| **it == states).count() >= 1_000,
            "all that it said is told"
        );
    });
}

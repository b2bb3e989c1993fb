//! Load, kills, and the checks afterwards.

use core::time::Duration;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{fs, process, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::Rng as _;

use crate::home::{Home, State};
use crate::hub::{Client, Hub, Run};
use crate::oracle::{Marks, Oracle, Seen, notified};
use crate::plug::{Plugs, now};

/// The number of clients at a time.
const CLIENTS: usize = 8;
/// The interval between two looks for runs that have ended.
const LOOK: Duration = Duration::from_millis(200);
/// The interval between two losses of power.
const LOSS: Duration = Duration::from_secs(1);
/// The interval between two looks at the hub's memory.
const MEMORY: Duration = Duration::from_secs(5);
/// The time within which all runs must end after a round.
const PATIENCE: Duration = Duration::from_secs(120);

/// The moments in a round at which the hub is killed: drawn, in order.
pub(crate) fn kills(count: u32, length: Duration, rng: &mut ChaCha12Rng) -> Vec<Duration> {
    let part = length / count.max(1);
    let kill = |nth| part * nth + part.mul_f64(f64::from(rng.next_u32() % 1_000) / 1e3);
    (0..count).map(kill).collect()
}

pub(crate) struct Soak<'a> {
    home: &'a Home,
    client: Arc<Client>,
    presses: Sender<String>,
    /// The number of presses without an answer.
    waiting: Arc<AtomicUsize>,
    hub: Hub,
    plugs: Plugs,
    /// The times at which plugs have power again.
    back: Vec<(Instant, usize)>,
    rate: u32,
    pub(crate) rng: ChaCha12Rng,
    oracle: Oracle<'a>,
    /// Runs that were checked.
    checked: BTreeSet<u64>,
    memory: Vec<(u64, u64)>,
    /// The times at which the hub was killed, and the durations of its next start.
    kills: Vec<u64>,
    starts: Vec<Duration>,
    /// Durations since presses, in rounds with kills of the hub and without.
    waits: [Waits; 2],
    losses: u32,
    _watch: Watch,
}

/// Microseconds since presses.
#[derive(Default)]
struct Waits {
    answers: Vec<u64>,
    events: Vec<u64>,
    commands: Vec<u64>,
}

/// Ends the thread that looks for ended runs.
struct Watch(Arc<AtomicBool>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<'a> Soak<'a> {
    pub(crate) fn start(
        home: &'a Home,
        program: &Path,
        dir: &Path,
        rate: u32,
        rng: ChaCha12Rng,
    ) -> Self {
        // Several soaks may run at the same time.
        let net = 128 + process::id() % 100;
        let address = |nth: usize| format!("127.{net}.{}.{}:9999", 1 + nth / 200, 1 + nth % 200);
        let addresses: Vec<_> = (0..home.plugs).map(address).collect();
        fs::write(dir.join("home.json"), home.file(&addresses)).unwrap();
        let plugs = Plugs::start(addresses);
        let address = format!("127.{net}.250.1:8124");
        let hub = Hub::start(program, dir, &address);
        let client = Arc::new(Client {
            address,
            ledger: Mutex::default(),
        });
        let (presses, waiting) = clients(&client);
        Self {
            home,
            _watch: watch(&client),
            client,
            presses,
            waiting,
            hub,
            plugs,
            back: Vec::new(),
            rate,
            rng,
            oracle: Oracle::new(home),
            checked: BTreeSet::new(),
            memory: Vec::new(),
            kills: Vec::new(),
            starts: Vec::new(),
            waits: Default::default(),
            losses: 0,
        }
    }

    pub(crate) fn round(&mut self, nth: u32, length: Duration, kills: Vec<Duration>) {
        let has_kills = !kills.is_empty();
        self.load(length, kills);
        for (_, plug) in core::mem::take(&mut self.back) {
            self.plugs.plug_in(plug);
        }
        let start = Instant::now();
        let Some(states) = self.settle() else {
            return;
        };
        let settled = start.elapsed().as_secs_f64();
        let seen = Seen {
            marks: self.marks(),
            kills: self.kills.clone(),
        };
        let runs = self.ended();
        self.measure(&runs, &seen.marks, has_kills);
        self.oracle.check(&runs, &seen, &states, now());
        self.look_again();
        let (rss, pss) = self.hub.memory().unwrap_or_default();
        let disk = self.hub.disk();
        println!(
            "round {nth}: {} runs ended, settled after {settled:.1} s, memory {rss} kB RSS, {pss} kB PSS, database {disk} kB",
            runs.len()
        );
    }

    fn load(&mut self, length: Duration, kills: Vec<Duration>) {
        let start = Instant::now();
        let (mut press, mut loss, mut memory) = (start, start, start);
        let mut kills = kills.into_iter().peekable();
        while start.elapsed() < length {
            if kills.next_if(|it| *it <= start.elapsed()).is_some() {
                self.kills.push(now());
                self.hub.kill();
                self.starts.push(self.hub.begin());
            }
            let now = Instant::now();
            while press <= now {
                press += Duration::from_secs(1) / self.rate;
                let routine = self.draw(self.home.routines.len());
                self.waiting.fetch_add(1, Ordering::SeqCst);
                self.presses.send(Home::routine_name(routine)).unwrap();
            }
            if loss <= now {
                loss = now + LOSS;
                self.lose(now);
            }
            if memory <= now {
                memory = now + MEMORY;
                self.memory.extend(self.hub.memory());
            }
            while let Some(at) = self.back.iter().position(|it| it.0 <= now) {
                self.plugs.plug_in(self.back.swap_remove(at).1);
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// A plug loses its power: for up to 2 s, which may not be noticed, or for 5 to 12 s.
    fn lose(&mut self, now: Instant) {
        let plug = self.draw(self.plugs.len());
        if self.plugs.has_power(plug) {
            self.plugs.pull_out(plug);
            self.losses += 1;
            let away = match self.draw(2) {
                0 => 200 + self.draw(1_800),
                _ => 5_000 + self.draw(7_000),
            };
            self.back
                .push((now + Duration::from_millis(away as u64), plug));
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.rng.next_u32() as usize % below
    }

    /// Waits until all runs have ended and all states are shown as they are, and returns the states; `None`
    /// after too long.
    fn settle(&mut self) -> Option<Vec<State>> {
        let start = Instant::now();
        let mut why = String::new();
        while start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(50));
            let open = self.client.ledger.lock().unwrap().open.clone();
            if self.waiting.load(Ordering::SeqCst) > 0 || !open.is_empty() {
                why = format!("runs have not ended: {open:?}");
                continue;
            }
            if let Some(id) = self.still_open() {
                why = format!("run {id} is still to be undone");
                continue;
            }
            match self.states() {
                Ok(states) => return Some(states),
                Err(it) => why = it,
            }
        }
        self.oracle.wrong(why);
        None
    }

    /// A run with a device that still has to be restored. Updates the knowledge of the other runs.
    fn still_open(&self) -> Option<u64> {
        let mut ledger = self.client.ledger.lock().unwrap();
        let fresh = ledger
            .over
            .values_mut()
            .filter(|it| !self.checked.contains(&it.id));
        for run in fresh.filter(|it| it.is_open()) {
            *run = self.client.show(run.id)?;
            if run.is_open() {
                return Some(run.id);
            }
        }
        None
    }

    /// The states of all devices; the reports of plugs must equal the states that are shown.
    fn states(&self) -> Result<Vec<State>, String> {
        let view = self.client.view().ok_or("the hub does not answer")?;
        let one = |device| {
            let name = Home::name(device);
            let shown = view.devices.iter().find(|it| it.name == name).unwrap();
            let state = shown.state.as_deref().and_then(State::parse);
            let is = match device < self.plugs.len() {
                true => self.plugs.is_on(device).map(State::Plug),
                false => state,
            };
            let is_right = shown.up && is == state;
            is.filter(|_| is_right)
                .ok_or_else(|| format!("{shown:?} is {is:?}"))
        };
        (0..self.home.devices).map(one).collect()
    }

    fn marks(&self) -> Marks {
        let mut marks = self.plugs.log.lock().unwrap().clone();
        for it in marks.values_mut() {
            it.sort_unstable();
        }
        marks
    }

    /// The runs that have ended since the last round.
    fn ended(&mut self) -> Vec<Run> {
        let ledger = self.client.ledger.lock().unwrap();
        let fresh = ledger
            .over
            .values()
            .filter(|it| !self.checked.contains(&it.id));
        let fresh: Vec<Run> = fresh.cloned().collect();
        self.checked.extend(fresh.iter().map(|it| it.id));
        fresh
    }

    /// The durations from the press to the answer, to the hub's event, and to the command at the plug.
    fn measure(&mut self, runs: &[Run], marks: &Marks, has_kills: bool) {
        let waits = &mut self.waits[usize::from(!has_kills)];
        let ledger = self.client.ledger.lock().unwrap();
        for run in runs {
            let (Some(press), Some(started)) = (ledger.presses.get(&run.id), run.started) else {
                continue;
            };
            waits.answers.push(press.answered - press.asked);
            waits
                .events
                .push((1_000 * started).saturating_sub(press.asked));
            let first = self.home.routine(&run.name)[0];
            let State::Plug(is_on) = first.state else {
                continue;
            };
            if first.condition.is_none() && run.skipped(0).is_none() {
                let notified = notified(marks, first.device, is_on, 1_000 * started);
                waits.commands.extend(notified.map(|it| it - press.asked));
            }
        }
    }

    /// An end is final: each run of this round and of the last one is requested again.
    fn look_again(&mut self) {
        let over = self.client.ledger.lock().unwrap().over.clone();
        for before in over.values().rev().take(900) {
            let Some(after) = self.client.show(before.id) else {
                let id = before.id;
                self.oracle
                    .wrong(format_args!("run {id} is not there any more"));
                continue;
            };
            if (after.ended, &after.what, after.place) != (before.ended, &before.what, before.place)
            {
                self.oracle
                    .wrong(format_args!("a run has ended twice: {before:?}, {after:?}"));
            }
        }
    }

    /// Prints the measurements. Returns true if nothing was wrong.
    pub(crate) fn report(mut self) -> bool {
        let ledger = self.client.ledger.lock().unwrap();
        let accepted = ledger.presses.len();
        let missing = ledger
            .presses
            .keys()
            .filter(|it| !ledger.over.contains_key(it));
        let missing: Vec<_> = missing.copied().collect();
        let counts = &self.oracle.counts;
        println!(
            "\n{accepted} runs were answered 202, {} not answered, {} refused; {} ended: {} done, {} undone",
            ledger.unanswered,
            ledger.refused,
            ledger.over.len(),
            counts.done,
            counts.undone
        );
        println!(
            "{} commands of runs that are done were seen by plugs, {} conditions hold in the order",
            counts.commands, counts.conditions
        );
        println!(
            "{} states compared at the ends of rounds: {} off by one of {} losses of power, {} left as a run says",
            counts.states, counts.lost, self.losses, counts.left
        );
        println!("\n| from a press, ms | p50 | p99 | most |\n|---|---|---|---|");
        let [with, without] = &mut self.waits;
        let both = [("the hub is killed", with), ("it is not", without)];
        for (when, waits) in both.into_iter().filter(|it| !it.1.answers.is_empty()) {
            for (what, values) in [
                ("to the answer", &mut waits.answers),
                ("to the start, as the hub tells it", &mut waits.events),
                ("to the first command at a plug", &mut waits.commands),
            ] {
                let [p50, p99, most] = [50, 99, 100].map(|it| percentile(values, it) / 1e3);
                println!("| {when}: {what} | {p50:.1} | {p99:.1} | {most:.1} |");
            }
        }
        let starts = self.starts.iter().map(|it| it.as_millis().to_string());
        println!(
            "\nms to start on its folder: {}",
            starts.collect::<Vec<_>>().join(" ")
        );
        let course = self.memory.iter().map(|it| it.1.to_string());
        println!(
            "kB PSS each {} s: {}",
            MEMORY.as_secs(),
            course.collect::<Vec<_>>().join(" ")
        );
        if !missing.is_empty() {
            self.oracle
                .wrong(format_args!("accepted and not ended: {missing:?}"));
        }
        let log = self.hub.log();
        if log.contains("panicked") {
            self.oracle.wrong(log);
        }
        println!("{} things are wrong", self.oracle.found.len());
        self.oracle.found.is_empty()
    }
}

fn percentile(values: &mut [u64], percent: usize) -> f64 {
    values.sort_unstable();
    let at = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(at).map_or(0.0, |it| *it as f64)
}

/// Threads that press the routines that they receive.
fn clients(client: &Arc<Client>) -> (Sender<String>, Arc<AtomicUsize>) {
    let (to, presses) = channel();
    let presses: Arc<Mutex<Receiver<String>>> = Arc::new(Mutex::new(presses));
    let waiting = Arc::new(AtomicUsize::new(0));
    for _ in 0..CLIENTS {
        let (client, presses, waiting) = (
            Arc::clone(client),
            Arc::clone(&presses),
            Arc::clone(&waiting),
        );
        thread::spawn(move || {
            loop {
                let next = presses.lock().unwrap().recv();
                let Ok(name) = next else {
                    return;
                };
                client.press(&name);
                waiting.fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
    (to, waiting)
}

fn watch(client: &Arc<Client>) -> Watch {
    let (client, ends) = (Arc::clone(client), Arc::new(AtomicBool::new(false)));
    let end = Arc::clone(&ends);
    thread::spawn(move || {
        while !end.load(Ordering::SeqCst) {
            client.look();
            thread::sleep(LOOK);
        }
    });
    Watch(ends)
}

//! Random histories of gateways, followers and clients under all faults at once.
//!
//! With `SELVEDGE_HISTORIES` set to a number so many histories are run, with `5000..9000` those of these
//! seeds; `SELVEDGE_SEED` runs one alone.

use std::env;

use selvedge_core::{Choose as _, Delta, Span};
use selvedge_pcm::gateway::Voting;
use selvedge_pcm::{Answer, DutyCycle, Function, Library, Limits, TaskId, client, gateway};
use selvedge_sim::histories;

use super::world::{Link, World, value};

#[derive(Debug, Default)]
struct Totals {
    tasks: u64,
    values: u64,
    other: u64,
    begun: u64,
    restarts: u64,
    managers: u64,
}

struct Story {
    world: World,
    /// How many functions there are: some are asked for again.
    codes: usize,
    has_liars: bool,
    /// Whether gateways hear of each other by themselves, or are told.
    has_heartbeats: bool,
    restarts: u64,
}

#[test]
fn whatever_happens_each_task_has_one_answer_and_each_client_hears_it() {
    let text = env::var("SELVEDGE_HISTORIES").unwrap_or_else(|_| "60".into());
    let (first, end) = text.split_once("..").unwrap_or(("0", &text));
    let parse = |it: &str| {
        it.parse::<u64>()
            .expect("SELVEDGE_HISTORIES: a number, or two")
    };
    let mut all = Totals::default();
    let ran = histories(parse(first)..parse(end), |seed| tell(seed, &mut all));
    eprintln!("{ran} histories: {all:?}");
    if ran > 10 {
        assert!(all.tasks > 3 * ran && all.values * 2 > all.tasks);
        assert!(all.restarts > ran && all.begun > all.values);
    }
}

fn tell(seed: u64, all: &mut Totals) {
    let mut world = World::new(seed, 3, gateway::Config::new(), Limits::new());
    let gateways = [1, 2, 3, 3, 3, 5][world.pick(6)];
    let voting = [Voting::Static, Voting::Static, Voting::Dynamic][world.pick(3)];
    let has_heartbeats = world.chance(60);
    let heartbeat = Span::millis(if has_heartbeats { 500 } else { 0 });
    let config = gateway::Config::new()
        .with_voting(voting)
        .with_heartbeat(heartbeat)
        .with_timeout(Span::millis([1_500, 4_000][world.pick(2)]))
        .with_purge_after([15, 25, 35][world.pick(3)])
        .with_offload_after([20, 40][world.pick(2)])
        .with_settle(Span::millis([1, 200, 1_000][world.pick(3)]))
        .with_review(Span::millis([500, 3_000, 10_000][world.pick(3)]));
    let limits = Limits::new()
        .with_unit([3, 4, 5, 5][world.pick(4)])
        .with_tombstones([0, 2, 100][world.pick(3)])
        .with_attempts([3, 200][world.pick(2)])
        .with_cache([0, 8][world.pick(2)]);
    let mut world = World::new(world.rng.below(u64::MAX), gateways, config, limits);
    let has_liars = world.chance(30);
    let mut story = Story {
        codes: 1 + world.pick(20),
        world,
        has_liars,
        has_heartbeats,
        restarts: 0,
    };
    story.begin();
    story.faults();
    story.heal();
    story.end(all);
}

impl Story {
    fn begin(&mut self) {
        let followers = 3 + self.world.pick(10);
        for at in 0..followers {
            let duty = self.duty();
            self.world.add_follower(duty, at);
            let lies = self.has_liars && self.world.chance(20);
            self.world.followers[at].lies = lies;
        }
        for _ in 0..1 + self.world.pick(2) {
            let gateway = self.world.pick(self.world.gateways.len());
            self.world.add_client(gateway);
        }
    }

    fn duty(&mut self) -> DutyCycle {
        let world = &mut self.world;
        DutyCycle {
            active_ms: [50, 200, 1_000][world.pick(3)],
            busy_ms: [0, 0, 100][world.pick(3)],
            asleep_ms: [0, 300, 2_000, 6_000][world.pick(4)],
        }
    }

    fn faults(&mut self) {
        let world = &mut self.world;
        world.link = Link {
            lost: [0, 1, 5, 20][world.pick(4)],
            doubled: [0, 5, 30][world.pick(3)],
            most: Span::millis([10, 200, 3_000][world.pick(3)]),
        };
        let steps = 20 + world.pick(40);
        for _ in 0..steps {
            self.fault();
            let most = [50, 1_000, 5_000][self.world.pick(3)];
            let span = Span::millis(self.world.pick(most) as u64);
            self.world.run(span);
        }
    }

    fn fault(&mut self) {
        let gateway = self.world.pick(self.world.gateways.len());
        let follower = self.world.pick(self.world.followers.len());
        match self.world.pick(20) {
            0..=5 => {
                let client = self.world.pick(self.world.clients.len());
                let code = self.world.pick(self.codes) as u8;
                self.world.submit(client, &[code]);
            }
            6 => self.cancel(),
            7 | 8 => self.stop_or_start_gateway(gateway),
            9..=11 => self.stop_or_start_follower(follower),
            12 => self.world.empty_mailboxes(gateway),
            13 => {
                let me = self.world.gateways[gateway].me;
                self.world.spread(Delta::Failed(me), Span::secs(2));
            }
            14 if self.has_heartbeats => self.library(),
            14 | 15 => {
                let me = self.world.gateways[gateway].me;
                self.world.spread(Delta::Refuted(me), Span::secs(2));
            }
            16 => {
                let duty = self.duty();
                self.world.set_duty(follower, duty);
            }
            17 => {
                let to = self.world.pick(self.world.gateways.len());
                let hops = 1 + self.world.pick(4) as u8;
                self.world.set_hops(gateway, to, hops);
            }
            18 => self.world.move_follower(follower),
            _ => {}
        }
    }

    /// A client wants a function that needs libraries.
    fn library(&mut self) {
        let client = self.world.pick(self.world.clients.len());
        let libraries = (0..1 + self.world.pick(6) as u64).map(Library);
        let function = Function {
            code: Function::new(&[self.world.pick(self.codes) as u8]).code,
            libraries: libraries.collect(),
        };
        self.world.submit_function(client, function);
    }

    fn cancel(&mut self) {
        let open = self.world.unanswered();
        if open.is_empty() {
            return;
        }
        let task = open[self.world.pick(open.len())];
        let client = self
            .world
            .clients
            .iter()
            .position(|it| it.me == task.client);
        let command = client::Command::Cancel(task.number);
        self.world.command_client(client.unwrap(), command);
    }

    fn stop_or_start_gateway(&mut self, at: usize) {
        if self.world.machine(at).is_none() {
            return self.start_gateway(at);
        }
        let gone = self.world.gateways[at].me;
        self.world.stop_gateway(at);
        if !self.has_heartbeats && self.world.chance(70) {
            self.world.spread(Delta::Failed(gone), Span::secs(2));
        }
    }

    fn start_gateway(&mut self, at: usize) {
        self.restarts += 1;
        self.world.start_gateway(at);
        let me = self.world.gateways[at].me;
        if !self.has_heartbeats {
            self.world.spread(Delta::Joined(me), Span::secs(1));
        }
    }

    fn stop_or_start_follower(&mut self, at: usize) {
        if self.world.followers[at].driver.is_some() {
            self.world.stop_follower(at);
        } else {
            self.restarts += 1;
            let gateway = self.world.pick(self.world.gateways.len());
            self.world.start_follower(at, gateway);
        }
    }

    /// Faults end.
    fn heal(&mut self) {
        self.world.link = Link::GOOD;
        for at in 0..self.world.gateways.len() {
            if self.world.machine(at).is_none() {
                self.start_gateway(at);
            }
        }
        for at in 0..self.world.followers.len() {
            if self.world.followers[at].driver.is_none() {
                self.stop_or_start_follower(at);
            }
        }
        self.world.run(Span::secs(4)); // What was said before comes late.
        for at in 0..self.world.gateways.len() {
            let me = self.world.gateways[at].me;
            if !self.has_heartbeats {
                self.world.spread(Delta::Joined(me), Span::secs(1));
                self.world.spread(Delta::Refuted(me), Span::secs(1));
            }
        }
        let mut why = String::new();
        for _ in 0..80 {
            self.world.run(Span::secs(5));
            match self.what_is_missing() {
                None => return,
                Some(it) => why = it,
            }
        }
        panic!("after 400 s: {why}");
    }

    fn what_is_missing(&self) -> Option<String> {
        let world = &self.world;
        let open = world.unanswered();
        if !open.is_empty() {
            return Some(format!("{open:?} wait"));
        }
        let managers = (0..world.gateways.len()).filter(|&at| world.machine(at).unwrap().manages());
        let managers: Vec<usize> = managers.collect();
        let [manager] = *managers else {
            return Some(format!("{managers:?} manage"));
        };
        let tables = world.machine(manager).unwrap().tables().unwrap();
        for host in &world.followers {
            let known = tables.follower(host.me.id);
            let machine = host.driver.as_ref().unwrap().machine();
            let is_known =
                known.is_some_and(|it| it.member == host.me && it.gateway == machine.attached_to());
            if !is_known {
                return Some(format!("{} is {known:?}", host.me));
            }
            if tables.unit_of(host.me.id).is_none() {
                return Some(format!("{} has no unit", host.me));
            }
        }
        if tables.followers().count() != world.followers.len() {
            return Some("a follower is there twice".into());
        }
        None
    }

    fn end(self, all: &mut Totals) {
        let world = &self.world;
        for host in &world.clients {
            assert!(host.refused.is_empty(), "{:?}", host.refused);
            for (&number, function) in &host.asked {
                let task = TaskId {
                    client: host.me,
                    number,
                };
                let answer = &host.answered[&number];
                assert_eq!(world.ended.get(&task), Some(answer));
                all.tasks += 1;
                if let Answer::Value(found) = answer {
                    all.values += 1;
                    assert!(self.has_liars || *found == value(function), "{task:?}");
                } else {
                    // A follower keeps four libraries: what needs more fails everywhere.
                    let is_alone =
                        matches!(answer, Answer::Failed(_)) && function.libraries.len() <= 4;
                    assert!(!is_alone || self.has_liars, "{task:?}");
                    all.other += 1;
                }
            }
        }
        all.begun += world.followers.iter().map(|it| it.begun).sum::<u64>();
        all.restarts += self.restarts;
        all.managers += u64::from(world.manager().is_some());
    }
}

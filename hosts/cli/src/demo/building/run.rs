//! The script of the building: routines run all the time, a lamp is added, a power domain fails and comes
//! back, all nodes lose power, the battery of one runs low, and epochs begin meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use core::time::Duration;

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::{NodeId, Span, Time};
use selvedge_groups::store::Stored;
use selvedge_kgroup::Site;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

mod low;

use super::course::{Addition, Blackout, Course, Darkness};
use super::judge::judge_building;
use super::limits::Limits;
use super::requests::{pick, request, visit};
use super::site::{DEVICES, EPOCH, GROUPS, NODES, RUNS, STAGGER, Which, domain, site, with_lamp};
use super::stage::{Shared, Stage, read};
use crate::demo::narrator::Narrator;
use crate::demo::plan::{Plan, seconds};
use crate::demo::promises::Promise;
use selvedge_udp::{Handle, HostError};

/// The earliest time at which the domain fails, in periods from the start.
const DARK: u64 = 22;
/// The shortest time for which it stays dark.
const DARKNESS: u64 = 22;
/// The earliest time after which no more runs are requested.
const CLOSE: u64 = 68;

/// The state of the script.
struct Play<W> {
    stage: Stage,
    period: Span,
    limits: Limits,
    narrator: Narrator<W>,
    is_closed: Arc<AtomicBool>,
    requesting: Vec<JoinHandle<()>>,
    /// The seed of the requests.
    seed: u64,
    /// The number of epochs announced.
    epochs: usize,
}

/// The outcome of the building.
#[derive(Clone, Debug)]
pub struct Building {
    /// The events.
    pub course: Course,
    /// The promises with the measured values.
    pub table: Vec<Promise>,
}

/// Runs the building's script: for about 70 periods, and longer if it has to wait.
///
/// # Errors
/// If a node cannot be started.
pub async fn building<W: Write>(
    seed: u64,
    period: Span,
    narrator: Narrator<W>,
) -> Result<Building, HostError> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let plan = Plan::new(NODES, period, &mut rng);
    let Ok(site) = site() else {
        debug_assert!(false, "a test looks at the site");
        let course = Course::default();
        let table = judge_building(&plan, &course);
        return Ok(Building { course, table });
    };
    let seed = seed.wrapping_mul(1_000);
    let mut play = Play {
        stage: Stage::new(plan.clone(), site, seed)?,
        period,
        limits: Limits::new(&plan),
        narrator,
        is_closed: Arc::default(),
        requesting: Vec::new(),
        seed,
        epochs: 0,
    };
    play.open().await?;
    play.add_lamp().await;
    play.go_dark().await;
    play.come_back().await?;
    play.black_out().await?;
    play.go_low().await;
    play.close().await;
    let course = play.end().await;
    let table = judge_building(&plan, &course);
    Ok(Building { course, table })
}

impl<W: Write> Play<W> {
    /// Starts all nodes, waits until all list all, and starts the routines.
    async fn open(&mut self) -> Result<(), HostError> {
        let gap = Span(self.period.0 * 3 / 2 / NODES);
        for node in (1..=NODES).map(NodeId) {
            self.stage.start(node).await?;
            sleep(gap.into()).await;
        }
        let all = |play: &Self| play.stage.right() as u64 == NODES;
        self.wait(self.limits.join, all).await;
        self.shared().course().opened = Some(self.now());
        self.request([Which::Evening, Which::Airing]);
        let visits = visit(
            self.shared(),
            Arc::clone(&self.is_closed),
            (self.period, self.limits.each),
            self.seed,
        );
        self.requesting.push(tokio::spawn(visits));
        self.say(&format!(
            "{NODES} nodes in {} power domains manage {} devices, and run {} routines",
            NODES / 2,
            DEVICES.len() - 1,
            Which::FOUNDING.len()
        ));
        Ok(())
    }

    /// Has runs of these routines requested until the end.
    fn request(&mut self, routines: impl IntoIterator<Item = Which>) {
        for routine in routines {
            let requests = request(
                routine,
                self.shared(),
                Arc::clone(&self.is_closed),
                (self.period, self.limits.each),
                self.seed.wrapping_add(routine as u64),
            );
            self.requesting.push(tokio::spawn(requests));
        }
    }

    /// Adds a lamp, and a routine that switches it, by one change of the site at one node.
    async fn add_lamp(&mut self) {
        self.wait(self.limits.each, |play| {
            play.since_all_ended(&Which::FOUNDING, Time::ZERO)
        })
        .await;
        self.remember("before the lamp").await;
        let from = self.now();
        let taken = BTreeMap::new();
        self.shared().course().addition = Some(Addition { from, taken });
        let has_all = |play: &Self| {
            let shared = play.shared();
            let course = shared.course();
            (course.addition.as_ref()).is_some_and(|it| it.taken.len() as u64 == NODES)
        };
        let mut rng = ChaCha12Rng::seed_from_u64(self.seed);
        if let Some(node) = pick(&self.shared(), &mut rng) {
            let changed = timeout(self.limits.taken.into(), change(&node)).await;
            if let Ok(Err(why)) = changed {
                self.say(&format!("node {} refuses the lamp: {why}", node.id()));
            }
        }
        self.wait(self.limits.taken, has_all).await;
        let took = seconds(Time::ZERO + self.now().since(from));
        self.say(&format!(
            "a lamp and a routine are added while the building runs; all nodes have them after {took:.2} s"
        ));
        self.request([Which::Reading]);
    }

    /// Puts an entry into the map, which no later change replaces.
    async fn remember(&self, name: &'static str) {
        let Some((_, node)) = self.shared().up().pop_first() else {
            return;
        };
        let map = node.map(RUNS);
        let put = timeout(self.limits.asked.into(), map.put(name, name.as_bytes())).await;
        if matches!(put, Ok(Ok(Stored::Done { .. }))) {
            self.shared().course().entries.insert(name, false);
        }
    }

    /// Cuts the power of the domain that leads the most groups. It stays dark until a run of each
    /// routine has ended without it.
    async fn go_dark(&mut self) {
        let first = self.period * DARK + self.limits.each;
        self.wait(first, |play| {
            play.now() >= play.at(DARK) && play.since_all_ended(&Which::ALL, Time::ZERO)
        })
        .await;
        let leaders = self.shared().course().leaders();
        let led = |nodes: [NodeId; 2]| {
            let led = leaders.iter().filter(|it| nodes.contains(it.1));
            led.map(|it| *it.0).collect::<BTreeSet<_>>()
        };
        let domains = (1..=NODES).step_by(2).map(|node| domain(NodeId(node)));
        let weight = |nodes: &[NodeId; 2]| {
            let led = led(*nodes);
            let routines = led.iter().filter(|it| Which::of(**it).is_some());
            (routines.count(), led.len())
        };
        let Some(nodes) = domains.max_by_key(weight) else {
            return;
        };
        let (led, from) = (led(nodes), self.now());
        let groups = led.len();
        self.shared().course().dark = Some(Darkness {
            nodes,
            led,
            from,
            known: None,
            until: None,
            back: None,
        });
        self.stage.go_dark(nodes).await;
        let [one, two] = nodes;
        self.say(&format!(
            "the power domain of nodes {one} and {two}, which lead {groups} of {GROUPS} groups, goes dark"
        ));
        self.wait(self.limits.known, |play| {
            play.stage.right() as u64 == NODES - 2
        })
        .await;
        let known = self.now();
        self.change_darkness(|it| it.known = Some(known));
        self.say(&format!(
            "all others know that nodes {one} and {two} have failed, after {:.2} s",
            seconds(Time::ZERO + known.since(from))
        ));
        self.remember("in the dark").await;
        let each = self.limits.each.max(self.period * DARKNESS);
        self.wait(each, |play| {
            play.now() >= from + play.period * DARKNESS && play.since_all_ended(&Which::ALL, known)
        })
        .await;
    }

    async fn come_back(&mut self) -> Result<(), HostError> {
        let dark = self.shared().course().dark.clone();
        let Some(Darkness { nodes, from, .. }) = dark else {
            return Ok(());
        };
        let until = self.now();
        let ends: usize = {
            let shared = self.shared();
            let course = shared.course();
            let count = |it| course.ends(it).iter().filter(|at| **at > from).count();
            Which::ALL.into_iter().map(count).sum()
        };
        self.change_darkness(|it| it.until = Some(until));
        for node in nodes {
            self.stage.start(node).await?;
        }
        let [one, two] = nodes;
        self.say(&format!(
            "nodes {one} and {two} restart; {ends} runs ended without them"
        ));
        self.wait(self.limits.back, |play| play.stage.right() as u64 == NODES)
            .await;
        if self.stage.right() as u64 == NODES {
            let back = self.now();
            self.change_darkness(|it| it.back = Some(back));
        }
        Ok(())
    }

    /// Cuts the power of all nodes at once, and starts them in another order than before.
    async fn black_out(&mut self) -> Result<(), HostError> {
        let all = || (1..=NODES).map(NodeId);
        let from = self.now();
        self.shared().course().blackout = Some(Blackout { from, back: None });
        self.stage.go_dark(all()).await;
        self.say("the power fails in the whole building: all nodes stop together");
        for node in all().rev() {
            self.stage.start(node).await?;
        }
        self.wait(self.limits.join, |play| play.stage.right() as u64 == NODES)
            .await;
        let back = self.now();
        if self.stage.right() as u64 == NODES {
            self.shared().course().blackout = Some(Blackout {
                from,
                back: Some(back),
            });
        }
        self.say("all nodes are back with what they stored, and runs go on");
        self.wait(self.limits.each, |play| {
            play.since_all_ended(&Which::ALL, back)
        })
        .await;
        Ok(())
    }

    /// Lets routines run until an epoch has begun meanwhile, and groups had the time to change; and until
    /// the node with the low battery is in none. Its report may be lost, and comes again with the next
    /// epoch; so may the news that it is replaced, for which it asks then.
    async fn close(&mut self) {
        let epoch = self.period * CLOSE.max(3 * EPOCH + 2 * STAGGER);
        self.wait(epoch, |play| {
            let shared = play.shared();
            let course = shared.course();
            // Nodes that were dark may have missed an earlier one.
            let back = course.blackout.and_then(|it| it.back);
            let opened = back.or(course.opened).unwrap_or_default();
            let margin = play.period * (2 * STAGGER);
            let mut epochs = epochs(play.now(), play.period * EPOCH).into_iter();
            play.now() >= play.at(CLOSE)
                && course.low.is_none_or(|it| it.out.is_some())
                && epochs.any(|it| it >= opened && it + margin <= play.now())
        })
        .await;
        self.is_closed.store(true, Ordering::Relaxed);
        self.shared().course().closed = Some(self.now());
        let all = core::mem::take(&mut self.requesting);
        for requesting in all {
            let abort = requesting.abort_handle();
            let last = self.limits.asked + self.limits.each;
            if timeout(last.into(), requesting).await.is_err() {
                abort.abort();
            }
        }
    }

    /// Lets present runs end, and be counted.
    async fn end(mut self) -> Course {
        // Of each routine one run may be active, and another may wait for its end.
        let until = self.now() + self.limits.each * 2;
        while self.now() < until && !self.is_settled().await {
            sleep(self.glance()).await;
        }
        self.recall().await;
        let end = self.now();
        let mut course = self.shared().course().clone();
        course.arrivals = self.stage.shared.rooms.arrivals();
        course.epochs = epochs(end, self.period * EPOCH);
        course.end = end;
        let runs: u64 = Which::ALL.into_iter().map(|it| course.ended(it)).sum();
        self.say(&format!(
            "{runs} runs have ended, and {} epochs began meanwhile",
            course.epochs_under_way().count()
        ));
        course
    }

    /// Reads the entries that were put into the map.
    async fn recall(&self) {
        let shared = self.shared();
        let Some((_, node)) = shared.up().pop_first() else {
            return;
        };
        let names: Vec<_> = shared.course().entries.keys().copied().collect();
        for name in names {
            let map = node.map(RUNS);
            let entry = timeout(self.limits.asked.into(), map.get(name)).await;
            let is_kept = matches!(entry, Ok(Ok(Some(it))) if it.value.iter().eq(name.as_bytes()));
            shared.course().entries.insert(name, is_kept);
        }
    }

    /// Returns true if no run is active and the map counts all.
    async fn is_settled(&self) -> bool {
        let shared = self.shared();
        let Some((_, node)) = shared.up().pop_first() else {
            return false;
        };
        let map = node.map(RUNS);
        let entry = timeout((self.period * 10).into(), map.get(RUNS)).await;
        let mut course = shared.course();
        if let Ok(Ok(Some(entry))) = entry {
            course.counted = Some(read(&entry.value));
        }
        let ended: BTreeMap<_, _> = Which::ALL.map(|it| (it, course.ended(it))).into();
        let is_over = Which::ALL
            .into_iter()
            .all(|it| course.ended(it) == course.triggered(it).max(course.wished(it)));
        is_over && course.counted.as_ref() == Some(&ended)
    }

    /// Returns true if a run of each of these routines has ended since then.
    fn since_all_ended(&self, routines: &[Which], since: Time) -> bool {
        let shared = self.shared();
        let course = shared.course();
        let is_later = |it: &Which| course.ends(*it).last().is_some_and(|at| *at > since);
        routines.iter().all(is_later)
    }

    /// Waits until a condition holds, for `most` at the longest.
    async fn wait(&mut self, most: Span, is_so: impl Fn(&Self) -> bool) {
        let until = self.now() + most;
        while self.now() < until && !is_so(self) {
            self.tell_epoch();
            self.look_at_low();
            sleep(self.glance()).await;
        }
    }

    /// Announces an epoch, if one has begun.
    fn tell_epoch(&mut self) {
        let epochs = epochs(self.now(), self.period * EPOCH);
        let new = epochs.get(self.epochs..).unwrap_or_default().last();
        self.epochs = epochs.len();
        let opened = self.shared().course().opened;
        if let Some(at) = new.filter(|at| opened.is_some_and(|opened| opened < **at)) {
            let line = "an epoch begins, and groups get other members";
            self.narrator.say(*at, line);
        }
    }

    fn change_darkness(&self, change: impl FnOnce(&mut Darkness)) {
        if let Some(dark) = &mut self.shared().course().dark {
            change(dark);
        }
    }

    fn say(&mut self, line: &str) {
        let now = self.now();
        self.narrator.say(now, line);
    }

    fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.stage.shared)
    }

    fn now(&self) -> Time {
        self.stage.clock.now()
    }

    fn at(&self, periods: u64) -> Time {
        Time::ZERO + self.period * periods
    }

    fn glance(&self) -> Duration {
        Span(self.period.0 / 8).into()
    }
}

/// Adds the lamp to the site that a node has.
async fn change(node: &Handle) -> Result<(), Box<dyn Error + Send + Sync>> {
    let present = node.site().ok_or("it has no site")?;
    let next = with_lamp(Site::clone(&present))?;
    node.change_site(next).await?;
    Ok(())
}

/// The times at which epochs of this length began from the start until now, by the system's clock,
/// as hosts read it.
fn epochs(now: Time, length: Span) -> Vec<Time> {
    let since_1970: Span = UNIX_EPOCH.elapsed().map(Span::from).unwrap_or_default();
    let last = since_1970.0 % length.0.max(1);
    let begins = (0..).map(|back| now.0.checked_sub(last + back * length.0));
    let mut epochs: Vec<Time> = begins.map_while(|it| it.map(Time)).collect();
    epochs.reverse();
    epochs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_follow_each_other_up_to_now() {
        let length = Span::millis(700);
        let now = Time::ZERO + Span::secs(10);
        let begun = epochs(now, length);
        assert!(begun.first().is_some_and(|it| *it < Time::ZERO + length));
        assert!(
            begun
                .last()
                .is_some_and(|it| *it + length > now && *it <= now)
        );
        assert!(begun.windows(2).all(|it| it[0] + length == it[1]));
    }

    /// The script has runs before the domain fails, an epoch meanwhile, and time to end.
    #[test]
    fn a_domain_is_back_and_an_epoch_has_begun_before_the_building_closes() {
        const { assert!(DARK + DARKNESS + 2 * STAGGER < CLOSE) };
        const { assert!(DARK + EPOCH + 2 * STAGGER < CLOSE) };
    }
}

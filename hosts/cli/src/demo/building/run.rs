//! The script of the building: routines run all the time, a power domain fails and comes back, and
//! epochs begin meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use core::time::Duration;

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, NodeId, Span, Time};
use selvedge_kgroup::TriggerId;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::course::{Blackout, Course, Darkness};
use super::judge::judge_building;
use super::limits::{Limits, PAUSE};
use super::site::{DOOR, EPOCH, NODES, OPEN, RUNS, STAGGER, Which, domain, site};
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
        epochs: 0,
    };
    play.open(seed).await?;
    play.go_dark().await;
    play.come_back().await?;
    play.black_out().await?;
    play.close().await;
    let course = play.end().await;
    let table = judge_building(&plan, &course);
    Ok(Building { course, table })
}

impl<W: Write> Play<W> {
    /// Starts all nodes, waits until all list all, and starts the routines.
    async fn open(&mut self, seed: u64) -> Result<(), HostError> {
        let gap = Span(self.period.0 * 3 / 2 / NODES);
        for node in (1..=NODES).map(NodeId) {
            self.stage.start(node).await?;
            sleep(gap.into()).await;
        }
        let all = |play: &Self| play.stage.right() as u64 == NODES;
        self.wait(self.limits.join, all).await;
        self.shared().course().opened = Some(self.now());
        let shared = self.shared();
        let (closed, period, patience) = (&self.is_closed, self.period, self.limits.each);
        for (routine, seed) in [Which::Evening, Which::Airing].into_iter().zip(seed..) {
            let requests = request(
                routine,
                Arc::clone(&shared),
                Arc::clone(closed),
                (period, patience),
                seed,
            );
            self.requesting.push(tokio::spawn(requests));
        }
        let visits = visit(
            Arc::clone(&shared),
            Arc::clone(closed),
            (period, patience),
            seed,
        );
        self.requesting.push(tokio::spawn(visits));
        self.say(&format!(
            "{NODES} nodes in {} power domains manage 6 devices, and run 3 routines",
            NODES / 2
        ));
        Ok(())
    }

    /// Cuts the power of the domain that leads the most groups. It stays dark until a run of each
    /// routine has ended without it.
    async fn go_dark(&mut self) {
        let first = self.period * DARK + self.limits.each;
        self.wait(first, |play| {
            play.now() >= play.at(DARK) && play.since_all_ended(Time::ZERO)
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
            "the power domain of nodes {one} and {two}, which lead {groups} of 7 groups, goes dark"
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
        let each = self.limits.each.max(self.period * DARKNESS);
        self.wait(each, |play| {
            play.now() >= from + play.period * DARKNESS && play.since_all_ended(known)
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
        self.wait(self.limits.each, |play| play.since_all_ended(back))
            .await;
        Ok(())
    }

    /// Lets routines run until an epoch has begun meanwhile, and groups had the time to change.
    async fn close(&mut self) {
        let epoch = self.period * CLOSE.max(EPOCH + 2 * STAGGER);
        self.wait(epoch, |play| {
            let shared = play.shared();
            let course = shared.course();
            // Nodes that were dark may have missed an earlier one.
            let back = course.blackout.and_then(|it| it.back);
            let opened = back.or(course.opened).unwrap_or_default();
            let margin = play.period * (2 * STAGGER);
            let mut epochs = epochs(play.now(), play.period * EPOCH).into_iter();
            play.now() >= play.at(CLOSE)
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

    /// Returns true if a run of each routine has ended since then.
    fn since_all_ended(&self, since: Time) -> bool {
        let shared = self.shared();
        let course = shared.course();
        let is_later = |it| course.ends(it).last().is_some_and(|at| *at > since);
        Which::ALL.into_iter().all(is_later)
    }

    /// Waits until a condition holds, for `most` at the longest.
    async fn wait(&mut self, most: Span, is_so: impl Fn(&Self) -> bool) {
        let until = self.now() + most;
        while self.now() < until && !is_so(self) {
            self.tell_epoch();
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

/// Triggers runs, one after another, each at some node that is up. A routine drops a trigger while
/// one run is active and another waits, so each trigger waits for the end of the former run, as
/// long as the limits allow.
async fn request(
    routine: Which,
    shared: Arc<Shared>,
    is_closed: Arc<AtomicBool>,
    (period, patience): (Span, Span),
    seed: u64,
) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    for id in (1..).map(TriggerId) {
        sleep(some(period, 1, 4, &mut rng)).await;
        if is_closed.load(Ordering::Relaxed) {
            return;
        }
        let before = shared.course().ended(routine);
        // A repetition is the same request, at any node.
        loop {
            // None is up while the whole building is dark.
            if let Some(node) = pick(&shared, &mut rng) {
                let asked = timeout((period * 10).into(), node.trigger(routine.group(), id));
                if matches!(asked.await, Ok(Ok(()))) {
                    break;
                }
            }
            sleep(some(period, 1, 2, &mut rng)).await;
        }
        *shared.course().asked.entry(routine).or_default() += 1;
        let is_over = |course: &Course| course.ended(routine) > before;
        let _is_long = wait_for(&shared, patience, is_over).await;
    }
}

/// Opens the door for visitors, one after another; the routine shuts it.
async fn visit(
    shared: Arc<Shared>,
    is_closed: Arc<AtomicBool>,
    (period, patience): (Span, Span),
    seed: u64,
) {
    let mut rng = ChaCha12Rng::seed_from_u64(!seed);
    while !is_closed.load(Ordering::Relaxed) {
        let before = shared.course().ended(Which::Visitor);
        shared.rooms.touch(DOOR, OPEN);
        let is_over = |course: &Course| course.ended(Which::Visitor) > before;
        if !wait_for(&shared, patience, is_over).await {
            // The routine may not have shut it since the last visit.
            shared.rooms.touch(DOOR, "shut");
        }
        // A ping observes that it is shut.
        sleep(some(period, 5, PAUSE, &mut rng)).await;
    }
    shared.rooms.touch(DOOR, "shut");
}

/// Waits until a condition on the history holds, for at most `span`. Returns true if it does.
async fn wait_for(shared: &Shared, span: Span, is_so: impl Fn(&Course) -> bool) -> bool {
    const STEPS: u64 = 2_000;
    for _ in 0..STEPS {
        if is_so(&shared.course()) {
            return true;
        }
        sleep(Span(span.0 / STEPS).into()).await;
    }
    false
}

fn pick(shared: &Shared, rng: &mut ChaCha12Rng) -> Option<Handle> {
    let up = shared.up();
    let at = rng.below(up.len().max(1) as u64);
    up.into_values().nth(usize::try_from(at).ok()?)
}

/// A random time between these numbers of periods.
fn some(period: Span, least: u64, most: u64, rng: &mut ChaCha12Rng) -> Duration {
    let spread = period * (most - least);
    (period * least + Span(rng.below(spread.0.max(1)))).into()
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

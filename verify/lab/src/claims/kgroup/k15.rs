//! K15: groups of which more members fail at once than may, and return.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_core::durable::Durable as _;
use selvedge_core::{Choose, Delta, Member, NodeId, Span, Time};
use selvedge_groups::{GroupId, Start};
use selvedge_kgroup::{Command, Site};
use selvedge_sim::network::Action;

use super::deployment::{pack, unpack};
use super::house::{DETECTION, House, PAPER, PING, Setting};
use super::spot::{Ask, Notified, Spot};
use crate::claims::stats::{mean, quantile};
use crate::claims::{
    Axis, Claim, Experiment, Fault, Judgement, Line, Paper, Plot, Point, Sample, Samples, Verdict,
};

/// In each window a device of each group changes at its begin.
const WINDOW: Span = Span(2 * PING.0);
/// The windows until nodes fail, until they return, and until the end.
const FAIL: usize = 3;
const RETURN: usize = FAIL + 15;
/// The windows from one epoch to the next where members forgot. A group begins anew in an epoch after its loss.
const EPOCH: usize = 10;
const ANEW: usize = RETURN + 2 * EPOCH;
const END: usize = ANEW + EPOCH;
/// Windows after either in which groups elect leaders or get other members.
const GRACE: usize = 2;
const TRIALS: u32 = 10;

/// Nodes that fail at once and return 30 s later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Case {
    devices: usize,
    /// The members of a group that may fail.
    failures: u8,
    /// The most members of a group that fail: of most groups they do.
    gone: u8,
    /// They return with the facts that they stored.
    has_facts: bool,
    is_near: bool,
}

impl Case {
    const fn paper(more: u8, has_facts: bool, is_near: bool) -> Self {
        Self {
            devices: PAPER.devices,
            failures: PAPER.failures,
            gone: PAPER.failures + more,
            has_facts,
            is_near,
        }
    }

    fn title(self) -> String {
        let facts = if self.has_facts { "with" } else { "without" };
        format!("{} gone, return {facts} facts", self.gone)
    }

    fn name(self) -> String {
        let rule = if self.is_near { "near" } else { "by hash" };
        format!("kgroup: availability, {rule}, {}", self.title())
    }
}

/// The cases of a rule that chooses members.
fn cases(is_near: bool) -> [Case; 4] {
    [(0, true), (0, false), (1, true), (1, false)]
        .map(|(more, has_facts)| Case::paper(more, has_facts, is_near))
}

pub(super) fn claim() -> Claim {
    let all = [true, false].into_iter().flat_map(cases);
    Claim {
        id: "K15",
        claim: "groups of which f + 1 members fail at once answer again when these return with their facts, and with f at once",
        source: "CoMesh, section 2 (crash and recovery), theorem 6",
        unit: "% of the groups that answer while nodes are gone, then, and two epochs later: f gone, f + 1 gone that return with facts, and without",
        experiments: all
            .map(|case| Experiment {
                name: case.name(),
                trials: TRIALS,
                run: Arc::new(move |seed| measure(case, seed)),
            })
            .collect(),
        judge,
    }
}

/// The number of groups, of groups that lost more members than may fail, and of nodes that failed;
/// for each window the number of groups that answered; then a list: for groups that lost more
/// members, the time from the return to the first answer.
fn measure(case: Case, seed: u64) -> Result<Sample, Fault> {
    let setting = Setting {
        devices: case.devices,
        failures: case.failures,
        is_near: case.is_near,
        life: 1,
        ..PAPER
    };
    let mut house = setting.house(seed)?;
    let probes = probes(&mut house)?;
    let members = members(&house, &probes)?;
    let victims = victims(&mut house, &members, usize::from(case.gone));
    let most = usize::from(case.failures);
    let is_lost = |it: &&Vec<usize>| it.iter().filter(|it| victims.contains(it)).count() > most;
    let lost = members.iter().filter(|it| is_lost(&it.1));
    let lost: BTreeSet<GroupId> = lost.map(|it| *it.0).collect();
    let mut answered = Vec::new();
    let mut first = BTreeMap::new();
    for window in 0..END {
        if window == FAIL {
            for &victim in &victims {
                house.stop_later(victim, Span::ZERO)?;
            }
        }
        if window == RETURN {
            restart(&mut house, &victims, case.has_facts)?;
        }
        if window > RETURN && (window - RETURN).is_multiple_of(EPOCH) && !case.has_facts {
            house.epoch(((window - RETURN) / EPOCH) as u64 + 1)?;
        }
        let begun = house.net.now();
        for device in probes.values() {
            house.turn(*device, &format!("turned {window}"))?;
        }
        house.net.drain_events();
        house.net.run_for(WINDOW);
        let times = observed(&mut house, &probes);
        answered.push(times.len() as u64);
        if window >= RETURN {
            for (group, at) in times.into_iter().filter(|it| lost.contains(&it.0)) {
                let since = at.since(begun) + WINDOW * (window - RETURN) as u64;
                first.entry(group).or_insert(since);
            }
        }
    }
    let figures = [probes.len(), lost.len(), victims.len()].map(|it| it as u64);
    let first: Vec<Span> = first.into_values().collect();
    let all = figures.into_iter().chain(answered).chain(pack(&first));
    Ok(Sample(all.map(Some).collect()))
}

/// For the group of each cluster, one of its devices without a node, which does not fail.
fn probes(house: &mut House) -> Result<BTreeMap<GroupId, NodeId>, Fault> {
    let site = Arc::clone(&house.site);
    let mut probes = BTreeMap::new();
    for (number, cluster) in site.clusters() {
        let is_simple = |it: &NodeId| house.nodes.binary_search(&(it.0 as usize)).is_err();
        let simple: Vec<NodeId> = cluster.devices.iter().copied().filter(is_simple).collect();
        let picked = house.rng.below(simple.len().max(1) as u64) as usize;
        let device = simple.get(picked).copied();
        let none = || Fault::Outcome(format!("cluster {number} has nodes alone"));
        probes.insert(Site::cluster(number), device.ok_or_else(none)?);
    }
    Ok(probes)
}

/// The members of each group, as its leader knows them.
fn members(
    house: &House,
    probes: &BTreeMap<GroupId, NodeId>,
) -> Result<BTreeMap<GroupId, Vec<usize>>, Fault> {
    let of = |group: GroupId| {
        let leader = house.net.machine(house.leader(group)?)?.node()?;
        let configuration = leader.groups().replica(group)?.configuration();
        let members = configuration.members().map(|it| it.member.id.0 as usize);
        Some((group, members.collect::<Vec<usize>>()))
    };
    let found = probes.keys().map(|group| {
        let none = || Fault::Outcome(format!("nobody leads {group:?}"));
        of(*group).ok_or_else(none)
    });
    found.collect()
}

/// Nodes at random, so that each group loses `gone` of its members where none loses more.
fn victims(house: &mut House, members: &BTreeMap<GroupId, Vec<usize>>, gone: usize) -> Vec<usize> {
    let mut victims: Vec<usize> = Vec::new();
    let mut left: Vec<usize> = house.nodes.clone();
    while !left.is_empty() {
        let picked = left.swap_remove(house.rng.below(left.len() as u64) as usize);
        let is_in = |it: &&Vec<usize>| it.contains(&picked);
        let lost = |it: &Vec<usize>| it.iter().filter(|it| victims.contains(it)).count();
        let groups: Vec<&Vec<usize>> = members.values().filter(is_in).collect();
        if !groups.is_empty() && groups.into_iter().all(|it| lost(it) < gone) {
            victims.push(picked);
        }
    }
    victims
}

/// The groups that decided on a change of their device, and when first.
fn observed(house: &mut House, probes: &BTreeMap<GroupId, NodeId>) -> BTreeMap<GroupId, Time> {
    let mut times = BTreeMap::new();
    for (at, _, event) in house.net.drain_events() {
        if let Notified::Observed(device) = event {
            let mut of = probes.iter().filter(|it| *it.1 == device);
            if let Some((group, _)) = of.next() {
                times.entry(*group).or_insert(at);
            }
        }
    }
    times
}

/// Begins the next lives of nodes. They learn of others, and these of them, after [`DETECTION`].
fn restart(house: &mut House, victims: &[usize], has_facts: bool) -> Result<(), Fault> {
    for &at in victims {
        let me = again(house, at);
        let mut node = match has_facts {
            true => house.node(me, Start::Fresh)?,
            false => house.node(me, Start::Restarted)?,
        };
        // Storage takes no time here: all facts of the former life are stored.
        let former = house.net.machine(at).and_then(Spot::node);
        let former = former.filter(|_| has_facts).into_iter();
        for fact in former.flat_map(|it| it.groups().stored()) {
            let folded = node.fold(&fact);
            folded.map_err(|it| Fault::Outcome(format!("{it:?}")))?;
        }
        let node = Spot::new(me, Some(node));
        house.net.restart(at, me, node).map_err(Fault::network)?;
        let epoch = Ask::Node(Command::SetEpoch(1));
        house.net.command(at, epoch).map_err(Fault::network)?;
    }
    house.nodes.extend(victims);
    house.nodes.sort_unstable();
    let when = house.net.now() + DETECTION;
    for &node in &house.nodes {
        for &other in house.nodes.iter().filter(|it| **it != node) {
            let has_restarted = victims.contains(&other);
            if has_restarted || victims.contains(&node) {
                let member = if has_restarted {
                    again(house, other)
                } else {
                    house.member(other)
                };
                let delta = Delta::Joined(member);
                let action = Action::Membership { node, delta };
                house.net.schedule(when, action).map_err(Fault::network)?;
            }
        }
    }
    Ok(())
}

/// A node in its second life.
fn again(house: &House, at: usize) -> Member {
    let Member { id, incarnation } = house.member(at);
    Member::new(id.0, incarnation.0 + 1)
}

/// The figures of a case in all trials.
struct Seen {
    /// The share of the groups that answered, in each window of each trial.
    shares: Vec<Vec<f64>>,
    /// The share that lost more members than may fail, in each trial.
    lost: Vec<f64>,
    /// The number of nodes that failed, a trial.
    victims: f64,
    /// From the return until a group answered, in seconds.
    first: Vec<f64>,
}

impl Seen {
    fn of(samples: &Samples, case: Case) -> Option<Self> {
        let name = case.name();
        let (mut shares, mut lost, mut victims, mut first) = (vec![], vec![], vec![], vec![]);
        for (_, sample) in samples.of(&name) {
            let figure = |at: usize| sample.0.get(at).copied().flatten().map(|it| it as f64);
            let groups = figure(0)?;
            lost.push(figure(1)? / groups);
            victims.push(figure(2)?);
            let answered = (0..END).map(|it| Some(figure(3 + it)? / groups));
            shares.push(answered.collect::<Option<Vec<f64>>>()?);
            let times = unpack(sample.0.get(3 + END..)?, 0)?;
            first.extend(times.into_iter().map(|it| it / 1e6));
        }
        Some(Self {
            victims: mean(&victims)?,
            shares,
            lost,
            first,
        })
    }

    /// The lowest and the highest share in any trial: while nodes are gone, after their return, and two epochs
    /// later.
    fn settled(&self) -> [[f64; 2]; 3] {
        [FAIL..RETURN, RETURN..RETURN + EPOCH, ANEW..END].map(|windows| {
            let windows = windows.start + GRACE..windows.end;
            let all = self.shares.iter().filter_map(|it| it.get(windows.clone()));
            all.flatten().fold([1.0, 0.0], |[low, high], it| {
                [f64::min(low, *it), f64::max(high, *it)]
            })
        })
    }

    /// Returns true if exactly these shares of the groups answer in each trial: while nodes are down, and after
    /// their return. Two epochs later all answer.
    fn answers(&self, gone: impl Fn(f64) -> f64, back: impl Fn(f64) -> f64) -> bool {
        let is = |share: f64, wanted: f64| (share - wanted).abs() < 1e-9;
        self.shares.iter().zip(&self.lost).all(|(shares, lost)| {
            let shares = shares.iter().enumerate();
            shares.into_iter().all(|(window, share)| match window {
                it if (FAIL + GRACE..RETURN).contains(&it) => is(*share, gone(*lost)),
                it if (RETURN + GRACE..RETURN + EPOCH).contains(&it) => is(*share, back(*lost)),
                it if it >= ANEW + GRACE => is(*share, 1.0),
                _ => true,
            })
        })
    }

    fn words(&self) -> String {
        let words = self
            .settled()
            .map(|[low, high]| match (100.0 * low, 100.0 * high) {
                (low, high) if high - low < 0.5 => format!("{high:.0}"),
                (low, high) => format!("{low:.0} to {high:.0}"),
            });
        words.join(", then ")
    }
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let mut found = Vec::new();
    for is_near in [true, false] {
        let all = cases(is_near).map(|it| Seen::of(samples, it));
        found.push(all.into_iter().collect::<Option<Vec<Seen>>>()?);
    }
    let rest = |lost: f64| 1.0 - lost;
    let holds = found.iter().all(|seen| match seen.as_slice() {
        [few, few_blank, many, many_blank] => {
            few.answers(|_| 1.0, |_| 1.0)
                && few_blank.answers(|_| 1.0, |_| 1.0)
                && many.answers(rest, |_| 1.0)
                && many_blank.answers(rest, rest)
        }
        _ => false,
    });
    let (near, hash) = (found.first()?, found.get(1)?);
    let words = |it: &[Seen]| -> Vec<String> { it.iter().map(Seen::words).collect() };
    let (near_words, hash_words) = (words(near), words(hash));
    let many = near.get(2)?;
    let [lost, many_hash] = [many, hash.get(2)?].map(|it| mean(&it.lost));
    let trials = cases(true).map(|it| samples.of(&it.name()).count());
    Some(Judgement {
        paper: "100, then 100 | those with f + 1 members left, then 100 | no epochs are named"
            .to_owned(),
        ours: [0, 2, 3]
            .map(|at: usize| near_words.get(at).cloned().unwrap_or_default())
            .join(" | "),
        verdict: if holds {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "Table 3's building. Of the groups of clusters most lose f = {} members at once, or f + 1; {:.0} and {:.0} of 100 nodes stop, and return \
             30 s later; others learn of either {} ms after it. A group answers when it decides within {} s on the state that one of its devices takes. \
             {:.0}% of the groups lose f + 1 members, by hash {:.0}%; they answer again {:.1} s after the return, median, and {:.1} s at most. With f gone that return \
             without facts it is {}. By hash: {}. The paper counts members that are up, and not what they remember: without facts a group of which f + 1 members \
             forgot does not answer, for the others cannot know what was decided (erratum G3), until it begins anew: epochs begin {} s after \
             the return and every {} s, where members forgot. Holds when, from {} s after a failure or a return on, exactly those groups \
             answer, and all after the second epoch, in each trial.",
            PAPER.failures,
            near.first()?.victims,
            many.victims,
            DETECTION.0 / 1_000,
            WINDOW.0 / 1_000_000,
            100.0 * lost?,
            100.0 * many_hash?,
            quantile(&many.first, 0.5)?,
            quantile(&many.first, 1.0)?,
            near_words.get(1)?,
            hash_words.join(" | "),
            EPOCH as u64 * WINDOW.0 / 1_000_000,
            EPOCH as u64 * WINDOW.0 / 1_000_000,
            GRACE as u64 * WINDOW.0 / 1_000_000,
        ),
        trials: trials.into_iter().min()?,
        plots: vec![
            plot(
                "Groups that answer, members mostly near",
                &cases(true),
                near,
            ),
            plot("Groups that answer, members by hash", &cases(false), hash),
        ],
    })
}

fn plot(title: &str, cases: &[Case], seen: &[Seen]) -> Plot {
    let line = |(case, seen): (&Case, &Seen)| Line {
        name: case.title(),
        points: (0..END)
            .filter_map(|window| {
                let shares = seen.shares.iter().filter_map(|it| it.get(window));
                let shares: Vec<f64> = shares.map(|it| 100.0 * it).collect();
                Point::of((window * 2) as f64, &shares)
            })
            .collect(),
    };
    Plot {
        title: title.to_owned(),
        x: Axis::Plain("seconds".to_owned()),
        y: Axis::Plain("% of the groups".to_owned()),
        lines: cases.iter().zip(seen).map(line).collect(),
        paper: Paper::reports("a group answers when f + 1 of its members are up (theorem 6)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICES: usize = 100;

    /// A trial of each case, under the names of the claim.
    fn judged(change: impl Fn(Case) -> Case) -> Judgement {
        let mut samples = Samples::new(1, 1, Vec::new());
        for case in [true, false].into_iter().flat_map(cases) {
            samples.add(&case.name(), 0, measure(change(case), 1).unwrap());
        }
        judge(&samples).unwrap()
    }

    #[test]
    fn groups_answer_again_with_their_facts() {
        let judgement = judged(|it| Case {
            devices: DEVICES,
            ..it
        });
        assert_eq!(judgement.verdict, Verdict::Holds, "{judgement:?}");
    }

    /// A group of one is lost with its node.
    #[test]
    fn with_groups_of_one_it_does_not_hold() {
        let judgement = judged(|it| Case {
            devices: DEVICES,
            failures: 0,
            gone: 1,
            ..it
        });
        assert_eq!(judgement.verdict, Verdict::Differs);
        assert!(
            judgement.ours.starts_with("0, then 100"),
            "{}",
            judgement.ours
        );
    }

    /// The memory of a group of one returns with its node where the node stored facts.
    #[test]
    fn a_node_that_forgot_answers_for_nothing_before_an_epoch_begins() {
        let case = |has_facts| Case {
            devices: DEVICES,
            failures: 0,
            gone: 1,
            has_facts,
            is_near: true,
        };
        let last = |it: &Sample| it.0.get(2 + RETURN + EPOCH).copied().flatten();
        let [with, without] = [true, false].map(|it| measure(case(it), 2).unwrap());
        assert_eq!(last(&with), with.0[0], "seed 2: {with:?}");
        assert_eq!(last(&without), Some(0), "seed 2: {without:?}");
    }
}

//! The judge of the demo: made-up sequences of events in which one thing goes wrong.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_camera::Token;
use selvedge_celect::{Ballot, Event as Election};
use selvedge_cli::demo::{Evidence, Fact, Mark, Plan, Trace, Turns, Write, judge};
use selvedge_core::{Delta, Member, NodeId, Span, Time};
use selvedge_membership::Event;
use selvedge_udp::faults::FaultCounts;
use selvedge_udp::traffic::TrafficReport;
use selvedge_udp::{NodeEvent, Observed};

const MS: Span = Span::millis(1);

struct Course {
    plan: Plan,
    marks: Vec<Mark>,
    traffic: TrafficReport,
    missed: u64,
    turns: Turns,
}

impl Course {
    /// A course in which everything happens as planned, and every node learns of it soon.
    fn smooth() -> Self {
        let plan = Plan::new(16, Span::millis(200), &mut ChaCha12Rng::seed_from_u64(3));
        let times = plan.times;
        let mut course = Self {
            plan,
            marks: Vec::new(),
            traffic: TrafficReport::default(),
            missed: 0,
            turns: Turns {
                waits: vec![MS; 16],
                ..Turns::default()
            },
        };
        let all: Vec<u64> = (1..=16).collect();
        for &node in &all {
            let start = times.heal + MS * (1_000 + 20 * node);
            course.turns.writes.push(Write {
                node: NodeId(node),
                token: Token {
                    number: node,
                    by: Member::new(node, 0),
                },
                start,
                end: Some(start + MS * 10),
            });
        }
        for &node in &all {
            course.fact(Time::ZERO, Fact::Started(NodeId(node)));
            course.seen(
                Time::ZERO + MS,
                node,
                Event::Identified(Member::new(node, 0)),
            );
        }
        for &node in &all {
            let joined = Delta::Joined(Member::new(node, 0));
            course.notified(Time::ZERO + MS * 500, &all, joined);
        }
        let [one, other] = course.plan.crashing;
        course.elected(Time::ZERO + MS * 1_500, &all, one, 1);
        let (leaving, restarting) = (course.plan.leaving, course.plan.restarting);
        for node in [one, other] {
            course.fact(times.crash, Fact::Crashed(NodeId(node)));
            let up: Vec<u64> = all
                .iter()
                .copied()
                .filter(|it| ![one, other].contains(it))
                .collect();
            course.notified(
                times.crash + MS * 2_000,
                &up,
                Delta::Failed(Member::new(node, 0)),
            );
        }
        let up: Vec<u64> = (all.iter().copied())
            .filter(|it| ![one, other, leaving].contains(it))
            .collect();
        course.elected(times.crash + MS * 2_300, &up, 1, 2);
        course.fact(times.leave, Fact::Leaving(NodeId(leaving)));
        course.notified(
            times.leave + MS * 300,
            &up,
            Delta::Left(Member::new(leaving, 0)),
        );
        course.seen(times.leave + MS * 800, leaving, Event::Left);

        let heir = Member::new(restarting, 1);
        course.fact(times.down, Fact::Crashed(NodeId(restarting)));
        course.fact(times.back, Fact::Started(NodeId(restarting)));
        course.seen(times.back + MS * 9, restarting, Event::Identified(heir));
        let soon = times.back + MS * 100;
        course.notified(soon, &up, Delta::Confirmed(Member::new(restarting, 0)));
        course.notified(soon, &up, Delta::Joined(heir));
        for &node in up.iter().filter(|&&node| node != restarting) {
            course.notified(soon, &[restarting], Delta::Joined(Member::new(node, 0)));
        }
        course.fact(times.cut, Fact::Cut);
        course.fact(times.heal, Fact::Healed);
        course.seen(
            times.heal + MS * 50,
            1,
            Event::MetadataChanged(Member::new(2, 0)),
        );
        course
    }

    fn fact(&mut self, at: Time, fact: Fact) {
        self.marks.push(Mark::Fact(at, fact));
    }

    fn seen(&mut self, at: Time, node: u64, event: Event) {
        let node = NodeId(node);
        let event = NodeEvent::Membership(event);
        self.marks.push(Mark::from(Observed { at, node, event }));
    }

    fn notified(&mut self, at: Time, observers: &[u64], delta: Delta) {
        for &observer in observers
            .iter()
            .filter(|&&it| NodeId(it) != delta.member().id)
        {
            self.seen(at, observer, Event::Changed(delta));
        }
    }

    /// Adds events by which these nodes follow `leader`, with a ballot of this epoch.
    fn elected(&mut self, at: Time, nodes: &[u64], leader: u64, epoch: u64) {
        for &node in nodes {
            let ballot = Ballot {
                epoch,
                initiator: Member::new(2, 0),
                step: 1,
            };
            let leader = Member::new(leader, 0);
            let event = NodeEvent::Election(Election::Elected { leader, ballot });
            let node = NodeId(node);
            self.marks.push(Mark::from(Observed { at, node, event }));
        }
    }

    /// Removes events about leaders at one node.
    fn unelect(&mut self, observer: u64, wanted: impl Fn(Time) -> bool) {
        self.marks.retain(|mark| match mark {
            Mark::Observed(seen) => {
                let is_meant = seen.node == NodeId(observer) && wanted(seen.at);
                !(is_meant && matches!(seen.event, NodeEvent::Election(_)))
            }
            Mark::Fact(..) => true,
        });
    }

    /// Removes an event about a member at one node.
    fn unnotify(&mut self, observer: u64, delta: Delta) {
        let notified = NodeEvent::Membership(Event::Changed(delta));
        self.marks.retain(|mark| match mark {
            Mark::Observed(seen) => seen.node != NodeId(observer) || seen.event != notified,
            Mark::Fact(..) => true,
        });
    }

    /// A node that stays up and is not cut off.
    fn bystander(&self) -> u64 {
        (3..=16)
            .find(|&node| self.plan.stays(node) && !self.plan.is_cut_off(node))
            .unwrap()
    }

    /// The ids of the promises that did not hold.
    fn broken(&self) -> Vec<String> {
        self.broken_with(0)
    }

    fn broken_with(&self, odd_lists: usize) -> Vec<String> {
        let mut trace = Trace::default();
        self.marks.iter().cloned().for_each(|mark| trace.push(mark));
        let evidence = Evidence {
            plan: &self.plan,
            trace: &trace,
            traffic: self.traffic,
            met: FaultCounts::default(),
            missed: self.missed,
            odd_lists,
            turns: &self.turns,
        };
        let table = judge(&evidence).into_iter();
        table.filter(|it| !it.held).map(|it| it.id).collect()
    }
}

#[test]
fn a_smooth_course_keeps_every_promise() {
    assert_eq!(Course::smooth().broken(), Vec::<String>::new());
}

#[test]
fn one_who_never_learns_of_a_crash_breaks_a_promise() {
    let mut course = Course::smooth();
    let node = course.plan.crashing[0];
    course.unnotify(course.bystander(), Delta::Failed(Member::new(node, 0)));
    // Its list stays wrong, too.
    assert_eq!(course.broken(), [format!("spread-{node}"), "heal".into()]);
}

#[test]
fn one_who_learns_late_breaks_a_promise() {
    let mut course = Course::smooth();
    let failed = Delta::Failed(Member::new(course.plan.crashing[1], 0));
    let bystander = course.bystander();
    course.unnotify(bystander, failed);
    let first = course.plan.times.crash + MS * 2_000;
    course.notified(
        first + course.plan.bounds.spread.span + MS,
        &[bystander],
        failed,
    );
    assert_eq!(
        course.broken(),
        [format!("spread-{}", course.plan.crashing[1])]
    );
}

#[test]
fn who_is_cut_off_meanwhile_has_time_until_the_lists_are_right() {
    let mut course = Course::smooth();
    let failed = Delta::Failed(Member::new(course.plan.crashing[0], 0));
    let cut_off = course.plan.cut_off[0];
    course.unnotify(cut_off, failed);
    course.notified(course.plan.times.heal + MS * 900, &[cut_off], failed);
    assert_eq!(course.broken(), Vec::<String>::new());
}

#[test]
fn to_declare_a_live_node_failed_breaks_a_promise_unless_the_cut_is_to_blame() {
    let smooth = Course::smooth();
    let (near, far) = (smooth.bystander(), smooth.plan.cut_off[0]);
    let times = smooth.plan.times;
    let wrongly = |at: Time, observer: u64, about: u64| {
        let mut course = Course::smooth();
        let member = Member::new(about, 0);
        course.notified(at, &[observer], Delta::Failed(member));
        course.notified(at + MS * 100, &[observer], Delta::Refuted(member));
        course.broken()
    };
    let none = Vec::<String>::new();
    assert_eq!(wrongly(times.cut + MS * 900, near, far), none);
    assert_eq!(wrongly(times.heal + MS * 900, near, 1), none);
    assert_eq!(wrongly(times.cut + MS * 900, near, 1), ["false-removals"]);
    assert_eq!(
        wrongly(Time::ZERO + MS * 900, near, far),
        ["false-removals"]
    );
    assert_eq!(wrongly(times.settled + MS, near, far), ["false-removals"]);
}

#[test]
fn a_good_bye_taken_for_a_failure_breaks_a_promise() {
    let mut course = Course::smooth();
    let member = Member::new(course.plan.leaving, 0);
    let at = course.plan.times.leave + MS * 200;
    course.notified(at, &[course.bystander()], Delta::Failed(member));
    assert_eq!(course.broken(), ["leave"]);
}

#[test]
fn a_restart_that_one_does_not_hear_of_breaks_a_promise() {
    let mut course = Course::smooth();
    let heir = Member::new(course.plan.restarting, 1);
    course.unnotify(course.bystander(), Delta::Joined(heir));
    assert_eq!(course.broken(), ["restart", "heal"]);
}

#[test]
fn lists_that_differ_from_what_was_told_break_a_promise() {
    assert_eq!(Course::smooth().broken_with(1), ["heal"]);
}

#[test]
fn one_who_does_not_follow_breaks_a_promise() {
    let mut course = Course::smooth();
    course.unelect(course.bystander(), |_| true);
    let no_node = ["elect", "reelect", "leaderless", "one-leader"];
    assert_eq!(course.broken(), no_node);
    let mut course = Course::smooth();
    let crash = course.plan.times.crash;
    course.unelect(course.bystander(), |at| at > crash);
    assert_eq!(course.broken(), ["reelect", "leaderless", "one-leader"]);
    // In time for the last node.
    let heal = course.plan.times.heal;
    course.elected(heal + MS, &[course.bystander()], 1, 2);
    assert_eq!(course.broken(), ["reelect"]);
}

/// The consequences of another node's crash are no evidence.
#[test]
fn the_one_who_crashes_must_have_led() {
    let mut course = Course::smooth();
    for node in 1..=16 {
        course.unelect(node, |at| at < Time::ZERO + MS * 2_000);
    }
    let all: Vec<u64> = (1..=16).collect();
    course.elected(Time::ZERO + MS * 1_500, &all, 2, 1);
    assert_eq!(course.broken(), ["reelect"]);
}

#[test]
fn two_leaders_under_one_ballot_and_ballots_that_fall_break_promises() {
    let mut course = Course::smooth();
    let end = course.plan.times.end;
    // A node that came later would notice nothing, but the others do.
    let restarting = course.plan.restarting;
    let back = course.plan.times.back;
    course.elected(back + MS * 50, &[restarting], 2, 1);
    assert_eq!(course.broken(), ["ballot"]);
    let mut course = Course::smooth();
    course.elected(end, &[course.bystander()], course.plan.crashing[0], 1);
    assert_eq!(course.broken(), ["one-leader", "fencing"]);
}

#[test]
fn frames_too_long_or_faulty_break_a_promise() {
    let mut course = Course::smooth();
    course.traffic.longest = 1_401;
    course.traffic.malformed = 1;
    assert_eq!(course.broken(), ["frame", "faulty"]);
}

#[test]
fn turns_that_overlap_or_fall_or_never_come_break_a_promise() {
    let mut course = Course::smooth();
    course.turns.writes[4].start = course.turns.writes[3].start;
    assert_eq!(course.broken(), ["overlap"]);
    let mut course = Course::smooth();
    course.turns.garbled = 1;
    assert_eq!(course.broken(), ["overlap"]);
    let mut course = Course::smooth();
    course.turns.writes[4].token = course.turns.writes[3].token;
    assert_eq!(course.broken(), ["tokens"]);
    let mut course = Course::smooth();
    let idle = NodeId(course.bystander());
    course.turns.writes.retain(|write| write.node != idle);
    assert_eq!(course.broken(), ["turns"]);
    let mut course = Course::smooth();
    course.turns.waits.push(course.plan.bounds.wait.span + MS);
    assert_eq!(course.broken(), ["wait"]);
    course.turns.waits.clear();
    assert_eq!(course.broken(), ["wait"]);
}

/// A node that crashes while it writes has written until then.
#[test]
fn a_write_that_breaks_off_lasts_until_the_crash() {
    let mut course = Course::smooth();
    let crashing = course.plan.crashing[0];
    let last = course.turns.writes[15];
    // Later than in the plan, after all others.
    let crash = last.start + MS * 50;
    course
        .marks
        .retain(|mark| !matches!(mark, Mark::Fact(_, Fact::Crashed(node)) if node.0 == crashing));
    course.fact(crash, Fact::Crashed(NodeId(crashing)));
    let number = last.token.number;
    let broken_off = Write {
        node: NodeId(crashing),
        token: Token {
            number: number + 1,
            ..last.token
        },
        start: crash,
        end: None,
    };
    let next = |start| Write {
        token: Token {
            number: number + 2,
            ..last.token
        },
        start,
        end: Some(start + MS),
        ..last
    };
    course.turns.writes.extend([broken_off, next(crash)]);
    let is_overlap = |course: &Course| course.broken().contains(&"overlap".to_owned());
    assert!(!is_overlap(&course));
    // A node that did not crash has no reason for an incomplete line.
    course.turns.writes[16].node = NodeId(1);
    assert!(is_overlap(&course));
}

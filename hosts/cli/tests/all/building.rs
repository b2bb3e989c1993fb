//! The judge of the demo's building, and its picture: made-up histories in which one thing goes
//! wrong.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests, too")]

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_cli::demo::{
    Addition, Arrival, Blackout, Course, Darkness, Low, Plan, Tenure, Which, building_page,
    floor_over_time, groups_over_time, judge_building,
};
use selvedge_core::{NodeId, Span, Time};
use selvedge_groups as groups;
use selvedge_kgroup::routines::{End, Report, RoutineEvent};
use selvedge_kgroup::{Event, GroupState, LeaderEvent, Payload, Site};
use selvedge_udp::{NodeEvent, Observed};

const VISITOR: Which = Which::Visitor;
const EVENING: Which = Which::Evening;
const AIRING: Which = Which::Airing;
const READING: Which = Which::Reading;
const DARK: [NodeId; 2] = [NodeId(3), NodeId(4)];

fn at(millis: u64) -> Time {
    Time::ZERO + Span::millis(millis)
}

fn plan() -> Plan {
    Plan::new(10, Span::millis(200), &mut ChaCha12Rng::seed_from_u64(1))
}

fn seen(millis: u64, node: u64, event: Event) -> Observed {
    Observed {
        at: at(millis),
        node: NodeId(node),
        event: NodeEvent::Groups(event),
    }
}

fn notified(routine: Which, event: RoutineEvent) -> Event {
    Event::Leader {
        group: routine.group(),
        event: LeaderEvent::Routine(event),
    }
}

/// A run that a node reports, with all its commands.
fn run(course: &mut Course, millis: u64, node: u64, routine: Which, instance: u64) {
    let begun = RoutineEvent::Triggered { instance };
    course.note(&seen(millis, node, notified(routine, begun)));
    for (step, (device, _)) in routine.commands().into_iter().enumerate() {
        let number = 1 + course.arrivals.len() as u64;
        course.arrivals.push(Arrival {
            at: at(millis + 10 * step as u64),
            device,
            number,
            routine,
            step,
            is_done: true,
        });
    }
    let report = Report {
        instance,
        end: End::Completed,
        steps: Vec::new(),
    };
    let over = RoutineEvent::Reports(report);
    course.note(&seen(millis + 50, node, notified(routine, over)));
}

/// A node of a group, after so much time, which takes part or does so no longer.
fn groups_event(
    course: &mut Course,
    millis: u64,
    node: u64,
    event: groups::Event<GroupState, Payload>,
) {
    course.note(&seen(millis, node, Event::Groups(event)));
}

/// Three rounds of all routines: before the power failure, during it, and after it.
fn smooth() -> Course {
    let mut course = Course {
        opened: Some(at(1_000)),
        epochs: vec![at(500), at(6_500)],
        closed: Some(at(10_000)),
        end: at(11_000),
        ..Course::default()
    };
    let lead = |course: &mut Course, millis, node, routine: Which| {
        let group = routine.group();
        course.note(&seen(millis, node, Event::Leading { group }));
    };
    for (node, routine) in [(3, VISITOR), (5, EVENING), (4, AIRING)] {
        lead(&mut course, 800, node, routine);
    }
    let (from, taken) = (at(1_100), [].into());
    course.addition = Some(Addition { from, taken });
    for node in 1..=10 {
        let event = NodeEvent::Site { generation: 1 };
        course.note(&Observed {
            at: at(1_200 + node),
            node: NodeId(node),
            event,
        });
    }
    lead(&mut course, 1_300, 5, READING);
    let rounds = [
        (1_500, [3, 5, 4, 5]),
        (5_000, [6, 5, 7, 5]),
        (9_000, [8, 9, 7, 5]),
    ];
    for (number, (millis, nodes)) in (1..).zip(rounds) {
        if number == 2 {
            course.dark = Some(Darkness {
                nodes: DARK,
                led: [VISITOR.group(), AIRING.group()].into(),
                from: at(3_000),
                known: Some(at(4_000)),
                until: Some(at(6_000)),
                back: Some(at(6_300)),
            });
            for node in DARK {
                course.goes_down(node, at(3_000));
            }
            lead(&mut course, 4_100, 6, VISITOR);
            lead(&mut course, 4_200, 7, AIRING);
        }
        for (nth, (routine, node)) in Which::ALL.into_iter().zip(nodes).enumerate() {
            run(
                &mut course,
                millis + 100 * nth as u64,
                node,
                routine,
                number,
            );
        }
    }
    course.blackout = Some(Blackout {
        from: at(7_500),
        back: Some(at(8_500)),
    });
    course.low = Some(Low {
        node: NodeId(8),
        from: at(8_600),
        out: Some(at(9_500)),
    });
    course.moves.insert((VISITOR.group(), 4), at(7_000));
    course.asked = [(EVENING, 3), (AIRING, 3), (READING, 3)].into();
    course.entries = [("one", true), ("another", true)].into();
    course.counted = Some(Which::ALL.map(|it| (it, 3)).into());
    course
}

/// The promises that are broken after this change.
fn broken(change: impl FnOnce(&mut Course)) -> Vec<String> {
    let mut course = smooth();
    change(&mut course);
    let table = judge_building(&plan(), &course).into_iter();
    let broken = table.filter(|it| !it.held).map(|it| it.id);
    broken
        .map(|it| it.strip_prefix("building-").unwrap().to_owned())
        .collect()
}

#[test]
fn a_smooth_course_keeps_every_promise_of_the_building() {
    assert_eq!(broken(|_| {}), Vec::<String>::new());
}

#[test]
fn a_building_in_which_nothing_happens_keeps_no_promise() {
    let all = [
        "order", "once", "ends", "lamp", "heirs", "dark", "blackout", "low", "gap", "epoch",
        "count", "map",
    ];
    assert_eq!(broken(|it| *it = Course::default()), all);
}

#[test]
fn a_routine_that_begins_again_after_a_blackout_has_lost_its_state() {
    let again = |course: &mut Course| {
        let runs = course.runs.get_mut(&EVENING).unwrap();
        let third = runs.remove(&3).unwrap();
        runs.insert(1, third);
        course.asked.insert(EVENING, 2);
        course.counted.as_mut().unwrap().insert(EVENING, 2);
    };
    assert_eq!(broken(again), ["blackout"]);
    let early = |course: &mut Course| {
        course.blackout.as_mut().unwrap().back = Some(at(9_500));
    };
    assert_eq!(broken(early), ["blackout"]);
    assert_eq!(broken(|it| it.blackout = None), ["blackout"]);
}

/// A command of one routine between two commands of another routine that shares some device.
#[test]
fn a_command_amid_a_run_of_another_routine_breaks_the_order() {
    let place = |course: &mut Course, routine: Which, step, before: usize| {
        let mut stray = course.arrivals[0];
        (stray.routine, stray.step, stray.number) = (routine, step, 99);
        stray.device = routine.commands()[step].0;
        course.arrivals.insert(before, stray);
    };
    // Amid a visitor's run: the evening shares the light in the hall.
    assert_eq!(broken(|it| place(it, EVENING, 0, 2)), ["order"]);
    // The airing shares nothing with it.
    assert_eq!(broken(|it| place(it, AIRING, 0, 2)), Vec::<String>::new());
    // Between two runs another run may begin, but not continue.
    assert_eq!(broken(|it| place(it, EVENING, 0, 4)), Vec::<String>::new());
    assert_eq!(broken(|it| place(it, EVENING, 2, 4)), ["order"]);
    // A command that a device ignores has no effect.
    let passed_over = |it: &mut Course| {
        place(it, EVENING, 0, 2);
        it.arrivals[2].is_done = false;
    };
    assert_eq!(broken(passed_over), Vec::<String>::new());
}

/// The device may have been passed on when the command came.
#[test]
fn an_order_is_judged_where_all_commands_came_in_time() {
    let stray = |latest| {
        let mut course = smooth();
        course.latest = latest;
        course.arrivals[2].step = 0;
        let table = judge_building(&plan(), &course);
        let row = table.into_iter().find(|it| it.id == "building-order");
        row.map(|it| (it.held, it.is_broken())).unwrap()
    };
    assert_eq!(stray(Span::secs(1)), (false, true));
    assert_eq!(stray(Span::secs(1) + Span(1)), (false, false));
}

#[test]
fn a_bell_that_is_rung_twice_breaks_a_promise_and_a_light_does_not() {
    let again = |course: &mut Course, at: usize| {
        let mut again = course.arrivals[at];
        again.is_done = false;
        course.arrivals.insert(at + 1, again);
    };
    assert_eq!(broken(|it| again(it, 3)), ["once"]);
    assert_eq!(broken(|it| again(it, 2)), Vec::<String>::new());
}

#[test]
fn a_run_that_does_not_end_breaks_a_promise() {
    let begin = |course: &mut Course| {
        let begun = RoutineEvent::Executes { instance: 4 };
        course.note(&seen(9_900, 8, notified(EVENING, begun)));
    };
    assert_eq!(broken(begin), ["ends"]);
    let unanswered = |course: &mut Course| {
        course.asked.insert(AIRING, 4);
    };
    assert_eq!(broken(unanswered), ["ends"]);
    // The leader of a run was killed before it reported the end: the next run shows it.
    let unnotified = |course: &mut Course| {
        let runs = course.runs.get_mut(&EVENING).unwrap();
        runs.get_mut(&1).unwrap().ended = None;
    };
    assert_eq!(broken(unnotified), Vec::<String>::new());
}

#[test]
fn a_lamp_that_a_node_or_a_run_misses_breaks_a_promise() {
    let missed = |course: &mut Course| {
        let addition = course.addition.as_mut().unwrap();
        addition.taken.remove(&NodeId(4)).unwrap();
    };
    assert_eq!(broken(missed), ["lamp"]);
    assert_eq!(broken(|it| it.addition = None), ["lamp"]);
    // Each run ended, and the lamp was in none that was completed.
    let failed = |course: &mut Course| {
        let runs = course.runs.get_mut(&READING).unwrap().values_mut();
        runs.for_each(|it| it.ended = it.ended.map(|end| (end.0, End::Failed { step: 0 })));
    };
    assert_eq!(broken(failed), ["lamp"]);
}

#[test]
fn a_spared_node_that_stays_in_a_group_breaks_a_promise() {
    let stays = |course: &mut Course| course.low.as_mut().unwrap().out = None;
    assert_eq!(broken(stays), ["low"]);
    assert_eq!(broken(|it| it.low = None), ["low"]);
    let mut course = smooth();
    groups_event(
        &mut course,
        8_550,
        8,
        groups::Event::Entered(VISITOR.group()),
    );
    groups_event(
        &mut course,
        8_560,
        8,
        groups::Event::Entered(EVENING.group()),
    );
    groups_event(&mut course, 9_100, 8, groups::Event::Left(VISITOR.group()));
    stays(&mut course);
    let table = judge_building(&plan(), &course);
    let row = table
        .into_iter()
        .find(|it| it.id == "building-low")
        .unwrap();
    assert_eq!(row.seen, Some(1.0));
    assert!(row.why.contains("in 2 groups then"), "{}", row.why);
}

#[test]
fn an_entry_that_the_map_has_lost_breaks_a_promise() {
    let lost = |course: &mut Course| {
        course.entries.insert("another", false);
    };
    assert_eq!(broken(lost), ["map"]);
    assert_eq!(broken(|it| it.entries.clear()), ["map"]);
}

#[test]
fn a_domain_that_led_nothing_or_has_no_heirs_breaks_a_promise() {
    let dark = |change: fn(&mut Darkness)| broken(|it| change(it.dark.as_mut().unwrap()));
    assert_eq!(dark(|it| it.led.clear()), ["heirs"]);
    assert_eq!(dark(|it| it.back = None), ["heirs"]);
    assert_eq!(dark(|it| it.nodes = [6, 9].map(NodeId)), ["heirs"]);
    assert_eq!(broken(|it| it.leads.truncate(5)), ["heirs"]);
    assert_eq!(broken(|it| it.dark = None), ["heirs", "dark"]);
}

#[test]
fn a_routine_that_rests_while_it_is_dark_breaks_a_promise() {
    let rest = |course: &mut Course| {
        let runs = course.runs.get_mut(&VISITOR).unwrap();
        runs.get_mut(&2).unwrap().ended = Some((at(6_100), End::Completed));
    };
    assert_eq!(broken(rest), ["dark"]);
}

#[test]
fn a_time_without_runs_that_is_too_long_breaks_a_promise() {
    let gap = |course: &Course| {
        let mut table = judge_building(&plan(), course).into_iter();
        table.find(|it| it.id == "building-gap").unwrap()
    };
    // From the end of the second round to the end of the next one.
    let powered = Course {
        blackout: None,
        ..smooth()
    };
    assert_eq!(gap(&powered).seen, Some(3.7));
    // The time without power does not count: now it is the time before the second round.
    let gap = gap(&smooth());
    assert_eq!(gap.seen, Some(3.2));
    let long = Span::micros((gap.limit * 1e6) as u64);
    let late = |more: Span| {
        broken(|it| {
            it.closed = Some(at(9_350) + long + more);
            it.end = at(60_000);
        })
    };
    assert_eq!(late(Span::ZERO), Vec::<String>::new());
    assert_eq!(late(Span(1)), ["gap"]);
}

#[test]
fn an_epoch_that_moves_no_group_or_does_not_come_breaks_a_promise() {
    assert_eq!(broken(|it| it.moves.clear()), ["epoch"]);
    // It moved before, because of the failure.
    let before = |it: &mut Course| {
        it.moves.insert((VISITOR.group(), 4), at(6_400));
    };
    assert_eq!(broken(before), ["epoch"]);
    // All nodes were dark.
    let dark = |it: &mut Course| it.epochs.push(at(7_800));
    assert_eq!(broken(dark), Vec::<String>::new());
    assert_eq!(broken(|it| it.epochs.truncate(1)), ["epoch"]);
    // An epoch that begins at the very end has no time for it.
    assert_eq!(broken(|it| it.epochs.push(at(9_900))), Vec::<String>::new());
}

#[test]
fn a_count_that_differs_breaks_a_promise() {
    for wrong in [2, 4] {
        let count = |it: &mut Course| {
            it.counted.as_mut().unwrap().insert(EVENING, wrong);
        };
        assert_eq!(broken(count), ["count"]);
    }
    assert_eq!(broken(|it| it.counted = None), ["count"]);
    // One run too many here and one too few there.
    let both = |it: &mut Course| {
        it.counted = Some([(VISITOR, 2), (EVENING, 4), (AIRING, 3), (READING, 3)].into());
    };
    assert_eq!(broken(both), ["count"]);
}

#[test]
fn who_leads_follows_from_what_nodes_tell() {
    let mut course = Course::default();
    let [one, two] = [0, 1].map(Site::cluster);
    course.note(&seen(1, 5, Event::Leading { group: one }));
    course.note(&seen(2, 5, Event::Leading { group: two }));
    course.note(&seen(3, 6, Event::Leading { group: one }));
    assert_eq!(
        course.leaders(),
        [(one, NodeId(6)), (two, NodeId(5))].into()
    );
    course.note(&seen(4, 5, Event::Deposed { group: one }));
    course.note(&seen(5, 6, Event::Groups(groups::Event::Left(one))));
    course.goes_down(NodeId(5), at(6));
    let lead = |group, node, from, until| Tenure {
        group,
        node: NodeId(node),
        from: at(from),
        until: Some(at(until)),
    };
    assert_eq!(
        course.leads,
        [lead(one, 5, 1, 4), lead(two, 5, 2, 6), lead(one, 6, 3, 5)]
    );
    assert!(course.leaders().is_empty());
}

#[test]
fn the_picture_has_a_band_for_each_time_in_which_a_node_led() {
    let course = smooth();
    let svg = groups_over_time(&course);
    assert_eq!(svg.matches("class=\"band").count(), course.leads.len());
    assert_eq!(svg.matches("class=\"run\"").count(), 12);
    assert_eq!(svg.matches("an epoch begins").count(), 2);
    assert_eq!(svg.matches("routine: ").count(), 4 + course.leads.len());
    for text in [
        "nodes 3 and 4 are dark, 3.00 s to 6.00 s",
        "a lamp is added",
        "nodes 3 and 4 go dark",
        "they come back",
        "node 3 leads routine: visitor, 0.80 s to 3.00 s",
        "node 7 leads routine: airing, 4.20 s to 11.00 s",
        "map: runs",
    ] {
        assert!(svg.contains(text), "no {text}");
    }
    // Nothing is drawn beside the picture, and one domain is one colour.
    let attribute = |name: &str| {
        let parts = svg.split(name).skip(1);
        let values = parts.map(|it| it.split('"').next().unwrap().parse::<f64>().unwrap());
        values.collect::<Vec<_>>()
    };
    let (lefts, widths) = (attribute(" x=\""), attribute(" width=\""));
    assert!(lefts.iter().all(|it| (0.0..=1_180.0).contains(it)));
    assert!(widths.iter().all(|it| (0.0..=1_180.0).contains(it)));
    assert_eq!(svg.matches("band d1").count(), 2);
    let empty = groups_over_time(&Course::default());
    assert!(!empty.contains("NaN") && !empty.contains("dark"));
}

#[test]
fn a_plan_shows_the_members_and_the_leader_of_each_group_at_that_time() {
    let mut course = smooth();
    let group = VISITOR.group();
    for node in [2, 3, 6] {
        groups_event(&mut course, 800, node, groups::Event::Entered(group));
    }
    groups_event(&mut course, 4_000, 2, groups::Event::Left(group));
    let floor = floor_over_time(&course);
    let plans: Vec<&str> = floor.split("<g class=\"floor\"").skip(1).collect();
    let captions = [
        "1.1 s: a lamp is about to be added",
        "1.9 s: a run with the lamp has ended",
        "6.0 s: nodes 3 and 4 are still dark",
        "6.3 s: they are back",
        "7.5 s: no node has power",
        "11.0 s: the end",
    ];
    assert_eq!(plans.len(), captions.len());
    let count = |text: &str| {
        plans
            .iter()
            .map(|it| it.matches(text).count())
            .collect::<Vec<_>>()
    };
    for (plan, caption) in plans.iter().zip(captions) {
        assert!(plan.contains(caption), "no {caption}");
    }
    assert_eq!(count("class=\"member\""), [3, 3, 1, 2, 0, 2]);
    // Nodes 3, 4 and 5 lead at first; 6, 7 and 5 when 3 and 4 are dark.
    assert_eq!(count("class=\"lead d1\""), [2, 2, 0, 0, 0, 0]);
    assert_eq!(count("class=\"lead d2\""), [1, 2, 3, 3, 0, 3]);
    assert_eq!(count("class=\"off\""), [0, 0, 3, 0, 15, 0]);
    assert_eq!(count("class=\"device\""), [6, 7, 7, 7, 7, 7]);
    assert!(!floor_over_time(&Course::default()).contains("NaN"));
}

#[test]
fn the_page_of_the_building_has_its_picture_and_its_table() {
    let course = smooth();
    let table = judge_building(&plan(), &course);
    let page = building_page(&course, &table, 7);
    assert!(page.contains("<svg viewBox") && page.ends_with("</html>\n"));
    assert!(page.contains("12 runs ended") && page.contains("Nodes 3 and 4 went dark"));
    assert!(page.contains("A lamp and a routine were added") && page.contains("class=\"floor\""));
    assert!(page.contains("Every promise held. Each band") && page.contains("Seed 7."));
    assert_eq!(page.matches("class=\"yes\"").count(), table.len());
}

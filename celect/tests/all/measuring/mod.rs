//! The closed loop by hand: the leader asks for lists, all receive its bound on c, and elections use
//! it; with messages that are lost, doubled or late, or come from a node that lies.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking"
)]

mod feedback;
use crate::mesh;
mod refused;

use alloc::rc::Rc;
use core::cell::RefCell;

use mesh::{Mesh, member};
use selvedge_celect::check::ById;
use selvedge_celect::{
    Ballot, Celect, Command, Config, ConfigError, Estimation, Event, Members, Message,
    Misbehaviour, NotMeasured, Protocol, Reject, Source, Timer,
};
use selvedge_core::{Choose, Delta, Driver, Input, Member, NodeId, Ratio, Span};

/// 1 in 100, as in messages.
const MISS: Ratio = Ratio::new(10_000, 1_000_000);

const fn config(estimation: Estimation) -> Config {
    Config::new(9, 1).with_estimation(Some(estimation))
}

fn usual() -> Estimation {
    Estimation::default().with_margin(0).with_floor(0)
}

impl Mesh {
    /// Returns a mesh in which all nodes know each other, except that in each pair of `lacks` the first
    /// does not know the second.
    fn missing(nodes: u64, config: Config, lacks: &[(u64, u64)]) -> Self {
        let knows = |id| (1..=nodes).filter(move |&it| !lacks.contains(&(id, it)));
        let lists: Vec<Vec<u64>> = (1..=nodes).map(|id| knows(id).collect()).collect();
        Self::with_lists(&lists, config)
    }

    fn bound(&self, id: u64) -> (u16, Option<Ratio>) {
        self.nodes[id as usize - 1].machine().bound()
    }

    fn notified<T>(&self, of: impl Fn(&(u64, Event)) -> Option<T>) -> Vec<T> {
        self.events.iter().filter_map(of).collect()
    }

    fn measured(&self) -> Vec<(u64, u32)> {
        self.notified(|(id, event)| match event {
            Event::Measured(it) => Some((*id, it.upper_bound)),
            _ => None,
        })
    }
}

/// 4 lists of 20 lack node 7.
const LACKS: &[(u64, u64)] = &[(2, 7), (3, 7), (4, 7), (5, 7), (9, 11)];

#[test]
fn the_leader_measures_c_tells_all_and_elections_rest_on_it() {
    let mut mesh = Mesh::missing(20, config(usual()), LACKS);
    mesh.command(8, Command::Elect);
    mesh.pass(Span::millis(100));
    let first = Event::Concluded {
        ballot: mesh.nodes[0].machine().leads().unwrap(),
        missing_from: 9,
        miss: None,
    };
    assert!(mesh.events.contains(&(8, first)), "the configured one");
    mesh.pass(Span::secs(30));
    // All 19 others were asked.
    assert_eq!(mesh.measured(), [(1, 4)]);
    for id in 1..=20 {
        assert_eq!(mesh.bound(id), (4, Some(MISS)), "{id}");
    }
    mesh.command(8, Command::Elect);
    mesh.pass(Span::secs(1));
    let concluded = mesh.notified(|it| match it {
        (
            8,
            Event::Concluded {
                missing_from: c,
                miss,
                ..
            },
        ) => Some((*c, *miss)),
        _ => None,
    });
    assert_eq!(concluded, [(9, None), (4, Some(MISS))]);
    mesh.pass(Span::secs(10));
    assert_eq!(
        mesh.measured().len(),
        1,
        "it led before: no reason to ask again"
    );
    // And again every period: a better list has an effect when the window has passed.
    for id in 2..=5 {
        mesh.notify(id, Delta::Joined(member(7)));
    }
    mesh.pass(Span::secs(120));
    assert_eq!(mesh.bound(20).0, 4);
    mesh.pass(Span::secs(120));
    assert_eq!(mesh.bound(20).0, 1);
}

#[test]
fn who_is_not_on_the_leaders_list_is_asked_and_told_too() {
    let lacks = [(1, 19), (1, 20), (3, 18), (20, 18), (19, 18)];
    let mut mesh = Mesh::missing(20, config(usual()), &lacks);
    mesh.command(8, Command::Elect);
    mesh.pass(Span::secs(20));
    assert_eq!(mesh.measured(), [(1, 3)], "18 is missing from 3 lists");
    for id in 1..=20 {
        assert_eq!(mesh.bound(id), (3, Some(MISS)), "{id}");
    }
}

#[test]
fn any_node_may_measure_for_itself() {
    let mut mesh = Mesh::missing(20, config(usual()), LACKS);
    mesh.command(12, Command::Measure);
    let again = mesh.step(12, Input::Command(Command::Measure));
    assert_eq!(again, Err(Reject::AlreadyMeasuring));
    mesh.pass(Span::secs(1));
    assert_eq!(mesh.measured(), [(12, 4)]);
    let known: Vec<u64> = (1..=20).filter(|&it| mesh.bound(it).1.is_some()).collect();
    assert_eq!(known, [12]);
    let mut off = Mesh::missing(2, Config::new(0, 0), &[]);
    let refused = off.step(1, Input::Command(Command::Measure));
    assert_eq!(refused, Err(Reject::NoEstimation));
    let mut alone = Mesh::missing(1, config(usual()), &[]);
    let refused = alone.step(1, Input::Command(Command::Measure));
    assert_eq!(refused, Err(Reject::Alone));
}

#[test]
fn lists_come_in_parts_whatever_is_lost_doubled_or_overtaken() {
    // 30 lists of 200 lack node 150; each takes several frames.
    let lacks: Vec<(u64, u64)> = (100..130).map(|id| (id, 150)).collect();
    let small = config(usual().with_sample(199))
        .with_frame_budget(127)
        .with_attempts(20);
    let mut mesh = Mesh::missing(200, small, &lacks);
    mesh.shuffled = true;
    mesh.fate = Box::new(|_, rng| [0, 1, 1, 1, 2][rng.below(5) as usize]);
    mesh.command(10, Command::Measure);
    mesh.pass(Span::secs(600));
    assert_eq!(mesh.measured(), [(10, 30)]);
    let counters = mesh.nodes[9].machine().counters();
    assert_eq!(counters.unlisted, 0);
    assert!(counters.stale > 100, "{counters:?}");
}

/// A list of four parts, each of which is asked for twice: more often in total than `attempts`.
#[test]
fn each_part_of_a_list_has_all_its_attempts() {
    let config = config(usual()).with_attempts(2).with_frame_budget(127);
    let list = (1..=130).filter(|&it| it != 2).collect();
    let mut mesh = Mesh::with_lists(&[vec![2], list], config);
    mesh.cut.extend(3..=130);
    let lost = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&lost);
    mesh.fate = Box::new(move |(_, to, message), _| {
        let Message::SampleQuery { from, .. } = *message else {
            return 1;
        };
        let mut lost = noted.borrow_mut();
        if *to != member(2) || lost.contains(&from) {
            return 1;
        }
        lost.push(from);
        0
    });
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(100));
    assert!(lost.borrow().len() > 3, "{lost:?}");
    // The 128 nodes that it names do not exist.
    assert_eq!(mesh.nodes[0].machine().counters().unlisted, 128);
}

#[test]
fn answers_that_are_lost_leave_fewer_lists_and_a_larger_bound() {
    let lacks: Vec<(u64, u64)> = (20..25).map(|id| (id, 7)).collect();
    let mut mesh = Mesh::missing(60, config(usual()), &lacks);
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(60));
    // Half of the nodes send no answer.
    mesh.fate = Box::new(|(_, _, message), _| match message {
        Message::SampleResponse { members, .. } if members[0].id.0 == 1 => 0,
        _ => 1,
    });
    // The list of node 1 begins with 2, and so should the lists of the nodes after 30.
    for id in 31..=60 {
        mesh.notify(id, Delta::Failed(member(1)));
    }
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(60));
    let found = mesh.notified(|(_, event)| match event {
        Event::Measured(it) => Some(*it),
        _ => None,
    });
    let [all, half] = found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(all.lists, 50);
    assert!((20..31).contains(&half.lists), "{half:?}");
    assert!(half.upper_bound > all.upper_bound);
    assert!(mesh.nodes[0].machine().counters().unlisted >= 20);
}

#[test]
fn too_few_answers_say_nothing_and_leave_what_is_known() {
    let mut mesh = Mesh::missing(60, config(usual()), LACKS);
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(10));
    let known = mesh.bound(1);
    assert!(known.1.is_some());
    mesh.fate = Box::new(|_, _| 0);
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(60));
    let why = mesh.notified(|(_, event)| match event {
        Event::Unmeasured(NotMeasured::TooFew(it)) => Some(it.lists),
        _ => None,
    });
    assert_eq!(why, [0]);
    assert_eq!(mesh.bound(1), known);
    // It counts until it is too old.
    mesh.pass(Span::secs(300));
    assert_eq!(mesh.bound(1), (9, None));
    let fell_back = Event::BoundChanged {
        missing_from: 9,
        miss: None,
    };
    assert_eq!(mesh.events.last(), Some(&(1, fell_back)));
}

#[test]
fn a_node_that_misses_what_is_told_falls_back_and_a_restart_begins_there() {
    let mut mesh = Mesh::missing(20, config(usual()), LACKS);
    mesh.command(8, Command::Elect);
    mesh.pass(Span::secs(10));
    assert_eq!(mesh.bound(20).0, 4);
    mesh.fate =
        Box::new(|(_, _, message), _| usize::from(!matches!(message, Message::Estimate { .. })));
    mesh.pass(Span::secs(301));
    assert_eq!(mesh.bound(20), (9, None));
    assert_eq!(mesh.bound(1), (4, Some(MISS)), "the leader knows it still");
    let born = Member::new(1, 1);
    mesh.nodes[0] = Driver::new(Celect::new(born, config(usual()), ById).unwrap());
    assert_eq!(mesh.bound(1), (9, None));
}

#[test]
fn a_late_answer_to_a_former_life_or_sample_counts_for_nothing() {
    let mut mesh = Mesh::missing(9, config(usual()), &[]);
    mesh.command(1, Command::Measure);
    let query = mesh.wire.remove(0);
    mesh.wire.clear();
    let answer = |run, life| Message::SampleResponse {
        run,
        life,
        from: NodeId(0),
        members: Members::new(),
        more: false,
    };
    for late in [answer(1, 1), answer(2, 0), answer(0, 0)] {
        mesh.step(
            1,
            Input::Message {
                from: query.1,
                message: late,
            },
        )
        .unwrap();
    }
    // An answer from a node that was not asked, or from another life.
    for from in [member(77), Member::new(query.1.id.0, 5)] {
        mesh.step(
            1,
            Input::Message {
                from,
                message: answer(1, 0),
            },
        )
        .unwrap();
    }
    assert_eq!(mesh.nodes[0].machine().counters().stale, 5);
    // The right answer is accepted, and not requested again.
    mesh.step(
        1,
        Input::Message {
            from: query.1,
            message: answer(1, 0),
        },
    )
    .unwrap();
    assert_eq!(mesh.wire.len(), 1, "the next node is asked");
    mesh.step(
        1,
        Input::Message {
            from: query.1,
            message: answer(1, 0),
        },
    )
    .unwrap();
    assert_eq!(mesh.nodes[0].machine().counters().stale, 6);
}

#[test]
fn the_dead_are_passed_over_when_nearly_all_lists_lack_them() {
    let mut mesh = Mesh::missing(40, config(usual()), LACKS);
    // 40 failed, and most nodes know. While the sampler does not, its bound is too large.
    for id in 2..=35 {
        mesh.notify(id, Delta::Failed(member(40)));
    }
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(60));
    mesh.notify(1, Delta::Failed(member(40)));
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(60));
    // A node that few lists lack is not believed dead, even if the sampler believes that it failed.
    mesh.notify(1, Delta::Failed(member(7)));
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(60));
    let uppers: Vec<u32> = mesh.measured().iter().map(|it| it.1).collect();
    assert_eq!(uppers, [34, 4, 5]);
}

#[test]
fn c_is_kept_within_its_limits_and_a_cut_says_so() {
    let found = |estimation: Estimation| {
        let mut mesh = Mesh::missing(20, config(estimation), LACKS);
        mesh.command(1, Command::Measure);
        mesh.pass(Span::secs(10));
        mesh.bound(1)
    };
    let margin = |margin| usual().with_margin(margin);
    assert_eq!(found(margin(2)), (6, Some(MISS)));
    // N - 1 - f, and far from an overflow.
    assert_eq!(found(margin(u16::MAX)), (18, Some(MISS)));
    let floor = usual().with_floor(8);
    assert_eq!(found(floor), (8, Some(MISS)));
    let ceiling = usual().with_ceiling(3);
    assert_eq!(found(ceiling), (3, None));
}

/// The host sets c = 0 when no other node is left: a bound that was measured among others no longer
/// applies.
#[test]
fn who_is_alone_elects_whatever_was_measured_among_others() {
    let mut mesh = Mesh::missing(20, config(Estimation::default()), LACKS);
    mesh.command(1, Command::Measure);
    mesh.pass(Span::secs(10));
    for id in 2..=20 {
        mesh.notify(1, Delta::Failed(member(id)));
    }
    // A floor of 9 is limited by the configured c.
    assert_eq!(mesh.bound(1), (1, None));
    mesh.command(
        1,
        Command::SetBounds {
            missing_from: 0,
            failures: 1,
        },
    );
    assert_eq!(mesh.bound(1), (0, None));
    mesh.command(1, Command::Elect);
    let leader = mesh.nodes[0].machine().leader();
    assert_eq!(leader.map(|(leader, _)| leader), Some(member(1)));
}

#[test]
fn a_leader_that_is_replaced_measures_no_more() {
    let few = config(usual()).with_missing_from(1);
    let mut mesh = Mesh::missing(5, few, &[]);
    mesh.command(3, Command::Elect);
    mesh.pass(Span::secs(200));
    let samples = mesh.measured().len();
    assert_eq!(samples, 4);
    for id in 2..=5 {
        mesh.notify(id, Delta::Left(member(1)));
    }
    mesh.pass(Span::secs(10));
    // 1 learns that 2 leads, when it asks.
    mesh.command(1, Command::Elect);
    mesh.pass(Span::secs(5));
    assert_eq!(mesh.nodes[0].machine().leads(), None);
    assert!(mesh.nodes[1].machine().leads().is_some());
    mesh.pass(Span::secs(200));
    let by: Vec<u64> = mesh.measured()[samples..].iter().map(|it| it.0).collect();
    assert!(!by.is_empty() && by.iter().all(|&it| it == 2), "{by:?}");
    // A stray tick does nothing.
    let before = mesh.nodes[0].machine().clone();
    for timer in [Timer::Measure, Timer::Sample] {
        mesh.step(1, Input::Tick(timer)).unwrap();
    }
    assert_eq!(&before, mesh.nodes[0].machine());
}

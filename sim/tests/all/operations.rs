//! Lists of operations on a small mesh: the example that finds a defect, and the effect of each
//! operation.

#[path = "../../examples/own_operations.rs"]
mod own_operations;

use std::convert::Infallible;

use own_operations::{Command, Lock, play};
use selvedge_core::{Context, Effect, Input, Machine, Member, Span, Time};
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation::{
    Announce, Command as Ask, Crash, Cut, Deliver, DeliverAll, Duplicate, Introduce, Lose, Pause,
    Restart, Resume, Wait,
};
use selvedge_sim::operations::{Mesh, Seat, Step, Watch, list, run};

/// With the defect both of two nodes get in; a list that shows it is found, and made short.
#[test]
fn the_example_finds_its_defect() {
    own_operations::main();
}

#[test]
fn a_list_reads_as_a_story() {
    let story: [selvedge_sim::operations::Operation<Lock>; 3] =
        [Ask(0, Command::Enter), DeliverAll, Crash(1)];
    assert_eq!(format!("{story:?}"), "[Enter(0), DeliverAll, Crash(1)]");
}

#[test]
fn a_node_gets_in_when_all_have_answered() {
    let enter = || Ask(0, Command::Enter);
    assert_eq!(play(&[enter(), DeliverAll], true).unwrap(), 0);
    assert_eq!(play(&[enter(), DeliverAll, DeliverAll], true).unwrap(), 1);
    // A lost message is not answered, and one answer is not two.
    assert_eq!(
        play(&[enter(), Lose(0), DeliverAll, DeliverAll], true).unwrap(),
        0
    );
    assert_eq!(
        play(&[enter(), Cut(1), DeliverAll, DeliverAll], true).unwrap(),
        0
    );
    let twice = [enter(), DeliverAll, Duplicate(0), Deliver(0)];
    assert_eq!(play(&twice, true).unwrap(), 0);
    assert_eq!(
        play(
            &[enter(), Deliver(0), Deliver(0), Deliver(0), Deliver(0)],
            true
        )
        .unwrap(),
        1
    );
}

#[test]
fn what_is_down_or_paused_does_not_answer() {
    let enter = || Ask(0, Command::Enter);
    let down = [Crash(1), enter(), DeliverAll, DeliverAll];
    assert_eq!(play(&down, true).unwrap(), 0);
    let back = [
        Crash(1),
        Restart(1),
        Announce(1),
        Introduce(1),
        enter(),
        DeliverAll,
        DeliverAll,
    ];
    assert_eq!(play(&back, true).unwrap(), 1);
    let paused = [Pause(1), enter(), DeliverAll, DeliverAll];
    assert_eq!(play(&paused, true).unwrap(), 0);
    let resumed = [
        Pause(1),
        enter(),
        DeliverAll,
        DeliverAll,
        Resume(1),
        DeliverAll,
        DeliverAll,
    ];
    assert_eq!(play(&resumed, true).unwrap(), 1);
    // It lost its memory, and comes back outside.
    let forgotten = [
        enter(),
        DeliverAll,
        DeliverAll,
        Restart(0),
        Ask(1, Command::Enter),
        DeliverAll,
        DeliverAll,
    ];
    assert_eq!(play(&forgotten, true).unwrap(), 2);
}

#[test]
fn any_bytes_are_a_list() {
    assert!(list::<Lock>(&[]).is_empty());
    for byte in 0..=255 {
        let operations = list(&[byte; 9]);
        assert!(!operations.is_empty(), "{byte}");
        play(&operations, true).unwrap();
    }
}

/// Refuses a second command, and emits an event at the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Diary {
    was_asked: bool,
}

impl Machine for Diary {
    type Message = Infallible;
    type Timer = Infallible;
    type Command = ();
    type Event = Time;
    type Reject = &'static str;

    fn handle(&mut self, _: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), &'static str> {
        if self.was_asked {
            return Err("again");
        }
        self.was_asked = true;
        cx.event(cx.now());
        Ok(())
    }
}

/// Notes each step.
#[derive(Default)]
struct Notes(Vec<(Time, Option<&'static str>)>);

impl Watch<Diary> for Notes {
    fn after(&mut self, step: &Step<'_, Diary>) -> Result<(), String> {
        self.0.push((step.now, step.refusal.copied()));
        let is_notified = step.effects == [Effect::Event(step.now)];
        (is_notified || step.refusal.is_some())
            .then_some(())
            .ok_or_else(|| format!("{:?} at {:?}", step.effects, step.now))
    }

    fn restart(&mut self, _: usize, before: Member) -> Option<(Member, Diary)> {
        Some((before, Diary::default()))
    }
}

#[test]
fn each_life_has_a_clock_of_its_own_and_a_step_says_why_it_was_refused() {
    let (mut mesh, mut notes) = (Mesh::new(0), Notes::default());
    mesh.add(Member::new(1, 0), Diary::default());
    mesh.add(Member::new(2, 0), Diary::default());
    let story = [
        Wait(Span::secs(3)),
        Ask(0, ()),
        Ask(0, ()),
        Restart(0),
        Wait(Span::secs(1)),
        Ask(0, ()),
        Ask(1, ()),
    ];
    run(&mut mesh, story, &mut Bytes::new(&[]), &mut notes).unwrap();
    let at = |secs| Time::ZERO + Span::secs(secs);
    assert_eq!(
        notes.0,
        [
            (at(3), None),
            (at(3), Some("again")),
            (at(1), None),
            (at(4), None)
        ]
    );
    assert_eq!(mesh.now(), at(4));
    let clocks: Vec<Time> = mesh.seats().iter().map(Seat::now).collect();
    assert_eq!(clocks, [at(1), at(4)]);
}

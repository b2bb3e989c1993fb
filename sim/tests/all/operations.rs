//! Lists of operations on a small mesh: the example that finds a defect, and what each operation does.

#[path = "../../examples/own_operations.rs"]
mod own_operations;

use own_operations::{Command, Lock, play};
use selvedge_sim::operations::Operation::{
    Announce, Command as Ask, Crash, Cut, Deliver, DeliverAll, Duplicate, Introduce, Lose, Pause,
    Restart, Resume,
};
use selvedge_sim::operations::list;

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
    // What is lost is not answered, and one answer is not two.
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
    // It forgets what it was, and comes back without being in.
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

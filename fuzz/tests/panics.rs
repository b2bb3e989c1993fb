//! A machine that panics under libFuzzer: libFuzzer's hook ends the process at the first panic. This
//! is a separate program, since a panic hook belongs to the whole process.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and so does a target"
)]

use std::panic::{self, catch_unwind};
use std::sync::Mutex;

use selvedge_core::{Context, Input, Machine, Member};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Mesh, Operation, Step, Watch, list, run};

/// Panics at the second command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Once(bool);

impl Machine for Once {
    type Message = ();
    type Timer = ();
    type Command = bool;
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, _: &mut Context<'_, Self>) -> Result<(), ()> {
        if let Input::Command(_) = input {
            assert!(!self.0, "a second command");
            self.0 = true;
        }
        Ok(())
    }
}

struct Nothing;

impl Watch<Once> for Nothing {
    fn after(&mut self, _: &Step<'_, Once>) -> Result<(), String> {
        Ok(())
    }

    fn restart(&mut self, _: usize, _: Member) -> Option<(Member, Once)> {
        None
    }
}

/// A target as in this crate.
fn target(data: &[u8]) {
    let mut mesh = Mesh::new(8);
    mesh.add(Member::new(0, 0), Once::default());
    let operations: Vec<Operation<Once>> = list(data);
    if let Err(broken) = run(&mut mesh, operations, &mut Bytes::new(&[]), &mut Nothing) {
        panic!("{broken}");
    }
}

#[test]
fn the_first_panic_that_a_fuzzer_sees_has_the_story() {
    static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
    panic::set_hook(Box::new(|info| {
        SEEN.lock().unwrap().push(info.to_string());
    }));
    // Commands to seat 0, of one byte each.
    let panicked = catch_unwind(|| target(&[16, 0, 16, 1])).is_err();
    drop(panic::take_hook());
    assert!(panicked);
    let seen = SEEN.lock().unwrap();
    let [story] = seen.as_slice() else {
        panic!("{seen:?}");
    };
    assert!(story.contains("a second command"), "{story}");
    assert!(story.contains("\n  1. false(0)\n  2. true(0)"), "{story}");
}

//! Machines that panic amid a list of operations: the story shows the steps up to there.

use selvedge_core::{Context, Input, Machine, Member, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation::{self, Command as Ask, Crash, Deliver, DeliverAll, Wait};
use selvedge_sim::operations::{Broken, Mesh, Step, Watch, run, shrink};

/// Knows three rooms. A room that is asked for goes to the next node, which looks into it later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Rooms {
    rooms: [u8; 3],
    next: usize,
}

impl Machine for Rooms {
    type Message = usize;
    type Timer = ();
    type Command = usize;
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Command(room) => cx.send(Member::new(1, 0), room),
            Input::Message { message, .. } => {
                self.next = message;
                cx.arm((), Span::secs(1));
            }
            Input::Tick(()) => self.rooms[self.next] += 1,
            Input::Membership(_) => {}
        }
        Ok(())
    }
}

/// Panics at a crash.
struct Strict;

impl Watch<Rooms> for Strict {
    fn after(&mut self, _: &Step<'_, Rooms>) -> Result<(), String> {
        Ok(())
    }

    fn restart(&mut self, _: usize, _: Member) -> Option<(Member, Rooms)> {
        None
    }

    fn crashed(&mut self, seat: usize, _: Member, _: &Rooms) {
        assert!(seat != 0, "node 0 is to stay");
    }
}

fn play(list: &[Operation<Rooms>]) -> Result<(), Broken<Rooms>> {
    let mut mesh = Mesh::new(8);
    for id in 0..2 {
        mesh.add(Member::new(id, 0), Rooms::default());
    }
    run(
        &mut mesh,
        list.iter().cloned(),
        &mut Bytes::new(&[]),
        &mut Strict,
    )
}

#[test]
fn a_machine_that_panics_breaks_a_run_with_the_steps_that_lead_there() {
    let second = || Wait(Span::secs(1));
    let list = [
        Ask(0, 1),
        DeliverAll,
        second(),
        Ask(6, 3),
        Deliver(7),
        second(),
    ];
    let broken = play(&list).unwrap_err();
    assert_eq!(broken.played.len(), 6);
    let place = "panicked at sim/tests/all/panics.rs:";
    assert!(broken.promise.starts_with(place), "{broken}");
    let why = "index out of bounds: the len is 3 but the index is 3";
    assert!(broken.promise.ends_with(why), "{broken}");

    let short = shrink(&list, |list| play(list).err()).unwrap();
    let text = short.to_string();
    let (_, story) = text.split_once('\n').unwrap();
    let notified = "after
  1. 3(0)
       -> n0#0 sends 3 to n1
  2. Deliver(0)
       3 from n0#0 to n1 arrives
  3. Wait(1s)";
    assert_eq!(story, notified);
}

#[test]
fn a_watch_that_panics_breaks_a_run() {
    assert_eq!(play(&[Crash(1)]), Ok(()));
    let broken = play(&[DeliverAll, Crash(2)]).unwrap_err();
    assert!(broken.promise.ends_with(": node 0 is to stay"), "{broken}");
    assert_eq!(broken.played, [DeliverAll, Crash(0)]);
}

//! The effect of each operation on a mesh, seen by machines that note their inputs; operations from
//! bytes; stories, and lists that are shortened.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::{Arbitrary, Unstructured};
use selvedge_core::{Context, Delta, Input, Machine, Member, NodeId, Span};
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation::{
    self, Announce, Command as Ask, Crash, Cut, DeliverAll, Fail, Forge, Introduce, Learn, Lose,
    Pause, Refute, Restart, Resume, Suspect, Wait,
};
use selvedge_sim::operations::{Broken, Letter, Mesh, Step, Watch, run, shrink};

/// Notes its inputs, and follows commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Probe {
    received: Vec<Received>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Received {
    Message(NodeId, u8),
    Delta(Delta),
    Tick,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Arbitrary)]
enum Command {
    Send(u8, u8),
    SendAll(u8),
    /// Arms a timer, due after this number of seconds.
    Arm(u8),
    /// Arms a timer that it refuses when it is due.
    ArmWrongly,
    Refuse,
}

impl Machine for Probe {
    type Message = u8;
    /// True if it is refused when it is due.
    type Timer = bool;
    type Command = Command;
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Message { from, message } => {
                self.received.push(Received::Message(from.id, message));
                if message == 99 {
                    cx.event(());
                }
            }
            Input::Membership(delta) => self.received.push(Received::Delta(delta)),
            Input::Tick(false) => self.received.push(Received::Tick),
            Input::Command(Command::ArmWrongly) => cx.arm(true, Span::ZERO),
            Input::Tick(true) | Input::Command(Command::Refuse) => return Err(()),
            Input::Command(Command::Send(to, message)) => cx.send(node(to), message),
            Input::Command(Command::SendAll(message)) => cx.multicast(message),
            Input::Command(Command::Arm(secs)) => cx.arm(false, Span::secs(secs.into())),
        }
        Ok(())
    }
}

/// The messages that may be lost, the nodes that may be known, and the next life.
struct Rules {
    may_lose: fn(&Letter<Probe>) -> bool,
    may_know: fn(usize, usize) -> bool,
    next: fn(Member) -> Option<Member>,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            may_lose: |_| true,
            may_know: |_, _| true,
            next: |before| {
                let incarnation = before.incarnation.next();
                Some(Member {
                    incarnation,
                    ..before
                })
            },
        }
    }
}

impl Watch<Probe> for Rules {
    fn after(&mut self, step: &Step<'_, Probe>) -> Result<(), String> {
        let forbidden = Received::Message(NodeId(0), 99);
        let is_broken = step.machine().received.contains(&forbidden);
        is_broken
            .then_some(())
            .map_or(Ok(()), |()| Err("node 0 said 99".to_owned()))
    }

    fn restart(&mut self, _: usize, before: Member) -> Option<(Member, Probe)> {
        (self.next)(before).map(|me| (me, Probe::default()))
    }

    fn may_know(&self, seat: usize, about: usize) -> bool {
        (self.may_know)(seat, about)
    }

    fn may_lose(&self, letter: &Letter<Probe>) -> bool {
        (self.may_lose)(letter)
    }
}

fn node(id: u8) -> Member {
    Member::new(id.into(), 0)
}

fn mesh(capacity: usize) -> Mesh<Probe> {
    let mut mesh = Mesh::new(capacity);
    for id in 0..3_u8 {
        assert_eq!(mesh.add(node(id), Probe::default()), usize::from(id));
    }
    mesh
}

/// Overrides nothing that it may leave as it is.
struct Plain;

impl Watch<Probe> for Plain {
    fn after(&mut self, _: &Step<'_, Probe>) -> Result<(), String> {
        Ok(())
    }

    fn restart(&mut self, _: usize, _: Member) -> Option<(Member, Probe)> {
        None
    }
}

fn played(
    rules: &mut impl Watch<Probe>,
    capacity: usize,
    operations: &[Operation<Probe>],
) -> Mesh<Probe> {
    let mut mesh = mesh(capacity);
    run(
        &mut mesh,
        operations.iter().cloned(),
        &mut Bytes::new(&[]),
        rules,
    )
    .unwrap();
    assert_eq!(mesh.played().len(), operations.len());
    mesh
}

fn play(operations: &[Operation<Probe>]) -> Mesh<Probe> {
    played(&mut Rules::default(), 64, operations)
}

fn received(mesh: &Mesh<Probe>, at: usize) -> Vec<Received> {
    mesh.machine(at).unwrap().received.clone()
}

/// Sender, receiver, content, and true for a multicast.
fn letters(mesh: &Mesh<Probe>) -> Vec<(u64, u64, u8, bool)> {
    let letters = mesh.in_flight().iter();
    letters
        .map(|it| (it.from.id.0, it.to.0, it.message, it.is_multicast))
        .collect()
}

fn send(from: usize, to: u8, message: u8) -> Operation<Probe> {
    Ask(from, Command::Send(to, message))
}

#[test]
fn what_is_sent_is_in_flight_until_it_arrives() {
    let sent = [Ask(0, Command::SendAll(7)), send(2, 0, 8)];
    let mesh = play(&sent);
    assert_eq!(
        letters(&mesh),
        [(0, 1, 7, true), (0, 2, 7, true), (2, 0, 8, false)]
    );
    assert_eq!((mesh.delivered(), mesh.refused()), (0, 0));
    let mesh = play(&[&sent[..], &[DeliverAll]].concat());
    assert!(mesh.in_flight().is_empty());
    assert_eq!(mesh.delivered(), 3);
    assert_eq!(received(&mesh, 0), [Received::Message(NodeId(2), 8)]);
    for at in [1, 2] {
        assert_eq!(received(&mesh, at), [Received::Message(NodeId(0), 7)]);
    }
}

#[test]
fn a_refusal_is_counted() {
    let refuse = || Ask(1, Command::Refuse);
    for count in 0..4_usize {
        let mesh = play(&[&vec![refuse(); count][..], &[Introduce(0)]].concat());
        assert_eq!(mesh.refused(), count as u64);
    }
}

#[test]
fn beyond_the_capacity_the_oldest_that_may_be_lost_are_lost() {
    let five: Vec<_> = (0..5).map(|it| send(0, 1, it)).collect();
    let left = |may_lose: fn(&Letter<Probe>) -> bool| {
        let mut rules = Rules {
            may_lose,
            ..Rules::default()
        };
        let mesh = played(&mut rules, 3, &five);
        letters(&mesh).iter().map(|it| it.2).collect::<Vec<_>>()
    };
    assert_eq!(left(|_| true), [2, 3, 4]);
    assert_eq!(left(|it| it.message != 0), [0, 3, 4]);
    assert_eq!(left(|_| false), [0, 1, 2, 3, 4]);
}

#[test]
fn a_node_that_is_cut_off_has_no_message_in_flight_but_those_that_must_arrive() {
    let mut all: Vec<_> = (0..3).map(|from| Ask(from, Command::SendAll(1))).collect();
    all.push(send(1, 0, 2));
    let before = letters(&play(&all));
    all.push(Cut(1));
    let touches = |it: &(u64, u64, u8, bool)| it.0 == 1 || it.1 == 1;
    let left: Vec<_> = before.iter().copied().filter(|it| !touches(it)).collect();
    assert_eq!(letters(&play(&all)), left);
    let mut rules = Rules {
        may_lose: |it| it.message != 2,
        ..Rules::default()
    };
    let left = before.into_iter().filter(|it| !touches(it) || it.2 == 2);
    assert!(letters(&played(&mut rules, 64, &all)).into_iter().eq(left));
    let mut rules = Rules {
        may_lose: |_| false,
        ..Rules::default()
    };
    let kept = played(&mut rules, 64, &[send(0, 1, 1), Lose(0)]);
    assert_eq!(kept.in_flight().len(), 1);
}

#[test]
fn a_timer_ticks_when_it_is_due_and_at_a_paused_node_when_that_goes_on() {
    let arm = || Ask(0, Command::Arm(2));
    let sec = || Wait(Span::secs(1));
    for (operations, ticks) in [
        (vec![arm(), sec()], 0),
        (vec![arm(), sec(), sec()], 1),
        (vec![arm(), sec(), sec(), sec()], 1),
        (vec![arm(), Wait(Span::secs(9))], 1),
        (vec![arm(), Pause(0), sec(), sec(), sec()], 0),
        (vec![arm(), Pause(1), sec(), sec(), sec()], 1),
        (vec![arm(), Pause(0), sec(), sec(), sec(), Resume(0)], 1),
        (vec![arm(), Pause(0), sec(), Resume(0)], 0),
    ] {
        let mesh = play(&operations);
        assert_eq!(
            received(&mesh, 0),
            vec![Received::Tick; ticks],
            "{operations:?}"
        );
    }
}

#[test]
fn a_node_hears_of_others_and_not_of_itself() {
    let notified = |it| vec![Received::Delta(it)];
    for (operation, expected) in [
        (Suspect(0, 1), notified(Delta::Suspected(node(1)))),
        (Refute(0, 1), notified(Delta::Refuted(node(1)))),
        (Fail(0, 2), notified(Delta::Failed(node(2)))),
        (Suspect(0, 0), vec![]),
        (Refute(0, 3), vec![]),
        (
            Learn(0, Delta::Left(node(7))),
            notified(Delta::Left(node(7))),
        ),
        (
            Forge(0, node(2), Box::new(5)),
            vec![Received::Message(NodeId(2), 5)],
        ),
    ] {
        let mesh = play(core::slice::from_ref(&operation));
        assert_eq!(received(&mesh, 0), expected, "{operation:?}");
        assert!(received(&mesh, 1).is_empty() && received(&mesh, 2).is_empty());
    }
    let mut none = Rules {
        may_know: |_, _| false,
        ..Rules::default()
    };
    for operation in [Suspect(0, 1), Introduce(0), Announce(1)] {
        assert!(received(&played(&mut none, 64, &[operation]), 0).is_empty());
    }
}

#[test]
fn a_node_is_introduced_to_those_that_are_up_and_its_end_is_announced_to_all() {
    let joined = |id| Received::Delta(Delta::Joined(node(id)));
    let mesh = play(&[Introduce(1)]);
    assert_eq!(received(&mesh, 1), [joined(0), joined(2)]);
    assert!(received(&mesh, 0).is_empty());
    assert_eq!(received(&play(&[Crash(0), Introduce(1)]), 1), [joined(2)]);
    let mesh = play(&[Announce(1)]);
    assert_eq!(
        (received(&mesh, 0), received(&mesh, 2)),
        (vec![joined(1)], vec![joined(1)])
    );
    assert!(received(&mesh, 1).is_empty());
    // Nodes that may not know it learn of its end, for they may have met it.
    let mut rules = Rules {
        may_know: |seat, about| (seat, about) != (0, 1),
        ..Rules::default()
    };
    let mesh = played(
        &mut rules,
        64,
        &[Announce(1), Introduce(0), Crash(1), Announce(1)],
    );
    let over = Received::Delta(Delta::Confirmed(node(1)));
    assert_eq!(received(&mesh, 0), [joined(2), over.clone()]);
    assert_eq!(received(&mesh, 2), [joined(1), over]);
    assert!(mesh.machine(1).is_none() && !mesh.seat(1).unwrap().is_up());
    assert!(mesh.seats().iter().filter(|it| it.is_up()).count() == 2);
}

#[test]
fn unless_it_is_said_otherwise_each_may_know_each_and_each_message_may_be_lost() {
    let joined = |id| Received::Delta(Delta::Joined(node(id)));
    let list = [
        Introduce(0),
        Announce(0),
        Crash(2),
        Announce(2),
        send(0, 1, 7),
        Lose(0),
    ];
    let mesh = played(&mut Plain, 64, &list);
    let over = Received::Delta(Delta::Confirmed(node(2)));
    assert_eq!(received(&mesh, 0), [joined(1), joined(2), over.clone()]);
    assert_eq!(received(&mesh, 1), [joined(0), over]);
    assert_eq!(letters(&mesh), []);
    assert_eq!(mesh.seat(0).unwrap().me(), node(0));
}

#[test]
fn the_first_life_is_that_of_the_present_id() {
    let again = [Restart(1), Crash(1), Restart(1)];
    let mesh = play(&again);
    let seat = mesh.seat(1).unwrap();
    assert_eq!(
        (seat.me(), seat.first()),
        (Member::new(1, 2), Member::new(1, 0))
    );
    let mut rules = Rules {
        next: |it| Some(Member::new(it.id.0 + 10, 5)),
        ..Rules::default()
    };
    let mesh = played(&mut rules, 64, &again);
    let seat = mesh.seat(1).unwrap();
    assert_eq!(
        (seat.me(), seat.first()),
        (Member::new(21, 5), Member::new(21, 5))
    );
    let mut rules = Rules {
        next: |_| None,
        ..Rules::default()
    };
    assert!(
        !played(&mut rules, 64, &[Restart(1)])
            .seat(1)
            .unwrap()
            .is_up()
    );
}

#[test]
fn a_tick_that_is_refused_breaks_the_run() {
    let story = [Ask(1, Command::ArmWrongly), Wait(Span::ZERO)];
    let notified = run(
        &mut mesh(64),
        story,
        &mut Bytes::new(&[]),
        &mut Rules::default(),
    );
    assert_eq!(notified.unwrap_err().promise, "a tick was refused");
}

#[test]
fn a_message_to_itself_breaks_the_run() {
    let toself = run(
        &mut mesh(64),
        [send(1, 1, 5)],
        &mut Bytes::new(&[]),
        &mut Rules::default(),
    );
    assert!(toself.unwrap_err().promise.contains("to itself"));
}

/// The last operations are shown, with the number of earlier ones.
#[test]
fn a_broken_promise_is_told_with_the_last_operations() {
    for count in [1, 29, 30, 31, 45] {
        let mut operations = vec![DeliverAll; count - 1];
        operations.push(Forge(1, node(0), Box::new(99)));
        // Later operations are not played.
        let later = operations.iter().cloned().chain([Crash(2)]);
        let notified = run(
            &mut mesh(64),
            later,
            &mut Bytes::new(&[]),
            &mut Rules::default(),
        );
        let broken = notified.unwrap_err();
        assert_eq!(broken.played, operations);
        let text = broken.to_string();
        assert_eq!(format!("{broken:?}"), text);
        assert!(
            text.starts_with(&format!("operation {count}: node 0 said 99\n")),
            "{text}"
        );
        let shown = text.matches("DeliverAll").count() + text.matches("Forge").count();
        let others = text.split_once(" others and").map_or(0, |(before, _)| {
            let number = before.rsplit(' ').next().unwrap();
            number.parse::<usize>().unwrap()
        });
        assert_eq!(shown + others, count, "{text}");
        assert_eq!(text.contains(" others and"), others > 0, "{text}");
    }
}

/// An operation that can be left out only after an earlier one was takes another round.
#[test]
fn no_operation_can_be_left_out_of_a_list_that_was_shortened() {
    let breaks = |list: &[Operation<Probe>]| {
        let has = |it: &Operation<Probe>| list.contains(it);
        has(&Crash(1)) && (has(&DeliverAll) || !has(&Crash(0)))
    };
    let play = |list: &[Operation<Probe>]| {
        breaks(list).then(|| Broken {
            promise: String::new(),
            played: list.to_vec(),
            story: Vec::new(),
        })
    };
    for list in [
        vec![Crash(0), Crash(1), DeliverAll],
        vec![
            Crash(0),
            DeliverAll,
            Crash(1),
            DeliverAll,
            Crash(2),
            Crash(1),
        ],
        vec![Crash(1)],
    ] {
        let short = shrink(&list, play).unwrap().played;
        assert!(breaks(&short));
        for at in 0..short.len() {
            let mut shorter = short.clone();
            shorter.remove(at);
            assert!(!breaks(&shorter), "{list:?} became {short:?}");
        }
    }
}

#[test]
fn a_list_that_does_not_break_is_not_shortened() {
    assert_eq!(shrink::<Probe>(&[DeliverAll], |_| None), None);
}

#[test]
fn a_story_names_what_was_hit_and_which_message_went_where() {
    let list = [
        send(4, 0, 7),
        Ask(3, Command::SendAll(99)),
        Operation::Duplicate(3),
        Cut(7),
        Crash(4),
        Operation::Deliver(6),
    ];
    let play = |list: &[Operation<Probe>]| {
        let (list, mut rules) = (list.iter().cloned(), Rules::default());
        run(&mut mesh(64), list, &mut Bytes::new(&[]), &mut rules)
    };
    let notified = "operation 6: node 0 said 99
after
  1. Send(0, 7) at 1
       -> n1#0 sends 7 to n0
  2. SendAll(99) at 0
       -> n0#0 sends 99 to all
  3. Duplicate(0)
       7 from n1#0 to n0 arrives, and a copy stays on its way
  4. Cut(1)
       7 from n1#0 to n0 is lost
       99 from n0#0 to n1 is lost
  5. Crash(1)
  6. Deliver(0)
       99 from n0#0 to n2 arrives
       -> n2#0 reports ()";
    assert_eq!(play(&list).unwrap_err().to_string(), notified);
    let short = shrink(&list, |list| play(list).err());
    let notified = "operation 2: node 0 said 99
after
  1. SendAll(99) at 0
       -> n0#0 sends 99 to all
  2. Deliver(0)
       99 from n0#0 to n1 arrives
       -> n1#0 reports ()";
    assert_eq!(short.unwrap().to_string(), notified);
}

#[test]
fn a_story_is_short_however_many_messages_arrive() {
    let mut sends = vec![Ask(0, Command::SendAll(1)); 20];
    sends.extend([DeliverAll, send(0, 0, 1)]);
    let notified = run(
        &mut mesh(64),
        sends,
        &mut Bytes::new(&[]),
        &mut Rules::default(),
    );
    let text = notified.unwrap_err().to_string();
    assert_eq!(text.matches(" arrives").count(), 24, "{text}");
    assert!(text.contains("\n       and 16 more\n"), "{text}");
}

fn kind(operation: &Operation<Probe>) -> String {
    let text = format!("{operation:?}");
    if matches!(operation, Ask(..)) {
        return "Command".to_owned();
    }
    text.split('(').next().unwrap().to_owned()
}

/// Every kind of operation but false news of members, each seat of eight, and each quarter of a
/// second up to eight seconds.
#[test]
fn bytes_stand_for_all_that_may_happen() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let (mut crashed, mut commanded) = (BTreeSet::new(), BTreeSet::new());
    let mut waits = BTreeSet::new();
    for first in 0..=255_u8 {
        for second in 0..=255_u8 {
            let bytes = [first, second, 3, 4, 5, 6, 7, 8, 9];
            let mut rest = Unstructured::new(&bytes);
            let operation = Operation::<Probe>::arbitrary(&mut rest).unwrap();
            let taken = bytes.len() - rest.len();
            let (least, most) = Operation::<Probe>::size_hint(0);
            assert!(
                least <= taken && most.is_none_or(|it| taken <= it),
                "{operation:?}"
            );
            *kinds.entry(kind(&operation)).or_default() += 1;
            match operation {
                Crash(seat) => drop(crashed.insert(seat)),
                Ask(seat, _) => drop(commanded.insert(seat)),
                Wait(span) => drop(waits.insert(span)),
                _ => {}
            }
        }
    }
    let expected = [
        "Announce",
        "Command",
        "Crash",
        "Cut",
        "Deliver",
        "DeliverAll",
        "Duplicate",
        "Fail",
        "Introduce",
        "Lose",
        "Pause",
        "Refute",
        "Restart",
        "Resume",
        "Suspect",
        "Wait",
    ];
    assert!(kinds.keys().eq(expected), "{kinds:?}");
    let often = kinds["Deliver"].min(kinds["Command"]);
    assert!(kinds.iter().all(|(kind, &count)| {
        count <= often || ["Deliver", "Command"].contains(&kind.as_str())
    }));
    assert!(crashed.iter().copied().eq(0..8) && commanded == crashed);
    assert!(
        waits
            .into_iter()
            .eq((0..=32).map(|it| Span::millis(250 * it)))
    );
}

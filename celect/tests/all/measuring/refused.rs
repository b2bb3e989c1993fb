//! Messages and settings that are invalid.

use selvedge_core::settings::OutOfRange;

use super::*;

#[test]
fn what_is_told_is_taken_from_the_leader_alone_and_in_order() {
    let few = config(usual()).with_missing_from(1);
    let mut mesh = Mesh::missing(4, few, &[]);
    mesh.command(2, Command::Elect);
    mesh.deliver();
    let ballot = mesh.nodes[0].machine().leads().unwrap();
    let say = |number, upper_bound| Message::Estimate {
        ballot,
        number,
        source: Source::Sampling,
        upper_bound,
        miss: 10_000,
    };
    let mut receive = |from: u64, message: Message| {
        let from = member(from);
        let outcome = mesh.step(3, Input::Message { from, message });
        (outcome, mesh.bound(3).0)
    };
    assert_eq!(receive(1, say(3, 1)), (Ok(()), 1));
    // A late and a repeated estimate do not count, and the largest of a window is used.
    assert_eq!(receive(1, say(2, 2)), (Ok(()), 1));
    assert_eq!(receive(1, say(3, 2)), (Ok(()), 1));
    assert_eq!(receive(1, say(4, 2)), (Ok(()), 2));
    assert_eq!(receive(1, say(5, 0)), (Ok(()), 2));
    let found = receive(2, say(6, 0)).0;
    assert_eq!(found, Err(Misbehaviour::NotLeader(member(1)).into()));
    let past = Message::Estimate {
        ballot: Ballot { epoch: 0, ..ballot },
        number: 9,
        source: Source::Sampling,
        upper_bound: 0,
        miss: 10_000,
    };
    assert_eq!(receive(4, past), (Ok(()), 2));
    for miss in [0, 500_001, u32::MAX] {
        let wild = Message::Estimate {
            ballot,
            number: 9,
            source: Source::Sampling,
            upper_bound: 0,
            miss,
        };
        let found = receive(1, wild).0;
        assert_eq!(found, Err(Misbehaviour::Miss(miss).into()));
    }
    assert_eq!(mesh.nodes[2].machine().counters().stale, 3);
}

/// Delivers a message to node 1.
fn receive(mesh: &mut Mesh, from: Member, message: Message) -> Result<(), Reject> {
    mesh.step(1, Input::Message { from, message })
}

#[test]
fn lists_that_make_no_sense_are_refused_and_memory_is_bounded() {
    let small = config(usual()).with_peer_limit(10);
    let mut mesh = Mesh::missing(9, small, &[]);
    mesh.command(1, Command::Measure);
    let (_, to, _) = mesh.wire.remove(0);
    let part = |from: u64, ids: &[u64], more| Message::SampleResponse {
        run: 1,
        life: 0,
        from: NodeId(from),
        members: ids.iter().map(|&id| member(id)).collect(),
        more,
    };
    for (bad, first) in [
        (part(0, &[3, 3], false), 0),
        (part(0, &[4, 3], false), 0),
        (part(5, &[4], false), 5),
        (part(0, &[], true), 0),
        (part(0, &[u64::MAX], true), 0),
    ] {
        let found = receive(&mut mesh, to, bad);
        assert_eq!(found, Err(Misbehaviour::List(NodeId(first)).into()));
    }
    // A list that never ends.
    let before = mesh.nodes[0].machine().counters().unlisted;
    for nth in 0..12 {
        let endless = part(if nth == 0 { 0 } else { 100 + nth }, &[100 + nth], true);
        receive(&mut mesh, to, endless).unwrap();
    }
    assert_eq!(mesh.nodes[0].machine().counters().unlisted, before + 1);
    // Other lists, too: more nodes than can be remembered.
    let asked: Vec<Member> = mesh
        .wire
        .iter()
        .map(|it| it.1)
        .filter(|it| *it != to)
        .collect();
    for (nth, from) in (0..).zip(asked) {
        let ids: Vec<u64> = (0..5).map(|id| 1_000 + 10 * nth + id).collect();
        let message = part(0, &ids, false);
        receive(&mut mesh, from, message).unwrap();
    }
    let none = Event::Unmeasured(NotMeasured::NoRoom { limit: 10 });
    assert!(mesh.events.contains(&(1, none)));
    let wild = Message::Feedback {
        ballot: Ballot {
            epoch: 1,
            initiator: to,
            step: 1,
        },
        answers: 3,
        missing: 4,
    };
    let found = receive(&mut mesh, to, wild.clone());
    let expected = Misbehaviour::Feedback {
        answers: 3,
        missing: 4,
    };
    assert_eq!(found, Err(expected.into()));
    let found = receive(&mut mesh, member(5), wild);
    assert!(to == member(5) || found == Err(Misbehaviour::Initiator(to).into()));
}

#[test]
fn settings_of_the_estimation_that_cannot_work_are_named() {
    let new = |change: fn(&mut Estimation)| {
        let mut estimation = Estimation::default();
        change(&mut estimation);
        config(estimation).check()
    };
    assert_eq!(new(|_| ()), Ok(()));
    for (change, name) in [
        ((|it| it.sample = 0) as fn(&mut Estimation), "sample"),
        (|it| it.at_once = 0, "at_once"),
        (|it| it.period = Span::ZERO, "period"),
        (|it| it.pool = 257, "pool"),
        (|it| it.pool = 0, "pool"),
        (|it| (it.floor, it.ceiling) = (5, 4), "ceiling"),
        (|it| it.window = 0, "window"),
        (|it| it.valid = Span::ZERO, "valid"),
    ] {
        match new(change) {
            Err(ConfigError::Range(OutOfRange(found))) => {
                assert_eq!(found.name, format!("estimation.{name}"));
            }
            other => panic!("{name}: {other:?}"),
        }
    }
    for miss in [
        Ratio::NEVER,
        Ratio::new(1, 0),
        Ratio::new(51, 100),
        Ratio::new(1, 1_000_001),
    ] {
        let found = config(usual().with_miss(miss)).check();
        assert_eq!(found, Err(ConfigError::Miss(miss)));
    }
}

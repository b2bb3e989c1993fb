//! The wire format: exact bytes, predicted lengths, and frames within their budget.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::{
    Ballot, Celect, Command, Config, Estimation, Event, LeaderState, Lowest, Members, Message,
    Protocol, Source,
};
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Sha256Sortition, Span, Time};

use super::frames::{self, frame};

fn members(ids: &[u64]) -> Members {
    ids.iter().map(|&id| Member::new(id, 1)).collect()
}

fn samples() -> Vec<Message> {
    let ballot = Ballot {
        epoch: 300,
        initiator: Member::new(9, 2),
        step: 3,
    };
    vec![
        Message::Query {
            ballot,
            lowest: 5,
            suspected: 4,
            want: 200,
            exclude: members(&[7]),
            no_majority: true,
        },
        Message::Response {
            ballot,
            candidates: members(&[1, 200]),
            unhealthy: members(&[7]),
            known: members(&[]),
        },
        Message::Appoint {
            ballot,
            life: 200,
            no_majority: false,
        },
        Message::Leader {
            ballot,
            leader: Member::new(1, 1),
            renewal: 128,
            lease: Span(300),
            state: LeaderState::Leading,
            covered: members(&[2, 3]).to_vec().into(),
        },
        Message::LeaderAck { ballot, renewal: 1 },
        Message::SampleQuery {
            run: 300,
            from: NodeId(200),
        },
        Message::SampleResponse {
            run: 300,
            life: 2,
            from: NodeId(200),
            members: members(&[200, 201]),
            more: true,
        },
        Message::Feedback {
            ballot,
            answers: 130,
            missing: 1,
        },
        Message::Estimate {
            ballot,
            number: 1,
            source: Source::Feedback,
            upper_bound: 300,
            miss: 10_000,
        },
    ]
}

#[test]
fn the_format_stays_as_it_is() {
    let golden = [
        "01050100 00 ac02090203 05 04 c801 01 0701 01",
        "01050100 01 ac02090203 02 0101 c80101 01 0701 00",
        "01050100 02 ac02090203 c801 00",
        "01050100 03 ac02090203 0101 8001 ac02 00 02 0201 0301",
        "01050100 04 ac02090203 01",
        "01050100 05 ac02 c801",
        "01050100 06 ac02 02 c801 02 c80101 c90101 01",
        "01050100 07 ac02090203 8201 01",
        "01050100 08 ac02090203 01 01 ac02 904e",
    ];
    frames::stay(&samples(), &golden);
}

#[test]
fn lengths_are_foretold() {
    frames::lengths_are_foretold(&samples());
}

/// 40 nodes with the longest names, all suspected, in frames of an IEEE 802.15.4
/// radio: the lists are cut.
#[test]
fn every_frame_keeps_the_budget() {
    let member = |nth: u64| Member::new(u64::MAX - nth, u32::MAX);
    let config = Config::new(20, 5)
        .with_protocol(Protocol::Hybrid)
        .with_frame_budget(127)
        .with_estimation(Some(Estimation::default()));
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut nodes: Vec<Driver<Celect>> = (0..40)
        .map(|nth| {
            let by_hash = Lowest::new(Sha256Sortition, b"");
            Driver::new(Celect::new(member(nth), config, by_hash).unwrap())
        })
        .collect();
    for (nth, node) in nodes.iter_mut().enumerate() {
        for other in (0..40).filter(|&other| other != nth as u64) {
            for delta in [
                Delta::Joined(member(other)),
                Delta::Suspected(member(other)),
            ] {
                let input = Input::Membership(delta);
                node.step(Time::ZERO, &mut rng, input, |_| ()).unwrap();
            }
        }
    }
    let mut wire = Vec::new();
    let elect = Input::Command(Command::Elect);
    nodes[0]
        .step(Time::ZERO, &mut rng, elect, |it| wire.push((0, it)))
        .unwrap();
    let mut longest = 0;
    while let Some((sender, effect)) = wire.pop() {
        if let Effect::Send { to, message } = effect {
            longest = longest.max(frame(member(sender as u64), &message).len());
            let to = usize::try_from(u64::MAX - to.id.0).unwrap();
            let from = member(sender as u64);
            let input = Input::Message { from, message };
            nodes[to]
                .step(Time::ZERO, &mut rng, input, |it| wire.push((to, it)))
                .unwrap();
        }
    }
    // Then a node asks all others for their lists, part by part.
    let measure = Input::Command(Command::Measure);
    let mut measured = None;
    nodes[7]
        .step(Time::ZERO, &mut rng, measure, |it| wire.push((7, it)))
        .unwrap();
    while let Some((sender, effect)) = wire.pop() {
        match effect {
            Effect::Send { to, message } => {
                let from = member(sender as u64);
                longest = longest.max(frame(from, &message).len());
                let to = usize::try_from(u64::MAX - to.id.0).unwrap();
                let input = Input::Message { from, message };
                nodes[to]
                    .step(Time::ZERO, &mut rng, input, |it| wire.push((to, it)))
                    .unwrap();
            }
            Effect::Event(Event::Measured(estimate)) => measured = Some(estimate),
            Effect::Event(_) | Effect::Multicast { .. } => {}
        }
    }
    let measured = measured.unwrap();
    assert_eq!(
        (measured.nodes, measured.lists, measured.upper_bound),
        (40, 39, 0)
    );
    let leaders: Vec<_> = nodes.iter().map(|it| it.machine().leader()).collect();
    assert!(leaders.iter().all(Option::is_some), "{leaders:?}");
    assert!((90..=127).contains(&longest), "{longest}");
}

//! The cost of handling a message, at 49 members and at 2,048.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

use core::hint::black_box;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_core::{Choose, Driver, Effect, Input, Member, Time};
use selvedge_membership::{
    Body, Claim, Command, Config, Digest, Membership, Message, Metadata, Record,
};

const SIZES: [u64; 2] = [49, 2_048];

fn record(id: u64, revision: u32, claim: Claim) -> Record {
    Record {
        member: Member::new(id, 1),
        revision,
        claim,
    }
}

/// Node 0 of a mesh of `members` nodes, after the updates about their joins.
fn node(members: u64) -> (Driver<Membership>, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(members);
    // So that updates about joins are soon old; lists are compared by another message.
    let config = Config::default()
        .with_retransmit_factor(1)
        .with_sync_after(0)
        .with_hearsay_limit(0);
    let machine = Membership::new(Member::new(0, 1), config);
    let mut driver = Driver::new(machine.expect("a change of a few settings within their ranges"));
    let begin = Input::Command(Command::Join { seeds: Vec::new() });
    let mut joined = driver.step(Time::ZERO, &mut rng, begin, drop).is_ok();
    for first in (1..members).step_by(100) {
        let mut message = Message::bare(Body::Ack { origin: None });
        let page = first..members.min(first + 100);
        let alive = |id| record(id, 0, Claim::Alive(Metadata::default()));
        message.records.extend(page.map(alive));
        let from = Member::new(1, 1);
        let input = Input::Message { from, message };
        joined &= driver.step(Time::ZERO, &mut rng, input, drop).is_ok();
    }
    for _ in 0..2_000 {
        joined &= receive(&mut driver, &mut rng, ping(1)).is_ok();
    }
    assert!(joined && driver.machine().live() as u64 == members);
    (driver, rng)
}

fn ping(from: u64) -> (Member, Message) {
    let digest = Digest::default();
    let body = Body::Ping {
        digest,
        origin: None,
    };
    (Member::new(from, 1), Message::bare(body))
}

fn receive(
    driver: &mut Driver<Membership>,
    rng: &mut ChaCha8Rng,
    (from, message): (Member, Message),
) -> Result<(), selvedge_membership::Reject> {
    driver.step(
        Time::ZERO,
        rng,
        Input::Message { from, message },
        |effect| {
            if let Effect::Send { to, message } = &effect {
                black_box((to, message));
            }
        },
    )
}

fn bench(
    criterion: &mut Criterion,
    name: &str,
    make: impl Fn(&mut ChaCha8Rng, u64) -> (Member, Message),
) {
    let mut group = criterion.benchmark_group(name);
    for members in SIZES {
        let (mut driver, mut rng) = node(members);
        let mut draws = ChaCha8Rng::seed_from_u64(7);
        group.bench_function(BenchmarkId::from_parameter(members), |bencher| {
            bencher.iter_batched(
                || make(&mut draws, members),
                |message| receive(&mut driver, &mut rng, message),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

/// Draws senders from all members, so that the whole list is touched.
fn messages(criterion: &mut Criterion) {
    let sender = |draws: &mut ChaCha8Rng, members: u64| 1 + draws.below(members - 1);
    bench(criterion, "ping", |draws, members| {
        ping(sender(draws, members))
    });
    bench(criterion, "ack", |draws, members| {
        let from = Member::new(sender(draws, members), 1);
        (from, Message::bare(Body::Ack { origin: None }))
    });
    bench(criterion, "ping with 3 known updates", |draws, members| {
        let (from, mut message) = ping(sender(draws, members));
        for _ in 0..3 {
            let about = sender(draws, members);
            message
                .records
                .push(record(about, 0, Claim::Alive(Metadata::default())));
        }
        (from, message)
    });
    // With loss, a suspicion or a refutation comes with every few messages, and is passed on.
    let count = core::cell::Cell::new(0_u32);
    bench(
        criterion,
        "ping under loss, news with every eighth",
        |draws, members| {
            let (from, mut message) = ping(sender(draws, members));
            count.set(count.get().wrapping_add(1));
            if count.get().is_multiple_of(8) {
                let about = sender(draws, members);
                message.records.push(record(
                    about,
                    count.get(),
                    Claim::Alive(Metadata::default()),
                ));
            }
            (from, message)
        },
    );
}

criterion_group!(benches, messages);
criterion_main!(benches);

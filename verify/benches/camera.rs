//! The cost of handling a message, at 64 members and at 4,096.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

use core::hint::black_box;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_camera::{Camera, Command, Config, Message, Request, Token};
use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};

const SIZES: [u32; 2] = [64, 4_096];

/// Node 0 of a mesh of `members` nodes, in which each has entered once.
fn node(members: u32) -> (Driver<Camera>, ChaCha8Rng) {
    let mut rng = ChaCha8Rng::seed_from_u64(members.into());
    let machine = Camera::new(Member::new(0, 0), Config::new(members)).expect("a sound bound");
    let mut driver = Driver::new(machine);
    for id in 1..u64::from(members) {
        let from = Member::new(id, 0);
        let joined = Input::Membership(Delta::Joined(from));
        let notified = driver.step(Time::ZERO, &mut rng, joined, drop);
        assert!(notified.is_ok());
        visit(&mut driver, &mut rng, from, 1);
    }
    (driver, rng)
}

fn receive(driver: &mut Driver<Camera>, rng: &mut ChaCha8Rng, from: Member, message: Message) {
    let input = Input::Message { from, message };
    let taken = driver.step(Time::ZERO, rng, input, |effect| {
        if let Effect::Send { to, message } = &effect {
            black_box((to, message));
        }
    });
    assert!(taken.is_ok());
}

/// A request that gets our OK, and its release.
fn visit(driver: &mut Driver<Camera>, rng: &mut ChaCha8Rng, from: Member, number: u64) {
    let request = Request {
        number,
        up_to: number + 64,
        last: 0,
    };
    let after = None;
    receive(driver, rng, from, Message::Request { request, after });
    let release = Message::Release {
        number,
        last: 0,
        over: number + 64,
    };
    receive(driver, rng, from, release);
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request and release");
    for members in SIZES {
        let (mut driver, mut rng) = node(members);
        let from = Member::new(u64::from(members) / 2, 0);
        let mut number = 1;
        group.bench_function(BenchmarkId::from_parameter(members), |bencher| {
            bencher.iter(|| {
                number += 1;
                visit(&mut driver, &mut rng, from, number);
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("an OK");
    for members in SIZES {
        let (mut driver, mut rng) = node(members);
        let enter = Input::Command(Command::Enter);
        let mut number = 0;
        let entered = driver.step(Time::ZERO, &mut rng, enter, |effect| {
            if let Effect::Send {
                message: Message::Request { request, .. },
                ..
            } = effect
            {
                number = request.number;
            }
        });
        assert!(entered.is_ok() && number > 0);
        // From a stranger that was never asked: it is not among the nodes awaited.
        let from = Member::new(u64::from(members) / 2, 0);
        let message = Message::Ok {
            life: 0,
            number: number + 1,
            after: None,
            rivals: [].into_iter().collect(),
            more: false,
            floor: Token::default(),
        };
        group.bench_function(
            BenchmarkId::new("to no request of ours", members),
            |bencher| {
                bencher.iter(|| receive(&mut driver, &mut rng, from, message.clone()));
            },
        );
        let ours = Driver::new(driver.machine().clone());
        group.bench_function(BenchmarkId::new("that is awaited", members), |bencher| {
            bencher.iter_batched_ref(
                || {
                    (
                        Driver::new(ours.machine().clone()),
                        ChaCha8Rng::seed_from_u64(1),
                    )
                },
                |(driver, rng)| {
                    let Message::Ok {
                        life,
                        rivals,
                        floor,
                        ..
                    } = message.clone()
                    else {
                        return;
                    };
                    let message = Message::Ok {
                        life,
                        number,
                        after: None,
                        rivals,
                        more: false,
                        floor,
                    };
                    receive(driver, rng, from, message);
                },
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);

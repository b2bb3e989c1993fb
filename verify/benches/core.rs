//! The cost of the driver: the machine does next to nothing.

use core::hint::black_box;

use chacha20::ChaCha8Rng;
use criterion::{Criterion, criterion_group, criterion_main};
use rand_core::SeedableRng;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Span, Time};

/// Passes each message of `WORDS` 64-bit words on to its peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Relay<const PEERS: usize, const WORDS: usize> {
    peers: [Member; PEERS],
    relayed: u64,
}

impl<const PEERS: usize, const WORDS: usize> Machine for Relay<PEERS, WORDS> {
    type Message = [u64; WORDS];
    type Timer = u8;
    type Command = bool;
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Message { message, .. } => {
                self.relayed += 1;
                for &peer in &self.peers {
                    cx.send(peer, message);
                }
            }
            Input::Command(true) => cx.arm(1, Span::secs(1)),
            Input::Command(false) => cx.disarm(1),
            Input::Tick(_) | Input::Membership(_) => {}
        }
        Ok(())
    }
}

fn driver<const PEERS: usize, const WORDS: usize>() -> Driver<Relay<PEERS, WORDS>> {
    Driver::new(Relay {
        peers: core::array::from_fn(|id| Member::new(id as u64, 0)),
        relayed: 0,
    })
}

fn fan_out<const PEERS: usize, const WORDS: usize>(criterion: &mut Criterion) {
    let mut driver = driver::<PEERS, WORDS>();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let from = Member::new(99, 0);
    let bytes = WORDS * 8;
    criterion.bench_function(
        &format!("step, {bytes} bytes to {PEERS} peers"),
        |bencher| {
            bencher.iter(|| {
                let input = Input::Message {
                    from,
                    message: black_box([7; WORDS]),
                };
                driver.step(Time(1), &mut rng, input, |effect| {
                    if let Effect::Send { to, message } = &effect {
                        black_box((to, message));
                    }
                })
            });
        },
    );
}

/// The cost of the outbox alone: the rest of a step's cost is the driver's share.
fn bare_outbox<const PEERS: usize, const WORDS: usize>(criterion: &mut Criterion) {
    let peers: [Member; PEERS] = core::array::from_fn(|id| Member::new(id as u64, 0));
    let mut outbox: Vec<Effect<Relay<PEERS, WORDS>>> = Vec::new();
    let bytes = WORDS * 8;
    criterion.bench_function(
        &format!("bare Vec, {bytes} bytes to {PEERS} peers"),
        |bencher| {
            bencher.iter(|| {
                let message = black_box([7; WORDS]);
                outbox.extend(peers.iter().map(|&to| Effect::Send { to, message }));
                for effect in outbox.drain(..) {
                    if let Effect::Send { to, message } = &effect {
                        black_box((to, message));
                    }
                }
            });
        },
    );
}

fn timers(criterion: &mut Criterion) {
    let mut driver = driver::<3, 1>();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    criterion.bench_function("arm and disarm, two steps", |bencher| {
        bencher.iter(|| {
            for command in [true, false] {
                let input = Input::Command(black_box(command));
                let _taken = driver.step(Time(1), &mut rng, input, |_| ());
            }
        });
    });
}

criterion_group!(
    benches,
    fan_out::<3, 1>,
    bare_outbox::<3, 1>,
    fan_out::<3, 8>,
    bare_outbox::<3, 8>,
    fan_out::<16, 8>,
    bare_outbox::<16, 8>,
    timers
);
criterion_main!(benches);

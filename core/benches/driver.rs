//! What the driver costs: the machine does next to nothing.

use core::hint::black_box;

use chacha20::ChaCha8Rng;
use criterion::{Criterion, criterion_group, criterion_main};
use rand_core::SeedableRng;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Span, Time};

/// Passes each message on to its peers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Relay<const PEERS: usize> {
    peers: [Member; PEERS],
    relayed: u64,
}

impl<const PEERS: usize> Machine for Relay<PEERS> {
    type Message = [u64; 8];
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

fn driver<const PEERS: usize>() -> Driver<Relay<PEERS>> {
    Driver::new(Relay {
        peers: core::array::from_fn(|id| Member::new(id as u64, 0)),
        relayed: 0,
    })
}

fn fan_out<const PEERS: usize>(criterion: &mut Criterion) {
    let mut driver = driver::<PEERS>();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let from = Member::new(99, 0);
    criterion.bench_function(&format!("step, 64 bytes to {PEERS} peers"), |bencher| {
        bencher.iter(|| {
            let input = Input::Message {
                from,
                message: black_box([7; 8]),
            };
            driver.step(Time(1), &mut rng, input, |effect| {
                if let Effect::Send { to, message } = &effect {
                    black_box((to, message));
                }
            })
        });
    });
}

fn timers(criterion: &mut Criterion) {
    let mut driver = driver::<3>();
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

criterion_group!(benches, fan_out::<3>, fan_out::<16>, timers);
criterion_main!(benches);

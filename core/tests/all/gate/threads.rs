//! Many threads at one gate.

use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::sync::Arc;
use std::thread;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::shared::gate::{EnterError, GateCommand};

use super::{Controller, Gate, channel, entering, poll};

/// Prints the seed when a test fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("seed {}", self.0);
        }
    }
}

struct Dice(ChaCha8Rng);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.next_u64() % bound as u64).unwrap()
    }

    fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

/// One user of the section among many. Returns the number of times that it was inside.
fn visit(gate: &Gate, inside: &AtomicBool, mut dice: Dice) -> u64 {
    let mut turns = 0;
    for _ in 0..400 {
        let outcome = match dice.below(5) {
            0 => gate.blocking_enter_timeout(Duration::from_micros(dice.below(50) as u64)),
            1 => {
                // Gives up at once, or is lucky.
                match poll(entering(gate).as_mut()) {
                    Poll::Ready(outcome) => outcome,
                    Poll::Pending => continue,
                }
            }
            2 => gate.try_enter().map_err(|_| EnterError::TimedOut),
            _ => gate.blocking_enter(),
        };
        match outcome {
            Ok(guard) => {
                assert!(!inside.swap(true, Ordering::SeqCst), "two are inside");
                if dice.one_in(4) {
                    thread::yield_now();
                }
                turns += 1;
                assert!(inside.swap(false, Ordering::SeqCst));
                drop(guard);
            }
            Err(EnterError::TimedOut | EnterError::Full { .. }) => {}
            Err(EnterError::Refused(reason)) => assert_eq!(reason, 13),
            Err(error) => panic!("{error}"),
        }
    }
    turns
}

/// A node that takes its time, refuses and is admitted late. Returns the number of times that it
/// was inside.
fn host(mut controller: Controller, mut dice: Dice) -> u64 {
    let mut entries = 0;
    let mut pending = false;
    while let Ok(request) = controller.blocking_recv() {
        assert_eq!(pending, request == GateCommand::Cancel, "{request:?}");
        pending = false;
        match request {
            GateCommand::Enter if dice.one_in(10) => controller.refused(13).unwrap(),
            GateCommand::Enter if dice.one_in(3) => {
                pending = true;
                match controller.recv_timeout(Duration::from_micros(20)).unwrap() {
                    None => {}
                    Some(request) => {
                        assert_eq!(request, GateCommand::Cancel);
                        if dice.one_in(2) {
                            controller.released().unwrap();
                            pending = false;
                        }
                    }
                }
                if pending {
                    pending = false;
                    entries += 1;
                    controller.entered(entries).unwrap();
                }
            }
            GateCommand::Enter => {
                entries += 1;
                controller.entered(entries).unwrap();
            }
            GateCommand::Exit | GateCommand::Cancel => controller.released().unwrap(),
        }
        if dice.one_in(50) {
            controller.fenced();
        }
    }
    entries
}

#[test]
fn many_threads_share_one_section() {
    for (seed, handovers) in [(1, 0), (2, 3), (3, u32::MAX)] {
        let _notified = Seed(seed);
        let (gate, controller) = channel(4, handovers);
        let inside = Arc::new(AtomicBool::new(false));
        let host = thread::spawn(move || host(controller, Dice::new(seed)));
        let users: Vec<_> = (0..8)
            .map(|user| {
                let (gate, inside) = (gate.clone(), Arc::clone(&inside));
                let dice = Dice::new(seed * 100 + user);
                thread::spawn(move || visit(&gate, &inside, dice))
            })
            .collect();
        drop(gate);
        let turns: u64 = users.into_iter().map(|user| user.join().unwrap()).sum();
        let entries = host.join().unwrap();
        println!("seed {seed}: {entries} entries, {turns} turns");
        assert!(turns > 100, "seed {seed}: nothing was put to the test");
        assert!(handovers > 0 || turns <= entries);
    }
}

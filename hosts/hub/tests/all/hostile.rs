//! Homes in which everything goes wrong that may: devices, people, the clock, the process, the file.
//!
//! These tests know a hub by its promises and by its stored data. `SELVEDGE_HUB_SEED` is the first seed, and
//! `SELVEDGE_HUB_SEEDS` the number of seeds; a seed that fails is printed.

mod oracle;
mod process;
mod sheet;
mod tally;
mod world;

use std::{env, thread};

use selvedge_hub::house::KEPT;

use self::sheet::{Dice, Faults};
use self::tally::Tally;
use self::world::World;

/// Prints the seed, when it panics.
struct Seed(u64, Faults);

impl Drop for Seed {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {}, {:?}", self.0, self.1);
        }
    }
}

fn number_of(name: &str, usual: u64) -> u64 {
    env::var(name).map_or(usual, |it| it.parse().unwrap())
}

#[test]
fn what_is_promised_holds_whatever_goes_wrong() {
    let mut all = Tally::default();
    let first = number_of("SELVEDGE_HUB_SEED", 0);
    for seed in first..first + number_of("SELVEDGE_HUB_SEEDS", 300) {
        let faults = Faults::draw(&mut Dice(seed ^ 0xfa17));
        let _seed = Seed(seed, faults);
        let mut world = World::new(seed, faults);
        world.play(120);
        world.end();
        all.add(&world.tally);
    }
    println!("{all:?}");
    if env::var_os("SELVEDGE_HUB_SEEDS").is_none() {
        all.is_enough();
    }
}

/// More runs than are kept, of a process that is killed again and again.
#[test]
fn a_run_is_there_until_a_thousand_later_ones_are_over() {
    let faults = Faults {
        kills: true,
        ..Faults::default()
    };
    let _seed = Seed(1, faults);
    let mut world = World::new(1, faults);
    for nth in 0..1_100 {
        world.run(&format!("r{}", nth % 5));
        world.settle();
        for _ in 0..world.dice.below(30) {
            world.go_on();
            world.settle();
        }
        if nth % 100 == 50 {
            world.kill();
            world.agree();
        }
    }
    world.end();
    assert!(world.history.len() > 1_090, "{}", world.history.len());
    assert_eq!(world.house.records().latest().count(), KEPT);
}

//! Requests to the API of an agent: each has an answer that the description of the API promises.
//!
//! The agent is the only member of its mesh, in this process and without a network. Time is virtual: it passes
//! where all tasks wait, so a wait of an hour takes no time, and an input has the same answers each time.

mod description;
mod input;
mod seeds;
mod world;

use core::cell::RefCell;

use self::description::Description;
use self::input::{Known, Request};
use self::world::World;

pub use self::seeds::seeds;

/// The number of inputs that one agent gets. Each agent that ends leaves some memory behind.
const INPUTS: u32 = 500;
/// The most requests of an input.
const REQUESTS: usize = 12;

thread_local! {
    static WORLD: RefCell<Option<(Description, World, u32)>> = const { RefCell::new(None) };
}

/// Sends the requests of an input to an agent, one after another. Streams of events stay open until the end.
/// Returns the statuses of the answers.
///
/// # Panics
/// When an answer has a status, a type or a form that the description does not name, comes too late, or is too
/// long.
pub fn agent_api(bytes: &[u8]) -> Vec<u16> {
    WORLD.with_borrow_mut(|place| {
        let (description, mut world, mut count) = match place.take() {
            Some((description, world, count)) if count < INPUTS && !world.has_left() => {
                (description, world, count)
            }
            Some((description, ..)) => (description, World::new(), 0),
            None => (Description::read(), World::new(), 0),
        };
        count += 1;
        let statuses = play(bytes, &description, &mut world);
        *place = Some((description, world, count));
        statuses
    })
}

fn play(bytes: &[u8], description: &Description, world: &mut World) -> Vec<u16> {
    let mut known = Known::default();
    let mut statuses = Vec::new();
    let mut rest = bytes;
    for _ in 0..REQUESTS {
        if rest.is_empty() {
            break;
        }
        let request = Request::read(&mut rest, description, &known);
        // Some texts are no part of HTTP.
        if let Some(answer) = world.ask(&request) {
            description.check(&request, &answer);
            known.learn(&answer.body);
            statuses.push(answer.status);
        }
    }
    world.settle();
    statuses
}

//! Five followers, asleep nine seconds of ten, run functions for a client. One of three gateways is
//! killed between two functions. All of it in virtual time:
//!
//! ```console
//! $ cargo run -p selvedge-pcm --example sleeping_followers
//! ```

use core::error::Error;

use selvedge_core::{Member, Span, Time};
use selvedge_pcm::client::{self, Client};
use selvedge_pcm::follower::{self, Follower};
use selvedge_pcm::gateway::{self, Gateway};
use selvedge_pcm::node::{Event, WithMailbox};
use selvedge_pcm::{Answer, Bytes, DutyCycle, Failure, Function, Limits, Returned};
use selvedge_replica::Configuration;
use selvedge_sim::network::{Action, Link, Network, Topology};

/// A network of gateways, followers and clients. Messages to a follower that sleeps wait in its
/// mailbox. Do not add the duty cycle of the simulator (`Network::set_duty_cycle`): it loses them.
type Mesh = Network<WithMailbox>;

const fn second(second: u64) -> Time {
    Time(second * 1_000_000)
}

/// A function of this program is a number, and returns its square.
fn run(function: &Function) -> Returned {
    let number: Option<u64> = str::from_utf8(&function.code)
        .ok()
        .and_then(|it| it.parse().ok());
    match number.and_then(|it| it.checked_pow(2)) {
        Some(square) => Returned::Value(bytes(&square.to_string())),
        None => Returned::Failed(Failure::NoFunction),
    }
}

fn bytes(text: &str) -> Bytes {
    text.bytes().collect()
}

/// Three gateways, five followers, and a client that submits three functions.
fn start() -> Result<Mesh, Box<dyn Error>> {
    let mut mesh = Mesh::new(7, Topology::full_mesh(9)?, Link::default())?;
    let gateways = [1, 2, 3].map(|id| Member::new(id, 0));
    let ids = gateways.map(|it| it.id);
    for me in gateways {
        let first = Configuration::of(gateways);
        let gateway = Gateway::new(me, gateway::Config::new(), first, Limits::new())?;
        let node = mesh.add(me, WithMailbox::new(gateway))?;
        mesh.command(node, gateway::Command::Start.into())?;
    }
    let (active_ms, busy_ms, asleep_ms) = (1_000, 0, 9_000);
    let config = follower::Config::new(DutyCycle {
        active_ms,
        busy_ms,
        asleep_ms,
    });
    for me in [11, 12, 13, 14, 15].map(|id| Member::new(id, 0)) {
        let follower = Follower::new(me, config, ids)?;
        let node = mesh.add(me, WithMailbox::new(follower))?;
        mesh.command(node, follower::Command::Start.into())?;
        mesh.run_for(Span::millis(1_700)); // They do not wake together.
    }
    let me = Member::new(21, 0);
    let client = Client::new(me, client::Config::new(), ids)?;
    let node = mesh.add(me, WithMailbox::new(client))?;
    for (at, code) in [(30, "12"), (70, "31"), (110, "no number")] {
        let command = client::Command::Submit(Function::new(code.as_bytes())).into();
        mesh.schedule(second(at), Action::Command { node, command })?;
    }
    Ok(mesh)
}

/// Handles an event as a host does. Returns the answer of a task, if the event has one.
fn on_event(
    mesh: &mut Mesh,
    (time, node, event): (Time, usize, Event),
) -> Result<Option<Answer>, Box<dyn Error>> {
    let me = mesh.member(node).map_or(0, |it| it.id.0);
    let at = format!("{:>3} s", time.0 / 1_000_000);
    match event {
        Event::Follower(follower::Event::Run { task, function, .. }) => {
            println!("{at}: follower {me} runs task {}", task.number);
            let returned = run(&function);
            let command = follower::Command::Returned { task, returned }.into();
            // The run takes a while. If the task ends before that, the command is refused.
            mesh.schedule(time + Span::millis(300), Action::Command { node, command })?;
        }
        // A host fetches messages from a gateway, or finds out that the gateway is down.
        Event::Follower(follower::Event::Fetch(id))
            if mesh.find(id).is_some_and(|it| !mesh.is_up(it)) =>
        {
            println!("{at}: follower {me} does not reach gateway {}", id.0);
            mesh.command(node, follower::Command::Unreachable.into())?;
        }
        Event::Gateway(gateway::Event::Leading) => {
            println!("{at}: gateway {me} manages the tables")
        }
        Event::Client(client::Event::Answered {
            number,
            answer,
            voters,
        }) => {
            let value = match &answer {
                Answer::Value(value) => str::from_utf8(value)?,
                Answer::Failed(_) => "it failed",
                Answer::NoMajority | Answer::Unanswered | Answer::Cancelled => "no result",
            };
            println!(
                "{at}: {} followers answer task {number}: {value}",
                voters.len()
            );
            return Ok(Some(answer));
        }
        Event::Gateway(_) | Event::Follower(_) | Event::Client(_) => {}
    }
    Ok(None)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut mesh = start()?;
    mesh.schedule(second(60), Action::Crash { node: 0 })?;
    let mut answers = Vec::new();
    while mesh.now() < second(180) && mesh.step().is_some() {
        let events: Vec<_> = mesh.drain_events().collect();
        for event in events {
            answers.extend(on_event(&mut mesh, event)?);
        }
    }
    let value = |text: &str| Answer::Value(bytes(text));
    let no_function = Answer::Failed(Failure::NoFunction);
    assert_eq!(answers, [value("144"), value("961"), no_function]);
    println!("each function has one answer, and a gateway was killed");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_function_is_answered_though_a_gateway_is_killed() {
        super::main().unwrap();
    }
}

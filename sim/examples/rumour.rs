//! A rumour in a field of sensors: the time until every sensor has it, and the cost.
//!
//! `cargo run --release -p selvedge-sim --example rumour -- 2048 60` places 2,048 sensors at the
//! density of the papers, lets each push its rumour to a random peer each second for 60 simulated
//! seconds, over hops that lose 1% each, and prints the network's counts. Run under `time`, it
//! shows the cost of a step.

use core::error::Error;

use selvedge_core::{Context, Input, Machine, Member, Ratio, Span, Time};
use selvedge_sim::network::{Link, Network, Topology};

/// Pushes every second, once it has received the rumour.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sensor {
    nodes: u64,
    knows: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Rumour;

impl Machine for Sensor {
    type Message = Rumour;
    type Timer = ();
    type Command = ();
    type Event = Rumour;
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        match input {
            Input::Tick(()) => {
                let peer = cx.below(self.nodes);
                cx.send(Member::new(peer, 0), Rumour);
                cx.arm((), Span::secs(1));
            }
            Input::Message { .. } | Input::Command(()) if !self.knows => {
                self.knows = true;
                cx.event(Rumour);
                let first = cx.below(1_000_000);
                cx.arm((), Span::micros(first));
            }
            Input::Message { .. } | Input::Command(()) | Input::Membership(_) => {}
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let nodes: u32 = arguments.next().as_deref().unwrap_or("256").parse()?;
    let seconds: u64 = arguments.next().as_deref().unwrap_or("60").parse()?;
    // 0.22 nodes a square metre: sqrt(1,000,000 * nodes / 0.22) mm a side.
    let side = u32::try_from((u64::from(nodes) * 100_000_000 / 22).isqrt())?;
    let topology = Topology::random_geometric(nodes as usize, side, 4_000, 1)?;
    let link = Link {
        loss: Ratio::new(1, 100),
        ..Link::default()
    };
    let mut network = Network::new(1, topology, link)?;
    network.set_size(|_| 64);
    for id in 0..nodes {
        let sensor = Sensor {
            nodes: u64::from(nodes),
            knows: false,
        };
        network.add(Member::new(u64::from(id), 0), sensor)?;
    }
    network.command(0, ()).map_err(|error| error.to_string())?;
    let steps = network.run_until(Time::ZERO + Span::secs(seconds));

    let received: Vec<_> = network.drain_events().collect();
    println!("{} of {nodes} nodes received the rumour", received.len());
    if let Some((last, node, _)) = received.last() {
        println!("the last one, node {node}, at {last:?}");
    }
    println!("{steps} steps; {:#?}", network.counters());
    Ok(())
}

//! The lock on a network that loses messages.

use std::error::Error;

use selvedge_core::{Member, Ratio, Span};
use selvedge_sim::network::{Link, Network, Topology};

use crate::machine::{Command, Lock, Rules, Stage};

// ANCHOR: simulate
/// Ten simulated minutes, where each message is lost with a probability of `loss`. Both clients enter
/// as often as they can, and stay inside for a second. Returns the number of entries, and the most
/// nodes that were inside together.
pub(crate) fn simulate(rules: Rules, loss: Ratio) -> Result<(u32, u32), Box<dyn Error>> {
    let link = Link {
        loss,
        ..Link::default()
    };
    let mut network = Network::new(7, Topology::full_mesh(3)?, link)?;
    let server = Member::new(0, 0);
    for id in 0..3 {
        let me = Member::new(id, 0);
        network.add(me, Lock::new(me, server, rules))?;
    }
    for _ in 0..600 {
        for client in [1, 2] {
            let stage = network.machine(client).map(|lock| lock.stage);
            let command = match stage {
                Some(Stage::Idle) => Command::Enter,
                Some(Stage::Inside) => Command::Exit,
                _ => continue,
            };
            network
                .command(client, command)
                .map_err(|error| error.to_string())?;
        }
        network.run_for(Span::secs(1));
    }
    let (mut entries, mut inside, mut most) = (0, 0, 0);
    for (_time, _node, event) in network.drain_events() {
        if event == "entered" {
            entries += 1;
            inside += 1;
            most = most.max(inside);
        } else {
            inside -= 1;
        }
    }
    Ok((entries, most))
}
// ANCHOR_END: simulate

#[cfg(test)]
mod tests {
    use super::*;

    // ANCHOR: figures
    #[test]
    fn losses_cost_entries_and_the_simulator_finds_no_defect() -> Result<(), Box<dyn Error>> {
        let (none, tenth) = (Ratio::new(0, 1), Ratio::new(1, 10));
        assert_eq!(simulate(Rules::First, none)?, (405, 1));
        assert_eq!(simulate(Rules::First, tenth)?, (344, 1));
        assert_eq!(simulate(Rules::Reminds, tenth)?, (360, 1));
        Ok(())
    }
    // ANCHOR_END: figures
}

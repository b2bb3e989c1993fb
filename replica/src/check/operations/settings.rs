//! The settings of a run.

use selvedge_core::{Member, Span};
use selvedge_sim::Bytes;

use crate::check::Journal;
use crate::{Config, Configuration, Lease, Published, QuorumRule, Replica, Voter};

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) nodes: usize,
    /// The number of nodes that are members at first.
    pub(super) members: usize,
    /// True if facts are stored.
    pub(super) is_durable: bool,
    /// True if configurations change.
    pub(super) changes: bool,
    /// True if forged messages arrive: then only limits are promised.
    pub(super) is_hostile: bool,
    pub(super) window: u32,
    pub(super) first: Configuration,
}

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let shape = bytes.take();
        let nodes = 3 + usize::from(shape % 3);
        let members = if shape & 4 == 0 { nodes } else { 3 };
        let more = bytes.take();
        let witness = more & 1 == 1 && members > 3 || more & 6 == 6;
        let mut first = Configuration::new((0..members).map(|at| {
            let member = Member::new(at as u64 + 1, 1);
            match witness && at + 1 == members {
                true => Voter::witness(member),
                false => Voter::new(member),
            }
        }));
        first.lease = (more & 8 == 8).then_some(Lease {
            span: Span::millis(400),
            drift: 10_000,
        });
        if more & 16 == 16 {
            first.frame_budget = 127;
        }
        if more & 32 == 32 {
            first.proposers = 2;
        }
        if more & 64 == 64 && members == 4 {
            first.quorum = QuorumRule::AtLeast(3);
        }
        Self {
            nodes,
            members,
            is_durable: shape & 8 == 8,
            changes: shape & 16 == 16,
            is_hostile: more & 128 == 128,
            window: u32::from(shape >> 5),
            first,
        }
    }

    pub(super) fn config(&self, node: usize) -> Config {
        // Settings differ from node to node.
        Config::new()
            .with_window(self.window + node as u32)
            .with_attempts(3 + node as u8)
            .with_pending(8 + node as u32)
    }

    pub(super) fn machine(&self, node: usize, me: Member, rules: &[Published]) -> Replica<Journal> {
        let config = self.config(node);
        let made = match node < self.members {
            true => Replica::new(me, config, self.first.clone(), Journal::default()).ok(),
            false => Replica::newcomer(me, config).ok(),
        };
        let Some(machine) = made else {
            unreachable_settings()
        };
        machine.published(rules)
    }
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
fn unreachable_settings() -> ! {
    panic!("the settings of a run can work")
}

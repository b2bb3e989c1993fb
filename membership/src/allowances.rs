//! The number of claims about others that each sender may still make in this period.

use selvedge_core::NodeId;

/// The spending of each sender in this period; each sender has one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Allowances([Option<(NodeId, u16)>; Self::SENDERS]);

impl Allowances {
    /// The number of senders whose hearsay is believed in a period.
    const SENDERS: usize = 16;

    /// Takes `cost` from the `allowance` of a sender. Returns true if that much was left; if not,
    /// nothing is spent.
    pub(crate) fn spend(&mut self, sender: NodeId, cost: u16, allowance: u16) -> bool {
        let mine = |it: &&mut Option<(NodeId, u16)>| it.is_none_or(|(id, _)| id == sender);
        let Some(place) = self.0.iter_mut().find(mine) else {
            return false;
        };
        let (_, spent) = place.get_or_insert((sender, 0));
        let is_affordable = cost <= allowance.saturating_sub(*spent);
        if is_affordable {
            *spent += cost;
        }
        is_affordable
    }

    /// Begins a period, with full allowances.
    pub(crate) fn renew(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_has_its_allowance_and_later_ones_none() {
        let mut allowances = Allowances::default();
        assert!(allowances.spend(NodeId(1), 4, 8));
        assert!(!allowances.spend(NodeId(1), 5, 8), "nothing is taken then");
        assert!(allowances.spend(NodeId(1), 4, 8));
        assert!(!allowances.spend(NodeId(1), 1, 8));
        for id in 2..17 {
            assert!(allowances.spend(NodeId(id), 1, 8));
        }
        assert!(!allowances.spend(NodeId(17), 1, 8));
        assert!(allowances.spend(NodeId(16), 7, 8));
    }
}

//! How many hops messages travel.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use selvedge_membership::Membership;
use selvedge_sim::network::{Network, What};

/// The number of figures of [`ByHops`].
pub(super) const LONGEST: usize = 16;

/// The number of messages by their hops, from one; the last is of all longer ways. A message counts
/// with the way to its receiver, where it is lost too.
pub(super) type ByHops = [u64; LONGEST];

/// Counts the messages of a mesh.
#[derive(Debug, Default)]
pub(super) struct Count(Arc<[AtomicU64; LONGEST]>);

impl Count {
    /// Counts from now on. Nodes do not move meanwhile.
    pub(super) fn begin(mesh: &mut Network<Membership>) -> Self {
        let count = Self::default();
        let topology = mesh.topology();
        let all = 0..mesh.len();
        let hops: Vec<Vec<Option<u16>>> = all.map(|it| topology.hops_from(it)).collect();
        let by_hops = Arc::clone(&count.0);
        mesh.trace_to(move |line| {
            if let (Some(from), What::Sent { to: Some(to), .. }) = (line.node, &line.what)
                // The first node has the id 1.
                && let Some(to) = to.id.0.checked_sub(1)
                && let Some(hops) = hops.get(from).and_then(|it| it.get(to as usize)).copied().flatten()
                && let Some(nth) = usize::from(hops).checked_sub(1)
                && let Some(counted) = by_hops.get(nth.min(LONGEST - 1))
            {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        count
    }

    /// Ends the count.
    pub(super) fn end(self, mesh: &mut Network<Membership>) -> ByHops {
        mesh.trace_to(|_| {});
        self.0.each_ref().map(|it| it.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::lab::{Setting, Variant};

    #[test]
    fn all_messages_and_all_hops_are_counted() {
        let setting = Setting {
            nodes: 12,
            ..Setting::new(Variant::Both, 1)
        };
        let seen = setting.run(1).unwrap();
        assert!(seen.by_hops.iter().filter(|it| **it > 0).count() > 1);
        assert_eq!(seen.by_hops.iter().sum::<u64>(), seen.messages);
        let hops = seen.by_hops.iter().zip(1..).map(|(it, hops)| it * hops);
        assert_eq!(hops.sum::<u64>(), seen.hops);
    }
}

//! Sites: each was proposed, has one content, and replaces only older ones.

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_kgroup::Site;

use super::{Oracle, word_of};

impl Oracle {
    pub(super) fn look_at_site(&mut self, now: u64, node: NodeId, site: &Site) {
        let generation = site.generation();
        let before = self.generations.insert(node, generation);
        self.expect(now, before.is_none_or(|it| it <= generation), || {
            format!("{node} goes back from site {before:?} to {generation}")
        });
        let bytes = site.encode();
        let words = site.routines().map(|it| word_of(it.1)).collect::<Vec<_>>();
        self.decided_words.extend(words);
        if let Some(known) = self.sites.get(&generation) {
            let same = *known == bytes;
            self.expect(now, same, || {
                format!("{node}: two sites of generation {generation}")
            });
            return;
        }
        self.counts.sites += 1;
        let is_it = |it: &Site| it.generation() <= generation && is_alike(it, site);
        let is_proposed = self.proposed.iter().any(is_it);
        self.expect(now, is_proposed || generation == 0, || {
            format!("{node}: site {generation} was never proposed")
        });
        if self
            .sites
            .last_key_value()
            .is_none_or(|it| *it.0 < generation)
        {
            self.present = site.groups().collect();
            let devices = site
                .clusters()
                .flat_map(|it| site.devices(Site::cluster(it.0)));
            let devices: BTreeSet<NodeId> = devices.map(|it| it.0).collect();
            self.removed.extend(self.devices.difference(&devices));
            self.devices = devices;
            let nodes: BTreeSet<NodeId> = site.nodes().iter().map(|it| it.id).collect();
            self.lost.extend(self.nodes.difference(&nodes));
            self.nodes = nodes;
            self.last_site = Site::decode(&bytes).ok().map(Arc::new);
        }
        self.sites.insert(generation, bytes);
    }

    /// A node proposes a site, or begins with it.
    pub(crate) fn proposes(&mut self, site: &Site) {
        if !self.is_deaf {
            self.proposed.push(site.clone());
        }
    }
}

/// Returns true if two sites have the same nodes, devices and routines.
pub(crate) fn is_alike(one: &Site, other: &Site) -> bool {
    let devices = |site: &Site| {
        let mut all: Vec<_> = site
            .clusters()
            .flat_map(|it| site.devices(Site::cluster(it.0)))
            .collect();
        all.sort_by_key(|it| it.0);
        all
    };
    one.nodes() == other.nodes()
        && devices(one) == devices(other)
        && one.routines().eq(other.routines())
}

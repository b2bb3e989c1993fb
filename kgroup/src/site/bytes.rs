//! A site in bytes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use selvedge_core::NodeId;

use super::Site;
use super::edit::{FORMER_MAX, grouped};
use crate::ConfigError;

impl Site {
    /// All of the site in bytes: equal ones for equal sites.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Clusters follow from the devices.
        let parts = (
            (self.origin, self.generation),
            (&self.selection, self.frame_budget),
            (&self.limits, self.cluster_size),
            (&self.nodes, &self.former),
            (&self.devices, &self.routines),
            (self.next, self.founding),
        );
        let mut bytes = postcard::to_allocvec(&parts).unwrap_or_default();
        if !self.wake_intervals.is_empty() {
            // At the end, and left out where there is none: such a site has the bytes that it had before.
            let more = postcard::to_allocvec(&self.wake_intervals);
            bytes.extend(more.unwrap_or_default());
        }
        bytes
    }

    /// The site that [`encode`](Self::encode) wrote, from any bytes: a site that is returned is consistent,
    /// and its encoding is `bytes`.
    ///
    /// # Errors
    /// [`ConfigError::Encoding`], or the reason why the site cannot work.
    pub fn decode(bytes: &[u8]) -> Result<Self, ConfigError> {
        let length = bytes.len();
        let wrong = ConfigError::Encoding { length };
        let (parts, rest) = postcard::take_from_bytes(bytes).map_err(|_| wrong)?;
        let (
            (origin, generation),
            (selection, frame_budget),
            (limits, cluster_size),
            (nodes, former),
            (devices, routines),
            (next, founding),
        ) = parts;
        let wake_intervals = match rest {
            [] => BTreeMap::new(),
            rest => postcard::from_bytes(rest).map_err(|_| wrong)?,
        };
        let site = Self {
            origin,
            generation,
            selection,
            frame_budget,
            limits,
            cluster_size,
            nodes,
            former,
            clusters: grouped(&devices),
            devices,
            routines,
            wake_intervals,
            next,
            founding,
        };
        // One that names a part twice, in another order, or with bytes behind it, has another encoding.
        if site.is_consistent() && site.encode() == bytes {
            site.check()?;
            return Ok(site);
        }
        Err(wrong)
    }

    /// Returns true if its nodes are in order and its numbers fit together. Nothing here is of the user's making.
    fn is_consistent(&self) -> bool {
        let used = |last: Option<u32>, next| last.is_none_or(|it| it < next);
        let last = (self.clusters.keys().last(), self.routines.keys().last());
        let mut ids: Vec<NodeId> = self.nodes.iter().map(|it| it.id).collect();
        let in_order = ids.is_sorted();
        ids.extend(&self.former);
        ids.sort_unstable();
        let differ = ids.windows(2).all(|pair| pair.first() != pair.last());
        let founding_fit = match self.generation {
            0 => self.founding == self.next,
            _ => self.founding.0 <= self.next.0 && self.founding.1 <= self.next.1,
        };
        used(last.0.copied(), self.next.0)
            && used(last.1.copied(), self.next.1)
            && self.cluster_size > 0
            && self.former.len() <= FORMER_MAX
            && in_order
            && differ
            && founding_fit
    }
}

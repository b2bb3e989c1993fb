//! Who is known, in which life, and what the membership service says of it.

use selvedge_core::{BoundedMap, Full, Incarnation, Member, NodeId};

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// Its latest life that was heard of.
    incarnation: Incarnation,
    standing: Standing,
    /// How often this life was suspected.
    suspicions: u16,
}

/// Where a life stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Standing {
    /// On the membership list.
    Listed,
    /// Declared failed, which may be false.
    Failed,
    /// Certainly over.
    Over,
}

/// The latest life of each node. Each operation takes O(log n), and adding a node moves what lies
/// behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peers {
    nodes: BoundedMap<NodeId, Peer>,
}

impl Peers {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            nodes: BoundedMap::new(limit),
        }
    }

    /// What was said of this life; nothing else of a life that is past.
    ///
    /// # Errors
    /// [`Full`] when it is new and there is no room. Nothing is remembered of it then.
    pub(crate) fn set(&mut self, member: Member, standing: Standing) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        let suspicions = self.suspicions(member);
        let incarnation = member.incarnation;
        let peer = Peer {
            incarnation,
            standing,
            suspicions,
        };
        self.nodes.insert(member.id, peer).map(drop)
    }

    /// Counts a suspicion.
    pub(crate) fn suspect(&mut self, member: Member) {
        if let Some(peer) = self.nodes.get_mut(&member.id)
            && peer.incarnation == member.incarnation
        {
            peer.suspicions = peer.suspicions.saturating_add(1);
        }
    }

    /// Who is on the list, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        let listed = |(_, peer): &(&NodeId, &Peer)| peer.standing == Standing::Listed;
        self.nodes.iter().filter(listed).map(|(&id, peer)| Member {
            id,
            incarnation: peer.incarnation,
        })
    }

    /// How often this life was suspected.
    pub(crate) fn suspicions(&self, member: Member) -> u16 {
        let peer = self.nodes.get(&member.id);
        let same = peer.filter(|peer| peer.incarnation == member.incarnation);
        same.map_or(0, |peer| peer.suspicions)
    }

    /// The latest life of this node that was heard of, if it is later than this one.
    pub(crate) fn latest(&self, member: Member) -> Member {
        let known = self.nodes.get(&member.id).map(|peer| peer.incarnation);
        let later = known.filter(|known| known.newer_than(member.incarnation));
        let incarnation = later.unwrap_or(member.incarnation);
        Member {
            incarnation,
            ..member
        }
    }

    /// Whether this life has certainly ended: that was said of it, or a later one was heard of.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        self.nodes.get(&member.id).is_some_and(|peer| {
            peer.incarnation.newer_than(member.incarnation)
                || peer.incarnation == member.incarnation && peer.standing == Standing::Over
        })
    }

    /// Whether it was declared failed, or is over.
    pub(crate) fn is_gone(&self, member: Member) -> bool {
        self.is_over(member)
            || self.nodes.get(&member.id).is_some_and(|peer| {
                peer.incarnation == member.incarnation && peer.standing == Standing::Failed
            })
    }

    /// Forgets all.
    #[cfg(feature = "check")]
    pub(crate) fn clear(&mut self) {
        self.nodes.retain(|_, _| false);
    }
}

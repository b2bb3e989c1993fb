//! Who is known, in which life, and what the membership service says of it.

use selvedge_core::{BoundedMap, Delta, Full, Incarnation, Member, NodeId};

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Peer {
    /// Its latest life that was heard of.
    incarnation: Incarnation,
    standing: Standing,
}

/// Where a life stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Standing {
    /// Heard of, not on the membership list.
    Known,
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
    listed: usize,
}

impl Peers {
    pub(crate) const fn new(limit: usize) -> Self {
        Self {
            nodes: BoundedMap::new(limit),
            listed: 0,
        }
    }

    /// How many are on the list.
    pub(crate) const fn listed(&self) -> usize {
        self.listed
    }

    /// Who is on the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Member> + '_ {
        let listed = |(_, peer): &(&NodeId, &Peer)| peer.standing == Standing::Listed;
        self.nodes.iter().filter(listed).map(|(&id, peer)| Member {
            id,
            incarnation: peer.incarnation,
        })
    }

    /// What a section that begins later is to be told of each node, in order of ids.
    pub(crate) fn told(&self) -> impl Iterator<Item = Delta> + '_ {
        self.nodes.iter().filter_map(|(&id, peer)| {
            let incarnation = peer.incarnation;
            let member = Member { id, incarnation };
            match peer.standing {
                Standing::Known => None,
                Standing::Listed => Some(Delta::Joined(member)),
                Standing::Failed => Some(Delta::Failed(member)),
                Standing::Over => Some(Delta::Confirmed(member)),
            }
        })
    }

    pub(crate) fn is_listed(&self, member: Member) -> bool {
        self.standing(member) == Some(Standing::Listed)
    }

    pub(crate) fn is_failed(&self, member: Member) -> bool {
        self.standing(member) == Some(Standing::Failed)
    }

    /// Whether this life has certainly ended: that was said of it, or a later one was heard of.
    pub(crate) fn is_over(&self, member: Member) -> bool {
        self.nodes.get(&member.id).is_some_and(|peer| {
            peer.incarnation.newer_than(member.incarnation)
                || peer.incarnation == member.incarnation && peer.standing == Standing::Over
        })
    }

    /// Whether [`meet`](Self::meet) finds room.
    pub(crate) fn has_room_for(&self, member: Member) -> bool {
        self.nodes.contains(&member.id) || self.nodes.len() < self.nodes.limit()
    }

    /// Takes note of a life that is not over. Returns the former one of this node, if it has just
    /// come to its end.
    ///
    /// # Errors
    /// [`Full`] when it is new and there is no room. Nothing is remembered of it then.
    pub(crate) fn meet(&mut self, member: Member) -> Result<Option<Member>, Full> {
        let before = self.nodes.get(&member.id).copied();
        match before {
            Some(peer) if !member.incarnation.newer_than(peer.incarnation) => Ok(None),
            Some(peer) => {
                self.set(member, Standing::Known)?;
                Ok((peer.standing != Standing::Over).then_some(Member {
                    incarnation: peer.incarnation,
                    ..member
                }))
            }
            None => {
                self.set(member, Standing::Known)?;
                Ok(None)
            }
        }
    }

    /// Puts a life on the list, unless it is over.
    pub(crate) fn list(&mut self, member: Member) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        self.set(member, Standing::Listed)
    }

    /// It was declared failed: takes it off the list and remembers that.
    pub(crate) fn fail(&mut self, member: Member) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        self.set(member, Standing::Failed)
    }

    /// It is certainly over.
    pub(crate) fn end(&mut self, member: Member) -> Result<(), Full> {
        if self.is_over(member) {
            return Ok(());
        }
        self.set(member, Standing::Over)
    }

    /// Forgets a node: published rules only.
    pub(crate) fn forget(&mut self, member: Member) {
        if let Some(peer) = self.nodes.remove(&member.id)
            && peer.standing == Standing::Listed
        {
            self.listed = self.listed.saturating_sub(1);
        }
    }

    fn standing(&self, member: Member) -> Option<Standing> {
        let peer = self.nodes.get(&member.id)?;
        (peer.incarnation == member.incarnation).then_some(peer.standing)
    }

    fn set(&mut self, member: Member, standing: Standing) -> Result<(), Full> {
        let peer = Peer {
            incarnation: member.incarnation,
            standing,
        };
        let before = self.nodes.insert(member.id, peer)?;
        let was_listed = before.is_some_and(|peer| peer.standing == Standing::Listed);
        self.listed = self.listed.saturating_sub(usize::from(was_listed))
            + usize::from(standing == Standing::Listed);
        Ok(())
    }
}

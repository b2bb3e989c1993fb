//! The known nodes, each with its latest life and its standing.
//!
//! A protocol builds a [`Roster`] from the [`Delta`]s that it learns and from the members that it
//! meets in messages. The roster keeps the latest life of each node, and a value `T` of the
//! protocol for that life. It is bounded, and returns the node that it forgets to make room for
//! another one.
//!
//! A node that is forgotten is a stranger when a message or a delta names it again, even if its
//! life was over. So a protocol names the nodes that it [needs](Roster::make_room_for); the value
//! of a node is forgotten with the node.

use alloc::collections::VecDeque;

use thiserror::Error;

use crate::{BoundedMap, Delta, Full, Incarnation, Member, NodeId};

/// The standing of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Alive, as far as this node knows, and not on the membership list.
    Met,
    /// On the membership list.
    Listed,
    /// Declared failed, which may be false.
    Failed,
    /// Certainly over.
    Over,
}

impl Standing {
    /// The standing after a delta. `None` for a suspicion, which changes no standing.
    #[must_use]
    pub const fn after(delta: Delta) -> Option<Self> {
        match delta {
            Delta::Suspected(_) => None,
            Delta::Joined(_) | Delta::Refuted(_) => Some(Self::Listed),
            Delta::Failed(_) => Some(Self::Failed),
            Delta::Left(_) | Delta::Confirmed(_) => Some(Self::Over),
        }
    }
}

/// The error of a membership delta that ends the present life of this node itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error("{0:?} is about this node itself: pass only deltas about other nodes")]
pub struct OwnEnd(pub Delta);

/// The latest life of each known node.
///
/// To look a node up takes O(log n). A change moves the entries behind it; a node that leaves the
/// list, ends or is [forgotten](Self::forget) takes O(n).
///
/// ```
/// use selvedge_core::roster::{Roster, Standing};
/// use selvedge_core::{Delta, Member};
///
/// let mut roster = Roster::<()>::shared(Member::new(0, 0), 8);
/// let [first_life, second_life] = [Member::new(1, 0), Member::new(1, 1)];
/// roster.learn(Delta::Joined(first_life), |_| false)?;
/// assert!(roster.is_listed(first_life));
///
/// // A message of a later life ends the former one, before membership learns of it.
/// assert_eq!(roster.meet(second_life)?, Some(first_life));
/// assert!(roster.is_over(first_life));
/// assert_eq!(roster.latest(second_life.id), Some((second_life, Standing::Met)));
/// # Ok::<(), selvedge_core::Full>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Roster<T> {
    me: Member,
    room: Room,
    listed: BoundedMap<NodeId, Life<T>>,
    /// All other known nodes.
    apart: BoundedMap<NodeId, (Standing, Life<T>)>,
    /// The nodes of `apart` that are forgotten in the order of the last news, oldest first.
    turn: VecDeque<NodeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Room {
    Shared { limit: usize },
    Split,
}

impl Room {
    /// Returns true if a node of this standing is forgotten in the order of the last news, and not
    /// by id.
    const fn takes_turns(self, standing: Standing) -> bool {
        match standing {
            Standing::Listed => false,
            Standing::Over => true,
            Standing::Met | Standing::Failed => matches!(self, Self::Split),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Life<T> {
    incarnation: Incarnation,
    kept: T,
}

impl<T: Default> Roster<T> {
    /// A roster for at most `limit` nodes, listed or not. Nodes on the list are never forgotten. Of
    /// the others, the roster forgets first the life that ended first; if none has ended, a node
    /// that was only met; or else a node that failed, because membership does not repeat a failure.
    /// Of the met and of the failed nodes the one with the lowest id is forgotten first.
    #[must_use]
    pub const fn shared(me: Member, limit: usize) -> Self {
        Self::with_room(me, Room::Shared { limit }, limit, limit)
    }

    /// A roster for at most `places` nodes on the list, and `apart` nodes beside it. No node on the
    /// list is forgotten, and no node beside it is forgotten to make room on the list. Of the nodes
    /// beside it, failed nodes and ended lives are forgotten first, then met nodes; among equals,
    /// the node without news for the longest time.
    #[must_use]
    pub const fn split(me: Member, places: usize, apart: usize) -> Self {
        Self::with_room(me, Room::Split, places, apart)
    }

    const fn with_room(me: Member, room: Room, places: usize, apart: usize) -> Self {
        Self {
            me,
            room,
            listed: BoundedMap::new(places),
            apart: BoundedMap::new(apart),
            turn: VecDeque::new(),
        }
    }

    /// Applies a delta: makes room for its subject, and sets its standing. Returns the life that
    /// was forgotten for it. A suspicion changes nothing, nor does a delta about a life of this
    /// node or about a life that is over. O(n log n) where a node is forgotten.
    ///
    /// Where there is no room beside the list at all, a node that leaves the list is forgotten, and
    /// no end is remembered.
    ///
    /// # Errors
    /// [`Full`] where the roster is full, and no node that is not `needed` can be forgotten.
    /// Nothing changed.
    pub fn learn(
        &mut self,
        delta: Delta,
        needed: impl Fn(Member) -> bool,
    ) -> Result<Option<Member>, Full> {
        let member = delta.member();
        let Some(standing) = Standing::after(delta).filter(|_| !self.is_past(member)) else {
            return Ok(None);
        };
        let forgotten = match (self.room, standing) {
            (Room::Split, Standing::Listed) => None,
            (Room::Split, _) if self.apart.limit() == 0 => {
                self.forget(member.id);
                return Ok(None);
            }
            (Room::Split | Room::Shared { .. }, _) => self.make_room_for(member, needed)?,
        };
        self.set(member, standing)?;
        Ok(forgotten)
    }

    /// Records a life that was met, for example in a message. Returns the former life of its node
    /// if that has ended by this.
    ///
    /// # Errors
    /// [`Full`] when there is [no room](Self::make_room_for): the node is new, or its former life
    /// stands on a list that has its own room. Nothing changed.
    pub fn meet(&mut self, member: Member) -> Result<Option<Member>, Full> {
        let former = match self.latest(member.id) {
            Some((known, _)) if !member.supersedes(known) => return Ok(None),
            Some((former, standing)) if standing != Standing::Over => Some(former),
            Some(_) | None => None,
        };
        self.set(member, Standing::Met)?;
        Ok(former)
    }

    /// Sets the standing of a life. The value of a new life begins as the default. Nothing changes
    /// where the life is over, or is a life of this node.
    ///
    /// # Errors
    /// [`Full`] when the roster is full. Nothing changed.
    pub fn set(&mut self, member: Member, standing: Standing) -> Result<(), Full> {
        if self.is_past(member) || self.standing(member) == Some(standing) {
            return Ok(());
        }
        if !self.has_room_for(member, standing) {
            return Err(self.full(standing));
        }
        let Member { id, incarnation } = member;
        let kept = self.take_out(id).filter(|it| it.incarnation == incarnation);
        let kept = kept.map(|it| it.kept).unwrap_or_default();
        let life = Life { incarnation, kept };
        if standing == Standing::Listed {
            self.listed.insert(id, life).map(drop)
        } else {
            if self.room.takes_turns(standing) {
                self.turn.push_back(id);
            }
            self.apart.insert(id, (standing, life)).map(drop)
        }
    }
}

impl<T> Roster<T> {
    /// This node.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// A membership delta, if it is about another node. `None` for a delta about another life of
    /// this node, which takes no part, or about this life as present.
    ///
    /// # Errors
    /// [`OwnEnd`]: the delta ends the present life of this node.
    pub fn about_others(&self, delta: Delta) -> Result<Option<Delta>, OwnEnd> {
        let member = delta.member();
        if member.id != self.me.id {
            return Ok(Some(delta));
        }
        match delta {
            Delta::Left(_) | Delta::Confirmed(_) if member == self.me => Err(OwnEnd(delta)),
            Delta::Left(_)
            | Delta::Confirmed(_)
            | Delta::Joined(_)
            | Delta::Suspected(_)
            | Delta::Refuted(_)
            | Delta::Failed(_) => Ok(None),
        }
    }

    /// Makes sure that a node can be remembered, beside the list where that has its own room. If
    /// the roster is full, this forgets a node that is neither listed nor `needed`, in the order of
    /// [`shared`](Self::shared) or [`split`](Self::split), and returns its latest life. A life of
    /// this node, and a life that is over, need no room. O(n log n) where a node is forgotten.
    ///
    /// # Errors
    /// [`Full`] when all nodes are listed or needed.
    pub fn make_room_for(
        &mut self,
        member: Member,
        needed: impl Fn(Member) -> bool,
    ) -> Result<Option<Member>, Full> {
        if self.is_past(member) || self.has_room_for(member, Standing::Met) {
            return Ok(None);
        }
        let leaves = self.in_order().find(|&it| !needed(it));
        let leaves = leaves.ok_or_else(|| self.full(Standing::Met))?;
        self.forget(leaves.id);
        Ok(Some(leaves))
    }

    /// Returns true if this life is on the list, has a place there, or is over and needs none.
    #[must_use]
    pub fn has_place_for(&self, member: Member) -> bool {
        self.is_over(member) || self.has_room_for(member, Standing::Listed)
    }

    /// The met node that has waited longest for a place on the list, if the list has its own room
    /// and a free place. O(n log n) if so.
    #[must_use]
    pub fn next_in_turn(&self) -> Option<Member> {
        if self.listed.len() >= self.listed.limit() {
            return None;
        }
        let mut met = self.turn().filter(|(_, it)| *it == Standing::Met);
        met.next().map(|(member, _)| member)
    }

    /// Forgets a node.
    pub fn forget(&mut self, node: NodeId) {
        self.take_out(node);
    }

    /// The latest known life of a node, and its standing.
    #[must_use]
    pub fn latest(&self, node: NodeId) -> Option<(Member, Standing)> {
        let (incarnation, standing) = match self.listed.get(&node) {
            Some(life) => (life.incarnation, Standing::Listed),
            None => {
                let (standing, life) = self.apart.get(&node)?;
                (life.incarnation, *standing)
            }
        };
        let id = node;
        Some((Member { id, incarnation }, standing))
    }

    /// The standing of this life. `None` where it is not the latest known life of its node.
    #[must_use]
    pub fn standing(&self, member: Member) -> Option<Standing> {
        let (known, standing) = self.latest(member.id)?;
        (known == member).then_some(standing)
    }

    /// Returns true if this life is on the list.
    #[must_use]
    pub fn is_listed(&self, member: Member) -> bool {
        self.standing(member) == Some(Standing::Listed)
    }

    /// Returns true if this life was declared failed, with no other news since.
    #[must_use]
    pub fn is_failed(&self, member: Member) -> bool {
        self.standing(member) == Some(Standing::Failed)
    }

    /// Returns true if this life has certainly ended: a delta reported it, or a later life is
    /// known, or it is another life of this node.
    #[must_use]
    pub fn is_over(&self, member: Member) -> bool {
        if member.id == self.me.id {
            return member != self.me;
        }
        self.latest(member.id).is_some_and(|(known, standing)| {
            known.supersedes(member) || known == member && standing == Standing::Over
        })
    }

    /// Returns true if this life was declared failed, or is over.
    #[must_use]
    pub fn has_ended(&self, member: Member) -> bool {
        self.is_over(member) || self.is_failed(member)
    }

    /// The value that is kept for this life.
    #[must_use]
    pub fn get(&self, member: Member) -> Option<&T> {
        let apart = || self.apart.get(&member.id).map(|(_, life)| life);
        let life = self.listed.get(&member.id).or_else(apart)?;
        (life.incarnation == member.incarnation).then_some(&life.kept)
    }

    /// The value that is kept for this life, mutable.
    pub fn get_mut(&mut self, member: Member) -> Option<&mut T> {
        let apart = &mut self.apart;
        let life = match self.listed.get_mut(&member.id) {
            Some(life) => life,
            None => &mut apart.get_mut(&member.id)?.1,
        };
        (life.incarnation == member.incarnation).then_some(&mut life.kept)
    }

    /// The members on the list, by id.
    pub fn listed(&self) -> impl DoubleEndedIterator<Item = Member> + '_ {
        self.listed.iter().map(|(&id, life)| Member {
            id,
            incarnation: life.incarnation,
        })
    }

    /// The number of members on the list. O(1).
    #[must_use]
    pub const fn listed_len(&self) -> usize {
        self.listed.len()
    }

    /// The member at this place of [`listed`](Self::listed), from 0. O(1).
    #[must_use]
    pub fn nth_listed(&self, place: usize) -> Option<Member> {
        let (&id, life) = self.listed.nth(place)?;
        let incarnation = life.incarnation;
        Some(Member { id, incarnation })
    }

    /// All known nodes: the list by id, then the others in the order in which they are forgotten.
    pub fn iter(&self) -> impl Iterator<Item = (Member, Standing)> + '_ {
        let listed = self.listed().map(|it| (it, Standing::Listed));
        let standing = |it: Member| Some((it, self.standing(it)?));
        listed.chain(self.in_order().filter_map(standing))
    }

    /// The number of known nodes, listed or not. O(1).
    #[must_use]
    pub const fn len(&self) -> usize {
        self.listed.len() + self.apart.len()
    }

    /// Returns true if no node is known.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The deltas from which a machine that begins later learns the standing of each life in the
    /// roster. Nodes that were only met are left out. O(n log n).
    pub fn as_deltas(&self) -> impl Iterator<Item = Delta> + '_ {
        self.iter().filter_map(|(member, standing)| match standing {
            Standing::Met => None,
            Standing::Listed => Some(Delta::Joined(member)),
            Standing::Failed => Some(Delta::Failed(member)),
            Standing::Over => Some(Delta::Confirmed(member)),
        })
    }

    /// Returns true if no news about this life is applied: it is over, or a life of this node.
    fn is_past(&self, member: Member) -> bool {
        member.id == self.me.id || self.is_over(member)
    }

    fn has_room_for(&self, member: Member, standing: Standing) -> bool {
        let is_listed = || self.listed.contains(&member.id);
        let is_apart = || self.apart.contains(&member.id);
        match self.room {
            Room::Shared { limit } => self.len() < limit || is_listed() || is_apart(),
            Room::Split if standing == Standing::Listed => {
                self.listed.len() < self.listed.limit() || is_listed()
            }
            Room::Split => self.apart.len() < self.apart.limit() || is_apart(),
        }
    }

    const fn full(&self, standing: Standing) -> Full {
        let limit = match (self.room, standing) {
            (Room::Shared { limit }, _) => limit,
            (Room::Split, Standing::Listed) => self.listed.limit(),
            (Room::Split, Standing::Met | Standing::Failed | Standing::Over) => self.apart.limit(),
        };
        Full { limit }
    }

    /// The nodes beside the list, in the order in which they are forgotten.
    fn in_order(&self) -> impl Iterator<Item = Member> + '_ {
        let ended = self.turn().filter(|(_, it)| *it != Standing::Met);
        let met = self.turn().filter(|(_, it)| *it == Standing::Met);
        let met_by_id = self.by_id(Standing::Met);
        let failed_by_id = self.by_id(Standing::Failed);
        let all = ended.chain(met).chain(met_by_id).chain(failed_by_id);
        all.map(|(member, _)| member)
    }

    /// The nodes that are forgotten in the order of the last news.
    fn turn(&self) -> impl Iterator<Item = (Member, Standing)> + '_ {
        self.turn.iter().filter_map(|&id| self.latest(id))
    }

    /// The nodes of this standing that are forgotten by id.
    fn by_id(&self, standing: Standing) -> impl Iterator<Item = (Member, Standing)> + '_ {
        let is_wanted = move |it: &(Member, Standing)| it.1 == standing;
        let takes_turns = self.room.takes_turns(standing);
        let all = self.apart.iter().filter(move |_| !takes_turns);
        all.filter_map(|(&id, _)| self.latest(id)).filter(is_wanted)
    }

    fn take_out(&mut self, node: NodeId) -> Option<Life<T>> {
        let apart = self.apart.remove(&node);
        if let Some((standing, _)) = &apart
            && self.room.takes_turns(*standing)
        {
            self.turn.retain(|&it| it != node);
        }
        let listed = self.listed.remove(&node);
        debug_assert!(apart.is_none() || listed.is_none(), "{node} stands twice");
        listed.or(apart.map(|(_, life)| life))
    }
}

#[cfg(test)]
mod tests;

//! The slow path's tree, as one node in it sees it: its parent, its children, and their answers.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Full, Member};

use crate::message::{Branch, Branches, TreeId};
use crate::{Request, Rival, Token};

/// A node's place in the tree of one request. Each operation takes O(log n) unless its page
/// states otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tree {
    pub(crate) id: TreeId,
    /// The root's request.
    pub(crate) request: Request,
    /// The node that gets the reports; `None` if this node is the root.
    pub(crate) parent: Option<Member>,
    /// True if this node has given its own OK.
    pub(crate) agreed: bool,
    /// True if the root asked this node directly, too.
    pub(crate) direct: bool,
    /// The last report to the parent that was not an answer to a question.
    pub(crate) reported: Report,
    /// True if a part below is lost, so that the tree must be built again.
    pub(crate) broken: bool,
    /// The highest token that was used, as far as the nodes below know.
    pub(crate) floor: Token,
    /// Other nodes that have the OK of nodes below, with the highest number of a token.
    pub(crate) rivals: BoundedMap<Member, u64>,
    /// The number of nodes below that gave their OK.
    oks: u32,
    children: BoundedMap<Member, Child>,
    /// Children that have not answered at all.
    silent: usize,
    /// Children whose part of the tree is built, and in which OKs are missing.
    below: usize,
}

/// A report to a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Report {
    Nothing,
    Echo,
    Up,
}

/// A node that was asked and has not declined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Child {
    pub(crate) answer: Answered,
    /// The member after which its list of rivals goes on.
    pub(crate) after: Option<Member>,
    /// The number of times that it was asked again since it last answered.
    pub(crate) unanswered: u8,
}

/// The progress of a child.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answered {
    /// It has not answered.
    No,
    /// Its part of the tree is built.
    Echo(Subtree),
    /// All nodes in its part have given their OK.
    Up,
}

/// The nodes below a child, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Subtree {
    /// The number of levels that `branches` holds in full.
    pub(crate) levels: u8,
    pub(crate) branches: Branches,
}

impl Child {
    pub(crate) const fn new(answer: Answered) -> Self {
        Self {
            answer,
            after: None,
            unanswered: 0,
        }
    }
}

impl Subtree {
    /// The parts below its topmost nodes, each with its topmost node. Takes O(branches).
    pub(crate) fn split(&self) -> Vec<(Member, Self)> {
        let levels = self.levels.saturating_sub(1);
        let mut parts: Vec<(Member, Self)> = Vec::new();
        for branch in &self.branches {
            if branch.depth == 1 {
                let branches = Branches::new();
                parts.push((branch.member, Self { levels, branches }));
            } else if let Some((_, part)) = parts.last_mut() {
                let depth = branch.depth - 1;
                part.branches.push(Branch { depth, ..*branch });
            }
        }
        parts
    }
}

impl Tree {
    pub(crate) const fn new(
        id: TreeId,
        request: Request,
        parent: Option<Member>,
        limit: usize,
    ) -> Self {
        Self {
            id,
            request,
            parent,
            agreed: parent.is_none(),
            direct: false,
            reported: Report::Nothing,
            broken: false,
            floor: Token {
                number: 0,
                by: id.root,
            },
            rivals: BoundedMap::new(limit),
            oks: 0,
            children: BoundedMap::new(limit),
            silent: 0,
            below: 0,
        }
    }

    /// The number of nodes below whose OK is certain.
    pub(crate) const fn oks(&self) -> u32 {
        self.oks
    }

    /// Returns true if the tree below is not built: a child has not answered yet, or a part is lost.
    pub(crate) const fn is_growing(&self) -> bool {
        self.broken || self.silent > 0
    }

    /// Returns true if this node and all nodes below have given their OK.
    pub(crate) const fn is_whole(&self) -> bool {
        !self.is_growing() && self.below == 0 && self.agreed
    }

    /// Returns true if answers or OKs from below are missing, or a part is lost, which the root has
    /// to learn.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_growing() || self.below > 0
    }

    pub(crate) fn child(&self, member: Member) -> Option<&Child> {
        self.children.get(&member)
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = (Member, &Child)> {
        self.children.iter().map(|(&member, child)| (member, child))
    }

    /// Returns true if the loss of `member` matters for this tree.
    pub(crate) fn needs(&self, member: Member) -> bool {
        self.child(member)
            .is_some_and(|child| child.answer != Answered::Up)
    }

    /// Changes the state of a child, or adds a child.
    pub(crate) fn set(&mut self, member: Member, child: Child) -> Result<(), Full> {
        let after = kinds(Some(&child));
        let before = self.children.insert(member, child)?;
        self.count(kinds(before.as_ref()), after);
        Ok(())
    }

    pub(crate) fn remove(&mut self, member: Member) -> Option<Child> {
        let before = self.children.remove(&member)?;
        self.count(kinds(Some(&before)), (0, 0));
        Some(before)
    }

    /// Stores that all nodes in the part of `member` have given their OK; `oks` of them count.
    pub(crate) fn complete(&mut self, member: Member, oks: u32) {
        let child = Child::new(Answered::Up);
        if self.set(member, child).is_ok() {
            self.oks = self.oks.saturating_add(oks);
        }
    }

    /// Notes that a child is asked once more. Returns the number of times since its last answer.
    pub(crate) fn ask_again(&mut self, member: Member) -> u8 {
        let Some(child) = self.children.get_mut(&member) else {
            debug_assert!(false, "only a child is asked again");
            return 0;
        };
        child.unanswered = child.unanswered.saturating_add(1);
        child.unanswered
    }

    /// Returns true if all of these fit the list for the root. Rivals that are on it take no room.
    pub(crate) fn has_room_for_all(&self, rivals: &[Rival]) -> bool {
        let is_new = |it: &&Rival| it.member != self.id.root && !self.rivals.contains(&it.member);
        let room = self.rivals.limit().saturating_sub(self.rivals.len());
        rivals.iter().filter(is_new).count() <= room
    }

    /// Takes note of rivals that nodes below named.
    pub(crate) fn note_rival(&mut self, rival: Rival) -> Result<(), Full> {
        let up_to = self.rivals.get(&rival.member).copied();
        let up_to = up_to.unwrap_or_default().max(rival.up_to);
        self.rivals.insert(rival.member, up_to).map(drop)
    }

    /// The nodes below, in the order of a walk, to this depth or to the last level that is known
    /// in full. Takes O(known nodes).
    pub(crate) fn topology(&self, depth: u8) -> Subtree {
        let mut all = Subtree {
            levels: depth,
            branches: Branches::new(),
        };
        for (member, child) in self.children() {
            all.branches.push(Branch { depth: 1, member });
            if let Answered::Echo(below) = &child.answer {
                all.levels = all.levels.min(below.levels.saturating_add(1));
                let deeper = below.branches.iter().map(|branch| Branch {
                    depth: branch.depth + 1,
                    ..*branch
                });
                all.branches.extend(deeper);
            }
        }
        // Deeper levels that are known only in part would not be a walk for the receiver.
        all.cut(all.levels);
        all
    }

    fn count(&mut self, before: (usize, usize), after: (usize, usize)) {
        self.silent = (self.silent + after.0).saturating_sub(before.0);
        self.below = (self.below + after.1).saturating_sub(before.1);
    }
}

impl Subtree {
    /// Leaves out the deeper levels.
    pub(crate) fn cut(&mut self, depth: u8) {
        self.levels = self.levels.min(depth);
        self.branches.retain(|branch| branch.depth <= depth);
    }
}

/// Two flags of a child: it has not answered; its part is built but not complete.
fn kinds(child: Option<&Child>) -> (usize, usize) {
    match child.map(|child| &child.answer) {
        Some(Answered::No) => (1, 0),
        Some(Answered::Echo(_)) => (0, 1),
        Some(Answered::Up) | None => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rivals of a child take room, except the root and rivals that are known already.
    #[test]
    fn a_tree_has_room_for_rivals_that_are_new_to_it() {
        let root = Member::new(1, 0);
        let id = TreeId {
            root,
            number: 1,
            attempt: 1,
        };
        let request = Request {
            number: 1,
            up_to: 1,
            last: 0,
        };
        let mut tree = Tree::new(id, request, Some(root), 2);
        let rival = |id| Rival {
            member: Member::new(id, 0),
            up_to: 1,
        };
        assert!(tree.has_room_for_all(&[rival(2), rival(3)]));
        assert!(!tree.has_room_for_all(&[rival(2), rival(3), rival(4)]));
        tree.note_rival(rival(2)).unwrap();
        assert!(tree.has_room_for_all(&[rival(1), rival(2), rival(3)]));
        assert!(!tree.has_room_for_all(&[rival(3), rival(4)]));
    }
}

//! The slow path: a request that goes from neighbour to neighbour through the whole mesh, and the
//! OKs that return along the tree (thesis, section 4.4, Algorithm 3).
//!
//! A parent asks until it has an answer, so nothing else need be acknowledged. Each OK counts once:
//! a node reports to only one parent unless it is asked, and messages of a child that was given up
//! are ignored.

use alloc::vec::Vec;

use selvedge_core::{Context, Member};

use crate::grant::Verdict;
use crate::granted::Grant;

use crate::message::{RIVAL_MAX_LEN, Rivals, UP_MAX_LEN, branches_len};
use crate::state::{Camera, Stage};
use crate::tree::{Answered, Child, Report, Subtree, Tree};
use crate::{Event, Message, Request, Rival, Token, TreeId};

/// A child's report of all nodes in its part of the tree, without the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    pub(crate) oks: u32,
    pub(crate) after: Option<Member>,
    pub(crate) more: bool,
    pub(crate) floor: Token,
}

/// The root's part: its own tree.
impl Camera {
    /// Continues the request through the mesh. Earlier OKs do not count, because the nodes give them
    /// again in the tree; but nodes that may be inside still have to give their OK themselves.
    pub(crate) fn go_slow(&mut self, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
            debug_assert!(false, "only a request that waits takes the slow path");
            return;
        };
        waiting.go_slow();
        // A node whose OK was kept does not know of this request, and may go before it.
        // It need not be in the tree.
        let kept: Vec<Member> = self.kept.iter().map(|(&member, ())| member).collect();
        self.kept.retain(|_, ()| false);
        for member in kept {
            self.ask_anew(member, cx);
        }
        self.counters.0.slow += 1;
        cx.event(Event::SlowPathTaken);
        self.start_tree(1, cx);
    }

    /// Begins to build the tree for the request that waits.
    pub(crate) fn start_tree(&mut self, attempt: u32, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &self.stage else {
            debug_assert!(false, "only a request that waits has a tree");
            return;
        };
        // Not level by level as in the thesis: that makes a breadth-first tree, which no promise needs, and
        // costs a round trip through the whole tree for each level.
        let request = waiting.request(self.issued.last());
        let id = TreeId {
            root: self.me,
            number: request.number,
            attempt,
        };
        self.expand(Tree::new(id, request, None, self.tree_room()), cx);
    }

    /// Handles the loss of a part of our tree.
    pub(crate) fn on_broken(&mut self, from: Member, tree: TreeId, cx: &mut Context<'_, Self>) {
        match self.forest.get(self.me).map(|ours| ours.id) {
            Some(id) if id == tree && self.is_waiting() => {
                self.counters.0.rebuilt += 1;
                self.start_tree(id.attempt.saturating_add(1), cx);
            }
            Some(id) if id.number == tree.number => {}
            Some(_) | None => self.on_stale_tree(from, tree, cx),
        }
    }

    /// Handles a message about an own tree that has ended.
    fn on_stale_tree(&mut self, from: Member, tree: TreeId, cx: &mut Context<'_, Self>) {
        self.counters.0.stale += 1;
        let is_open = match &self.stage {
            Stage::Idle => false,
            Stage::Waiting(waiting) => waiting.token.number <= tree.number,
            Stage::Inside(inside) => inside.number <= tree.number,
        };
        if !is_open && tree.number <= self.issued.latest() {
            cx.send(from, self.end_of(tree.number));
        }
    }

    fn tree_room(&self) -> usize {
        (self.config.peer_limit as usize).saturating_mul(2)
    }
}

/// The part of any node of a tree.
impl Camera {
    /// Handles a node's request to become its child.
    pub(crate) fn on_join(
        &mut self,
        from: Member,
        tree: TreeId,
        request: Request,
        cx: &mut Context<'_, Self>,
    ) {
        let ours = self
            .forest
            .get(tree.root)
            .map(|ours| (ours.id, ours.parent));
        match ours {
            Some((id, Some(parent))) if id == tree && parent == from => {
                self.report(tree.root, None, cx);
            }
            Some((id, _)) if id >= tree => cx.send(from, Message::Nack { tree }),
            Some(_) | None => self.take_part(from, tree, request, cx),
        }
    }

    /// Handles an ADOPT: its sender is our parent now, or still is, and needs our report.
    pub(crate) fn on_adopt(
        &mut self,
        from: Member,
        tree: TreeId,
        request: Request,
        after: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        match self.forest.get_mut(tree.root) {
            Some(ours) if ours.id == tree && ours.parent.is_some() => {
                ours.parent = Some(from);
                if !self.rules.adopted_stay_silent() || ours.reported != Report::Up {
                    self.report(tree.root, after, cx);
                }
            }
            Some(ours) if ours.id >= tree => cx.send(from, Message::Nack { tree }),
            Some(_) | None => self.take_part(from, tree, request, cx),
        }
    }

    fn take_part(
        &mut self,
        parent: Member,
        tree: TreeId,
        request: Request,
        cx: &mut Context<'_, Self>,
    ) {
        let root = tree.root;
        let others = self.forest.len() - usize::from(self.forest.contains(self.me));
        let is_full = others >= self.config.tree_limit.into() && !self.forest.contains(root);
        // A list that makes no progress would be requested without end.
        let is_mute = !self.config.list_room(UP_MAX_LEN).fits(RIVAL_MAX_LEN);
        if root.id == self.me.id || !self.meet(root, cx) || is_full || is_mute {
            self.counters.0.no_room += u64::from(is_full);
            cx.send(parent, Message::Nack { tree });
            return;
        }
        let verdict = self.learn_wish(root, request, cx);
        let mut ours = Tree::new(tree, request, Some(parent), self.tree_room());
        match verdict {
            Verdict::Over => {
                cx.send(parent, Message::Nack { tree });
                return;
            }
            Verdict::Granted => ours.agreed = true,
            Verdict::Grant => ours.agreed = self.agree(root, request, cx),
            Verdict::Wait => {
                let before = self.granted.deferred_number(root);
                ours.direct = before == Some(request.number);
                self.defer(root, request);
            }
        }
        self.expand(ours, cx);
    }

    /// Gives our OK in the tree, and remembers it at once.
    fn agree(&mut self, root: Member, request: Request, cx: &mut Context<'_, Self>) -> bool {
        self.rules.late_caching() || self.remember(root, request, cx)
    }

    /// Asks all neighbours to be children.
    fn expand(&mut self, mut tree: Tree, cx: &mut Context<'_, Self>) {
        let (id, parent, request) = (tree.id, tree.parent, tree.request);
        for member in self.peers.listed() {
            if member == id.root || Some(member) == parent {
                continue;
            }
            let is_asked = tree.set(member, Child::new(Answered::No)).is_ok();
            debug_assert!(is_asked, "a tree has room for all that are remembered");
            cx.send(member, join(id, request));
        }
        self.forest.insert(tree);
        self.watch_trees(cx);
        self.advance(id.root, cx);
    }

    /// Handles a neighbour's refusal to be our child.
    pub(crate) fn on_nack(&mut self, from: Member, tree: TreeId, cx: &mut Context<'_, Self>) {
        let Some(ours) = self.forest.get_mut(tree.root) else {
            // The tree is over.
            return;
        };
        // A node that has reported more took part, and sent this message before.
        if ours.id == tree && ours.child(from).map(|it| &it.answer) == Some(&Answered::No) {
            ours.remove(from);
            self.advance(tree.root, cx);
        }
    }

    /// Handles a report that a child's part of the tree is built.
    pub(crate) fn on_echo(
        &mut self,
        from: Member,
        tree: TreeId,
        below: Subtree,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(ours) = self.forest.get_mut(tree.root).filter(|it| it.id == tree) else {
            self.on_unknown_tree(from, tree, cx);
            return;
        };
        if !ours.needs(from) {
            return;
        }
        let after = ours.child(from).and_then(|child| child.after);
        let child = Child {
            after,
            ..Child::new(Answered::Echo(below))
        };
        let _is_there = ours.set(from, child).is_ok();
        self.advance(tree.root, cx);
    }

    /// Handles the OKs of all nodes in a child's part.
    pub(crate) fn on_up(
        &mut self,
        from: Member,
        tree: TreeId,
        sum: Sum,
        rivals: &[Rival],
        cx: &mut Context<'_, Self>,
    ) {
        let root = tree.root;
        let is_ours = root == self.me;
        let has_room = !is_ours || self.has_room_for_all(rivals);
        let Some(ours) = self.forest.get_mut(root).filter(|it| it.id == tree) else {
            self.on_unknown_tree(from, tree, cx);
            return;
        };
        let Some(child) = ours.child(from) else {
            // It was given up, or never asked.
            return;
        };
        if child.answer == Answered::Up || child.after != sum.after {
            return;
        }
        if !has_room {
            // One of them may be inside, and cannot be awaited.
            self.refuse_for_room(cx);
            return;
        }
        if !is_ours && !ours.has_room_for_all(rivals) {
            // Not all of them fit the list for the root, so their OKs must not count.
            self.counters.0.no_room += 1;
            ours.floor = ours.floor.max(sum.floor);
            ours.complete(from, 0);
            self.advance(root, cx);
            return;
        }
        if sum.more {
            let after = rivals.last().map(|rival| rival.member);
            let below = match &child.answer {
                Answered::Echo(below) => below.clone(),
                Answered::No | Answered::Up => Subtree::default(),
            };
            let child = Child {
                after,
                ..Child::new(Answered::Echo(below))
            };
            let _is_there = ours.set(from, child).is_ok();
            cx.send(from, adopt(ours, after));
        }
        ours.floor = ours.floor.max(sum.floor);
        for &rival in rivals {
            if !is_ours {
                self.pass_on(root, rival);
            } else if !self.rules.root_ignores_rivals() {
                self.on_rival(rival, cx);
            }
        }
        if !sum.more
            && let Some(ours) = self.forest.get_mut(root).filter(|it| it.id == tree)
        {
            ours.complete(from, sum.oks);
        }
        self.advance(root, cx);
    }

    /// Notes a rival for the root. If the rival's request is over, the root needs only its token.
    fn pass_on(&mut self, root: Member, rival: Rival) {
        let Rival { member, up_to } = rival;
        // A root is no rival of its own request.
        if member == root || self.is_past(rival) {
            return;
        }
        let is_over = self.peers.is_over(member);
        let Some(ours) = self.forest.get_mut(root) else {
            debug_assert!(false, "rivals are named in a tree that is there");
            return;
        };
        if is_over {
            let (number, holder) = (up_to, member);
            ours.floor = ours.floor.max(Token { number, by: holder });
        } else {
            let is_noted = ours.note_rival(rival).is_ok();
            debug_assert!(is_noted, "there was room for all");
        }
    }

    /// Handles a message about a tree that we do not have.
    fn on_unknown_tree(&mut self, from: Member, tree: TreeId, cx: &mut Context<'_, Self>) {
        if tree.root == self.me {
            self.on_stale_tree(from, tree, cx);
        } else {
            self.counters.0.stale += 1;
        }
    }

    /// Reports to the parent if anything is new. A root has no parent, and is examined after each
    /// input.
    pub(crate) fn advance(&mut self, root: Member, cx: &mut Context<'_, Self>) {
        if root == self.me {
            return;
        }
        let Some(tree) = self.forest.get_mut(root) else {
            debug_assert!(false, "only a tree that is there advances");
            return;
        };
        let news = if tree.is_growing() {
            Report::Nothing
        } else if tree.is_whole() {
            Report::Up
        } else {
            Report::Echo
        };
        let is_news = match (tree.reported, news) {
            (_, Report::Nothing) | (Report::Up, _) | (Report::Echo, Report::Echo) => false,
            (Report::Nothing | Report::Echo, Report::Echo | Report::Up) => true,
        };
        if is_news {
            tree.reported = news;
            self.report(root, None, cx);
        }
    }

    /// Reports our state to the parent.
    fn report(&mut self, root: Member, after: Option<Member>, cx: &mut Context<'_, Self>) {
        let Some(tree) = self.forest.get(root) else {
            debug_assert!(false, "only a tree that is there is reported");
            return;
        };
        let (id, request, agreed) = (tree.id, tree.request, tree.agreed);
        if !agreed && self.granted.deferred_number(root).is_none() {
            // A late request of the root had an earlier token than ours, and the OK to it took the
            // place of this request.
            let verdict = self.learn_wish(root, request, cx);
            let agrees = verdict == Verdict::Granted
                || verdict == Verdict::Grant && self.agree(root, request, cx);
            if let Some(tree) = self.forest.get_mut(root).filter(|it| it.id == id) {
                tree.agreed = agrees;
            }
        }
        let Some(tree) = self.forest.get(root) else {
            debug_assert!(false, "a request that is learned again ends no tree");
            return;
        };
        if tree.is_growing() {
            return;
        }
        if tree.is_whole() {
            if self.rules.late_caching() {
                self.remember(root, request, cx);
            }
            self.send_sum(root, after, cx);
            return;
        }
        let Some(parent) = tree.parent else {
            debug_assert!(false, "the tree of another node has a parent");
            return;
        };
        let mut below = tree.topology(self.config.failures.saturating_add(1));
        let room = self.config.list_room(UP_MAX_LEN);
        while !room.fits(branches_len(&below.branches)) {
            below.cut(below.levels.saturating_sub(1));
        }
        let Subtree { levels, branches } = below;
        let (life, tree) = (parent.incarnation.0, id);
        cx.send(
            parent,
            Message::Echo {
                life,
                tree,
                levels,
                branches,
            },
        );
    }

    /// One part of the list of rivals of this node and the nodes below it, as much as fits a frame.
    fn send_sum(&self, root: Member, after: Option<Member>, cx: &mut Context<'_, Self>) {
        let ours = self.forest.get(root);
        let Some((ours, parent)) = ours.and_then(|it| Some((it, it.parent?))) else {
            debug_assert!(false, "the tree of another node has a parent");
            return;
        };
        let is_named = |it: &Rival| it.member != root && Some(it.member) > after;
        let grants = self.granted.grants().iter();
        let own = grants.map(|(&member, &Grant { up_to, .. })| Rival { member, up_to });
        let below = ours.rivals.iter();
        let below = below.map(|(&member, &up_to)| Rival { member, up_to });
        let mut own = own.filter(is_named).peekable();
        let mut below = below.filter(is_named).peekable();
        // Both are in order. Of two entries, the one with the higher number covers both.
        let all = core::iter::from_fn(|| match (own.peek(), below.peek()) {
            (Some(one), Some(other)) if one.member == other.member => own.next().max(below.next()),
            (Some(one), Some(other)) if one.member > other.member => below.next(),
            (Some(_), _) => own.next(),
            (None, _) => below.next(),
        });
        let mut room = self.config.list_room(UP_MAX_LEN);
        let (rivals, next): (Rivals, _) = room.fill(all, Rival::encoded_len);
        cx.send(
            parent,
            Message::Up {
                life: parent.incarnation.0,
                tree: ours.id,
                oks: ours.oks().saturating_add(1),
                after,
                rivals,
                more: next.is_some(),
                floor: self.tokens.floor().max(ours.floor),
            },
        );
    }
}

pub(crate) fn join(tree: TreeId, request: Request) -> Message {
    let Request { up_to, last, .. } = request;
    Message::Join { tree, up_to, last }
}

pub(crate) fn adopt(tree: &Tree, after: Option<Member>) -> Message {
    let Request { up_to, last, .. } = tree.request;
    let tree = tree.id;
    Message::Adopt {
        tree,
        up_to,
        last,
        after,
    }
}

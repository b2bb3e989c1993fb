//! Repairs of the slow path's trees: children fail, answers are lost, and roots end their requests.

use alloc::vec::Vec;

use selvedge_core::{Context, Member};

use crate::granted::Released;
use crate::slow::{adopt, join};
use crate::state::Camera;
use crate::tree::{Answered, Child, Subtree, Tree};
use crate::{Message, Timer};

impl Camera {
    /// Handles a node that takes no part any more, or is reported to take none.
    pub(crate) fn on_lost(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let needs = |(_, tree): &(Member, &Tree)| tree.needs(member);
        let trees = self.forest.iter().filter(needs);
        let roots: Vec<Member> = trees.map(|(root, _)| root).collect();
        for root in roots {
            self.give_up(root, member, cx);
        }
    }

    /// Gives up a child, and becomes the parent of its children.
    fn give_up(&mut self, root: Member, child: Member, cx: &mut Context<'_, Self>) {
        let Some(tree) = self.forest.get_mut(root) else {
            // Its tree ended with another loss.
            return;
        };
        let Some(child) = tree.remove(child) else {
            // The tree was rebuilt without it.
            return;
        };
        let mut orphans: Vec<(Member, Subtree)> = Vec::new();
        let mut is_lost = match child.answer {
            Answered::No => true,
            Answered::Echo(below) => {
                orphans = below.split();
                below.levels == 0
            }
            Answered::Up => false,
        };
        while let Some((orphan, below)) = orphans.pop() {
            if orphan == root || orphan.id == self.me.id {
                continue;
            }
            if self.peers.is_failed(orphan) || self.peers.is_over(orphan) {
                is_lost |= below.levels == 0;
                orphans.extend(below.split());
                continue;
            }
            if tree.set(orphan, Child::new(Answered::Echo(below))).is_err() {
                self.counters.0.no_room += 1;
                is_lost = true;
                continue;
            }
            cx.send(orphan, adopt(tree, None));
        }
        let id = tree.id;
        if is_lost && !self.rules.no_rebuilding() {
            tree.broken = true;
            if root == self.me {
                self.on_broken(root, id, cx);
                return;
            }
            cx.send(root, Message::Broken { tree: id });
        }
        self.watch_trees(cx);
        self.advance(root, cx);
    }

    /// Handles the end of some of the root's requests, and so of their tree.
    pub(crate) fn prune(
        &mut self,
        root: Member,
        Released { number, over }: Released,
        last: u64,
        cx: &mut Context<'_, Self>,
    ) {
        let is_over = |tree: &&Tree| tree.id.number <= number;
        if self.forest.get(root).filter(is_over).is_none() {
            return;
        }
        let Some(tree) = self.forest.remove(root) else {
            debug_assert!(false, "a tree that is over is there");
            return;
        };
        if self.config.multicast {
            return;
        }
        for (member, _) in tree.children() {
            let message = Message::Over {
                root,
                number,
                last,
                over,
            };
            cx.send(member, message);
        }
    }

    /// Arms the timer that asks again for overdue answers.
    pub(crate) fn watch_trees(&mut self, cx: &mut Context<'_, Self>) {
        if self.forest.begins_watch() {
            cx.arm(Timer::Tree, self.config.resend);
        }
    }

    /// Asks again the children that have not answered, and less often the children whose OK is
    /// missing.
    pub(crate) fn ask_trees_again(&mut self, cx: &mut Context<'_, Self>) {
        let (resend, limit) = (self.config.resend, self.config.resend_limit);
        let asks_all = self.forest.on_round(resend, limit);
        let patience = self.config.tree_patience;
        let mut silent: Vec<(Member, Member)> = Vec::new();
        for root in self.forest.roots() {
            let Some(tree) = self.forest.get_mut(root) else {
                debug_assert!(false, "no tree ends while children are asked");
                continue;
            };
            if tree.broken {
                let tree = tree.id;
                cx.send(root, Message::Broken { tree });
                continue;
            }
            let asked: Vec<Member> = tree
                .children()
                .filter(|(_, child)| match child.answer {
                    Answered::No => true,
                    Answered::Echo(_) => asks_all,
                    Answered::Up => false,
                })
                .map(|(member, _)| member)
                .collect();
            for member in asked {
                // If a child is on the list, the membership service reports its failure.
                let is_watched = self.peers.is_listed(member);
                if patience > 0 && !is_watched && tree.ask_again(member) > patience {
                    silent.push((root, member));
                } else if tree.child(member).map(|it| &it.answer) == Some(&Answered::No) {
                    cx.send(member, join(tree.id, tree.request));
                } else {
                    let after = tree.child(member).and_then(|child| child.after);
                    cx.send(member, adopt(tree, after));
                }
            }
        }
        for (root, member) in silent {
            self.give_up(root, member, cx);
        }
        self.watch_trees(cx);
    }
}

//! An oracle: the nodes inside, the tokens that were used, and the promises about both.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use selvedge_core::Member;

use crate::{Camera, Event, Token};

/// The lives that were present at some time since a request was opened: the promises hold for at
/// most [`Config::max_lives`](crate::Config::max_lives).
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    lives: u32,
    /// The smallest majority of its owner's bound.
    quorum: u32,
}

/// An observer of all nodes of a mesh.
#[derive(Default)]
pub(super) struct Oracle {
    /// True if holders may be passed over.
    has_takeover: bool,
    alive: BTreeSet<Member>,
    /// The requests that are open, and those with permissions that are kept.
    open: BTreeMap<Member, Span>,
    inside: BTreeMap<Member, Token>,
    passed: BTreeSet<Member>,
    last: Token,
    /// The span of the request that was served last.
    then: Option<Span>,
    /// True if between two entries enough nodes restarted that perhaps no node knows the last token.
    has_forgotten: bool,
    pub(super) entries: u64,
    /// Entries with a token that had to exceed the token before.
    pub(super) compared: u64,
}

impl Oracle {
    pub(super) fn new(has_takeover: bool) -> Self {
        Self {
            has_takeover,
            ..Self::default()
        }
    }

    /// Returns true if the assumptions of the promises allow one more life.
    pub(super) fn may_begin(&self, max_lives: u32) -> bool {
        self.open.values().all(|span| span.lives < max_lives)
    }

    pub(super) fn begins(&mut self, member: Member) {
        self.alive.insert(member);
        for span in self.open.values_mut().chain(&mut self.then) {
            span.lives += 1;
        }
    }

    pub(super) fn dies(&mut self, member: Member) {
        self.alive.remove(&member);
        self.open.remove(&member);
        self.inside.remove(&member);
    }

    /// Takes note of a node after a step, before its events are examined. `was_idle`: true if it had
    /// no request and kept no permission before the step.
    pub(super) fn step(&mut self, machine: &Camera, was_idle: bool) {
        let me = machine.me();
        let lives = self.alive.len() as u32;
        let span = if was_idle {
            self.open.insert(me, Span { lives, quorum: 0 });
            self.open.get_mut(&me)
        } else {
            self.open.get_mut(&me)
        };
        if let Some(span) = span {
            span.quorum = machine.config().max_lives / 2 + 1;
        }
    }

    /// Checks that no node's OK was counted twice in the tree of this node's request.
    pub(super) fn counted(&self, machine: &Camera) -> Result<(), String> {
        let me = machine.me();
        let (Some(tree), Some(span)) = (machine.forest.get(me), self.open.get(&me)) else {
            return Ok(());
        };
        if tree.oks() >= span.lives {
            let (oks, lives) = (tree.oks(), span.lives);
            return Err(format!(
                "{me:?} has {oks} OKs of others, and there were {lives} lives"
            ));
        }
        Ok(())
    }

    /// Forgets a request that is over, after the events of its node were examined.
    pub(super) fn settle(&mut self, machine: &Camera) {
        if is_idle(machine) {
            self.open.remove(&machine.me());
        }
    }

    pub(super) fn notified(&mut self, who: Member, event: &Event) -> Result<(), String> {
        match event {
            Event::Entered(token) => self.entered(who, *token),
            Event::Released(token) => match self.inside.remove(&who) {
                Some(held) if held == *token => Ok(()),
                held => Err(format!("{who:?} released {token:?} and had {held:?}")),
            },
            Event::PassedOver(whom) => {
                self.passed.insert(*whom);
                self.allowed(format!("{who:?} passed {whom:?} over"))
            }
            Event::Fenced(by) => {
                let held = self.inside.get(&who).copied();
                if held.is_none_or(|held| held >= *by) {
                    return Err(format!("{who:?} has {held:?} and is fenced by {by:?}"));
                }
                if self.has_forgotten {
                    return Ok(());
                }
                self.allowed(format!("{who:?} is fenced by {by:?}"))
            }
            Event::SlowPathTaken | Event::Waiting(_) | Event::Cancelled | Event::Refused(_) => {
                Ok(())
            }
        }
    }

    fn allowed(&self, what: String) -> Result<(), String> {
        self.has_takeover
            .then_some(())
            .ok_or_else(|| format!("{what} without a takeover"))
    }

    fn entered(&mut self, who: Member, token: Token) -> Result<(), String> {
        self.entries += 1;
        if token.by != who {
            return Err(format!("{who:?} entered with {token:?}"));
        }
        for &other in self.inside.values() {
            let low = token.min(other);
            if !self.passed.contains(&low.by) {
                return Err(format!("{token:?} and {other:?} are inside together"));
            }
        }
        let span = self.open.get(&who).copied().unwrap_or_default();
        let is_remembered = self.then.is_none_or(|then| {
            let lives = then.lives.max(span.lives);
            then.quorum + span.quorum > lives
        });
        self.has_forgotten |= !is_remembered;
        // A node that was passed over and does not know it may enter late with a lower token.
        let is_late = token <= self.last && self.passed.contains(&who);
        if is_remembered && !is_late {
            self.compared += 1;
            if token <= self.last {
                return Err(format!("{token:?} was used after {:?}", self.last));
            }
        }
        if !is_late {
            self.last = token;
            self.then = Some(span);
        }
        self.inside.insert(who, token);
        Ok(())
    }
}

/// Returns true if no request is open, and no permission is kept.
pub(super) fn is_idle(machine: &Camera) -> bool {
    machine.token().is_none() && !machine.is_waiting() && machine.kept.is_empty()
}

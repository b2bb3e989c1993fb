//! The state of an election at its initiator.

use alloc::vec::Vec;

use selvedge_core::wire::MEMBER_MAX_LEN;
use selvedge_core::{Member, NodeId, Pending, Rank, Ratio};

use crate::message::{ASKED_MAX_LEN, Members, NAMES_MIN, cut};
use crate::peers::Peers;
use crate::sorted;
use crate::{Ballot, Config};

/// An election of this node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    /// The ballot of this round.
    pub(crate) ballot: Ballot,
    /// The last ballot that was given out.
    pub(crate) last: Ballot,
    /// Nodes that are not on our list, and were named in an answer when we knew too few.
    pub(crate) met: Vec<Member>,
    pub(crate) asked: Vec<Member>,
    pub(crate) answered: Vec<Member>,
    /// Whether our own list is one of the answers.
    pub(crate) own: bool,
    /// Whether the nodes that are asked are to name others: we know too few, or too few of them
    /// answer.
    pub(crate) wants: bool,
    /// Candidates, the lowest first.
    pub(crate) candidates: Vec<(Rank, Member)>,
    pub(crate) unhealthy: Vec<Member>,
    /// The nodes that are passed over: those that did not answer when they were appointed, or are
    /// over, in that order.
    pub(crate) exclude: Vec<Member>,
    /// How many of them this round's queries do not name. The queries ask for as many more
    /// candidates.
    pub(crate) unnamed: usize,
    pub(crate) x: u8,
    pub(crate) y: u8,
    pub(crate) named: Option<Appointee>,
    /// Whether the application was told that too few are known.
    pub(crate) starved: bool,
    /// How many lists may lack the lowest node, and how often that is too few.
    pub(crate) tolerates: (u16, Option<Ratio>),
    /// How many answers of others named the lowest candidate: counted where that is reported.
    pub(crate) agreed: u16,
    /// How often answers were overdue since the round began, or since others were met.
    pub(crate) overdue: u8,
    /// This node was one of few when the run began, or has been since.
    pub(crate) few: bool,
}

/// The node that we appointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Appointee {
    pub(crate) member: Member,
    /// The ballot of the appointment that is not answered, or was answered last.
    pub(crate) appointment: Pending<Ballot>,
    /// Whether the node said that it leads.
    pub(crate) leads: bool,
}

impl Run {
    pub(crate) const fn new(
        ballot: Ballot,
        (x, y): (u8, u8),
        tolerates: (u16, Option<Ratio>),
    ) -> Self {
        Self {
            ballot,
            last: ballot,
            met: Vec::new(),
            asked: Vec::new(),
            answered: Vec::new(),
            own: false,
            wants: false,
            candidates: Vec::new(),
            unhealthy: Vec::new(),
            exclude: Vec::new(),
            unnamed: 0,
            x,
            y,
            named: None,
            starved: false,
            tolerates,
            agreed: 0,
            overdue: 0,
            few: false,
        }
    }

    pub(crate) fn answers(&self) -> usize {
        self.answered.len() + usize::from(self.own)
    }

    /// Answers are overdue. Nodes that were met and did not answer that often are forgotten: they
    /// may be dead, and no delta says so of a node that our list does not name. A node that lives
    /// is met again.
    pub(crate) fn forget_silent(&mut self, peers: &Peers, attempts: u8) {
        self.overdue = self.overdue.saturating_add(1);
        if self.overdue < attempts {
            return;
        }
        self.overdue = 0;
        let Self {
            met,
            asked,
            answered,
            ..
        } = self;
        let mut silent = Vec::new();
        met.retain(|it| {
            let is_silent = asked.binary_search(it).is_ok()
                && answered.binary_search(it).is_err()
                && !peers.is_listed(*it);
            if is_silent {
                silent.push(*it);
            }
            !is_silent
        });
        asked.retain(|it| !silent.contains(it));
    }

    /// `member` is asked. A life of its node that is over, or before `member`, and has not answered,
    /// is waited for no more: so a node takes no more room however often it restarts, also where
    /// its lives are met and not listed.
    pub(crate) fn note_asked(&mut self, member: Member, peers: &Peers) {
        let Self {
            asked, answered, ..
        } = self;
        asked.retain(|it| {
            let is_past = member.supersedes(*it) || it.id == member.id && peers.is_over(*it);
            !is_past || answered.binary_search(it).is_ok()
        });
        sorted::insert(asked, member);
    }

    /// `node` is forgotten, and its answer is not waited for any more.
    pub(crate) fn forget(&mut self, node: NodeId) {
        let Self {
            asked, answered, ..
        } = self;
        asked.retain(|it| it.id != node || answered.binary_search(it).is_ok());
    }

    /// How many of the nodes that may still be asked were asked.
    pub(crate) fn asked_of(&self, peers: &Peers) -> usize {
        let may_be = |it: &&Member| {
            let is_met = self.met.binary_search(it).is_ok() && !peers.is_gone(**it);
            (is_met || peers.is_listed(**it)) && !self.exclude.contains(it)
        };
        self.asked.iter().filter(may_be).count()
    }

    /// How many lists the run must rest on.
    pub(crate) fn needed(&self) -> usize {
        usize::from(self.tolerates.0) + 1
    }

    /// Whether one more node can be passed over and none be forgotten for it. Queries name the
    /// nodes that are passed over, or answers have to be long enough to name a node behind them.
    pub(crate) fn has_room(&self, member: Member, config: &Config) -> bool {
        let all = || self.exclude.iter().copied().chain([member]);
        let unnamed = all().count() - named(all(), config).len();
        unnamed < self.names(config)
    }

    /// How many names an answer holds, whatever the names are, where frames are as long as ours.
    pub(crate) fn names(&self, config: &Config) -> usize {
        let names = config.list_room(ASKED_MAX_LEN).left() / MEMBER_MAX_LEN;
        let names = if self.y > 0 { names / 2 } else { names };
        names.min(EXCLUDED_MAX)
    }

    /// Whether an answer names only nodes that are passed over, though it may name only the first
    /// nodes of a list. An answer is so short where its frame is short: below these nodes the
    /// sender may know another.
    pub(crate) fn is_cut_short(&self, candidates: &[Member]) -> bool {
        candidates.len() >= NAMES_MIN && candidates.iter().all(|it| self.exclude.contains(it))
    }
}

/// The nodes of `exclude` that a query names: as many as may be, and fit.
pub(crate) fn named(exclude: impl Iterator<Item = Member>, config: &Config) -> Members {
    let mut room = config.list_room(ASKED_MAX_LEN);
    cut(exclude.take(config.exclude_limit.into()), &mut room)
}

/// No sound initiator excludes more nodes.
pub(crate) const EXCLUDED_MAX: usize = u8::MAX as usize;

pub(crate) fn first(list: &[Member], count: usize) -> &[Member] {
    list.get(..count).unwrap_or(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lowest;
    use selvedge_core::roster::Standing;

    fn members(ids: &[u64]) -> Vec<Member> {
        ids.iter().map(|&id| Member::new(id, 0)).collect()
    }

    fn run() -> Run {
        let ballot = Ballot {
            epoch: 1,
            initiator: Member::new(0, 0),
            step: 0,
        };
        Run::new(ballot, (1, 0), (1, None))
    }

    /// Node 1 restarts again and again while it is asked; node 2 is asked as well.
    #[test]
    fn however_often_a_node_restarts_it_takes_no_more_room() {
        let mut peers = Peers::new(9, Member::new(0, 0));
        let by_hash = Lowest::<selvedge_core::Sha256Sortition>::default();
        let mut run = run();
        run.note_asked(Member::new(2, 0), &peers);
        for life in 0..9 {
            let member = Member::new(1, life);
            peers.set(member, Standing::Listed, &by_hash).unwrap();
            run.note_asked(member, &peers);
            assert_eq!(run.asked, [member, Member::new(2, 0)]);
        }
        // The life that answered counts, so it stays until a later life answers.
        let answered = Member::new(1, 8);
        run.answered.push(answered);
        for life in 9..12 {
            let member = Member::new(1, life);
            peers.set(member, Standing::Listed, &by_hash).unwrap();
            run.note_asked(member, &peers);
            assert_eq!(run.asked, [answered, member, Member::new(2, 0)]);
        }
        // Nor where an answer names the later life, and membership has not told of it.
        let met = Member::new(1, 12);
        assert!(!peers.is_over(Member::new(1, 11)));
        run.note_asked(met, &peers);
        assert_eq!(run.asked, [answered, met, Member::new(2, 0)]);
    }

    /// Node 1 is on our list, and nodes 2 to 4 were met; nodes 1 to 3 were asked, and node 3 has
    /// answered.
    #[test]
    fn who_was_met_and_is_silent_is_forgotten_and_nobody_else() {
        let me = Member::new(0, 0);
        let mut peers = Peers::new(9, me);
        let by_hash = Lowest::<selvedge_core::Sha256Sortition>::default();
        peers
            .set(Member::new(1, 0), Standing::Listed, &by_hash)
            .unwrap();
        let mut run = run();
        run.met = members(&[1, 2, 3, 4]);
        run.asked = members(&[1, 2, 3]);
        run.answered = members(&[3]);
        run.forget_silent(&peers, 2);
        assert_eq!(
            run.met,
            members(&[1, 2, 3, 4]),
            "it is overdue for the first time"
        );
        run.forget_silent(&peers, 2);
        assert_eq!(run.met, members(&[1, 3, 4]));
        assert_eq!(run.asked, members(&[1, 3]), "so it stays bounded");
        run.forget_silent(&peers, 2);
        assert_eq!(run.overdue, 1);
    }
}

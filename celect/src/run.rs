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
    /// The last ballot that was used.
    pub(crate) last: Ballot,
    /// Nodes off our list that answers named when we knew too few.
    pub(crate) met: Vec<Member>,
    pub(crate) asked: Vec<Member>,
    pub(crate) answered: Vec<Member>,
    /// True if our own list is one of the answers.
    pub(crate) own: bool,
    /// True if queries ask for names of others: we know too few, or too few of them answer.
    pub(crate) wants: bool,
    /// Candidates, the lowest first.
    pub(crate) candidates: Vec<(Rank, Member)>,
    pub(crate) unhealthy: Vec<Member>,
    /// The nodes that are passed over, in that order: they did not answer their appointment, or their
    /// lives have ended.
    pub(crate) exclude: Vec<Member>,
    /// The number of nodes in `exclude` that this round's queries do not name. The queries ask for as
    /// many more candidates.
    pub(crate) unnamed: usize,
    pub(crate) x: u8,
    pub(crate) y: u8,
    pub(crate) named: Option<Appointee>,
    /// True if the application was notified that too few nodes are known.
    pub(crate) starved: bool,
    /// The number of lists that may lack the lowest node, and the probability that it is too low.
    pub(crate) bound: (u16, Option<Ratio>),
    /// The number of answers of others that name the lowest candidate; counted only for reports.
    pub(crate) agreed: u16,
    /// The number of times that answers were overdue since the round began, or since others were met.
    pub(crate) overdue: u8,
    /// True if this node was `few` at any moment of the run.
    pub(crate) few: bool,
}

/// The node that we appointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Appointee {
    pub(crate) member: Member,
    /// The ballot of the appointment that is not answered, or was answered last.
    pub(crate) appointment: Pending<Ballot>,
    /// True if the node announced that it leads.
    pub(crate) leads: bool,
}

impl Run {
    pub(crate) const fn new(ballot: Ballot, (x, y): (u8, u8), bound: (u16, Option<Ratio>)) -> Self {
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
            bound,
            agreed: 0,
            overdue: 0,
            few: false,
        }
    }

    pub(crate) fn answers(&self) -> usize {
        self.answered.len() + usize::from(self.own)
    }

    /// Handles overdue answers: forgets met nodes that did not answer `attempts` times. They may be
    /// dead, and for a node off our list there may be no delta. A live node is met again.
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

    /// Records that `member` is asked. Lives of its node that have ended, or are older than `member`,
    /// and have not answered, are no longer awaited: so the room for a node does not grow with its
    /// restarts, also where its lives are met and not listed.
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

    /// Forgets `node`, whose answer is no longer awaited.
    pub(crate) fn forget(&mut self, node: NodeId) {
        let Self {
            asked, answered, ..
        } = self;
        asked.retain(|it| it.id != node || answered.binary_search(it).is_ok());
    }

    /// Returns the number of asked nodes among the nodes that may still be asked.
    pub(crate) fn asked_of(&self, peers: &Peers) -> usize {
        let may_be = |it: &&Member| {
            let is_met = self.met.binary_search(it).is_ok() && !peers.has_ended(**it);
            (is_met || peers.is_listed(**it)) && !self.exclude.contains(it)
        };
        self.asked.iter().filter(may_be).count()
    }

    /// Returns the number of lists that the run needs.
    pub(crate) fn needed(&self) -> usize {
        usize::from(self.bound.0) + 1
    }

    /// Returns true if one more node can be passed over without forgetting another. Queries name the
    /// nodes that are passed over, or answers must be long enough to name a node behind them.
    pub(crate) fn has_room(&self, member: Member, config: &Config) -> bool {
        let all = || self.exclude.iter().copied().chain([member]);
        let unnamed = all().count() - named(all(), config).len();
        unnamed < self.names(config)
    }

    /// Returns the number of names of any length that fit an answer, for frames as long as ours.
    pub(crate) fn names(&self, config: &Config) -> usize {
        let names = config.list_room(ASKED_MAX_LEN).left() / MEMBER_MAX_LEN;
        let names = if self.y > 0 { names / 2 } else { names };
        names.min(EXCLUDED_MAX)
    }

    /// Returns true if an answer names only nodes that are passed over, and may have been cut short
    /// by the sender's frame limit: the sender may know another node behind these.
    pub(crate) fn is_cut_short(&self, candidates: &[Member]) -> bool {
        candidates.len() >= NAMES_MIN && candidates.iter().all(|it| self.exclude.contains(it))
    }
}

/// Returns the nodes of `exclude` that a query names: up to the limit, and as far as they fit.
pub(crate) fn named(exclude: impl Iterator<Item = Member>, config: &Config) -> Members {
    let mut room = config.list_room(ASKED_MAX_LEN);
    cut(exclude.take(config.exclude_limit.into()), &mut room)
}

/// The largest number of nodes that a correct initiator excludes.
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

    /// Node 1 restarts repeatedly while it is asked; node 2 is asked as well.
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
        // Nor does it if an answer names the later life before membership reports it.
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

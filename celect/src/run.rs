//! An election, at its initiator, and the answers that other nodes give.

use alloc::vec::Vec;

use selvedge_core::wire::{MEMBER_MAX_LEN, Room};
use selvedge_core::{Context, Member, NodeId, Rank, Ratio};

use crate::attribute::key;
use crate::message::{ASKED_MAX_LEN, Members, Message, NAMES_MIN, cut};
use crate::peers::Peers;
use crate::pool::Pool;
use crate::{Attribute, Ballot, Celect, Config, Event, Protocol, Timer};

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
    pub(crate) named: Option<Named>,
    /// Whether the application was told that too few are known.
    pub(crate) starved: bool,
    /// How many lists may lack the lowest node, and how often that is too few.
    pub(crate) tolerates: (u16, Option<Ratio>),
    /// How many answers of others named the lowest candidate: counted where that is reported.
    pub(crate) agreed: u16,
    /// How often answers were overdue since the round began, or since others were met.
    overdue: u8,
}

/// The node that we appointed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) member: Member,
    pub(crate) ballot: Ballot,
    pub(crate) attempts: u8,
    /// Whether the node said that it leads.
    pub(crate) heard: bool,
}

impl Run {
    const fn new(ballot: Ballot, (x, y): (u8, u8), tolerates: (u16, Option<Ratio>)) -> Self {
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

    /// `member` is asked. A life of its node that is over, and has not answered, is waited for no
    /// more: so a node takes no more room however often it restarts.
    fn note_asked(&mut self, member: Member, peers: &Peers) {
        let Self {
            asked, answered, ..
        } = self;
        asked.retain(|it| {
            it.id != member.id || !peers.is_over(*it) || answered.binary_search(it).is_ok()
        });
        put(asked, member);
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
    fn is_cut_short(&self, candidates: &[Member]) -> bool {
        candidates.len() >= NAMES_MIN && candidates.iter().all(|it| self.exclude.contains(it))
    }
}

/// The nodes of `exclude` that a query names: as many as may be, and fit.
fn named(exclude: impl Iterator<Item = Member>, config: &Config) -> Members {
    let mut room = config.list_room(ASKED_MAX_LEN);
    cut(exclude.take(config.exclude_limit.into()), &mut room)
}

/// Puts `new` into a sorted list, once.
pub(crate) fn put<T: Ord>(list: &mut Vec<T>, new: T) {
    if let Err(at) = list.binary_search(&new) {
        list.insert(at, new);
    }
}

/// No sound initiator excludes more nodes.
const EXCLUDED_MAX: usize = u8::MAX as usize;

fn first(list: &[Member], count: usize) -> &[Member] {
    list.get(..count).unwrap_or(list)
}

impl<A: Attribute> Celect<A> {
    /// Begins an election. Its epoch is above all epochs that were heard of.
    pub(crate) fn begin(&mut self, cx: &mut Context<'_, Self>) {
        self.epoch = self.epoch.saturating_add(1);
        let ballot = Ballot {
            epoch: self.epoch,
            initiator: self.me,
            step: 0,
        };
        let (x, y) = if self.config.protocol.prefers() {
            (self.config.x, self.config.y)
        } else {
            (1, 0)
        };
        self.run = Some(Run::new(ballot, (x, y), self.tolerates()));
        self.awaited = None;
        cx.disarm(Timer::Watch);
        cx.disarm(Timer::Start);
        cx.event(Event::Electing(ballot));
        self.round(cx);
    }

    /// Asks again, with all that the run has learned.
    pub(crate) fn round(&mut self, cx: &mut Context<'_, Self>) {
        let tolerates = self.tolerates();
        if let Some(run) = &mut self.run {
            run.tolerates = tolerates;
            run.agreed = 0;
            run.overdue = 0;
        }
        let (wanted, lean) = self.wanted();
        let Some(run) = &mut self.run else {
            return;
        };
        run.asked.clear();
        run.answered.clear();
        run.candidates.clear();
        run.unhealthy.clear();
        run.named = None;
        run.ballot = run.last;
        run.unnamed = run.exclude.len() - named(run.exclude.iter().copied(), &self.config).len();
        let pool = Self::pool(&self.peers, &self.attribute, run, false);
        let known = pool.len();
        let chosen = pool.draw(wanted, cx);
        // Then answers allocate nothing, unless they name many different nodes.
        let needed = run.needed().min(chosen.len());
        run.answered.reserve(needed);
        run.candidates.reserve(2 * usize::from(run.x));
        run.unhealthy.reserve(2 * usize::from(run.y));
        // Where the others are too few, our list is one more.
        run.wants = known < wanted && !self.rules.no_discovery();
        run.own = lean || run.wants;
        self.ask(&chosen, cx);
        cx.arm(Timer::Answer, self.config.timeout);
        if self.run.as_ref().is_some_and(|run| run.own) {
            self.answer_ourselves(cx);
        }
    }

    /// Our own list is an answer.
    pub(crate) fn answer_ourselves(&mut self, cx: &mut Context<'_, Self>) {
        let Some(run) = &self.run else {
            return;
        };
        let (candidates, unhealthy, _) = self.answer(run.x, run.y, &run.exclude);
        self.absorb(&candidates, &unhealthy, true);
        self.evaluate(cx);
    }

    /// How many others are asked, and whether our own list counts however many they are.
    pub(crate) fn wanted(&self) -> (usize, bool) {
        let lean = matches!(self.config.protocol, Protocol::Lean);
        let wanted = self.needed() + usize::from(self.config.f);
        (wanted - usize::from(lean), lean)
    }

    /// How many lists our election, or one that begins now, must rest on.
    pub(crate) fn needed(&self) -> usize {
        let next = usize::from(self.tolerates().0) + 1;
        self.run.as_ref().map_or(next, Run::needed)
    }

    /// A run that waits for answers rests on what is known by now. A run that has its answers rests
    /// on what it began with.
    pub(crate) fn rest_on_latest(&mut self) {
        let tolerates = self.tolerates();
        if let Some(run) = &mut self.run
            && run.answers() < run.needed()
            && tolerates.0 != run.tolerates.0
        {
            run.tolerates = tolerates;
        }
    }

    /// The nodes that may be asked, perhaps without those that have answered.
    pub(crate) fn pool<'a>(
        peers: &'a Peers,
        attribute: &A,
        run: &Run,
        is_repeated: bool,
    ) -> Pool<'a> {
        let answered = run.answered.iter().filter(|_| is_repeated);
        let without = run.exclude.iter().chain(answered).copied();
        Pool::new(peers, attribute, &run.met, without)
    }

    /// Asks `members`.
    pub(crate) fn ask(&mut self, members: &[Member], cx: &mut Context<'_, Self>) {
        let (wanted, _) = self.wanted();
        let Some(run) = &mut self.run else {
            return;
        };
        let want = if run.wants {
            u16::try_from(wanted).unwrap_or(u16::MAX)
        } else {
            0
        };
        let exclude = named(run.exclude.iter().copied(), &self.config);
        let x = usize::from(run.x).saturating_add(run.unnamed);
        let x = u8::try_from(x).unwrap_or(u8::MAX);
        for &member in members {
            run.note_asked(member, &self.peers);
            cx.send(
                member,
                Message::Query {
                    ballot: run.ballot,
                    x,
                    y: run.y,
                    want,
                    exclude: exclude.clone(),
                },
            );
        }
    }

    /// What we know, for an initiator: the `x` lowest and the `y` most suspected nodes; and the
    /// room that is left. O(x + y) and what is excluded, whatever the number of members.
    pub(crate) fn answer(&self, x: u8, y: u8, exclude: &[Member]) -> (Members, Members, Room) {
        let mut room = self.config.list_room(ASKED_MAX_LEN);
        let exclude = first(exclude, EXCLUDED_MAX);
        let mut unhealthy = Members::new();
        if y > 0 {
            let worst = self.peers.doubted().filter(|it| !exclude.contains(it));
            // Where a frame is short, both lists are short.
            unhealthy = cut(worst.take(y.into()), &mut room.halve());
        }
        let is_owner_left_out = self.rules.owner_left_out();
        let lowest = self.peers.by_rank().iter().copied().filter(|it| {
            let is_left_out = is_owner_left_out && *it == self.me;
            !is_left_out && !exclude.contains(it) && !unhealthy.contains(it)
        });
        let candidates = cut(lowest.take(x.into()), &mut room);
        (candidates, unhealthy, room)
    }

    /// Up to `want` other nodes, for an initiator that knows too few. Where there are more than
    /// fit, they begin at a place that is drawn: else nodes that do not answer could hide the rest
    /// for ever. O(want) and what is excluded.
    pub(crate) fn others(
        &self,
        want: u16,
        to: Member,
        exclude: &[Member],
        room: &mut Room,
        cx: &mut Context<'_, Self>,
    ) -> Members {
        let want = usize::from(want);
        if want == 0 {
            return Members::new();
        }
        let exclude = first(exclude, EXCLUDED_MAX);
        let list = self.peers.by_rank();
        let others = list.len() - 1 - usize::from(self.peers.is_listed(to));
        let start = if others > want.min(room.left() / MEMBER_MAX_LEN) {
            usize::try_from(cx.below(list.len() as u64)).unwrap_or_default()
        } else {
            0
        };
        let all = list.iter().skip(start).chain(list.iter().take(start));
        let others = all.copied();
        let others = others.filter(|it| *it != to && *it != self.me && !exclude.contains(it));
        cut(others.take(want), room)
    }

    /// An answer to our run arrives.
    pub(crate) fn answered(
        &mut self,
        from: Member,
        ballot: Ballot,
        [candidates, unhealthy, known]: [&[Member]; 3],
        cx: &mut Context<'_, Self>,
    ) {
        let needed = self.needed();
        let (any_run, (wanted, _)) = (self.rules.any_run(), self.wanted());
        let Some(run) = &mut self.run else {
            self.counters.stale += 1;
            return;
        };
        let is_asked = any_run || run.ballot == ballot && run.asked.binary_search(&from).is_ok();
        if !is_asked || run.answers() >= needed {
            self.counters.stale += 1;
            return;
        }
        if let Some(over) = self.hidden_behind(candidates) {
            let has_room =
                |it| (self.run.as_ref()).is_some_and(|run| run.has_room(it, &self.config));
            // Below it the sender may have known another node: it has to say so. Where another one
            // would have to be forgotten for that, it would be named next, and so on without end.
            if has_room(over) {
                self.pass_over(over, cx);
            } else {
                self.counters.stale += 1;
            }
            return;
        }
        let Some(run) = &mut self.run else {
            return;
        };
        let x = usize::from(run.x).saturating_add(run.unnamed);
        let candidates = first(candidates, x);
        if candidates.len() < x && run.is_cut_short(candidates) {
            self.counters.stale += 1;
            return;
        }
        // Two lives of a node have one list.
        run.answered.retain(|it| it.id != from.id);
        put(&mut run.answered, from);
        let y = run.y.into();
        if !known.is_empty() {
            self.meet(first(known, wanted), cx);
        }
        self.absorb(candidates, first(unhealthy, y), false);
        self.evaluate(cx);
    }

    /// Learns of nodes that may be asked, and asks as many as are still wanted.
    fn meet(&mut self, known: &[Member], cx: &mut Context<'_, Self>) {
        let (wanted, _) = self.wanted();
        let (me, peers) = (self.me, &self.peers);
        let Some(run) = &mut self.run else {
            return;
        };
        let mut new = Vec::new();
        for &member in known {
            // A listed node may be dead, and must not take the place of another one.
            let is_met = member.id == me.id
                || peers.is_listed(member)
                || peers.is_gone(member)
                || run.exclude.contains(&member)
                || run.met.contains(&member);
            if run.met.len() < wanted && !is_met {
                put(&mut run.met, member);
                put(&mut new, member);
            }
        }
        if new.is_empty() {
            return;
        }
        run.overdue = 0;
        let missing = wanted.saturating_sub(run.asked.len());
        let new = Pool::of(&new).draw(missing, cx);
        self.ask(&new, cx);
    }

    /// A node that an answer names, and that is certainly over, or is named by a former life when
    /// the present life is passed over. Where preferences count it does no harm.
    fn hidden_behind(&self, candidates: &[Member]) -> Option<Member> {
        let run = self.run.as_ref()?;
        let is_skipped = self.rules.skips_locally() || self.rules.retries_the_dead();
        if is_skipped || self.config.protocol.prefers() {
            return None;
        }
        let x = usize::from(run.x).saturating_add(run.unnamed);
        let named = candidates.iter().copied().take(x);
        let lowest = named
            .filter(|it| !run.exclude.contains(it))
            .take(run.x.into());
        let mut lowest = lowest.map(|it| (it, self.peers.latest(it)));
        let over = lowest.find(|&(named, latest)| {
            let is_passed_over = latest != named && run.exclude.contains(&latest);
            is_passed_over || self.peers.is_over(latest)
        });
        over.map(|(named, _)| named)
    }

    /// Adds an answer to what is known.
    fn absorb(&mut self, candidates: &[Member], unhealthy: &[Member], own: bool) {
        let reports = self.config.estimation.is_some();
        let prefers = self.config.protocol.prefers() || self.rules.skips_locally();
        // A sender that names a former life has not heard of the present one.
        let present = |it: Member| self.peers.latest(it);
        let Some(run) = &mut self.run else {
            return;
        };
        let before = run.candidates.first().copied();
        for member in candidates.iter().copied().map(present) {
            // Most answers name the same nodes, and a rank is a hash.
            let is_known =
                |&(_, other): &(Rank, Member)| other == member || other.supersedes(member);
            let is_passed_over = self.peers.is_over(member) || run.exclude.contains(&member);
            if is_passed_over || run.candidates.iter().any(is_known) {
                continue;
            }
            run.candidates
                .retain(|&(_, other)| !member.supersedes(other));
            put(&mut run.candidates, key(&self.attribute, member));
        }
        for &member in unhealthy {
            put(&mut run.unhealthy, member);
        }
        if !prefers {
            // Only the lowest candidate matters.
            run.candidates.truncate(1);
            if reports {
                let lowest = run.candidates.first().copied();
                if lowest != before {
                    run.agreed = 0;
                }
                let mut named = candidates.iter().copied().map(present);
                let names_it = lowest.is_some_and(|(_, it)| named.any(|other| other == it));
                run.agreed += u16::from(names_it && !own);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lowest;
    use crate::peers::Standing;

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

//! A small Raft, and Pirogue, its variant with dynamic-linear voting and a witness. A baseline, and
//! no more: it keeps its whole log, and its voters are fixed.
//!
//! Time is counted in a server's own periods, for it knows no other. A leader sends all others a
//! heartbeat, with the entries that they lack, once in each period, when it wakes; this keeps no
//! server awake. A server that receives no message of a leader for some of its periods stands for
//! election.

use std::collections::BTreeSet;

use super::broker::{Out, Server};
use super::voters::Voters;

/// The number of its periods without a message of a leader after which a server stands for
/// election; each waits one more than the one before, so that they do not stand together.
const PATIENCE: usize = 4;

/// The number of the leader's periods without a message after which a server is no longer among
/// Pirogue's voters.
const MISSED: usize = 4;

/// The way in which a function is run and agreed on. The papers do not define it: Raft replicates
/// data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A server runs a function before it acknowledges its entry, and adds the result. The
    /// committed results are agreed on: one round.
    Acknowledge,
    /// Servers run committed functions, and the leader answers when its own has ended: no results
    /// are compared.
    Apply,
    /// Servers run committed functions, and the leader answers when enough have returned the same.
    Compare,
}

/// The first entry of a leader: a function that no server runs.
const NOTHING: u64 = 0;

/// An entry of the log: a function to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    term: u64,
    task: u64,
}

/// A message between servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// From the leader: entries after the first `after.0`, the last of which is of term `after.1`.
    Append {
        term: u64,
        after: (usize, u64),
        entries: Vec<Entry>,
        committed: usize,
        base: Vec<usize>,
    },
    /// To the leader: the number of entries that equal its own, if any are known to, and the number
    /// that have been run here.
    Appended {
        term: u64,
        stored: Option<usize>,
        ran: usize,
    },
    /// From a candidate: the length of its log, and the term of the last entry.
    Ask { term: u64, last: (u64, usize) },
    /// To a candidate.
    Grant { term: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Follower,
    Candidate(BTreeSet<usize>),
    Leader,
}

/// A leader's knowledge of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    stored: usize,
    ran: usize,
    /// The number of entries after which the next ones are sent.
    next: usize,
    /// The number of the leader's periods without a message from it.
    silent: usize,
}

/// A server of Raft or Pirogue.
#[derive(Clone, Debug)]
pub(crate) struct Raft {
    me: usize,
    count: usize,
    voters: Voters,
    rule: Rule,
    term: u64,
    voted: Option<usize>,
    role: Role,
    leader: Option<usize>,
    /// The number of its periods without a message of a leader.
    silent: usize,
    log: Vec<Entry>,
    committed: usize,
    asked: BTreeSet<u64>,
    ran: BTreeSet<u64>,
    answered: usize,
    progress: Vec<Progress>,
}

impl Raft {
    /// All servers of a cluster, the first of them the leader of term 1, as an election would have made
    /// it.
    pub(crate) fn cluster(voters: &Voters, rule: Rule) -> Vec<Self> {
        let count = voters.base.len();
        let server = |me| Self {
            me,
            count,
            voters: voters.clone(),
            rule,
            term: 1,
            voted: Some(0),
            role: if me == 0 {
                Role::Leader
            } else {
                Role::Follower
            },
            leader: Some(0),
            silent: 0,
            log: Vec::new(),
            committed: 0,
            asked: BTreeSet::from([NOTHING]),
            ran: BTreeSet::from([NOTHING]),
            answered: 0,
            progress: vec![Progress::default(); count],
        };
        (0..count).map(server).collect()
    }

    pub(crate) fn leads(&self) -> bool {
        self.role == Role::Leader
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let me = self.me;
        (0..self.count).filter(move |it| *it != me)
    }

    fn last(&self) -> (u64, usize) {
        (self.term_at(self.log.len()), self.log.len())
    }

    /// The term of the last of the first `count` entries.
    fn term_at(&self, count: usize) -> u64 {
        let last = count.checked_sub(1).and_then(|it| self.log.get(it));
        last.map_or(0, |it| it.term)
    }

    /// The number of first entries that have been run here.
    fn ran(&self) -> usize {
        let runs = self.log.iter();
        runs.take_while(|it| self.ran.contains(&it.task)).count()
    }

    /// Makes the host run the functions that may run.
    fn run(&mut self, out: &mut Out<Message>) {
        if self.voters.witness == Some(self.me) {
            return;
        }
        let until = match self.rule {
            Rule::Acknowledge => self.log.len(),
            Rule::Apply | Rule::Compare => self.committed,
        };
        let new = self.log.iter().take(until).map(|it| it.task);
        let new: Vec<u64> = new.filter(|it| !self.asked.contains(it)).collect();
        self.asked.extend(&new);
        out.runs.extend(new);
    }

    fn send_entries(&mut self, to: usize, out: &mut Out<Message>) {
        let Some(progress) = self.progress.get_mut(to) else {
            return;
        };
        let after = progress.next;
        // A lost message is sent again once it is asked for.
        progress.next = self.log.len();
        let append = Message::Append {
            term: self.term,
            after: (after, self.term_at(after)),
            entries: self.log.get(after..).unwrap_or_default().to_vec(),
            committed: self.committed,
            base: self.voters.base.clone(),
        };
        out.sends.push((to, append));
    }

    fn send_all(&mut self, out: &mut Out<Message>) {
        for to in self.others() {
            self.send_entries(to, out);
        }
    }

    /// Sets the voters to the servers that answer, if they include a quorum of the former voters.
    fn look_at_voters(&mut self) {
        let me = self.me;
        let progress = &self.progress;
        let is_received =
            |at: usize| at == me || progress.get(at).is_some_and(|it| it.silent < MISSED);
        if self.voters.is_dynamic && self.voters.suffice(is_received) {
            self.voters.base = (0..self.count).filter(|it| is_received(*it)).collect();
        }
    }

    /// Commits and answers entries that enough servers have.
    fn decide(&mut self, out: &mut Out<Message>) {
        if !self.leads() {
            return;
        }
        let (len, ran) = (self.log.len(), self.ran());
        if let Some(own) = self.progress.get_mut(self.me) {
            (own.stored, own.ran) = (len, ran);
        }
        let counts: fn(&Progress) -> usize = match self.rule {
            Rule::Acknowledge => |it| it.ran,
            Rule::Apply | Rule::Compare => |it| it.stored,
        };
        let former = self.committed;
        while self.committed < len && self.term_at(len) == self.term {
            if !self.enough(self.committed, counts) {
                break;
            }
            self.committed += 1;
        }
        if self.committed > former {
            self.run(out);
            self.send_all(out);
        }
        while let Some(entry) = self.log.get(self.answered).copied() {
            let is_agreed = match self.rule {
                Rule::Acknowledge => true,
                Rule::Apply => ran > self.answered,
                Rule::Compare => self.enough(self.answered, |it| it.ran),
            };
            if self.answered >= self.committed || !is_agreed {
                break;
            }
            self.answered += 1;
            out.answers
                .extend(Some(entry.task).filter(|it| *it != NOTHING));
        }
    }

    /// Returns true if enough servers have more than this number of entries.
    fn enough(&self, than: usize, count: impl Fn(&Progress) -> usize) -> bool {
        let has = |at: usize| self.progress.get(at).is_some_and(|it| count(it) > than);
        self.voters.suffice(has)
    }

    fn stand(&mut self, out: &mut Out<Message>) {
        self.term += 1;
        self.voted = Some(self.me);
        self.leader = None;
        self.silent = 0;
        self.role = Role::Candidate(BTreeSet::from([self.me]));
        let (term, last) = (self.term, self.last());
        let ask = |to| (to, Message::Ask { term, last });
        out.sends.extend(self.others().map(ask));
    }

    /// A message of a later term makes a follower.
    fn look_at_term(&mut self, term: u64) {
        if term > self.term {
            self.term = term;
            self.voted = None;
            self.leader = None;
            self.role = Role::Follower;
        }
    }

    fn on_append(
        &mut self,
        (from, term): (usize, u64),
        after: (usize, u64),
        entries: &[Entry],
        out: &mut Out<Message>,
    ) {
        self.role = Role::Follower;
        self.leader = Some(from);
        self.silent = 0;
        let (count, of) = after;
        let is_like = count <= self.log.len() && self.term_at(count) == of;
        if is_like {
            for (at, &entry) in (count..).zip(entries) {
                if self.log.get(at).is_some_and(|it| it.term != entry.term) {
                    self.log.truncate(at);
                }
                if self.log.len() == at {
                    self.log.push(entry);
                }
            }
        }
        self.run(out);
        let ran = self.ran();
        let stored = is_like.then_some(count + entries.len());
        // It acknowledges its functions when they have ended.
        let is_witness = self.voters.witness == Some(self.me);
        if self.rule != Rule::Acknowledge || ran == self.log.len() || is_witness || !is_like {
            out.sends
                .push((from, Message::Appended { term, stored, ran }));
        }
    }

    fn on_appended(
        &mut self,
        from: usize,
        stored: Option<usize>,
        ran: usize,
        out: &mut Out<Message>,
    ) {
        if let Some(progress) = self.progress.get_mut(from) {
            progress.silent = 0;
            progress.ran = progress.ran.max(ran);
            match stored {
                Some(stored) => progress.stored = progress.stored.max(stored),
                None => progress.next = progress.stored,
            }
        }
        if stored.is_none() {
            self.send_entries(from, out);
        }
        self.decide(out);
    }

    fn on_granted(&mut self, from: usize, out: &mut Out<Message>) {
        let Role::Candidate(votes) = &mut self.role else {
            return;
        };
        votes.insert(from);
        if self.voters.suffice(|it| votes.contains(&it)) {
            self.role = Role::Leader;
            self.leader = Some(self.me);
            self.progress = vec![Progress::default(); self.count];
            // This entry commits the entries of earlier leaders.
            let (term, task) = (self.term, NOTHING);
            self.log.push(Entry { term, task });
            self.send_all(out);
        }
    }
}

impl Server for Raft {
    type Message = Message;

    fn wake(&mut self, out: &mut Out<Message>) {
        if self.leads() {
            for progress in &mut self.progress {
                progress.silent += 1;
            }
            self.look_at_voters();
            self.decide(out);
            return self.send_all(out);
        }
        self.silent += 1;
        if self.silent > PATIENCE + self.me && self.voters.witness != Some(self.me) {
            self.stand(out);
        }
    }

    fn receive(&mut self, from: usize, message: Message, out: &mut Out<Message>) {
        let (Message::Append { term, .. }
        | Message::Appended { term, .. }
        | Message::Ask { term, .. }
        | Message::Grant { term }) = message;
        self.look_at_term(term);
        if term < self.term {
            return;
        }
        match message {
            Message::Append {
                after,
                entries,
                committed,
                base,
                ..
            } => {
                self.voters.base = base;
                self.on_append((from, term), after, &entries, out);
                self.committed = self.committed.max(committed.min(self.log.len()));
                self.run(out);
            }
            Message::Appended { stored, ran, .. } => {
                if self.leads() {
                    self.on_appended(from, stored, ran, out);
                }
            }
            Message::Ask { last, .. } => {
                if self.voted.is_none_or(|it| it == from) && last >= self.last() {
                    self.voted = Some(from);
                    self.silent = 0;
                    out.sends.push((from, Message::Grant { term }));
                }
            }
            Message::Grant { .. } => self.on_granted(from, out),
        }
    }

    fn request(&mut self, task: u64, out: &mut Out<Message>) {
        if self.leads() && self.log.iter().all(|it| it.task != task) {
            let term = self.term;
            self.log.push(Entry { term, task });
            self.run(out);
            self.send_all(out);
        }
    }

    fn returned(&mut self, task: u64, out: &mut Out<Message>) {
        self.ran.insert(task);
        if self.leads() {
            return self.decide(out);
        }
        let needs_it = self.rule != Rule::Apply;
        if let Some(leader) = self.leader.filter(|_| needs_it) {
            let appended = Message::Appended {
                term: self.term,
                stored: Some(self.log.len()),
                ran: self.ran(),
            };
            out.sends.push((leader, appended));
        }
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;
    use selvedge_core::Span;

    use super::super::awake::Cycle;
    use super::super::broker::Broker;
    use super::*;

    const RULES: [Rule; 3] = [Rule::Acknowledge, Rule::Apply, Rule::Compare];
    const PERIOD: Span = Span::secs(10);

    fn broker(voters: &Voters, rule: Rule, active: Span, seed: u64) -> Broker<Raft> {
        let asleep = Span(PERIOD.0 - active.0);
        let cycle = Cycle { active, asleep };
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let mut broker = Broker::new(Raft::cluster(voters, rule), cycle, Span::secs(2), rng);
        broker.run_for(PERIOD * 3);
        broker
    }

    #[test]
    fn all_ways_of_running_answer() {
        for voters in [Voters::all(5), Voters::with_witness(4)] {
            for rule in RULES {
                let mut broker = broker(&voters, rule, Span::secs(1), 1);
                for task in 1..=3 {
                    broker.submit(0, task);
                    assert!(broker.run_until_answered(task, PERIOD * 9), "{rule:?}");
                }
            }
        }
    }

    /// A request and its answer; to each of four an entry and the notice of its commit, each with
    /// an acknowledgement; and the result of each, where it is not part of one of these.
    #[test]
    fn servers_that_are_always_awake_answer_after_one_function() {
        for (rule, messages) in RULES.into_iter().zip([18, 18, 22]) {
            let mut broker = broker(&Voters::all(5), rule, PERIOD, 1);
            // Just after a heartbeat, so that none comes in between.
            let former = broker.sent();
            while broker.sent() == former {
                broker.run_for(Span::millis(100));
            }
            broker.run_for(Span::secs(1));
            let (sent, start) = (broker.sent(), broker.now());
            broker.submit(0, 1);
            assert!(broker.run_until_answered(1, PERIOD));
            let took = broker.now().since(start);
            assert!(
                took > Span::secs(2) && took < Span::millis(2_100),
                "{took:?}"
            );
            broker.run_for(Span::secs(1));
            assert_eq!(broker.sent() - sent, messages, "{rule:?}");
        }
    }

    #[test]
    fn another_server_leads_when_the_leader_is_gone() {
        for voters in [Voters::all(5), Voters::with_witness(4)] {
            let mut broker = broker(&voters, Rule::Acknowledge, Span::secs(1), 1);
            broker.submit(0, 1);
            assert!(broker.run_until_answered(1, PERIOD * 9));
            broker.stop(0);
            broker.run_for(PERIOD * 20);
            let leaders = broker.servers().skip(1).filter(|it| it.leads());
            let leader = leaders.map(|it| it.me).collect::<Vec<_>>();
            assert_eq!(leader, [1], "the one that waits least");
            broker.submit(1, 2);
            assert!(broker.run_until_answered(2, PERIOD * 9));
            let logs = broker.servers().skip(1).map(|it| &it.log);
            let logs: BTreeSet<Vec<u64>> = logs
                .map(|it| it.iter().map(|it| it.task).collect())
                .collect();
            assert_eq!(logs, BTreeSet::from([vec![1, NOTHING, 2]]), "one log");
        }
    }

    /// Five servers may stop one after another, where Raft's majority stays a majority of five.
    #[test]
    fn dynamic_voting_goes_on_with_two_of_five() {
        for (voters, goes_on) in [(Voters::all(5), false), (Voters::with_witness(4), true)] {
            let mut broker = broker(&voters, Rule::Acknowledge, Span::secs(1), 1);
            for ended in [4, 3, 2] {
                broker.stop(ended);
                broker.run_for(PERIOD * 9);
            }
            broker.submit(0, 1);
            assert_eq!(broker.run_until_answered(1, PERIOD * 9), goes_on);
        }
    }
}

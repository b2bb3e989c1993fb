//! Checks of states that must never occur.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use selvedge_core::Member;
use selvedge_pcm::{Answer, Function, Library, Limits, Refusal, Returned, Tables, TaskId, Voters};

/// The limits from a follower's settings.
#[derive(Clone, Debug)]
pub(crate) struct Able {
    /// A follower with few jobs forgets the tasks it ran, and runs a repeated request again.
    pub(crate) jobs: usize,
    pub(crate) code: usize,
    pub(crate) result: usize,
    pub(crate) libraries: usize,
    pub(crate) liar: bool,
}

/// An answer, and the followers that voted for it.
pub(crate) type Notified = (Answer, Voters);

#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) limits: Option<Limits>,
    /// Frames have no limit, so results and code may be too long for a frame.
    pub(crate) is_wide: bool,
    /// Messages to followers may come twice.
    pub(crate) is_torn: bool,
    /// Tables remember all clients.
    pub(crate) remembers: bool,
    /// No answer is forgotten before its client receives it.
    pub(crate) keeps: bool,
    /// Tables remember all followers that left.
    pub(crate) buries: bool,
    /// The most tasks with a waiting client at one gateway.
    pub(crate) clients: u32,
    pub(crate) able: BTreeMap<u64, Able>,
    pub(crate) missing: BTreeSet<Library>,
    /// All lives that there were, liars and strangers apart.
    pub(crate) lives: BTreeSet<Member>,
    pub(crate) submitted: BTreeMap<TaskId, Function>,
    pub(crate) cancelled: BTreeSet<TaskId>,
    pub(crate) stopped: BTreeSet<(Member, TaskId)>,
    pub(crate) assignments: BTreeMap<TaskId, BTreeSet<(u16, u16, Vec<Member>)>>,
    pub(crate) votes: BTreeMap<(Member, TaskId), BTreeSet<Returned>>,
    pub(crate) values: BTreeMap<Function, BTreeSet<Notified>>,
    pub(crate) decided: BTreeMap<TaskId, Notified>,
    /// The answers that clients received.
    pub(crate) received: BTreeMap<TaskId, Option<Answer>>,
    claims: BTreeMap<TaskId, Notified>,
    ended: BTreeMap<TaskId, u64>,
    versions: BTreeMap<u64, u64>,
    shown: BTreeMap<Member, u64>,
    /// At each gateway the last attachment of each follower, and whether it is in the tables.
    words: BTreeMap<Member, BTreeMap<u64, (Member, u32, bool)>>,
    /// The number of times that each task was given to a unit.
    pub(crate) tried: BTreeMap<TaskId, u16>,
    /// Followers that were not in the tables any more, or in another life.
    pub(crate) left: BTreeSet<Member>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl Oracle {
    pub(crate) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// A gateway reports that a follower was purged. The next tables that it shows may have the follower again.
    pub(crate) fn purged(&mut self, at: Member, id: u64) {
        let word = self.words.get(&at).and_then(|it| it.get(&id));
        self.left.extend(word.map(|it| it.0));
    }

    /// A gateway shows its tables.
    pub(crate) fn examine(&mut self, at: Member, version: u64, tables: &Tables) {
        let mut hasher = DefaultHasher::new();
        tables.hash(&mut hasher);
        let print = hasher.finish();
        let known = *self.versions.entry(version).or_insert(print);
        assert_eq!(known, print, "{at:?} has other tables of version {version}");
        let shown = self.shown.entry(at).or_default();
        assert!(*shown < version, "{at:?} goes back to version {version}");
        *shown = version;
        self.seats(tables);
        self.words(at, tables);
        self.tasks(version, tables);
    }

    fn seats(&self, tables: &Tables) {
        let limits = self.limits.unwrap();
        assert!(tables.followers().count() <= limits.followers as usize);
        assert!(tables.open().count() <= limits.open as usize);
        let mut seats = BTreeSet::new();
        for follower in tables.followers() {
            let Some(unit) = tables.unit_of(follower.member.id) else {
                continue;
            };
            let members: Vec<Member> = tables.members(unit).collect();
            assert!(members.contains(&follower.member));
            assert!(members.len() <= usize::from(limits.unit) + 2, "{members:?}");
            seats.insert((unit, follower.member.id));
        }
        let units: BTreeSet<u32> = seats.iter().map(|it| it.0).collect();
        let seated: usize = units.iter().map(|it| tables.members(*it).count()).sum();
        assert_eq!(
            seated,
            seats.len(),
            "a seat is taken twice, or by no follower"
        );
        // A unit without followers remains until units are formed again.
        assert!(units.len() <= tables.units());
        let per: u32 = tables.gateways().map(|it| it.1).sum();
        assert_eq!(per as usize, tables.followers().count());
    }

    fn words(&mut self, at: Member, tables: &Tables) {
        let words = self.words.entry(at).or_default();
        let mut here = BTreeSet::new();
        for it in tables.followers() {
            let id = it.member.id.0;
            here.insert(id);
            let now = (it.member, it.number, true);
            let Some(was) = words.insert(id, now) else {
                continue;
            };
            if was == now {
                continue;
            }
            let same_life = was.0 == it.member;
            if !same_life {
                self.left.insert(was.0);
            }
            let later = it.member.supersedes(was.0) || (same_life && it.number > was.1);
            let wraps = same_life && was.1 > u32::MAX - 9;
            assert!(
                later || wraps || !self.buries,
                "{at:?}: late report {it:?} counts after {was:?}"
            );
        }
        for (id, word) in words {
            word.2 = here.contains(id);
            if !word.2 {
                self.left.insert(word.0);
            }
        }
    }

    fn tasks(&mut self, version: u64, tables: &Tables) {
        for (task, open) in tables.open() {
            let ended = self.ended.get(&task);
            assert!(
                ended.is_none_or(|it| *it > version) || !self.remembers,
                "{task:?} is over since {ended:?}, and open in {version}"
            );
            assert_eq!(self.submitted.get(&task), Some(&open.function), "{task:?}");
            assert!(open.attempts <= self.limits.unwrap().attempts);
            let tried = self.tried.entry(task).or_default();
            *tried = open.attempts.max(*tried);
            if let Some(it) = &open.assignment {
                let electors: Vec<Member> = it.electors.iter().copied().collect();
                for elector in &electors {
                    let present = tables.follower(elector.id).map(|it| it.member);
                    assert_eq!(present, Some(*elector), "{task:?}: {it:?}");
                    assert!(tables.tasks_of(elector.id).any(|it| it == task));
                }
                self.assigned(task, it.attempt, it.term, electors);
            }
        }
        let mut tasks: Vec<TaskId> = self.submitted.keys().copied().collect();
        // Tasks that ran come before tasks with a stored result.
        tasks.sort_by_key(|it| !self.assignments.contains_key(it));
        for task in tasks {
            if let Some(answer) = tables.answer(task) {
                let ended = self.ended.entry(task).or_insert(version);
                *ended = version.min(*ended);
                let voters = tables.voters(task).iter().copied().collect();
                self.decide(task, &(answer.clone(), voters));
            }
        }
    }

    pub(crate) fn assigned(&mut self, task: TaskId, attempt: u16, term: u16, who: Vec<Member>) {
        let distinct: BTreeSet<u64> = who.iter().map(|it| it.id.0).collect();
        assert_eq!(distinct.len(), who.len(), "{task:?}: {who:?}");
        let all = self.assignments.entry(task).or_default();
        all.insert((attempt, term, who));
    }

    fn decide(&mut self, task: TaskId, answer: &Notified) {
        if let Some(known) = self.decided.get(&task) {
            assert!(
                known == answer || !self.remembers,
                "{task:?} has two answers: {known:?} and {answer:?}"
            );
            return;
        }
        self.check(task, answer);
        self.decided.insert(task, answer.clone());
    }

    /// A gateway answers a client.
    pub(crate) fn claim(&mut self, task: TaskId, answer: &Notified) {
        let known = self.claims.insert(task, answer.clone());
        assert!(
            known.as_ref().is_none_or(|it| it == answer) || !self.remembers,
            "{task:?} has two answers: {known:?} and {answer:?}"
        );
    }

    pub(crate) fn refuses(&mut self, task: TaskId, why: Refusal) {
        match why {
            Refusal::Forgotten => {
                self.count("forgotten");
                let is_over = self.ended.contains_key(&task) || self.claims.contains_key(&task);
                assert!(
                    is_over || !self.remembers || !self.keeps,
                    "{task:?} never ran, and is refused as forgotten"
                );
            }
            Refusal::Full => {
                self.count("full");
                let limits = self.limits.unwrap();
                // A cancel of a task that no gateway knows takes a place as well.
                let cancels = self.cancelled.iter();
                let cancels = cancels.filter(|it| !self.submitted.contains_key(it));
                let ever = (self.submitted.len() + cancels.count()) as u32;
                let room = limits.open.min(self.clients);
                assert!(room < ever, "{task:?} finds no room among {ever}");
            }
            Refusal::TooLong => {
                let len = self.submitted[&task].code.len();
                assert!(len > 40, "{len} bytes are too long");
                self.count("too long");
            }
        }
    }

    /// A client receives an answer.
    pub(crate) fn answered(&mut self, task: TaskId, notified: &Notified) {
        let claim = self.claims.get(&task);
        assert_eq!(claim, Some(notified), "{task:?}: no gateway sent this");
        let (answer, _) = notified;
        let before = self.received.insert(task, Some(answer.clone()));
        assert_eq!(before, None, "{task:?} is answered twice");
        self.count(match answer {
            Answer::Value(_) => "value",
            Answer::Failed(_) => "failed",
            Answer::NoMajority => "no majority",
            Answer::Unanswered => "unanswered",
            Answer::Cancelled => "cancelled",
        });
    }

    pub(crate) fn refused(&mut self, task: TaskId, why: Refusal) {
        let before = self.received.insert(task, None);
        assert_eq!(before, None, "{task:?} is refused after all: {why}");
    }

    /// The reports of gateways are in the tables, or were there.
    pub(crate) fn nothing_made_up(&self) {
        for (task, claim) in &self.claims {
            let decided = self.decided.get(task);
            let is_made = self.cancelled.contains(task) && !self.submitted.contains_key(task);
            assert!(
                decided == Some(claim) || is_made || !self.remembers || !self.keeps,
                "{task:?}: {claim:?} was sent, and {decided:?} decided"
            );
        }
    }
}

//! The answers that a unit may give, from the results of its followers.

use selvedge_core::Member;
use selvedge_pcm::{Answer, Function, Returned, TaskId, Voters};

use crate::oracle::Oracle;

impl Oracle {
    /// A follower begins a function.
    pub(crate) fn runs(
        &mut self,
        me: Member,
        task: TaskId,
        function: &Function,
        runs: u16,
        most: u16,
    ) {
        self.count("runs");
        let asked = self.submitted.get(&task);
        assert_eq!(asked, Some(function), "{me:?} runs a function of no client");
        assert!(
            runs <= most || !self.remembers || self.is_torn || self.able[&me.id.0].jobs < 8,
            "{me:?} runs {task:?} for the {runs}th time"
        );
    }

    pub(crate) fn returned(&mut self, me: Member, task: TaskId, returned: &Returned) {
        let all = self.votes.entry((me, task)).or_default();
        all.insert(returned.clone());
    }

    /// Returns true if this follower may fail for a reason other than its function.
    fn may_fail(&self, who: Member, task: TaskId, function: &Function) -> bool {
        let able = &self.able[&who.id.0];
        let votes = self.votes.get(&(who, task));
        let too_long = votes.into_iter().flatten().any(|it| match it {
            Returned::Value(value) => value.len() > able.result,
            Returned::Failed(_) => true,
        });
        function.code.len() > able.code
            || too_long
            || function.libraries.len() > able.libraries
            || function
                .libraries
                .iter()
                .any(|it| self.missing.contains(it))
            || self.stopped.contains(&(who, task))
    }

    fn may_say(&self, who: Member, task: TaskId, function: &Function, what: &Returned) -> bool {
        match self.able.get(&who.id.0) {
            // A stranger that keeps itself alive is a follower like any other.
            None => return true,
            Some(it) if it.liar => return true,
            Some(_) => {}
        }
        let votes = self.votes.get(&(who, task));
        match what {
            Returned::Value(_) => votes.is_some_and(|it| it.contains(what)),
            Returned::Failed(_) => {
                votes.is_some_and(|it| it.contains(what)) || self.may_fail(who, task, function)
            }
        }
    }

    fn lies(&self, who: Member) -> bool {
        self.able.get(&who.id.0).is_none_or(|it| it.liar)
    }

    /// Checks that a task may have this answer.
    pub(crate) fn check(&mut self, task: TaskId, (answer, voters): &(Answer, Voters)) {
        let function = self.submitted[&task].clone();
        let known = self.values.get(&function);
        // The oracle may miss an answer that is forgotten at once.
        let is_kept = known.is_some_and(|it| it.contains(&(answer.clone(), voters.clone())));
        let is_kept = is_kept || !self.keeps;
        let has_voters = matches!(answer, Answer::Value(_) | Answer::Failed(_));
        assert_ne!(has_voters, voters.is_empty(), "{task:?}: {answer:?}");
        let returned = match answer {
            Answer::Value(value) => {
                let most = usize::from(self.limits.unwrap().result);
                assert!(value.len() <= most, "{task:?}: {} bytes", value.len());
                Returned::Value(value.clone())
            }
            Answer::Failed(why) => Returned::Failed(*why),
            Answer::NoMajority => {
                assert!(self.may_disagree(task, &function), "{task:?}: no majority");
                return;
            }
            Answer::Unanswered | Answer::Cancelled if self.is_at_mercy(task) => return,
            Answer::Unanswered => {
                let most = self.limits.unwrap().attempts;
                let all = self.assignments.get(&task).into_iter().flatten();
                let sent = all.map(|it| it.0).max().unwrap_or(0);
                let tried = self.tried.get(&task).copied().unwrap_or(0);
                assert_eq!(tried.max(sent), most, "{task:?} is given up early");
                return;
            }
            Answer::Cancelled => {
                assert!(self.cancelled.contains(&task), "{task:?}: {answer:?}");
                return;
            }
        };
        if !is_kept {
            self.is_backed(task, &function, &returned, voters);
            let values = self.values.entry(function).or_default();
            values.insert((answer.clone(), voters.clone()));
        } else {
            self.count("kept");
        }
    }

    /// Returns true if a lying orchestrator may have sent any answer.
    fn is_at_mercy(&self, task: TaskId) -> bool {
        let mut all = self.assignments.get(&task).into_iter().flatten();
        let lies = |it: &(u16, u16, Vec<Member>)| it.2.first().is_some_and(|it| self.lies(*it));
        !self.limits.unwrap().counts_votes && all.any(lies)
    }

    fn is_backed(&self, task: TaskId, function: &Function, returned: &Returned, voters: &Voters) {
        let counts = self.limits.unwrap().counts_votes;
        let all = self.assignments.get(&task).into_iter().flatten();
        let backed = all.clone().any(|(_, _, electors)| {
            let orchestrator = electors.first();
            if !counts && orchestrator.is_some_and(|it| self.lies(*it)) {
                return true;
            }
            let say = |it: &Member| self.may_say(*it, task, function, returned);
            let notified = |it: &&Member| voters.contains(&it.id);
            let votes = electors
                .iter()
                .filter(notified)
                .filter(|it| say(it))
                .count();
            // Some may have left before it was decided.
            let stay = |it: &&Member| notified(it) || !self.left.contains(it);
            let stayed: Vec<&Member> = electors.iter().filter(stay).collect();
            votes == voters.len()
                && (2 * votes > stayed.len()
                    || (2 * votes == stayed.len() && stayed.first().is_some_and(notified)))
        });
        if backed {
            return;
        }
        let all: Vec<_> = all.collect();
        let votes = self.votes.iter().filter(|it| it.0.1 == task);
        let votes: Vec<_> = votes.collect();
        panic!("{task:?} comes to {returned:?} of {voters:?}: {all:?}, votes {votes:?}");
    }

    /// Returns true if in some unit with the task too few followers may have returned the same.
    fn may_disagree(&self, task: TaskId, function: &Function) -> bool {
        let counts = self.limits.unwrap().counts_votes;
        let mut all = self.assignments.get(&task).into_iter().flatten();
        all.any(|(_, _, electors)| {
            if !counts && electors.first().is_some_and(|it| self.lies(*it)) {
                return true;
            }
            // The results that each of the others sends for certain.
            let sure = |it: &&Member| !self.lies(**it) && !self.may_fail(**it, task, function);
            let sure: Vec<_> = electors.iter().filter(sure).collect();
            let most = sure.iter().map(|it| {
                let votes = self.votes.get(&(**it, task));
                let same = |other: &&&Member| self.votes.get(&(***other, task)) == votes;
                votes.map_or(0, |_| sure.iter().filter(same).count())
            });
            2 * most.max().unwrap_or(0) <= electors.len()
        })
    }
}

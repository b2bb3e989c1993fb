//! The rounds of the registry's leader, which gets given answers.

use super::*;

mod counted;
mod lead;
mod reported;
mod sites;

/// The number between the configurations of the first beginning and those of the second one.
pub(super) const END: u64 = 1 << 22;

/// A question of the leader.
#[derive(Clone, Copy)]
struct Question {
    to: u64,
    call: u64,
    end: u64,
    is_binding: bool,
    /// The rounds so far.
    round: usize,
}

/// The answer of a node.
#[derive(Clone)]
struct Answer {
    from: Member,
    since: u32,
    mark: u64,
    votes: bool,
    number: u64,
    members: Vec<Member>,
}

impl Answer {
    /// A node that has the memory of its former life, and knows nothing of the group.
    fn nothing(id: u64) -> Self {
        Self {
            from: life(id, 1),
            since: 0,
            mark: 0,
            votes: false,
            number: 0,
            members: vec![],
        }
    }

    fn voter(id: u64, number: u64) -> Self {
        Self {
            mark: number,
            votes: true,
            number,
            ..Self::nothing(id)
        }
    }

    fn forgot(id: u64) -> Self {
        Self {
            since: 1,
            ..Self::nothing(id)
        }
    }

    /// The node promises where it is asked for that.
    fn promise(self, question: Question) -> Self {
        let mark = self.mark.max(u64::from(question.is_binding) * question.end);
        let votes = self.votes && !question.is_binding;
        Self {
            mark,
            votes,
            ..self
        }
    }
}

/// The registry's leader, and nodes of which it gets other answers than theirs.
pub(super) struct Rounds {
    pub(super) town: Town,
    /// The digest of the first plan.
    plan: u32,
    pub(super) land: Land,
    pub(super) leader: u64,
    others: Vec<u64>,
    /// The rounds: if they bind, and their numbers.
    rounds: Vec<(bool, u64)>,
    /// True if the group's members get no messages about it.
    is_mute: bool,
    /// True if no node answers that it is here.
    are_absent: bool,
}

impl Rounds {
    pub(super) fn new() -> Self {
        Self::with(&[FIRST.0])
    }

    /// The same, with these groups.
    pub(super) fn with(groups: &[u64]) -> Self {
        let first = Land::first(7, groups);
        let mut town = Town::new(&first);
        town.run(Span::secs(2));
        let land = first.next();
        town.change(1, &land);
        town.run(Span::secs(10));
        let leader = town.leaders(GroupId::REGISTRY)[0];
        Self {
            town,
            plan: first.plan().digest(),
            land,
            leader,
            others: (1..=7).filter(|it| *it != leader).collect(),
            rounds: vec![],
            is_mute: false,
            are_absent: false,
        }
    }

    /// Changes the site; another node may lead the registry then.
    fn change(&mut self, land: &Land) {
        self.town.change(self.leader, land);
        self.town.run(Span::secs(10));
        self.leader = self.town.leaders(GroupId::REGISTRY)[0];
        self.others = (1..=7).filter(|it| *it != self.leader).collect();
    }

    fn message(&self, to: u64, item: Item<Change, u64>) -> Message<Change, u64> {
        Message {
            plan: self.plan,
            generation: self.town.nodes[&to].machine().generation(),
            items: [item].into_iter().collect(),
        }
    }

    pub(super) fn send(&mut self, from: Member, to: u64, item: Item<Change, u64>) {
        let message = self.message(to, item);
        self.town.input(to, Input::Message { from, message });
    }

    fn report(&mut self, group: GroupId, number: u64) {
        let from = self.town.nodes[&self.others[0]].machine().me();
        self.send(from, self.leader, Item::Lost { group, number });
    }

    fn birth(&self) -> Option<u64> {
        let registry = self.town.nodes[&self.leader].machine().registry();
        registry.unwrap().birth(FIRST).map(|it| it.number)
    }

    /// Takes the questions of the leader off the wire.
    fn questions(&mut self) -> Vec<Question> {
        let mut questions = vec![];
        for (at, to, from, mut message) in core::mem::take(&mut self.town.wire) {
            for item in message.items.iter() {
                if let &Item::End {
                    call,
                    number,
                    is_binding,
                    ..
                } = item
                {
                    if !self.rounds.contains(&(is_binding, call)) {
                        self.rounds.push((is_binding, call));
                    }
                    questions.push(Question {
                        to,
                        call,
                        end: number,
                        is_binding,
                        round: self.rounds.len(),
                    });
                }
            }
            let (is_mute, are_absent) = (self.is_mute, self.are_absent);
            let stays = |it: &&Item<_, _>| match it {
                Item::End { .. } => false,
                Item::Born { .. } | Item::Replica { group: FIRST, .. } => !is_mute,
                Item::Here { .. } => !are_absent,
                _ => true,
            };
            message.items = message.items.iter().filter(stays).cloned().collect();
            if !message.items.is_empty() {
                self.town.wire.push_back((at, to, from, message));
            }
        }
        questions
    }

    /// Answers the questions with these items.
    fn run_with(
        &mut self,
        span: Span,
        mut answer: impl FnMut(Question) -> Option<(Member, Item<Change, u64>)>,
    ) {
        let until = self.town.now + span;
        while self.town.now < until {
            self.town.run(Span::millis(10));
            for question in self.questions() {
                if let Some((from, item)) = answer(question) {
                    self.send(from, self.leader, item);
                }
            }
        }
    }

    fn run(&mut self, span: Span, mut answer: impl FnMut(Question) -> Option<Answer>) {
        let life = self.town.nodes[&self.leader].machine().me().incarnation.0;
        self.run_with(span, |it| Some(item(life, it, answer(it)?)));
    }

    /// Runs until all have promised. No node answers that it is here, so that no founders are chosen.
    fn run_to_promises(&mut self, members: &[Member]) {
        self.are_absent = true;
        self.report(FIRST, 0);
        while self.counts().1 < 2 {
            self.run(Span::millis(10), |it| Some(lost(it, members)));
        }
        self.run(Span::millis(500), |it| Some(lost(it, members)));
    }

    /// The questions of the leader are lost.
    pub(super) fn run_unasked(&mut self, span: Span) {
        self.run(span, |_| None);
    }

    /// The numbers of the trial rounds, and of the binding rounds.
    fn counts(&self) -> (usize, usize) {
        let binding = self.rounds.iter().filter(|it| it.0).count();
        (self.rounds.len() - binding, binding)
    }

    /// The group begins anew once the members have lost their memory.
    pub(super) fn begin_anew(&mut self) {
        let members = members_of(&self.others);
        self.report(FIRST, 0);
        self.run(Span::secs(30), |it| Some(lost(it, &members)));
        assert_eq!(self.birth(), Some(END + 1));
    }
}

fn item(life: u32, question: Question, answer: Answer) -> (Member, Item<Change, u64>) {
    let item = Item::Ended {
        group: FIRST,
        life,
        since: answer.since,
        call: question.call,
        mark: answer.mark,
        votes: answer.votes,
        number: answer.number,
        members: answer.members.into_iter().collect(),
    };
    (answer.from, item)
}

/// The first three of these nodes, in their former lives.
fn members_of(others: &[u64]) -> Vec<Member> {
    others[..3].iter().map(|it| life(*it, 0)).collect()
}

/// The members lost their memory, and the others know that they are the members.
fn lost(question: Question, members: &[Member]) -> Answer {
    let is_member = members.iter().any(|it| it.id.0 == question.to);
    let answer = match is_member {
        true => Answer::forgot(question.to),
        false => Answer {
            number: 5,
            members: members.to_vec(),
            ..Answer::nothing(question.to)
        },
    };
    answer.promise(question)
}

/// The same, from nodes that have the memory of the present life alone.
fn lost_or_new(question: Question, members: &[Member]) -> Answer {
    let answer = lost(question, members);
    Answer { since: 1, ..answer }
}

//! The rounds of the registry's leader, which gets given answers.

use super::*;

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
        let first = Land::first(7, &[FIRST.0]);
        let mut town = Town::new(&first);
        town.run(Span::secs(2));
        let land = first.next();
        town.change(1, &land);
        town.run(Span::secs(10));
        let leader = town.leaders(GroupId::REGISTRY)[0];
        Self {
            town,
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
            plan: Land::first(7, &[FIRST.0]).plan().digest(),
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

/// Returns true if the group begins anew with these answers of its members.
fn begins(count: usize, answers: impl Fn(usize, u64) -> Option<Answer>) -> bool {
    let mut rounds = Rounds::new();
    let others = rounds.others.clone();
    let members = &members_of(&others)[..count];
    rounds.report(FIRST, 0);
    rounds.run(Span::secs(30), |it| {
        let at = members.iter().position(|member| member.id.0 == it.to);
        match at {
            Some(at) => Some(answers(at, it.to)?.promise(it)),
            None => Some(lost(it, members)),
        }
    });
    assert!(!rounds.rounds.is_empty());
    if let Some(number) = rounds.birth() {
        assert_eq!(number, END + 1);
    }
    rounds.birth().is_some()
}

#[test]
fn a_group_begins_anew_unless_a_quorum_of_its_last_members_may_vote() {
    let forgot = |id| Some(Answer::forgot(id));
    let of_two = |two: fn(u64) -> Answer| {
        begins(
            3,
            move |at, id| if at < 2 { Some(two(id)) } else { forgot(id) },
        )
    };
    assert!(begins(3, |_, id| forgot(id)));
    assert!(!of_two(|id| Answer::voter(id, 5)));
    // Members that have not learned of it yet.
    assert!(!of_two(|id| Answer {
        mark: 4,
        ..Answer::nothing(id)
    }));
    // Members that have left it.
    assert!(of_two(|id| Answer {
        mark: 5,
        ..Answer::nothing(id)
    }));
    let one_votes = |at, id| match at {
        0 => Some(Answer::voter(id, 5)),
        _ => forgot(id),
    };
    assert!(begins(3, one_votes));
    assert!(begins(2, one_votes), "half of the members are no quorum");
    let one_is_silent = |at, id| match at {
        0 => Some(Answer::voter(id, 5)),
        1 => None,
        _ => forgot(id),
    };
    assert!(!begins(3, one_is_silent), "it may have its memory");
}

#[test]
fn a_promise_to_a_former_leader_is_taken_up() {
    let voters = |at, id| match at {
        0 | 1 => Some(Answer::voter(id, 5)),
        _ => Some(Answer {
            mark: END,
            ..Answer::nothing(id)
        }),
    };
    assert!(begins(3, voters));
}

#[test]
fn a_promise_of_another_life_does_not_count() {
    let mut rounds = Rounds::new();
    let others = rounds.others.clone();
    let members = members_of(&others);
    let answer = |it: Question, life_number: u32| {
        let answer = lost(it, &members);
        let from = life(it.to, life_number);
        match others[4..].contains(&it.to) {
            true => Answer { from, ..answer },
            false => answer,
        }
    };
    rounds.report(FIRST, 0);
    rounds.run(Span::secs(60), |it| Some(answer(it, it.round as u32 + 1)));
    assert_eq!(rounds.birth(), None);
    assert_eq!(rounds.counts(), (3, 13), "16 rounds, and no more");
    rounds.report(FIRST, 0);
    rounds.run(Span::secs(60), |it| Some(answer(it, 20)));
    assert_eq!(rounds.birth(), Some(END + 1));
}

#[test]
fn rounds_begin_again_with_a_later_configuration() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.report(FIRST, 0);
    rounds.run(Span::secs(60), |it| {
        let answer = lost(it, &members);
        let number = answer.number.min(1) * it.round.min(4) as u64;
        Some(Answer { number, ..answer })
    });
    assert_eq!(rounds.counts(), (6, 2), "{:?}", rounds.rounds);
    assert_eq!(rounds.birth(), Some(END + 1));
}

#[test]
fn answers_of_another_round_or_with_too_many_members_do_not_count() {
    for (later, count) in [(1, 3), (0, 65)] {
        let mut rounds = Rounds::new();
        let members = members_of(&rounds.others);
        let many: Vec<Member> = members.iter().copied().cycle().take(count).collect();
        let by = rounds.town.nodes[&rounds.leader]
            .machine()
            .me()
            .incarnation
            .0;
        rounds.report(FIRST, 0);
        rounds.run_with(Span::secs(30), |it| {
            let answer = Answer {
                members: many.clone(),
                ..lost(it, &members)
            };
            let call = it.call + later;
            Some(item(by, Question { call, ..it }, answer))
        });
        assert_eq!(rounds.counts(), (1, 0));
        rounds.begin_anew();
    }
}

#[test]
fn without_promises_of_all_but_one_the_leader_gives_up() {
    let mut rounds = Rounds::new();
    let others = rounds.others.clone();
    let members = members_of(&others);
    rounds.report(FIRST, 0);
    let promises = |it: Question| !others[4..].contains(&it.to);
    rounds.run(Span::secs(60), |it| {
        let is_binding = it.is_binding && promises(it);
        Some(lost(Question { is_binding, ..it }, &members))
    });
    assert_eq!(rounds.counts(), (3, 1));
    assert_eq!(rounds.birth(), None);
    rounds.begin_anew();
}

#[test]
fn two_nodes_without_an_answer_are_too_many_and_one_is_not() {
    for silent in 1..=2 {
        let mut rounds = Rounds::new();
        let others = rounds.others.clone();
        let members = members_of(&others);
        rounds.report(FIRST, 0);
        rounds.run(Span::secs(60), |it| {
            (!others[6 - silent..].contains(&it.to)).then(|| lost(it, &members))
        });
        assert_eq!(rounds.birth().is_some(), silent == 1);
        assert_eq!(rounds.rounds.len() == 1, silent == 2);
    }
}

#[test]
fn the_leader_waits_for_a_member_whose_answer_is_late() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    let mut asked = 0;
    rounds.report(FIRST, 0);
    rounds.run(Span::secs(60), |it| {
        asked += u32::from(it.to == members[0].id.0);
        match members.iter().position(|member| member.id.0 == it.to) {
            Some(0) if asked < 4 => None,
            Some(1) => Some(Answer::voter(it.to, 5).promise(it)),
            _ => Some(lost(it, &members)),
        }
    });
    assert_eq!(rounds.birth(), Some(END + 1));
}

/// It may still be a member.
#[test]
fn a_node_that_the_site_has_no_more_has_to_answer_while_it_is_here() {
    for answers in [false, true] {
        let mut rounds = Rounds::new();
        let former = rounds.others[5];
        let next = Land {
            nodes: (1..=7).filter(|it| *it != former).collect(),
            former: vec![former],
            ..rounds.land.next()
        };
        rounds.change(&next);
        let members = members_of(&rounds.others);
        rounds.report(FIRST, 0);
        rounds.run(Span::secs(60), |it| {
            (answers || it.to != former).then(|| lost(it, &members))
        });
        assert_eq!(rounds.birth().is_some(), answers);
    }
}

#[test]
fn the_leader_asks_about_no_map_and_no_unknown_group() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.report(MAP, 0);
    rounds.report(GroupId(99), 0);
    rounds.run(Span::secs(10), |it| Some(lost(it, &members)));
    assert!(rounds.rounds.is_empty());
    rounds.begin_anew();
}

#[test]
fn a_report_of_a_former_beginning_is_answered_with_the_present_one() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.rounds.clear();
    rounds.town.wire.clear();
    rounds.report(FIRST, 5);
    let is_born = |it: &Item<Change, u64>| matches!(it, Item::Born { group: FIRST, .. });
    let mut items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
    assert!(items.any(is_born));
    rounds.run(Span::secs(5), |_| None);
    assert!(rounds.rounds.is_empty());
    rounds.report(FIRST, END + 1);
    rounds.run(Span::secs(5), |_| None);
    assert_eq!(rounds.counts(), (1, 0));
}

#[test]
fn another_node_answers_a_report_with_the_place_of_the_registry() {
    let mut rounds = Rounds::new();
    let is_place = |it: &Item<Change, u64>| {
        matches!(
            it,
            Item::Where {
                group: GroupId::REGISTRY,
                leader: Some(_),
                ..
            }
        )
    };
    let (group, number) = (FIRST, 0);
    let others = rounds.others.clone();
    let mut places = 0;
    for to in others {
        rounds.town.wire.clear();
        let from = rounds.town.nodes[&rounds.leader].machine().me();
        rounds.send(from, to, Item::Lost { group, number });
        let items = rounds.town.wire.iter().flat_map(|it| it.3.items.iter());
        places += items.filter(|it| is_place(it)).count();
    }
    assert!(
        places >= 2,
        "the other members of the registry know its leader"
    );
}

/// Its founders may not have got the news yet.
#[test]
fn a_group_that_has_just_begun_is_not_lost() {
    let mut rounds = Rounds::new();
    rounds.is_mute = true;
    let members = members_of(&rounds.others);
    rounds.report(FIRST, 0);
    while rounds.birth().is_none() {
        rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
    }
    rounds.rounds.clear();
    rounds.report(FIRST, END + 1);
    rounds.run(Span::millis(50), |_| None);
    assert!(rounds.rounds.is_empty());
    rounds.run(Span::secs(60), |_| None);
    // Its founders may have been silent for other reasons: those of the former beginning count no more.
    rounds.report(FIRST, END + 1);
    rounds.run(Span::secs(30), |it| Some(lost_or_new(it, &members)));
    assert_eq!(rounds.counts(), (1, 0));
}

/// The founders of the present beginning count, and no members of a former one.
#[test]
fn a_later_beginning_ends_after_its_founders_are_lost() {
    for is_lost in [false, true] {
        let mut rounds = Rounds::new();
        rounds.begin_anew();
        rounds.rounds.clear();
        let former = members_of(&rounds.others);
        let registry = rounds.town.nodes[&rounds.leader].machine().registry();
        let birth = registry.unwrap().birth(FIRST).unwrap();
        let founders: Vec<u64> = birth.founders.iter().map(|it| it.id.0).collect();
        rounds.report(FIRST, END + 1);
        rounds.run(Span::secs(30), |it| {
            assert_eq!(it.end, 2 * END);
            let answer = match founders.contains(&it.to) && !is_lost {
                true => Answer::voter(it.to, END + 1),
                false => Answer {
                    number: 5,
                    members: former.clone(),
                    from: life(it.to, 2),
                    since: 2,
                    ..Answer::nothing(it.to)
                },
            };
            Some(answer.promise(it))
        });
        assert_eq!(rounds.counts(), if is_lost { (3, 2) } else { (1, 0) });
    }
}

/// The nodes that were asked are those of the former site.
#[test]
fn the_leader_asks_again_after_a_change_of_the_site() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.report(FIRST, 0);
    while rounds.rounds.len() < 3 {
        rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
    }
    rounds.town.change(rounds.leader, &rounds.land.next());
    rounds.run(Span::secs(30), |it| Some(lost(it, &members)));
    assert_eq!(rounds.birth(), Some(END + 1));
    assert_eq!(rounds.counts(), (6, 2), "{:?}", rounds.rounds);
}

/// All promised, and the founders are not chosen yet.
#[test]
fn the_leader_asks_again_after_a_change_of_the_site_behind_all_promises() {
    let mut rounds = Rounds::new();
    let members = members_of(&rounds.others);
    rounds.are_absent = true;
    rounds.report(FIRST, 0);
    while rounds.counts().1 < 2 {
        rounds.run(Span::millis(10), |it| Some(lost(it, &members)));
    }
    rounds.run(Span::millis(500), |it| Some(lost(it, &members)));
    assert_eq!(rounds.birth(), None);
    rounds.town.change(rounds.leader, &rounds.land.next());
    let leader = rounds.leader;
    while rounds.town.nodes[&leader].machine().generation() < 2 {
        rounds.run(Span::millis(10), |_| None);
    }
    assert_eq!(rounds.birth(), None);
    rounds.are_absent = false;
    rounds.run(Span::millis(500), |_| None);
    assert_eq!(rounds.birth(), None);
    rounds.run(Span::secs(30), |it| Some(lost(it, &members)));
    assert_eq!(rounds.birth(), Some(END + 1));
}

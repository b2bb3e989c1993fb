//! The answers that count.

use super::*;

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

/// The nodes promised to end the beginning before, and no more.
#[test]
fn a_promise_to_end_a_former_beginning_does_not_count() {
    let mut rounds = Rounds::new();
    rounds.begin_anew();
    rounds.rounds.clear();
    rounds.report(FIRST, END + 1);
    rounds.run(Span::secs(60), |it| {
        Some(Answer {
            from: life(it.to, 2),
            since: 2,
            mark: END,
            ..Answer::nothing(it.to)
        })
    });
    assert_eq!(rounds.counts(), (3, 1));
    assert_eq!(rounds.birth(), Some(END + 1));
}

use super::*;

const ME: Member = Member::new(1, 5);
const FRAMES: usize = 1_200;

fn at(millis: u64) -> Time {
    Time::ZERO + Span::millis(millis)
}

fn list(text: &str) -> List<u8, 1> {
    text.bytes().collect()
}

type Receiver = mpsc::UnboundedReceiver<(Member, Box<[u8]>)>;

fn ask(queries: &mut Queries, millis: u64, members: &[Member]) -> Result<(u64, Receiver), Reject> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let members = members.iter().copied();
    let wait = Span::secs(5);
    let asked = queries.ask((ME, at(millis)), (b"who", wait, FRAMES), members, sender)?;
    Ok((asked.number, receiver))
}

#[test]
fn a_question_is_asked_until_each_member_has_answered_once() {
    let (two, three) = (Member::new(2, 1), Member::new(3, 1));
    let mut queries = Queries::default();
    let (number, mut answers) = ask(&mut queries, 0, &[ME, two, three]).unwrap();
    let to = |queries: &mut Queries, millis| -> Vec<Member> {
        let due = queries.due((ME, at(millis)), |_| true).into_iter();
        due.map(|it| it.0).collect()
    };
    assert_eq!(to(&mut queries, 0), [two, three]);
    assert_eq!(to(&mut queries, 299), []);
    assert!(queries.on_answer(two, number, &list("a")));
    assert!(
        !queries.on_answer(two, number, &list("b")),
        "a second answer"
    );
    assert!(
        !queries.on_answer(Member::new(3, 2), number, &list("b")),
        "another life"
    );
    assert!(
        !queries.on_answer(three, number + 1, &list("b")),
        "no such question"
    );
    assert_eq!(to(&mut queries, 300), [three]);
    assert_eq!(queries.next(), Some(at(900)));
    // The program of this node answers as well.
    assert_eq!(
        queries.answer((ME, at(300)), (ME, number), (b"me", FRAMES)),
        Ok(None)
    );
    assert!(queries.on_answer(three, number, &list("c")));
    assert_eq!(queries.next(), None);
    let received = core::iter::from_fn(|| answers.try_recv().ok());
    let received: Vec<_> = received
        .map(|it| (it.0, String::from_utf8(it.1.into()).unwrap()))
        .collect();
    let expected = [(two, "a"), (ME, "me"), (three, "c")];
    assert_eq!(received, expected.map(|it| (it.0, it.1.to_owned())));
    assert!(answers.is_closed());
}

#[test]
fn a_query_ends_with_its_time_or_its_reader() {
    let two = Member::new(2, 1);
    let mut queries = Queries::default();
    let (number, mut answers) = ask(&mut queries, 0, &[ME, two]).unwrap();
    assert_eq!(queries.due((ME, at(5_000)), |_| true), []);
    assert_eq!(
        answers.try_recv(),
        Err(mpsc::error::TryRecvError::Disconnected)
    );
    assert!(!queries.on_answer(two, number, &list("late")));
    let (_, answers) = ask(&mut queries, 6_000, &[ME, two]).unwrap();
    drop(answers);
    assert_eq!(queries.due((ME, at(6_000)), |_| true), []);
    let open: Vec<_> = (0..QUERIES)
        .map(|_| ask(&mut queries, 7_000, &[ME, two]).unwrap())
        .collect();
    let limit = QUERIES;
    assert_eq!(
        ask(&mut queries, 7_000, &[ME]).unwrap_err(),
        Reject::QueriesFull { limit }
    );
    drop(open);
    assert!(ask(&mut queries, 7_000, &[ME]).is_ok());
}

#[test]
fn a_question_that_comes_again_is_no_second_event_and_has_the_same_answer() {
    let asker = Member::new(2, 1);
    let mut queries = Queries::default();
    let arrive = |queries: &mut Queries, millis| {
        queries.on_question((asker, at(millis)), (7, 1_000), &list("who"))
    };
    let Arrived::New(question) = arrive(&mut queries, 0) else {
        panic!("it is new");
    };
    assert_eq!(
        (question.from, question.number, question.until),
        (asker, 7, at(1_000))
    );
    assert_eq!(arrive(&mut queries, 1), Arrived::Waits);
    let answered = queries
        .answer((ME, at(2)), (asker, 7), (b"me", FRAMES))
        .unwrap();
    let answer = Query::Answer {
        life: 1,
        number: 7,
        payload: list("me"),
    };
    assert_eq!(answered, Some(answer.clone()));
    assert_eq!(arrive(&mut queries, 3), Arrived::Answered(answer.clone()));
    // In the clear it would be an amplifier.
    assert_eq!(arrive(&mut queries, 102), Arrived::Waits);
    assert_eq!(arrive(&mut queries, 202), Arrived::Answered(answer));
    let again = queries.answer((ME, at(4)), (asker, 7), (b"other", FRAMES));
    assert_eq!(again, Err(Reject::Answered));
    let late = queries.answer((ME, at(1_000)), (asker, 7), (b"me", FRAMES));
    assert_eq!(late, Err(Reject::NoQuestion));
    let (found, limit) = (QUERY_MAX + 1, QUERY_MAX);
    let long = queries.answer((ME, at(4)), (asker, 7), (&[0; QUERY_MAX + 1], FRAMES));
    assert_eq!(long, Err(Reject::QueryTooLong { found, limit }));
}

#[test]
fn a_node_that_asks_without_end_leaves_room_for_others() {
    let mut queries = Queries::default();
    for number in 0..100 {
        let arrived =
            queries.on_question((Member::new(2, 1), at(0)), (number, u32::MAX), &list(""));
        assert_eq!(arrived == Arrived::Full, number >= QUERIES as u64);
    }
    for id in 3..100 {
        let arrived = queries.on_question((Member::new(id, 1), at(0)), (1, 1_000), &list(""));
        assert!(matches!(arrived, Arrived::New(_)));
    }
    assert!(queries.received.len() <= RECEIVED);
    let late = at((WAIT_MAX + RESEND_MAX).0 / 1_000);
    let arrived = queries.on_question((Member::new(2, 1), late), (7, 1_000), &list(""));
    assert!(
        matches!(arrived, Arrived::New(_)),
        "none is remembered for longer"
    );
}

#[test]
fn questions_that_were_answered_take_no_room_and_late_copies_are_known() {
    let asker = Member::new(2, 1);
    let mut queries = Queries::default();
    for number in 0..500 {
        let arrived = queries.on_question((asker, at(0)), (number, 1_000), &list(""));
        assert!(matches!(arrived, Arrived::New(_)), "{number}");
        let answered = queries.answer((ME, at(0)), (asker, number), (b"", FRAMES));
        assert!(answered.is_ok());
    }
    assert!(queries.received.len() <= OF_NODE);
    for millis in [1_000, 3_399] {
        let late = queries.on_question((asker, at(millis)), (499, 50), &list(""));
        assert_eq!(late, Arrived::Waits);
    }
    for _ in 0..500 {
        drop(ask(&mut queries, 3_400, &[ME]).unwrap());
    }
    assert!(queries.received.len() <= OF_NODE);
}

#[test]
fn a_member_that_ended_is_asked_no_more_and_not_waited_for() {
    let (two, three) = (Member::new(2, 1), Member::new(3, 1));
    let mut queries = Queries::default();
    let (number, mut answers) = ask(&mut queries, 0, &[two, three]).unwrap();
    assert_eq!(queries.due((ME, at(0)), |_| true).len(), 2);
    let due = queries.due((ME, at(300)), |it| it == three);
    assert_eq!(due.iter().map(|it| it.0).collect::<Vec<_>>(), [three]);
    assert!(queries.on_answer(three, number, &list("c")));
    assert!(answers.try_recv().is_ok());
    assert!(answers.is_closed() && queries.next().is_none());
}

#[test]
fn a_query_ends_with_the_life_that_asks() {
    let two = Member::new(2, 1);
    let mut queries = Queries::default();
    let (number, answers) = ask(&mut queries, 0, &[ME, two]).unwrap();
    let next = Member::new(ME.id.0, ME.incarnation.0 + 1);
    assert_eq!(queries.due((next, at(300)), |_| true), []);
    assert!(answers.is_closed());
    assert!(!queries.on_answer(two, number, &list("late")));
}

#[test]
fn messages_have_these_bytes() {
    let question = Query::Question {
        number: 300,
        left: 1_000,
        payload: list("who"),
    };
    let answer = Query::Answer {
        life: 5,
        number: 300,
        payload: list("me"),
    };
    let bytes = |it: &Query| postcard::to_allocvec(it).unwrap();
    assert_eq!(bytes(&question), b"\x00\xac\x02\xe8\x07\x03who");
    assert_eq!(bytes(&answer), b"\x01\x05\xac\x02\x02me");
}

#[test]
fn a_message_has_the_length_that_it_names() {
    for payload in [0, 1, 127, 128, QUERY_MAX] {
        let payload: List<u8, 1> = core::iter::repeat_n(7, payload).collect();
        let (number, left, life) = (u64::MAX, 60_000, u32::MAX);
        let question = Query::Question {
            number,
            left,
            payload: payload.clone(),
        };
        let answer = Query::Answer {
            life,
            number: 3,
            payload,
        };
        for message in [question, answer] {
            let bytes = postcard::to_allocvec(&message).unwrap();
            assert_eq!(bytes.len(), wire::Message::encoded_len(&message));
            assert!(
                wire::frame_len(Member::new(u64::MAX, u32::MAX), &message) <= QUERY_MAX + AROUND
            );
            assert_eq!(postcard::from_bytes::<Query>(&bytes).unwrap(), message);
        }
    }
}

//! Queries: each member answers once, under loss and other orders, and no stranger takes part.

use std::collections::BTreeMap;
use std::time::Duration;

use selvedge::frame;
use selvedge_core::{Member, Ratio, Span, wire};
use selvedge_seal::{Key, Keyring, Seal};
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::query::{Answers, QUERY_MAX};
use selvedge_udp::{Error, NodeEvent, Reject};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};

use crate::bench::{Node, PATIENCE, until};
use crate::datagrams::setup;
use crate::network::{Network, at};

/// As the host writes it.
#[derive(Serialize, Deserialize)]
enum Query {
    Question {
        number: u64,
        left: u32,
        payload: Vec<u8>,
    },
    Answer {
        life: u32,
        number: u64,
        payload: Vec<u8>,
    },
}

impl wire::Message for Query {
    const KIND: u8 = 11;

    fn encoded_len(&self) -> usize {
        postcard::to_allocvec(self).unwrap().len()
    }
}

fn questions(node: &mut Node) -> Vec<(Member, u64)> {
    let passed = node.passed().into_iter();
    let questions = passed.filter_map(|it| match it {
        NodeEvent::Question(it) => Some((it.from, it.number)),
        _ => None,
    });
    questions.collect()
}

/// All answers until the end of a query.
async fn all(mut answers: Answers) -> BTreeMap<u64, Vec<u8>> {
    let mut all = BTreeMap::new();
    while let Some((from, payload)) = timeout(PATIENCE, answers.next()).await.unwrap() {
        let former = all.insert(from.id.0, payload.into());
        assert_eq!(former, None, "{from:?} answers twice");
    }
    all
}

#[tokio::test(start_paused = true)]
async fn each_member_with_a_program_answers_once_under_loss_and_other_orders() {
    for seed in 0..20 {
        println!("seed {seed}");
        let faults = Faults::none().with_loss(Ratio::new(30, 100));
        let control = FaultControl::new(Faults::none());
        let network = Network::default();
        let keyring = Keyring::of(Key::random().unwrap());
        let mut nodes = Vec::new();
        for id in 1..=4_u16 {
            let faulty = Faulty::new(network.clone(), &control, seed * 10 + u64::from(id));
            let seeds: &[u16] = if id == 1 { &[] } else { &[1] };
            let sealed = Seal::new(keyring.clone(), "queries");
            let setup = setup(&network, id, seeds).transport(faulty).seal(sealed);
            nodes.push(Node::start(setup).await);
        }
        until(|| nodes.iter().all(|it| it.live() == 4)).await;
        control.change(|it| *it = faults.with_delay(Span::ZERO, Span::millis(400)));
        let answers = nodes[0].query(*b"who", Span::secs(20)).await.unwrap();
        assert_eq!(answers.asked().len(), 4);
        // The program at node 4 never answers, and that at node 3 is slow.
        let mut asked = BTreeMap::new();
        for millis in [0, 3_000, 17_000] {
            sleep(Duration::from_millis(millis)).await;
            for node in &mut nodes {
                for question in questions(node) {
                    let former = asked.insert(node.id().0, question);
                    assert_eq!(former, None, "node {:?} has the question twice", node.id());
                }
            }
            for node in nodes.iter().filter(|it| it.id().0 < 4) {
                let is_due = node.id().0 < 3 || millis > 0;
                if let Some(question) = asked.get(&node.id().0).filter(|_| is_due) {
                    let name = node.id().0.to_string();
                    let outcome = node.answer(*question, name.into_bytes()).await;
                    let is_over = Err(Error::Rejected(Reject::NoQuestion));
                    let was = Err(Error::Rejected(Reject::Answered));
                    assert!(outcome.is_ok() || outcome == was || outcome == is_over);
                }
            }
        }
        let expected = [1, 2, 3].map(|id: u64| (id, id.to_string().into_bytes()));
        assert_eq!(all(answers).await, BTreeMap::from(expected));
        assert_eq!(asked.len(), 4, "node 4 had the question as well");
    }
}

#[tokio::test(start_paused = true)]
async fn a_query_of_a_node_alone_ends_with_the_answer_of_its_program() {
    let network = Network::default();
    let mut node = Node::start(setup(&network, 1, &[])).await;
    let answers = node.query(*b"who", Span::secs(20)).await.unwrap();
    let NodeEvent::Question(question) = node
        .wait_for(|it| matches!(it, NodeEvent::Question(_)))
        .await
    else {
        panic!("it waited for a question");
    };
    assert_eq!(*question.payload, *b"who");
    let key = (question.from, question.number);
    node.answer(key, *b"me").await.unwrap();
    assert_eq!(all(answers).await, BTreeMap::from([(1, b"me".to_vec())]));
    for (key, payload, expected) in [
        (key, vec![], Reject::Answered),
        ((Member::new(9, 0), 1), vec![], Reject::NoQuestion),
        (
            key,
            vec![0; QUERY_MAX + 1],
            Reject::QueryTooLong {
                found: QUERY_MAX + 1,
                limit: QUERY_MAX,
            },
        ),
    ] {
        let refused = node.answer(key, payload).await;
        assert_eq!(refused, Err(Error::Rejected(expected)));
    }
    assert!(node.query([0; QUERY_MAX + 1], Span::secs(1)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn strangers_and_former_lives_neither_ask_nor_answer() {
    let network = Network::default();
    let mut one = Node::start(setup(&network, 1, &[])).await;
    let two = Node::start(setup(&network, 2, &[1])).await;
    until(|| one.live() == 2 && two.live() == 2).await;
    let answers = one.query(*b"who", Span::secs(5)).await.unwrap();
    let mut stranger = network.open(at(9));
    let before = one.traffic().report().untimely;
    let payload = b"forged".to_vec();
    let send = |socket: &mut crate::network::Socket, from, message: &Query| {
        let mut bytes = Vec::new();
        frame::encode(from, message, 1_000, &mut bytes).unwrap();
        socket.send(&bytes, at(1));
    };
    let question = Query::Question {
        number: 1,
        left: 1_000,
        payload: payload.clone(),
    };
    let answer = |life, number| Query::Answer {
        life,
        number,
        payload: payload.clone(),
    };
    let me = one.state().me;
    let former = Member::new(2, two.state().me.incarnation.0.wrapping_sub(1));
    send(&mut stranger, Member::new(9, 0), &question);
    send(&mut stranger, former, &question);
    send(&mut stranger, me, &question);
    send(
        &mut stranger,
        Member::new(9, 0),
        &answer(me.incarnation.0, 1),
    );
    send(
        &mut stranger,
        two.state().me,
        &answer(me.incarnation.0 + 1, 1),
    );
    send(&mut stranger, two.state().me, &answer(me.incarnation.0, 2));
    let key = (me, 1);
    one.answer(key, *b"me").await.unwrap();
    assert_eq!(all(answers).await, BTreeMap::from([(1, b"me".to_vec())]));
    assert_eq!(one.traffic().report().untimely, before + 6);
    assert_eq!(questions(&mut one), [key]);
}

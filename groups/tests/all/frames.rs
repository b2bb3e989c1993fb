//! The contents of a frame.

use selvedge_core::wire;

use crate::mesh::*;

/// The bytes before the items of a message, and before a replica's message in an item.
const FIXED_LEN: usize = 12;
const ITEM_LEN: usize = 11;

const TO: Member = life(2, 0);

fn notify(len: usize) -> Command<u64, Payload> {
    Command::Answer {
        to: TO,
        group: GROUP,
        payload: vec![7; len],
    }
}

/// The longest payload that a frame takes.
fn longest(node: &mut One) -> usize {
    let taken = |len: &usize| {
        node.command(notify(*len));
        !node.sent().is_empty()
    };
    let longest = (1_000..2_000).take_while(taken).last();
    longest.unwrap()
}

#[test]
fn what_no_frame_takes_is_counted_and_not_sent() {
    let mut node = One::new(1, 5, Start::Restarted);
    let len = longest(&mut node);
    let item: Item<u64, Payload> = Item::Answer {
        group: GROUP,
        life: TO.incarnation.0,
        notified: vec![7; len],
    };
    let room = usize::from(node.machine().plan().frame_budget());
    let around = wire::HEADER_LEN + wire::member_len(life(1, 0)) + FIXED_LEN;
    assert_eq!(around + encoded_len(&item), room);
    for count in 2..=3 {
        node.command(notify(len + 1));
        assert_eq!(node.sent(), []);
        assert_eq!(node.machine().counters().too_long, count);
    }
}

#[test]
fn what_goes_to_one_node_shares_frames_as_far_as_it_fits() {
    let ask = |node: &mut One, len: usize| {
        node.command(Command::Ask {
            group: LATER,
            payload: vec![7; len],
        });
    };
    // Earlier questions go out together, when the node learns of the leader.
    let messages = |lens: &[usize]| {
        let mut node = One::new(1, 5, Start::Restarted);
        for len in lens {
            ask(&mut node, *len);
        }
        node.sent();
        node.receive(
            TO,
            [Item::Where {
                group: LATER,
                number: 1,
                leader: Some(TO.id),
                members: [2, 3, 4].map(|it| life(it, 1)).into_iter().collect(),
            }],
        );
        let sent = core::mem::take(&mut node.sent).into_iter();
        let lens = sent.map(|(to, it)| {
            assert_eq!(to, TO);
            it.items.len()
        });
        lens.collect::<Vec<_>>()
    };
    let item = |len: usize| {
        let asked = vec![7; len];
        let group = LATER;
        encoded_len(&Item::<u64, Payload>::Ask { group, asked })
    };
    let budget = usize::from(plan(5).frame_budget());
    let around = wire::HEADER_LEN + wire::member_len(life(1, 0)) + FIXED_LEN;
    let rest = budget - around - item(1_000);
    let fits = (1..).take_while(|len| item(*len) <= rest).last().unwrap();
    assert_eq!(messages(&[1_000, fits]), [2]);
    assert_eq!(messages(&[1_000, fits + 1]), [1, 1]);
    assert_eq!(messages(&[1_000, 10, 10, 1_000]), [3, 1]);
}

#[test]
fn a_replica_has_what_a_frame_leaves_it() {
    let founder = founders(5, GROUP)[0];
    let node = One::new(founder, 5, Start::Fresh);
    let replica = node.machine().replica(GROUP).unwrap();
    let budget = replica.configuration().frame_budget;
    let longest: Item<u64, Payload> = Item::Replica {
        group: GroupId(u64::MAX),
        message: replica::Message {
            configuration: 1,
            body: replica::Body::Read { number: 1 },
        },
    };
    let Item::Replica { message, .. } = &longest else {
        panic!("{longest:?}");
    };
    let before = encoded_len(&longest) - encoded_len(message);
    assert_eq!(before, ITEM_LEN);
    let around = FIXED_LEN + before;
    assert_eq!(
        usize::from(budget) + around,
        usize::from(node.machine().plan().frame_budget())
    );
}

#[test]
fn what_cannot_be_encoded_is_longer_than_any_frame() {
    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
    struct Endless;
    impl Serialize for Endless {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serde::ser::SerializeSeq::end(serializer.serialize_seq(None)?)
        }
    }
    let plan = Arc::new(plan(5).with_frame_budget(u16::MAX).unwrap());
    let groups = Groups::<Sum, Endless>::new(
        life(1, 0),
        config(),
        plan,
        Arc::new(vec![]),
        Start::Restarted,
    );
    let mut driver = Driver::new(groups.unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let input = Input::Command(Command::Answer {
        to: TO,
        group: GROUP,
        payload: Endless,
    });
    let take = |it| assert!(matches!(it, Effect::Event(Event::Fact(_))), "{it:?}");
    driver.step(Time::ZERO, &mut rng, input, take).unwrap();
    assert_eq!(driver.machine().counters().too_long, 1);
}

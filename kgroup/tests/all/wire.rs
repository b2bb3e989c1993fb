//! Messages: their bytes, their length, and the handling of messages that no correct node sends.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::wire::Message as _;
use selvedge_core::{Driver, Input, Member, NodeId, Span, Time};
use selvedge_groups::{Item, Message, Misbehaviour, Node, Place, Reject, Selection, Start};
use selvedge_kgroup::devices::{self, Devices, Limits};
use selvedge_kgroup::routines::{self, Definition};
use selvedge_kgroup::{
    Claim, Config, Delivery, Kgroup, Outcome, Patience, Payload, Request, Site, Status, Update,
};
use selvedge_replica::{Body, State as _};
use selvedge_routine::{Routine, State, Step};

type Sent = Message<Update, Payload>;

const CLAIM: Claim = Claim {
    routine: Site::routine(3),
    instance: 300,
    attempt: 1,
};

fn site() -> Arc<Site> {
    let place = |at: u64| Place([at as i32, 0, 0]);
    let nodes = (1..=5).map(|id| Node::new(id, place(id)));
    let devices = (101..=104).map(|id| (NodeId(id), place(id)));
    Arc::new(Site::new(Selection::new().with_failures(1), nodes, devices, 2).unwrap())
}

fn items() -> Vec<Item<Update, Payload>> {
    let request = Request::Lock {
        device: NodeId(101),
        claim: CLAIM,
        patience: Patience::Queues,
        generation: 0,
    };
    let answer = selvedge_kgroup::Answer::Status {
        device: NodeId(101),
        routine: CLAIM.routine,
        status: Status {
            version: 2,
            is_up: true,
            value: Some("on".into()),
        },
    };
    let group = Site::cluster(1);
    vec![
        Item::Replica {
            group,
            message: selvedge_replica::Message {
                configuration: 2,
                body: Body::Read { number: 9 },
            },
        },
        Item::Ask {
            group,
            asked: Payload::Request(request),
        },
        Item::Answer {
            group,
            life: 6,
            notified: Payload::Answer { of: group, answer },
        },
        Item::Where {
            group,
            number: 4,
            leader: Some(NodeId(7)),
            members: [7, 8, 9].map(|it| Member::new(it, 2)).into_iter().collect(),
        },
        Item::Inquire {
            group,
            number: 2,
            configuration: 3,
        },
        Item::Here {
            group,
            life: 1,
            number: 2,
        },
    ]
}

/// A frame that changes is refused by nodes of earlier versions: note it in the changelog, under
/// Wire.
#[test]
fn the_bytes_of_a_message_stay_the_same() {
    let message = Sent {
        plan: 0x0102_0304,
        generation: 0,
        items: items().into_iter().collect(),
    };
    let bytes = postcard::to_allocvec(&message).unwrap();
    assert_eq!(bytes.len(), message.encoded_len());
    let head = [132, 134, 136, 8, 0, 6];
    let replica = [0, 4, 2, 10, 9];
    let ask = [1, 4, 0, 0, 101, 13, 172, 2, 1, 0, 0];
    let notify = [2, 4, 6, 1, 4, 6, 101, 13, 2, 1, 1, 1, 2, b'o', b'n'];
    let places = [3, 4, 4, 1, 7, 3, 7, 2, 8, 2, 9, 2];
    let inquire = [4, 4, 2, 3];
    let here = [5, 4, 1, 2];
    let parts: [&[u8]; 7] = [&head, &replica, &ask, &notify, &places, &inquire, &here];
    assert_eq!(bytes, parts.concat());
    assert_eq!(postcard::from_bytes::<Sent>(&bytes).unwrap(), message);
}

/// Every update of a cluster, and the hold of a routine's step.
#[test]
fn the_bytes_of_the_updates_of_a_cluster_stay_the_same() {
    let (device, claim, number) = (NodeId(101), CLAIM, 5);
    let by = Member::new(7, 3);
    let outcome = Outcome::Done;
    let waited = Span::secs(3);
    let value = || State::from("on");
    let updates: [(devices::Update, &[u8]); 15] = [
        (
            devices::Update::Lock {
                device,
                claim,
                patience: Patience::Queues,
                generation: 3,
            },
            &[0, 101, 13, 172, 2, 1, 0, 3],
        ),
        (
            devices::Update::Release {
                device,
                claim,
                generation: 3,
            },
            &[1, 101, 13, 172, 2, 1, 3],
        ),
        (
            devices::Update::Act {
                device,
                claim,
                step: 2,
                value: value(),
                delivery: Delivery::AtMostOnce,
                by,
            },
            &[2, 101, 13, 172, 2, 1, 2, 1, 2, b'o', b'n', 1, 7, 3],
        ),
        (
            devices::Update::Acted {
                device,
                number,
                outcome,
                turn: 1,
            },
            &[3, 101, 5, 0, 1],
        ),
        (
            devices::Update::Observed {
                device,
                after: 3,
                is_up: true,
                value: Some(value()),
            },
            &[4, 101, 3, 1, 1, 1, 2, b'o', b'n'],
        ),
        (
            devices::Update::Watch {
                generation: 3,
                device,
                routine: CLAIM.routine,
            },
            &[5, 101, 13, 3],
        ),
        (
            devices::Update::TakeOver {
                device,
                number,
                after: 1,
                by,
            },
            &[6, 101, 5, 1, 7, 3],
        ),
        (
            devices::Update::Settled {
                device,
                number,
                turn: 2,
            },
            &[7, 101, 5, 2],
        ),
        (
            devices::Update::Waited {
                device,
                number,
                turn: 2,
                waited,
            },
            &[8, 101, 5, 2, 192, 141, 183, 1],
        ),
        (
            devices::Update::Enter {
                generation: 3,
                device,
            },
            &[9, 3, 101],
        ),
        (
            devices::Update::Exit {
                generation: 3,
                device,
            },
            &[10, 3, 101],
        ),
        (
            devices::Update::Forget {
                generation: 3,
                device,
                routine: CLAIM.routine,
            },
            &[11, 3, 101, 13],
        ),
        (
            devices::Update::Silent {
                device,
                after: Span(5),
                silent: waited,
            },
            &[14, 101, 5, 192, 141, 183, 1],
        ),
        (
            devices::Update::Reclaim {
                device,
                since: 64,
                claim: CLAIM,
                given: Some(2),
            },
            &[12, 101, 64, 13, 172, 2, 1, 1, 2],
        ),
        (
            devices::Update::Open {
                generation: 3,
                device,
            },
            &[13, 3, 101],
        ),
    ];
    for (update, expected) in updates {
        let update = Update::Devices(update);
        let bytes = postcard::to_allocvec(&update).unwrap();
        assert_eq!(bytes, [&[0], expected].concat(), "{update:?}");
        assert_eq!(postcard::from_bytes::<Update>(&bytes).unwrap(), update);
    }
    let held = Update::Routine(routines::Update::Held {
        instance: 300,
        step: 2,
        held: waited,
    });
    let bytes = postcard::to_allocvec(&held).unwrap();
    assert_eq!(bytes, [1, 8, 172, 2, 2, 192, 141, 183, 1]);
    let define = Update::Routine(routines::Update::Define {
        generation: 300,
        definition: vec![7, 200],
    });
    let bytes = postcard::to_allocvec(&define).unwrap();
    assert_eq!(bytes, [1, 10, 172, 2, 2, 7, 200]);
}

/// A state is sent whole to new members, with the command that is under way, its turn and its hold.
#[test]
fn the_bytes_of_a_cluster_that_is_handed_over_stay_the_same() {
    let (device, claim, number) = (NodeId(101), CLAIM, 1);
    let mut state = Devices::new([device], Limits::new());
    let updates = [
        devices::Update::Lock {
            device,
            claim,
            patience: Patience::Queues,
            generation: 3,
        },
        devices::Update::Act {
            device,
            claim,
            step: 2,
            value: "on".into(),
            delivery: Delivery::AtLeastOnce,
            by: Member::new(7, 3),
        },
        devices::Update::TakeOver {
            device,
            number,
            after: 0,
            by: Member::new(8, 0),
        },
        devices::Update::Waited {
            device,
            number,
            turn: 1,
            waited: Span::secs(3),
        },
        devices::Update::Acted {
            device,
            number,
            outcome: Outcome::Failed,
            turn: 1,
        },
    ];
    for update in updates {
        state.apply(&update);
    }
    let bytes = postcard::to_allocvec(&state).unwrap();
    let limits = [64, 128, 2, 64, 64];
    let lock = [1, 13, 172, 2, 1, 0, 1, 13, 172, 2, 1, 0];
    let status = [0, 0, 0];
    let act = [1, 1, 13, 172, 2, 1, 2, 1, 2, b'o', b'n', 0, 8, 0, 1];
    let settles = [192, 141, 183, 1, 1, 1, 0];
    let device = [1, 101, 0];
    let watchers = [0];
    let is_open = [1];
    let silent = [0];
    let generation = [3, 0];
    let parts: [&[u8]; 10] = [
        &limits,
        &device,
        &lock,
        &status,
        &act,
        &settles,
        &watchers,
        &is_open,
        &silent,
        &generation,
    ];
    assert_eq!(bytes, parts.concat());
    assert_eq!(postcard::from_bytes::<Devices>(&bytes).unwrap(), state);
}

#[test]
fn a_message_of_another_site_or_of_nobody_is_refused() {
    let me = Member::new(1, 0);
    let node = Kgroup::new(me, Config::new(), site(), Start::Fresh).unwrap();
    let own = node.groups().plan().digest();
    let mut driver = Driver::new(node);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut step = |from, plan, items: Vec<_>| {
        let message = Sent {
            plan,
            generation: 0,
            items: items.into_iter().collect(),
        };
        let input = Input::Message { from, message };
        driver
            .step(Time::ZERO, &mut rng, input, |_| ())
            .unwrap_err()
    };
    let other = Member::new(2, 0);
    let refused = |it: Misbehaviour| selvedge_kgroup::Reject::Groups(Reject::Misbehaviour(it));
    let found = own ^ 1;
    let cases = [
        (
            step(other, found, items()),
            Misbehaviour::Plan { found, own },
        ),
        (step(other, own, vec![]), Misbehaviour::Empty),
        (step(me, own, items()), Misbehaviour::OwnId(me)),
    ];
    for (found, expected) in cases {
        assert_eq!(found, refused(expected));
    }
}

/// Two nodes with sites that differ in anything refuse each other.
#[test]
fn the_digest_tells_sites_apart() {
    let digest = |site: &Site| site.plan().unwrap().digest();
    let place = |at: u64| Place([at as i32, 0, 0]);
    let made = |failures, nodes: u64, devices: u64, cluster, move_by: u64| {
        let selection = Selection::new().with_failures(failures);
        let nodes = (1..=nodes).map(|id| Node::new(id, place(id + move_by)));
        let devices = (1..=devices).map(|id| (NodeId(id), place(id)));
        Site::new(selection, nodes, devices, cluster).unwrap()
    };
    let site = || made(1, 5, 4, 2, 0);
    let step = |value: &str| {
        let steps = vec![Step::new(NodeId(1), value.into())];
        Definition::new(Routine { steps })
    };
    let sites = [
        site(),
        made(2, 5, 4, 2, 0),
        made(1, 6, 4, 2, 0),
        made(1, 5, 5, 2, 0),
        made(1, 5, 4, 1, 0),
        made(1, 5, 4, 2, 1),
        site().with_generation(1),
        site().with_origin(1),
        site().with_routine(step("on")).unwrap(),
        site().with_routine(step("off")).unwrap(),
        site().with_limits(Limits::new().with_queue(3)),
    ];
    let mut digests: Vec<u32> = sites.iter().map(digest).collect();
    assert_eq!(digests[0], digest(&site()));
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), sites.len());
}

/// Any bytes, as far as they are a message: no panic, and memory stays small.
#[test]
fn garbage_changes_little() {
    let me = Member::new(1, 0);
    let config = Config::new().with_groups(selvedge_groups::Config::new().with_groups(8));
    let mut node = Driver::new(Kgroup::new(me, config, site(), Start::Fresh).unwrap());
    let plan = node.machine().groups().plan().digest();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let seeds: Vec<Vec<u8>> = (items().into_iter())
        .map(|it| postcard::to_allocvec(&it).unwrap())
        .collect();
    let mut taken = 0;
    for _ in 0..30_000 {
        let mut bytes = seeds[rng.next_u32() as usize % seeds.len()].clone();
        for _ in 0..=rng.next_u32() % 3 {
            let at = rng.next_u32() as usize % bytes.len();
            bytes[at] = rng.next_u32() as u8;
        }
        bytes.extend((0..rng.next_u32() % 20).map(|it| it as u8));
        let Ok((item, _)) = postcard::take_from_bytes::<Item<Update, Payload>>(&bytes) else {
            continue;
        };
        let from = Member::new(u64::from(rng.next_u32() % 8), rng.next_u32() % 2);
        let message = Sent {
            plan,
            generation: 0,
            items: [item].into_iter().collect(),
        };
        let input = Input::Message { from, message };
        let mut sent = 0;
        let outcome = node.step(Time::ZERO, &mut rng, input, |_| sent += 1);
        taken += u32::from(outcome.is_ok());
        assert!(sent < 100, "one message made {sent}");
    }
    assert!(taken > 1_000, "{taken}");
    let groups = node.machine().groups();
    assert!(groups.groups().count() <= 8);
    assert!(format!("{:?}", node.machine()).len() < 300_000);
}

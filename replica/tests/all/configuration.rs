//! Configurations that can work, and that cannot.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Stamp, Time};
use selvedge_replica::{
    Body, Command, Config, ConfigError, Configuration, Entry, Event, Lease, Message, QuorumRule,
    Reject, Replica, State, Timer, Voter,
};
use serde::{Deserialize, Serialize};

fn members(ids: &[u64]) -> Configuration {
    Configuration::of(ids.iter().map(|&id| Member::new(id, 1)))
}

/// The error of the first setting that is refused.
fn refusal(configuration: &Configuration) -> String {
    configuration.check().unwrap_err().to_string()
}

#[test]
fn the_defaults_work_with_1_to_32_members() {
    for count in [1, 2, 5, 32] {
        let all: Vec<u64> = (1..=count).collect();
        assert_eq!(members(&all).check(), Ok(()), "{count} members");
    }
    let too_many: Vec<u64> = (1..=33).collect();
    assert_eq!(
        refusal(&members(&too_many)),
        "voters is 33: set it to 1 or more, up to 32"
    );
    assert_eq!(
        refusal(&members(&[])),
        "voters is 0: set it to 1 or more, up to 32"
    );
}

#[test]
fn each_node_is_named_once_and_alike_in_both_lists() {
    let twice = members(&[1, 2, 1]);
    assert_eq!(twice.check(), Err(ConfigError::Twice(NodeId(1))));

    let mut both = members(&[1, 2]);
    both.also = vec![Voter::new(Member::new(2, 1)), Voter::new(Member::new(3, 1))];
    assert_eq!(both.check(), Ok(()));
    assert_eq!(both.members().count(), 3, "node 2 is a member once");
    both.also = vec![Voter::new(Member::new(2, 5))];
    assert_eq!(both.check(), Err(ConfigError::Differs(NodeId(2))));
    both.also = vec![Voter::witness(Member::new(2, 1))];
    assert_eq!(both.check(), Err(ConfigError::Differs(NodeId(2))));
}

#[test]
fn any_two_quorums_share_a_member() {
    let mut four = members(&[1, 2, 3, 4]);
    for (least, works) in [(0, false), (2, false), (3, true), (4, true), (5, false)] {
        four.quorum = QuorumRule::AtLeast(least);
        assert_eq!(four.check().is_ok(), works, "{least} of 4");
    }
    four.quorum = QuorumRule::AtLeast(3);
    four.also = vec![Voter::new(Member::new(9, 1))];
    assert!(matches!(
        four.check(),
        Err(ConfigError::Quorum { voters: 1, .. })
    ));
}

#[test]
fn some_member_holds_the_state() {
    let witnesses = Configuration::new([1, 2].map(|id| Voter::witness(Member::new(id, 1))));
    assert_eq!(witnesses.check(), Err(ConfigError::Witnesses));
}

#[test]
fn numbers_have_their_ranges() {
    let mut one = members(&[1]);
    one.lease = Some(Lease {
        span: Span::micros(999),
        drift: 0,
    });
    assert_eq!(refusal(&one), "lease is 999 us: set it to at least 1000 us");
    one.lease = Some(Lease {
        span: Span::millis(1),
        drift: 500_001,
    });
    assert_eq!(
        refusal(&one),
        "drift is 500001 ppm: set it to at most 500000 ppm"
    );
    one.lease = None;
    one.proposers = 0;
    assert_eq!(
        refusal(&one),
        "proposers is 0: set it to 1 or more, up to 65535"
    );
    one.proposers = 1;
    one.number = 0;
    assert_eq!(
        refusal(&one),
        "number is 0: set it to 1 or more, up to 268435455"
    );
}

#[test]
fn it_fits_into_its_own_frames() {
    let mut few = members(&[1, 2, 3, 4, 5]);
    few.frame_budget = 127;
    assert_eq!(few.check(), Ok(()));
    let mut many = members(&(1..=32).collect::<Vec<_>>());
    many.frame_budget = 127;
    assert!(matches!(
        many.check(),
        Err(ConfigError::TooLong { budget: 127, .. })
    ));
    // EUI-64 ids take ten bytes each.
    let mut far = members(&[u64::MAX, u64::MAX - 1, u64::MAX - 2]);
    far.frame_budget = 127;
    assert_eq!(far.check(), Ok(()));
}

#[test]
fn the_leader_relies_on_a_lease_for_less() {
    let lease = Lease {
        span: Span::secs(10),
        drift: 1_000,
    };
    assert_eq!(lease.relied_on(), Span::micros(9_990_000));
    let longest = Lease {
        span: Span(u64::MAX),
        drift: 500_000,
    };
    assert_eq!(longest.relied_on(), Span(u64::MAX - u64::MAX / 2));
}

/// The longest frame without its list is a PROMISE in which each number is the highest.
#[test]
fn the_budget_is_compared_with_the_longest_frame() {
    for id in [1, 300, u64::MAX] {
        let mut one = members(&[id, 2]);
        let top = Stamp {
            number: (1 << 35) - 1,
            by: NodeId(id),
        };
        let promise: Message<u16> = Message {
            configuration: (1 << 28) - 1,
            body: Body::Promise {
                ballot: top,
                committed: (1 << 49) - 1,
                accepted: top,
                end: (1 << 49) - 1,
                tail: [].into_iter().collect(),
            },
        };
        // The length of a list takes 1 byte, and up to 3.
        let fixed = promise.frame_len(Member::new(id, u32::MAX)) + 2;
        // Voters with long numbers of their lives, until it fits no more.
        let mut refused = 0;
        for more in 0..32 {
            one.voters.truncate(2);
            one.voters
                .extend((3..3 + more).map(|id| Voter::new(Member::new(id, 200))));
            let least = 1 + postcard::to_allocvec(&one).unwrap().len() + fixed;
            for budget in least.max(130) - 3..least.max(130) + 4 {
                one.frame_budget = budget as u16;
                let len = 1 + postcard::to_allocvec(&one).unwrap().len() + fixed;
                match one.check() {
                    Ok(()) => assert!(len <= budget, "{len} bytes in {budget}"),
                    Err(ConfigError::TooLong { len: reported, .. }) => {
                        assert!(len > budget, "{len} bytes in {budget}");
                        assert_eq!(reported, len);
                        refused += 1;
                    }
                    Err(ConfigError::Range(_)) if one.voters.len() > 32 => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
        assert!(refused > 0);
    }
}

/// A state with updates of any length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Note(Vec<u8>);

impl State for Note {
    type Update = Vec<u8>;
    type Outcome = ();

    fn apply(&mut self, update: &Vec<u8>) {
        self.0.clone_from(update);
    }
}

#[test]
fn an_update_has_to_fit_into_a_frame() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut first = members(&[1]);
    first.frame_budget = 127;
    let mut refused = 0;
    for len in 1..120 {
        let node = Replica::new(
            Member::new(1, 1),
            Config::new(),
            first.clone(),
            Note::default(),
        );
        let mut node = Driver::new(node.unwrap());
        let propose = Input::Command(Command::Propose(vec![1; len]));
        match node.step(Time::ZERO, &mut rng, propose, |_| ()) {
            Ok(()) => {
                assert_eq!(refused, 0);
                assert_eq!(node.machine().state().unwrap().0.len(), len);
            }
            Err(Reject::TooLong {
                len: reported,
                room,
            }) => {
                refused += 1;
                assert_eq!(reported, room + refused, "an update of {len} bytes");
                // Kind, proposer, its life, number, first and since, and a length.
                assert_eq!(reported, 7 + len);
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 1);
}

/// An update that has no encoding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("it has none"))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Idle;

impl State for Idle {
    type Update = Unwritable;
    type Outcome = ();

    fn apply(&mut self, _: &Unwritable) {}
}

#[test]
fn an_update_that_cannot_be_encoded_fits_into_no_frame() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let node = Replica::new(Member::new(1, 1), Config::new(), members(&[1]), Idle);
    let mut node = Driver::new(node.unwrap());
    let propose = Input::Command(Command::Propose(Unwritable));
    let refused = node.step(Time::ZERO, &mut rng, propose, |_| ());
    assert!(matches!(refused, Err(Reject::TooLong { .. })));
}

/// The next configuration has shorter frames: waiting proposals that no longer fit are given up.
#[test]
fn what_waits_is_given_up_where_it_fits_no_more() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut next = members(&[1, 2]);
    next.number = 2;
    next.frame_budget = 127;
    let mut given_up = 0;
    let lens = 60..110;
    for len in lens.clone() {
        let first = members(&[1, 2]);
        let me = Member::new(2, 1);
        let node = Replica::new(me, Config::new(), first, Note::default());
        let mut node = Driver::new(node.unwrap());
        let propose = || Input::Command(Command::Propose(vec![1; len]));
        node.step(Time::ZERO, &mut rng, propose(), |_| ()).unwrap();
        let body = Body::Learn {
            after: 0,
            entries: [Entry::Configure(next.clone().into())]
                .into_iter()
                .collect(),
        };
        let from = Member::new(1, 1);
        let configuration = 1;
        let message = Message {
            configuration,
            body,
        };
        let mut is_over = false;
        let learn = Input::Message { from, message };
        node.step(Time::ZERO, &mut rng, learn, |it| {
            is_over |= matches!(it, Effect::Event(Event::Abandoned { number: 1, .. }));
        })
        .unwrap();
        assert_eq!(node.machine().configuration().number, 2);
        assert_eq!(node.machine().waiting(), usize::from(!is_over));
        let waits = node.timers().any(|it| it.0 == Timer::Pending);
        assert_eq!(waits, !is_over, "nothing waits any more");
        // As long as this one, which is proposed in the next configuration.
        let again = node.step(Time::ZERO, &mut rng, propose(), |_| ());
        assert_eq!(again.is_err(), is_over, "an update of {len} bytes");
        given_up += usize::from(is_over);
    }
    assert!(given_up > 0 && given_up < lens.len());
}

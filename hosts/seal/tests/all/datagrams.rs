//! A sealed datagram is opened once, by a holder of a key, and nothing else is opened.

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_core::{NodeId, Time};
use selvedge_seal::{OVERHEAD, Opener, RateLimit, Unopened, overhead};

use crate::{GROUP, KIND, NOW, open, opener, ring, seal, sealer};

proptest! {
    #[test]
    fn what_is_sealed_is_opened_once(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 1..20),
        id in any::<u64>(), epoch in any::<u64>(),
    ) {
        let (mut sealer, mut opener) = (sealer(id, epoch), opener());
        for (sent, frame) in (0..).zip(frames) {
            let datagram = seal(&mut sealer, &frame);
            prop_assert_eq!(datagram.len(), frame.len() + overhead(NodeId(id), sent));
            prop_assert!(overhead(NodeId(id), sent) <= OVERHEAD);
            let mut opened = vec![7; 3];
            prop_assert_eq!(opener.open(KIND, &datagram, NOW, &mut opened), Ok(NodeId(id)));
            prop_assert_eq!(&opened, &frame);
            let again = opener.open(KIND, &datagram, NOW, &mut opened);
            prop_assert_eq!(again, Err(Unopened::Replayed(NodeId(id))));
            prop_assert!(opened.is_empty());
        }
        prop_assert_eq!(opener.senders(), 1);
    }

    /// Each bit of a datagram counts, and no changed datagram makes the original count as seen.
    #[test]
    fn a_changed_or_cut_datagram_is_not_opened(
        at in any::<proptest::sample::Index>(), flip in 1..=u8::MAX,
        cut in any::<proptest::sample::Index>(),
    ) {
        let (mut sealer, mut opener) = (sealer(5, 9), opener());
        let datagram = seal(&mut sealer, b"twenty bytes of frame");
        let mut changed = datagram.clone();
        changed[at.index(datagram.len())] ^= flip;
        prop_assert!(open(&mut opener, &changed).is_err());
        prop_assert!(open(&mut opener, &datagram[..cut.index(datagram.len())]).is_err());
        prop_assert_eq!(opener.senders(), 0);
        prop_assert_eq!(open(&mut opener, &datagram), Ok(NodeId(5)));
        prop_assert!(open(&mut opener, &changed).is_err());
        prop_assert_eq!(open(&mut opener, &seal(&mut sealer, b"next")), Ok(NodeId(5)));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut opener = opener();
        prop_assert!(open(&mut opener, &bytes).is_err());
        let mut alike = vec![0xA1, KIND];
        alike.extend(bytes);
        prop_assert!(open(&mut opener, &alike).is_err());
        prop_assert_eq!(opener.senders(), 0);
    }
}

/// The acts of a network and its nodes.
#[derive(Clone, Debug)]
enum Step {
    /// A sender seals this number of datagrams, which are on the wire from now on.
    Seal(usize, usize),
    /// A datagram on the wire arrives; it stays there to arrive again.
    Arrive(proptest::sample::Index),
    /// A datagram on the wire arrives changed.
    Forge(proptest::sample::Index, proptest::sample::Index),
    /// A sender restarts.
    Restart(usize),
    /// The opener gets another ring.
    Rotate(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<proptest::sample::Index>;
    prop_oneof![
        3 => (0_usize..2, prop_oneof![4 => 1_usize..4, 1 => 1_000_usize..1_100])
            .prop_map(|(who, count)| Step::Seal(who, count)),
        6 => index().prop_map(Step::Arrive),
        2 => (index(), index()).prop_map(|(which, at)| Step::Forge(which, at)),
        1 => (0_usize..2).prop_map(Step::Restart),
        1 => (0_usize..3).prop_map(Step::Rotate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The opener opens exactly the datagrams that a plain model of it allows, in any order of arrival.
    #[test]
    fn an_opener_opens_what_its_model_allows(steps in proptest::collection::vec(step(), 1..80)) {
        let rings: [&[u8]; 3] = [&[1], &[2, 1], &[2]];
        let (mut senders, mut opener) = ([sealer(0, 1), sealer(1, 1)], opener());
        let mut epochs = [1_u64; 2];
        let mut sealed = [0_u64; 2];
        // Sender, epoch, counter, bytes.
        let mut wire: Vec<(usize, u64, u64, Vec<u8>)> = Vec::new();
        // The model: true if key 1 is in the ring; the epoch and the counters of each sender.
        let mut has_key = true;
        let mut received: [Option<(u64, BTreeSet<u64>)>; 2] = [None, None];
        for step in steps {
            match step {
                Step::Seal(who, count) => {
                    for _ in 0..count {
                        let datagram = seal(&mut senders[who], &sealed[who].to_be_bytes());
                        wire.push((who, epochs[who], sealed[who], datagram));
                        sealed[who] += 1;
                    }
                }
                Step::Restart(who) => {
                    epochs[who] += 1;
                    sealed[who] = 0;
                    senders[who] = sealer(who as u64, epochs[who]);
                }
                Step::Rotate(ring_number) => {
                    opener.rotate(ring(rings[ring_number]));
                    has_key = ring_number < 2;
                }
                Step::Arrive(_) | Step::Forge(..) if wire.is_empty() => {}
                Step::Forge(which, at) => {
                    let mut forged = which.get(&wire).3.clone();
                    let at = at.index(forged.len());
                    forged[at] ^= 0x10;
                    prop_assert!(open(&mut opener, &forged).is_err());
                }
                Step::Arrive(which) => {
                    let (who, epoch, counter, datagram) = which.get(&wire);
                    let id = NodeId(*who as u64);
                    let known = received[*who].as_ref().filter(|it| it.0 >= *epoch);
                    let last = known.and_then(|it| it.1.last().copied());
                    let expected = match known {
                        Some((latest, _)) if latest > epoch => Err(Unopened::OldEpoch(id)),
                        Some(_) if last >= Some(counter + 1_024) => Err(Unopened::TooLate(id)),
                        Some((_, seen)) if seen.contains(counter) => Err(Unopened::Replayed(id)),
                        Some(_) | None if has_key => Ok(id),
                        Some(_) | None => Err(Unopened::WrongKey),
                    };
                    prop_assert_eq!(open(&mut opener, datagram), expected);
                    if expected.is_ok() {
                        let entry = received[*who].get_or_insert_default();
                        if entry.0 < *epoch {
                            *entry = (*epoch, BTreeSet::new());
                        }
                        entry.1.insert(*counter);
                    }
                }
            }
        }
    }
}

#[test]
fn only_the_same_key_group_and_protocol_open() {
    let datagram = seal(&mut sealer(5, 1), b"frame");
    let refused = |keys: &[u8], group: &str, kind| {
        let mut opener = Opener::new(ring(keys), group.to_owned(), 10);
        opener.open(kind, &datagram, NOW, &mut Vec::new())
    };
    assert_eq!(refused(&[2, 3], GROUP, KIND), Err(Unopened::WrongKey));
    assert_eq!(refused(&[1], "mesh2", KIND), Err(Unopened::WrongKey));
    assert_eq!(refused(&[1], GROUP, 2), Err(Unopened::NotSealed));
    assert_eq!(refused(&[3, 1], GROUP, KIND), Ok(NodeId(5)));
    // A frame that is not sealed at all.
    let plain = [1, KIND, 5, 0, 0, 0];
    assert_eq!(open(&mut opener(), &plain), Err(Unopened::NotSealed));
}

/// Numbers are as short as possible: a number longer than 64 bits is invalid.
#[test]
fn heads_are_short_and_numbers_that_are_none_are_refused() {
    assert_eq!(overhead(NodeId(5), 0), 29);
    assert_eq!(overhead(NodeId(127), 127), 29);
    assert_eq!(overhead(NodeId(128), 16_383), 31);
    assert_eq!(overhead(NodeId(u64::MAX), u64::MAX), OVERHEAD);
    let good = seal(&mut sealer(5, 1), b"frame");
    let with_id = |id: &[u8]| [&good[..3], id, &good[4..]].concat();
    assert_eq!(open(&mut opener(), &with_id(&[5])), Ok(NodeId(5)));
    // 5 in a longer form is read as 5, and differs from the sealed bytes.
    assert_eq!(
        open(&mut opener(), &with_id(&[0x85, 0])),
        Err(Unopened::WrongKey)
    );
    for none in [
        &[0xFF; 10][..],
        &[0xFF; 11],
        &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
    ] {
        assert_eq!(
            open(&mut opener(), &with_id(none)),
            Err(Unopened::NotSealed)
        );
    }
    for cut in 0..29 {
        assert_eq!(
            open(&mut opener(), &good[..cut]),
            Err(Unopened::NotSealed),
            "{cut}"
        );
    }
}

#[test]
fn datagrams_may_overtake_each_other_within_the_window() {
    let (mut sealer, mut opener) = (sealer(5, 1), opener());
    let datagrams: Vec<_> = (0..3_000_u32)
        .map(|number| seal(&mut sealer, &number.to_be_bytes()))
        .collect();
    assert_eq!(open(&mut opener, &datagrams[2_000]), Ok(NodeId(5)));
    for (number, datagram) in datagrams.iter().enumerate().take(2_000).rev() {
        let expected = if number > 2_000 - 1_024 {
            Ok(NodeId(5))
        } else {
            Err(Unopened::TooLate(NodeId(5)))
        };
        assert_eq!(open(&mut opener, datagram), expected, "{number}");
    }
    for datagram in &datagrams[..=2_000] {
        assert!(open(&mut opener, datagram).is_err());
    }
    for datagram in &datagrams[2_001..] {
        assert_eq!(open(&mut opener, datagram), Ok(NodeId(5)));
    }
}

/// The window moves only after the tag was verified: a forged counter far ahead changes nothing.
#[test]
fn a_forged_counter_does_not_move_the_window() {
    let (mut sealer, mut opener) = (sealer(5, 1), opener());
    let first = seal(&mut sealer, b"first");
    assert_eq!(
        open(&mut opener, &seal(&mut sealer, b"second")),
        Ok(NodeId(5))
    );
    for at in [4, 12] {
        // The highest byte of the epoch, and the counter.
        let mut forged = seal(&mut sealer, b"forged");
        forged[at] = 0x7F;
        assert_eq!(open(&mut opener, &forged), Err(Unopened::WrongKey));
    }
    assert_eq!(open(&mut opener, &first), Ok(NodeId(5)));
}

#[test]
fn memory_is_bounded_by_the_limit() {
    let mut opener = Opener::new(ring(&[1]), GROUP.to_owned(), 8);
    for id in 0..100 {
        let datagram = seal(&mut sealer(id, 1), b"one of many");
        let now = Time(id);
        assert_eq!(
            opener.open(KIND, &datagram, now, &mut Vec::new()),
            Ok(NodeId(id))
        );
    }
    assert_eq!((opener.senders(), opener.forgotten()), (8, 92));
    // The latest are remembered.
    let again = seal(&mut sealer(99, 1), b"one of many");
    assert_eq!(
        open(&mut opener, &again),
        Err(Unopened::Replayed(NodeId(99)))
    );
}

#[test]
fn a_sender_is_limited_and_others_are_not() {
    let mut opener = opener();
    opener.set_rate(Some(RateLimit {
        per_second: 10,
        burst: 5,
    }));
    let (mut loud, mut quiet) = (sealer(1, 1), sealer(2, 1));
    let mut received = 0;
    for _ in 0..100 {
        received += u32::from(open(&mut opener, &seal(&mut loud, b"!")).is_ok());
    }
    assert_eq!(received, 5);
    assert_eq!(
        open(&mut opener, &seal(&mut loud, b"!")),
        Err(Unopened::TooMany(NodeId(1)))
    );
    assert_eq!(open(&mut opener, &seal(&mut quiet, b".")), Ok(NodeId(2)));
}

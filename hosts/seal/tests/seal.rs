//! A sealed datagram is opened once, by a holder of a key, and nothing else is opened.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::std_instead_of_alloc,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeSet;

use proptest::prelude::*;
use selvedge_core::{NodeId, Time};
use selvedge_seal::{
    Epoch, Key, KeyError, KeyFileError, KeyName, Keyring, NotAName, OVERHEAD, Opener, RateLimit,
    Sealer, Unopened, create_key_file, overhead, read_group_key_file, read_key_file,
};

const KIND: u8 = 1;
const GROUP: &str = "mesh";
const NOW: Time = Time(1_000_000);

fn ring(keys: &[u8]) -> Keyring {
    let lines = keys
        .iter()
        .map(|key| format!("{key:02x}").repeat(32) + "\n");
    Keyring::parse(&lines.collect::<String>()).unwrap()
}

fn sealer(id: u64, epoch: u64) -> Sealer {
    Sealer::new(&ring(&[1]), GROUP, NodeId(id), Epoch(epoch))
}

fn opener() -> Opener {
    Opener::new(ring(&[1]), GROUP.to_owned(), 100)
}

fn seal(sealer: &mut Sealer, frame: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    sealer.seal(KIND, frame, &mut datagram).unwrap();
    datagram
}

fn open(opener: &mut Opener, datagram: &[u8]) -> Result<NodeId, Unopened> {
    opener.open(KIND, datagram, NOW, &mut Vec::new())
}

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
fn a_later_start_ends_the_former_one() {
    let (mut former, mut later, mut opener) = (sealer(5, 10), sealer(5, 11), opener());
    let recorded = seal(&mut former, b"recorded");
    assert_eq!(open(&mut opener, &recorded), Ok(NodeId(5)));
    assert_eq!(
        open(&mut opener, &seal(&mut later, b"again here")),
        Ok(NodeId(5))
    );
    for old in [recorded, seal(&mut former, b"new, but of the former start")] {
        assert_eq!(open(&mut opener, &old), Err(Unopened::OldEpoch(NodeId(5))));
    }
    assert_eq!(opener.senders(), 1);
}

/// A clock that once was a year ahead, or a holder of a key that sends an epoch of next year, does not mute
/// the node that starts at present.
#[test]
fn an_epoch_ahead_of_time_does_not_mute_its_sender() {
    const NOW: u64 = 1_700_000_000_000_000;
    const DAY: u64 = 24 * 3_600 * 1_000_000;
    let start = |since_1970: u64| sealer(5, Epoch::new(since_1970, 0).0);
    let received = |opener: &mut Opener, datagram: &[u8], now: u64| {
        opener.open(KIND, datagram, Time(now), &mut Vec::new())
    };
    let (mut here, mut opener) = (start(NOW - DAY), opener());
    opener.set_clock(Time(0), NOW);
    assert_eq!(
        received(&mut opener, &seal(&mut here, b"here"), 1),
        Ok(NodeId(5))
    );
    let mut ahead = start(NOW + 30 * DAY);
    let first = seal(&mut ahead, b"of next month");
    assert_eq!(received(&mut opener, &first, 2), Ok(NodeId(5)));
    assert_eq!(
        received(&mut opener, &seal(&mut here, b"still here"), 3),
        Ok(NodeId(5))
    );
    let replayed = Err(Unopened::Replayed(NodeId(5)));
    assert_eq!(received(&mut opener, &first, 4), replayed);
    // A clock that was corrected: the next start is earlier than the start before it.
    let mut corrected = start(NOW + 1_000_000);
    let datagram = seal(&mut corrected, b"on time");
    assert_eq!(received(&mut opener, &datagram, 5), Ok(NodeId(5)));
    // When our clock has reached the wrong one, that start does not come back.
    let late = seal(&mut ahead, b"recorded, and kept for a month");
    let old = Err(Unopened::OldEpoch(NodeId(5)));
    assert_eq!(received(&mut opener, &late, 31 * DAY), old);
    let datagram = seal(&mut corrected, b"on time");
    assert_eq!(received(&mut opener, &datagram, 31 * DAY), Ok(NodeId(5)));
    // A minute is within the tolerance.
    assert_eq!(
        received(&mut opener, &seal(&mut here, b"of yesterday"), 31 * DAY),
        old
    );
    let mut soon = start(NOW + 31 * DAY + 59_000_000);
    assert_eq!(
        received(&mut opener, &seal(&mut soon, b"soon"), 31 * DAY),
        Ok(NodeId(5))
    );
    let datagram = seal(&mut corrected, b"too late");
    assert_eq!(received(&mut opener, &datagram, 31 * DAY + 1), old);
}

/// A node starts with a clock that is an hour ahead, is corrected and restarts. A recording of that hour
/// reaches a node that joined later, when its epoch is not ahead any more: it does not mute the node that is
/// there. Nor does a datagram of an earlier start that was held back end a start that is ahead.
#[test]
fn a_recording_of_a_wrong_clock_does_not_mute_its_sender() {
    const NOW: u64 = 1_700_000_000_000_000;
    const HOUR: u64 = 3_600 * 1_000_000;
    let start = |since_1970: u64| sealer(5, Epoch::new(since_1970, 0).0);
    let received = |opener: &mut Opener, datagram: &[u8], now: u64| {
        opener.open(KIND, datagram, Time(now), &mut Vec::new())
    };
    let (ok, old) = (Ok(NodeId(5)), Err(Unopened::OldEpoch(NodeId(5))));

    let (mut ahead, mut corrected) = (start(NOW + HOUR), start(NOW + 1_000_000));
    let (recorded, again) = (seal(&mut ahead, b"one"), seal(&mut ahead, b"two"));
    let mut joined = opener();
    joined.set_clock(Time(0), NOW);
    for seconds in (10..7_200).step_by(10) {
        let datagram = seal(&mut corrected, b"here");
        assert_eq!(received(&mut joined, &datagram, seconds * 1_000_000), ok);
    }
    assert_eq!(received(&mut joined, &recorded, 2 * HOUR), ok, "once");
    let replayed = Err(Unopened::Replayed(NodeId(5)));
    assert_eq!(received(&mut joined, &recorded, 2 * HOUR), replayed);
    let datagram = seal(&mut corrected, b"still here");
    assert_eq!(received(&mut joined, &datagram, 2 * HOUR), ok, "not mute");
    // Its next start is at a right time, and ends both.
    let mut anew = start(NOW + 2 * HOUR + 1_000_000);
    let datagram = seal(&mut anew, b"anew");
    assert_eq!(received(&mut joined, &datagram, 2 * HOUR + 2_000_000), ok);
    for former in [again, seal(&mut corrected, b"late")] {
        let now = 2 * HOUR + 3_000_000;
        assert_eq!(received(&mut joined, &former, now), old);
    }

    let (mut former, mut ahead) = (start(NOW - HOUR), start(NOW + HOUR));
    let mut opener = opener();
    opener.set_clock(Time(0), NOW);
    assert_eq!(received(&mut opener, &seal(&mut former, b"early"), 1), ok);
    let held_back = seal(&mut former, b"held back");
    assert_eq!(received(&mut opener, &seal(&mut ahead, b"ahead"), 2), ok);
    assert_eq!(received(&mut opener, &held_back, 3), ok);
    let datagram = seal(&mut ahead, b"still here");
    assert_eq!(received(&mut opener, &datagram, 4), ok, "not mute");
}

/// If our own clock is behind, all nodes are ahead, and their datagrams are opened as without a clock.
#[test]
fn a_node_whose_clock_is_behind_hears_everybody() {
    let mut opener = opener();
    opener.set_clock(Time(0), 0);
    let (mut former, mut later) = (sealer(5, u64::MAX / 2), sealer(5, u64::MAX / 2 + 1));
    let recorded = seal(&mut former, b"recorded");
    assert_eq!(open(&mut opener, &recorded), Ok(NodeId(5)));
    assert_eq!(
        open(&mut opener, &recorded),
        Err(Unopened::Replayed(NodeId(5)))
    );
    assert_eq!(
        open(&mut opener, &seal(&mut later, b"again")),
        Ok(NodeId(5))
    );
    assert_eq!(
        open(&mut opener, &recorded),
        Err(Unopened::OldEpoch(NodeId(5)))
    );
}

/// Two nodes with one id have two epochs, so no nonce is used twice; datagrams of the later start are opened.
#[test]
fn of_two_nodes_with_one_id_the_later_start_is_heard() {
    let epochs: BTreeSet<Epoch> = (0..4_096)
        .map(|random| Epoch::new(1_700_000_000_000_000, random))
        .collect();
    assert_eq!(
        epochs.len(),
        4_096,
        "starts in one microsecond are told apart"
    );
    assert!(epochs.last().copied() < Some(Epoch::new(1_700_000_000_000_001, 0)));
    let (mut one, mut other, mut opener) = (sealer(5, 10), sealer(5, 11), opener());
    let mut one_sealed = Vec::new();
    let mut other_sealed = Vec::new();
    for _ in 0..50 {
        one_sealed.push(seal(&mut one, b"the same words"));
        other_sealed.push(seal(&mut other, b"the same words"));
    }
    // The same counters and words, under different keys: with one key, and so one nonce twice, the secret
    // parts between head and tag would be equal.
    let head = overhead(NodeId(5), 0) - 16;
    let secret = |datagram: &[u8]| datagram[head..datagram.len() - 16].to_vec();
    assert_eq!(secret(&one_sealed[0]).len(), 14);
    assert_ne!(secret(&one_sealed[0]), secret(&other_sealed[0]));
    assert_eq!(open(&mut opener, &one_sealed[0]), Ok(NodeId(5)));
    for datagram in &other_sealed {
        assert_eq!(open(&mut opener, datagram), Ok(NodeId(5)));
    }
    for datagram in &one_sealed {
        assert_eq!(
            open(&mut opener, datagram),
            Err(Unopened::OldEpoch(NodeId(5)))
        );
    }
}

/// The new key is put last everywhere, then first everywhere, then the old key is removed: all along, node by
/// node, each node opens the datagrams of each other.
#[test]
fn keys_are_rotated_without_a_gap() {
    let stages: [&[u8]; 4] = [&[1], &[1, 2], &[2, 1], &[2]];
    let mut nodes: Vec<(Sealer, Opener)> = (0..3).map(|id| (sealer(id, 1), opener())).collect();
    let all_hear_all = |nodes: &mut Vec<(Sealer, Opener)>| {
        for from in 0..nodes.len() {
            let datagram = seal(&mut nodes[from].0, b"here");
            for (to, node) in nodes.iter_mut().enumerate() {
                let received = open(&mut node.1, &datagram);
                assert_eq!(received, Ok(NodeId(from as u64)), "{from} to {to}");
            }
        }
    };
    all_hear_all(&mut nodes);
    for stage in &stages[1..] {
        for node in 0..nodes.len() {
            nodes[node].0.rotate(&ring(stage));
            nodes[node].1.rotate(ring(stage));
            all_hear_all(&mut nodes);
        }
    }
    // A node that has only the old key is excluded.
    let left_behind = seal(&mut sealer(9, 1), b"hello?");
    assert_eq!(open(&mut nodes[0].1, &left_behind), Err(Unopened::WrongKey));
}

/// A known session uses the ring as it is now, and counters that were seen stay seen.
#[test]
fn a_key_that_was_taken_out_opens_nothing_any_more() {
    let (mut sealer, mut opener) = (sealer(5, 1), opener());
    let seen = seal(&mut sealer, b"seen");
    assert_eq!(open(&mut opener, &seen), Ok(NodeId(5)));
    opener.rotate(ring(&[2]));
    let late = seal(&mut sealer, b"late");
    assert_eq!(open(&mut opener, &late), Err(Unopened::WrongKey));
    opener.rotate(ring(&[2, 1]));
    assert_eq!(open(&mut opener, &late), Ok(NodeId(5)));
    assert_eq!(open(&mut opener, &seen), Err(Unopened::Replayed(NodeId(5))));
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

#[test]
fn a_ring_is_read_and_bad_lines_are_named() {
    let key = "0f".repeat(32);
    let ring = format!("# ours\n\n  {key}  # since spring\n{}\n", "AA".repeat(32));
    assert!(Keyring::parse(&ring).is_ok());
    let line = |line| Err(KeyError::Line { line });
    assert_eq!(Keyring::parse(&format!("{key}\n{}", &key[1..])), line(2));
    assert_eq!(Keyring::parse(&format!("#\n{key}00")), line(2));
    assert_eq!(Keyring::parse("zz"), line(1));
    assert_eq!(Keyring::parse("# nothing\n"), Err(KeyError::None));
    let many = format!("{key}\n").repeat(9);
    assert_eq!(Keyring::parse(&many), Err(KeyError::TooMany { limit: 8 }));
}

#[test]
fn a_key_is_not_shown() {
    let ring = ring(&[0x17]);
    let shown = format!("{ring:?} {:?}", Opener::new(ring.clone(), String::new(), 1));
    let shown = shown + &format!("{:?}", Sealer::new(&ring, "", NodeId(1), Epoch(1)));
    for bytes in ["1717", "23, 23", "1, 7"] {
        assert!(!shown.contains(bytes), "{shown}");
    }
}

#[cfg(unix)]
#[test]
fn a_key_file_is_made_for_one_reader_and_read_only_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("selvedge-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mesh.key");
    create_key_file(&path).unwrap();
    let ring = read_key_file(&path).unwrap();
    assert_eq!(ring, read_key_file(&path).unwrap());
    assert!(matches!(
        create_key_file(&path),
        Err(KeyFileError::Create { .. })
    ));
    for mode in [0o640, 0o604, 0o620] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = read_key_file(&path).unwrap_err();
        assert!(matches!(refused, KeyFileError::Permissions { .. }));
        assert!(refused.to_string().contains("chmod 600"), "{refused}");
    }
    for (mode, is_taken) in [
        (0o400, true),
        (0o440, true),
        (0o640, true),
        (0o660, false),
        (0o650, false),
        (0o644, false),
    ] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        match read_group_key_file(&path) {
            Ok(read) => assert!(is_taken && read == ring, "{mode:03o}"),
            Err(refused) => {
                assert!(!is_taken, "{refused}");
                assert!(refused.to_string().contains("chmod 640"), "{refused}");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(
        read_key_file(&path),
        Err(KeyFileError::Missing { .. })
    ));
}

#[test]
fn a_name_of_a_key_is_read_as_it_is_shown() {
    let key = Key::random().unwrap();
    let name = key.name();
    assert_eq!(name.to_string().parse(), Ok(name));
    assert_eq!(Keyring::of(key).names().collect::<Vec<_>>(), [name]);
    for text in ["", "0123456", "012345678", "0123456g"] {
        assert_eq!(text.parse::<KeyName>(), Err(NotAName), "{text}");
    }
}

#[test]
fn an_epoch_is_later_than_the_former_one_whatever_the_clock_shows() {
    let second = 1_000_000;
    let now = 1_800_000_000 * second;
    let at = |micros, former| Epoch::at(micros, former).unwrap();
    let epoch = at(now, None);
    assert_eq!(epoch.0 >> 12, now);
    // The clock is right, so the former start does not count.
    assert_eq!(at(now + 1, Some(epoch)).0 >> 12, now + 1);
    let mut last = epoch;
    for _ in 0..100 {
        let next = at(now - 3_600 * second, Some(last));
        let step = (next.0 >> 12) - (last.0 >> 12);
        assert!((1..=1_048_577).contains(&step), "{step}");
        last = next;
    }
    // Two copies of what a node has stored.
    assert_ne!(at(0, Some(epoch)), at(0, Some(epoch)));
    assert_eq!(at(now, Some(Epoch(u64::MAX))).0 >> 12, now);
}

#[test]
fn a_start_in_the_far_future_does_not_stay() {
    let day = 86_400_000_000;
    let now = 1_800_000_000_000_000;
    let at = |micros, former| Epoch::at(micros, Some(former)).unwrap();
    let wrong = Epoch::new(now + 25_000 * day, 0);
    let right = at(now, wrong);
    assert_eq!(right.0 >> 12, now);
    // The former clock may be the right one.
    for (now, ahead) in [(now, 3_650 * day), (day, now)] {
        let former = Epoch::new(now + ahead, 0);
        assert!(at(now, former) > former, "{now} {ahead}");
    }
    // Who received that start goes on with the present one.
    let keyring = Keyring::of(Key::random().unwrap());
    let mut opener = Opener::new(keyring.clone(), "group".to_owned(), 10);
    opener.set_clock(Time::ZERO, now);
    let (mut datagram, mut frame) = (Vec::new(), Vec::new());
    for epoch in [wrong, right] {
        let mut sealer = Sealer::new(&keyring, "group", NodeId(7), epoch);
        sealer.seal(1, b"good day", &mut datagram).unwrap();
        let opened = opener.open(1, &datagram, Time::ZERO, &mut frame);
        assert_eq!(opened, Ok(NodeId(7)));
    }
    assert_eq!(opener.epoch(NodeId(7)), Some(right));
}

//! Starts of a node, and clocks that are wrong.

use std::collections::BTreeSet;

use selvedge_core::{NodeId, Time};
use selvedge_seal::{Epoch, Key, Keyring, Opener, Sealer, Unopened, overhead};

use crate::{KIND, open, opener, seal, sealer};

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

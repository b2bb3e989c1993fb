//! Datagrams at an opener: real ones, changed ones, and bytes that no node sealed.

use core::iter;

use selvedge_core::{NodeId, Time};
use selvedge_seal::{Epoch, Keyring, Opener, Sealer};

/// The kind of the frames.
const KIND: u8 = 1;
const SENDERS: u64 = 3;
/// The number of senders that the opener remembers: one fewer than all.
const LIMIT: usize = 2;
/// Frames of each sender.
const FRAMES: u8 = 4;

/// Delivers datagrams to an opener, as `data` chooses, four bytes at a time: a sealed datagram, a
/// datagram with a changed byte, a cut datagram, or the rest of `data`.
///
/// Nothing panics, and only a sealed datagram is opened, and gives its frame and its sender. It is
/// opened once while the opener remembers its sender.
///
/// # Panics
/// When one of these does not hold.
pub fn sealed(data: &[u8]) {
    let keyring = keyring("07");
    assert!(keyring.is_some(), "a key of 32 bytes");
    let Some(keyring) = keyring else {
        return;
    };
    let sent: Vec<_> = (0..SENDERS)
        .flat_map(|it| sealed_by(&keyring, NodeId(it)))
        .collect();
    let mut opener = Opener::new(keyring, "mesh".into(), LIMIT);
    opener.set_clock(Time::ZERO, SINCE_1970);
    let mut opened = vec![false; sent.len()];
    let mut ever_opened = opened.clone();
    let mut frame = Vec::new();
    for (now, chunk) in (0..).zip(data.chunks(4)) {
        let &[op, which, at, change] = chunk else {
            break;
        };
        let place = usize::from(which) % sent.len();
        let Some((_, _, datagram)) = sent.get(place) else {
            break;
        };
        let datagram = match op % 4 {
            0 => datagram.clone(),
            1 => changed(datagram, at, change),
            2 => datagram.iter().copied().take(at.into()).collect(),
            _ => data.to_vec(),
        };
        let forgotten = opener.forgotten();
        let result = opener.open(KIND, &datagram, Time(now), &mut frame);
        assert!(opener.senders() <= LIMIT, "it remembers too many senders");
        if opener.forgotten() != forgotten {
            // By its contract the opener opens frames of a forgotten sender again.
            opened.fill(false);
        }
        let Ok(by) = result else {
            let was_opened = ever_opened.get(place).is_some_and(|it| *it);
            assert!(op % 4 != 0 || was_opened, "a sealed datagram is refused");
            assert!(frame.is_empty(), "a frame of a datagram that was refused");
            continue;
        };
        // Also where `data` is a sealed datagram, which a fuzzer finds out.
        let place = sent.iter().position(|it| it.2 == datagram);
        let from = place.and_then(|it| sent.get(it));
        assert!(
            from.is_some_and(|it| (it.0, &it.1) == (by, &frame)),
            "it opened a datagram that was not sealed"
        );
        if let Some(it) = place.and_then(|it| ever_opened.get_mut(it)) {
            *it = true;
        }
        let before = place.and_then(|it| opened.get_mut(it));
        assert_eq!(
            before.map(|it| core::mem::replace(it, true)),
            Some(false),
            "opened twice"
        );
    }
}

/// The start of all senders, in microseconds since 1970.
const SINCE_1970: u64 = 1_700_000_000_000_000;

fn keyring(byte: &str) -> Option<Keyring> {
    Keyring::parse(&byte.repeat(32)).ok()
}

/// The sender, the frame and the datagram of each frame of a node.
fn sealed_by(
    keyring: &Keyring,
    sender: NodeId,
) -> impl Iterator<Item = (NodeId, Vec<u8>, Vec<u8>)> {
    let mut sealer = Sealer::new(keyring, "mesh", sender, Epoch::new(SINCE_1970, sender.0));
    let mut number = 0;
    iter::from_fn(move || {
        if number == FRAMES {
            return None;
        }
        let frame = vec![number; usize::from(number) * 5];
        number += 1;
        let mut datagram = Vec::new();
        sealer.seal(KIND, &frame, &mut datagram).ok()?;
        Some((sender, frame, datagram))
    })
}

/// The datagram with another byte at a place.
fn changed(datagram: &[u8], at: u8, change: u8) -> Vec<u8> {
    let mut datagram = datagram.to_vec();
    let at = usize::from(at) % datagram.len().max(1);
    if let Some(byte) = datagram.get_mut(at) {
        *byte ^= change.max(1);
    }
    datagram
}

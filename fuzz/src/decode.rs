//! Frames as they come from the network: anything at all.

use core::fmt::Debug;

use selvedge_camera as camera;
use selvedge_core::Member;
use selvedge_core::wire::{Envelope, HEADER_LEN, VERSION, member_len};
use selvedge_membership as membership;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Reads `data` as a frame of any protocol.
///
/// Whatever it is, reading it ends without a panic. If it is a frame:
/// - writing it again gives a frame that reads as an equal value;
/// - that frame is no longer than `data` was, for it is the shortest form;
/// - the message foretells its length.
///
/// # Panics
/// When one of these does not hold.
pub fn decode(data: &[u8]) {
    let Some((&[version, kind], _)) = data.split_first_chunk::<HEADER_LEN>() else {
        return;
    };
    match (version, kind) {
        (VERSION, membership::KIND) => check(data, kind, membership::Message::frame_len),
        (VERSION, camera::KIND) => check(data, kind, camera_len),
        _ => {}
    }
}

/// Camera counts a message alone.
fn camera_len(message: &camera::Message, from: Member) -> usize {
    HEADER_LEN + member_len(from) + message.encoded_len()
}

fn check<M: DeserializeOwned + Serialize + Debug + PartialEq>(
    data: &[u8],
    kind: u8,
    foretold: impl Fn(&M, Member) -> usize,
) {
    let Some(envelope) = open::<M>(data, kind) else {
        return;
    };
    let again = seal(kind, &envelope);
    assert_eq!(
        open(&again, kind).as_ref(),
        Some(&envelope),
        "written again it reads differently"
    );
    assert!(
        again.len() <= data.len(),
        "{} bytes grew to {}",
        data.len(),
        again.len()
    );
    assert_eq!(
        foretold(&envelope.message, envelope.from),
        again.len(),
        "the foretold length and the encoder disagree"
    );
}

/// The envelope in a whole frame; `None` for another version or kind, and for bytes behind it.
fn open<M: DeserializeOwned>(frame: &[u8], kind: u8) -> Option<Envelope<M>> {
    let (header, body) = frame.split_at_checked(HEADER_LEN)?;
    if header != [VERSION, kind] {
        return None;
    }
    let (envelope, rest) = postcard::take_from_bytes(body).ok()?;
    rest.is_empty().then_some(envelope)
}

/// The frame around an envelope.
pub(crate) fn seal<M: Serialize>(kind: u8, envelope: &Envelope<M>) -> Vec<u8> {
    // Writing to a vector fails only when a type cannot be written at all: the frame is then
    // empty, and the checks above find it.
    postcard::to_extend(envelope, vec![VERSION, kind]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    fn is_frame(data: &[u8]) -> bool {
        open::<membership::Message>(data, membership::KIND).is_some()
            || open::<camera::Message>(data, camera::KIND).is_some()
    }

    #[test]
    fn every_seed_is_a_frame() {
        let mut counts = [0; 2];
        for seed in seeds().filter(|seed| seed.target == "decode" && !seed.name.starts_with("bad-"))
        {
            assert!(is_frame(&seed.bytes), "{} is no frame", seed.name);
            let is_camera = seed.bytes.get(1) == Some(&camera::KIND);
            counts[usize::from(is_camera)] += 1;
        }
        assert!(
            counts[0] >= 12 && counts[1] >= 6,
            "{counts:?} seeds: at least one for each kind of message"
        );
    }

    #[test]
    fn a_frame_that_is_cut_or_continued_is_refused() {
        for seed in seeds().filter(|seed| seed.target == "decode") {
            for len in 0..seed.bytes.len() {
                let cut = &seed.bytes[..len];
                assert!(!is_frame(cut), "{} cut to {len}", seed.name);
            }
            let longer = [&seed.bytes[..], &[0]].concat();
            assert!(!is_frame(&longer), "{} and one byte", seed.name);
        }
    }
}

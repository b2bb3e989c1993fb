//! Frames as they come from the network: anything at all.

use core::fmt::Debug;

use selvedge_camera::{self as camera, estimate, sections};
use selvedge_celect as celect;
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
        (VERSION, camera::KIND) => check(data, kind, around(camera::Message::encoded_len)),
        (VERSION, celect::KIND) => check(data, kind, around(celect::Message::encoded_len)),
        (VERSION, sections::KIND) => check(data, kind, around(sections::Message::encoded_len)),
        (VERSION, estimate::KIND) => check(data, kind, around(estimate::Message::wire_len)),
        _ => {}
    }
}

/// The length of a frame where a message foretells its own alone.
fn around<M>(message_len: impl Fn(&M) -> usize) -> impl Fn(&M, Member) -> usize {
    move |message, from| HEADER_LEN + member_len(from) + message_len(message)
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
    use crate::{Seed, seeds};

    fn is_frame(data: &[u8]) -> bool {
        open::<membership::Message>(data, membership::KIND).is_some()
            || open::<camera::Message>(data, camera::KIND).is_some()
            || open::<celect::Message>(data, celect::KIND).is_some()
            || open::<sections::Message>(data, sections::KIND).is_some()
            || open::<estimate::Message>(data, estimate::KIND).is_some()
    }

    #[test]
    fn every_seed_is_a_frame() {
        let frames: Vec<_> = seeds()
            .filter(|seed| seed.target == "decode" && !seed.name.starts_with("bad-"))
            .collect();
        for frame in &frames {
            assert!(is_frame(&frame.bytes), "{} is no frame", frame.name);
        }
        for (kind, least) in [
            (membership::KIND, 12),
            (camera::KIND, 26),
            (celect::KIND, 10),
            (sections::KIND, 26),
            (estimate::KIND, 4),
        ] {
            let is_of_it = |seed: &&Seed| seed.bytes.get(1) == Some(&kind);
            let count = frames.iter().filter(is_of_it).count();
            assert!(
                count >= least,
                "{count} seeds of kind {kind}, too few for each kind of message"
            );
        }
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

//! Frames as they come from the network: anything at all.

use selvedge_core::wire::{Envelope, HEADER_LEN, VERSION};
use selvedge_membership::{KIND, Message};

/// Reads `data` as a membership frame.
///
/// Whatever it is, reading it ends without a panic. If it is a frame:
/// - writing it again gives a frame that reads as an equal value;
/// - that frame is no longer than `data` was, for it is the shortest form;
/// - [`Message::frame_len`] foretells its length.
///
/// # Panics
/// When one of these does not hold.
pub fn decode(data: &[u8]) {
    let Some(envelope) = open(data) else {
        return;
    };
    let again = seal(&envelope);
    assert_eq!(
        open(&again).as_ref(),
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
        envelope.message.frame_len(envelope.from),
        again.len(),
        "frame_len and the encoder disagree"
    );
}

/// The envelope in a whole frame; `None` for another version or kind, and for bytes behind it.
fn open(frame: &[u8]) -> Option<Envelope<Message>> {
    let (header, body) = frame.split_at_checked(HEADER_LEN)?;
    if header != [VERSION, KIND] {
        return None;
    }
    let (envelope, rest) = postcard::take_from_bytes(body).ok()?;
    rest.is_empty().then_some(envelope)
}

/// The frame around an envelope.
pub(crate) fn seal(envelope: &Envelope<Message>) -> Vec<u8> {
    // Writing to a vector fails only when a type cannot be written at all: the frame is then
    // empty, and the checks above find it.
    postcard::to_extend(envelope, vec![VERSION, KIND]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_frame() {
        let mut count = 0;
        for seed in seeds().filter(|seed| seed.target == "decode" && !seed.name.starts_with("bad-"))
        {
            assert!(open(&seed.bytes).is_some(), "{} is no frame", seed.name);
            count += 1;
        }
        assert!(count >= 12, "{count} seeds: at least one a body");
    }

    #[test]
    fn a_frame_that_is_cut_or_continued_is_refused() {
        for seed in seeds().filter(|seed| seed.target == "decode") {
            for len in 0..seed.bytes.len() {
                assert_eq!(open(&seed.bytes[..len]), None, "{} cut to {len}", seed.name);
            }
            let longer = [&seed.bytes[..], &[0]].concat();
            assert_eq!(open(&longer), None, "{} and one byte", seed.name);
        }
    }
}

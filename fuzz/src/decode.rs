//! Frames from the network, of any bytes.

use core::fmt::Debug;

use selvedge_camera::{self as camera, estimate, sections};
use selvedge_celect as celect;
use selvedge_core::wire::{Envelope, HEADER_LEN, Message, VERSION, frame_len};
use selvedge_groups as groups;
use selvedge_kgroup as kgroup;
use selvedge_membership as membership;
use selvedge_pcm as pcm;
use selvedge_replica as replica;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::allocator::peak;

/// The most memory that a byte of a frame may take. The shortest record of a member takes four
/// bytes in a frame and the most in memory, and a growing list has room for twice its items.
const MEMORY_PER_BYTE: usize = 2 * size_of::<membership::Record>() / 4;

/// The same for frames of a replicated state. The shortest entry takes one byte.
const MEMORY_PER_ENTRY: usize = 2 * size_of::<replica::Entry<u16>>();

/// The same for frames of k-groups.
const MEMORY_PER_UPDATE: usize = 2 * size_of::<replica::Entry<kgroup::Update>>();

/// The same for frames of PCM. A value behind a pointer takes its own memory as well.
const MEMORY_PER_PCM_UPDATE: usize = 2 * size_of::<replica::Entry<pcm::Update>>();

/// Reads `data` as a frame of any protocol.
///
/// For any bytes, reading ends without a panic, and never holds more than 24 bytes of memory for
/// each byte that was read, or in frames of replicated states, k-groups and PCM more than two
/// entries: items that a frame only claims to hold take none. If `data` is a frame:
/// - writing it again gives a frame that reads as an equal value;
/// - that frame is no longer than `data`, because it is the shortest form;
/// - its length is as the message predicts.
///
/// # Panics
/// When one of these does not hold.
pub fn decode(data: &[u8]) {
    memory(data);
}

/// Does the same as [`decode`]; returns the largest amount of memory in bytes that reading held.
fn memory(data: &[u8]) -> usize {
    let Some((&[version, kind], _)) = data.split_first_chunk::<HEADER_LEN>() else {
        return 0;
    };
    match (version, kind) {
        (VERSION, membership::KIND) => check::<membership::Message>(data, MEMORY_PER_BYTE),
        (VERSION, camera::KIND) => check::<camera::Message>(data, MEMORY_PER_BYTE),
        (VERSION, celect::KIND) => check::<celect::Message>(data, MEMORY_PER_BYTE),
        (VERSION, sections::KIND) => check::<sections::Message>(data, MEMORY_PER_BYTE),
        (VERSION, estimate::KIND) => check::<estimate::Message>(data, MEMORY_PER_BYTE),
        (VERSION, replica::KIND) => check::<replica::Message<u16>>(data, MEMORY_PER_ENTRY),
        (VERSION, groups::KIND) => check::<kgroup::Message>(data, MEMORY_PER_UPDATE),
        (VERSION, pcm::KIND) => check::<pcm::Message>(data, MEMORY_PER_PCM_UPDATE),
        _ => 0,
    }
}

fn check<M: Message + DeserializeOwned + Serialize + Debug + PartialEq>(
    data: &[u8],
    per_byte: usize,
) -> usize {
    let ((envelope, read), memory) = peak(|| read::<M>(data));
    assert!(
        memory <= per_byte * read,
        "{memory} bytes of memory for {read} bytes that were read, of {}",
        data.len()
    );
    let Some(envelope) = envelope.filter(|_| read == data.len()) else {
        return memory;
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
        frame_len(envelope.from, &envelope.message),
        again.len(),
        "the foretold length and the encoder disagree"
    );
    memory
}

/// The envelope after a header, if the frame has one, and the number of bytes of the frame that
/// were read.
fn read<M: DeserializeOwned>(frame: &[u8]) -> (Option<Envelope<M>>, usize) {
    let body = frame.get(HEADER_LEN..).unwrap_or_default();
    let mut reader = postcard::Deserializer::from_bytes(body);
    let envelope = Envelope::deserialize(&mut reader).ok();
    let rest = reader.finalize().map_or(0, <[u8]>::len);
    (envelope, frame.len() - rest)
}

/// The envelope in a whole frame; `None` for another version or kind, and for bytes after it.
fn open<M: Message + DeserializeOwned>(frame: &[u8]) -> Option<Envelope<M>> {
    if !frame.starts_with(&[VERSION, M::KIND]) {
        return None;
    }
    let (envelope, read) = read(frame);
    envelope.filter(|_| read == frame.len())
}

/// The frame around an envelope.
pub(crate) fn seal<M: Message + Serialize>(envelope: &Envelope<M>) -> Vec<u8> {
    // Writing to a vector fails only when a type cannot be written at all: the frame is then
    // empty, and the checks above find it.
    postcard::to_extend(envelope, vec![VERSION, M::KIND]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::{Seed, seeds};

    fn is_frame(data: &[u8]) -> bool {
        open::<membership::Message>(data).is_some()
            || open::<camera::Message>(data).is_some()
            || open::<celect::Message>(data).is_some()
            || open::<sections::Message>(data).is_some()
            || open::<estimate::Message>(data).is_some()
            || open::<replica::Message<u16>>(data).is_some()
            || open::<kgroup::Message>(data).is_some()
            || open::<pcm::Message>(data).is_some()
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
            (groups::KIND, 30),
            (pcm::KIND, 25),
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

    /// The longest frame that fits a sealed datagram.
    const LEN: usize = 1_398;

    /// A frame that begins as `frame` does up to `end`, and then claims this number of items of a
    /// list. The items are missing; `filling` stands in their place.
    fn claiming(frame: &[u8], end: usize, claim: u64, filling: &[u8]) -> Vec<u8> {
        let claim = postcard::to_extend(&claim, frame[..end].to_vec()).unwrap();
        let missing = LEN.saturating_sub(claim.len());
        let filling = filling.iter().copied().cycle().take(missing);
        claim.into_iter().chain(filling).collect()
    }

    #[test]
    fn what_a_frame_only_claims_to_hold_takes_no_memory() {
        let mut most = BTreeMap::new();
        for seed in seeds().filter(|seed| seed.target == "decode") {
            for end in HEADER_LEN..=seed.bytes.len() {
                let fillings: [(&str, &[u8]); 4] = [
                    ("no items", &[0xff]),
                    ("shortest items", &[0]),
                    ("short items", &[1]),
                    ("its own bytes", &seed.bytes[end - 1..]),
                ];
                // The first claim is the highest that a frame of this length could hold.
                for claim in [(LEN - end - 2) as u64, 1 << 32, u64::MAX] {
                    for (filling, bytes) in fillings {
                        let frame = claiming(&seed.bytes, end, claim, bytes);
                        let most = most.entry((seed.bytes[1], filling)).or_insert(0);
                        *most = memory(&frame).max(*most);
                    }
                }
            }
        }
        for ((kind, filling), bytes) in &most {
            println!("kind {kind}, {filling}: {bytes} bytes at most");
        }
        // The bound in `check` means something only if memory is counted.
        assert!(most[&(membership::KIND, "shortest items")] > LEN);
    }
}

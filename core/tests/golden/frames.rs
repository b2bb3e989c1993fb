//! Exact bytes of the messages of a protocol. Tests of protocols include this file by its path.

use core::fmt::Debug;

use selvedge_core::Member;
use selvedge_core::wire::{self, Envelope, VERSION, frame_len};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A message as the tests need it.
pub(crate) trait Sample:
    wire::Message + Clone + Debug + PartialEq + Serialize + DeserializeOwned
{
}

impl<M: wire::Message + Clone + Debug + PartialEq + Serialize + DeserializeOwned> Sample for M {}

/// A frame without encryption, as hosts write it.
pub(crate) fn frame<M: Sample>(from: Member, message: &M) -> Vec<u8> {
    let message = message.clone();
    postcard::to_extend(&Envelope { from, message }, vec![VERSION, M::KIND]).unwrap()
}

/// Checks that the frames of node 1 are these, in hex with spaces anywhere, and are read back.
pub(crate) fn stay<M: Sample>(samples: &[M], golden: &[&str]) {
    assert_eq!(samples.len(), golden.len());
    for (message, golden) in samples.iter().zip(golden) {
        let bytes = frame(Member::new(1, 0), message);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden.replace(' ', ""), "{message:?}");
        let envelope: Envelope<M> = postcard::from_bytes(&bytes[2..]).unwrap();
        assert_eq!(&envelope.message, message);
    }
}

/// Checks that messages predict their own length and the length of their frames.
pub(crate) fn lengths_are_foretold<M: Sample>(samples: &[M]) {
    let from = Member::new(300, 7);
    for message in samples {
        let bytes = postcard::to_extend(message, Vec::new()).unwrap();
        assert_eq!(message.encoded_len(), bytes.len(), "{message:?}");
        let frame = frame(from, message);
        assert_eq!(frame_len(from, message), frame.len(), "{message:?}");
    }
}

//! One function for each decoder, for a fuzzer to call.

use crate::frame::{self, Frame};
use crate::topic::Topic;

/// Reads a payload; what is read is written and read alike.
///
/// # Panics
/// If it is not.
pub fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::decode(bytes) else {
        return;
    };
    let written = match &frame {
        Frame::Message(it) => frame::message(it.from, &it.message),
        Frame::Notice(it) => frame::notice(it.from, &it.message),
    };
    // Numbers may be written longer than need be, so bytes may differ.
    let again = written.and_then(|it| Frame::decode(&it));
    assert_eq!(again, Ok(frame), "a frame changes when it is written");
}

/// Reads a topic; what is read is written alike.
///
/// # Panics
/// If it is not.
pub fn topic(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(topic) = Topic::parse(&text) {
        assert_eq!(
            topic.to_string(),
            text,
            "a topic changes when it is written"
        );
    }
}

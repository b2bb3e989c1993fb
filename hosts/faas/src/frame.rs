//! The format of a payload: version, kind, then sender and message in postcard's encoding.

use selvedge_core::Member;
use selvedge_core::wire::{Envelope, HEADER_LEN, VERSION};
use selvedge_pcm::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::notice::Notice;

/// The kind of a frame with a [`Message`].
pub const MESSAGE_KIND: u8 = selvedge_pcm::KIND;
/// The kind of a frame with a [`Notice`]: a kind that is reserved for hosts.
pub const NOTICE_KIND: u8 = 209;
/// The longest frame with a [`Message`], in bytes. Machines keep to 1,400 bytes plus the envelope.
pub const MESSAGE_MAX: usize = 2_048;
/// The longest frame with a [`Notice`], in bytes: a module plus the envelope.
pub const NOTICE_MAX: usize = MODULE_MAX + 64;
/// The longest module, in bytes: the default of [`Limits::module`](crate::Limits::module).
pub const MODULE_MAX: usize = 256 * 1024;

/// The contents of a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message for a machine.
    Message(Box<Envelope<Message>>),
    /// A notice for a host.
    Notice(Box<Envelope<Notice>>),
}

/// The reason why a payload is no frame of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// It is longer than such a frame may be.
    #[error("the frame of {0} bytes is too long: check for other publishers at this broker")]
    Long(usize),
    /// It has another version of the format.
    #[error(
        "the frame has version {0}, this node supports {VERSION}: upgrade the older of the two"
    )]
    Version(u8),
    /// It has a kind that no node of this host sends.
    #[error("the frame has the unknown kind {0}: check for other publishers at this broker")]
    Kind(u8),
    /// It is incomplete, followed by more bytes, or no frame at all.
    #[error("not a frame, or a damaged one: check for other publishers at this broker")]
    Malformed,
}

impl Frame {
    /// Reads a payload. Accepts any bytes; it takes memory in proportion to their number.
    ///
    /// # Errors
    /// [`FrameError`], if it is not exactly one frame of this host.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let (header, body) = bytes
            .split_first_chunk::<HEADER_LEN>()
            .ok_or(FrameError::Malformed)?;
        match *header {
            [VERSION, MESSAGE_KIND] => Ok(Self::Message(read(body, MESSAGE_MAX)?)),
            [VERSION, NOTICE_KIND] => Ok(Self::Notice(read(body, NOTICE_MAX)?)),
            [VERSION, kind] => Err(FrameError::Kind(kind)),
            [version, _] => Err(FrameError::Version(version)),
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8], most: usize) -> Result<Box<Envelope<T>>, FrameError> {
    let len = HEADER_LEN + body.len();
    if len > most {
        return Err(FrameError::Long(len));
    }
    match postcard::take_from_bytes(body) {
        Ok((envelope, [])) => Ok(Box::new(envelope)),
        Ok(_) | Err(_) => Err(FrameError::Malformed),
    }
}

/// The payload with a message.
///
/// # Errors
/// [`FrameError::Long`], if it becomes longer than [`MESSAGE_MAX`].
pub fn message(from: Member, message: &Message) -> Result<Vec<u8>, FrameError> {
    write(MESSAGE_KIND, &Envelope { from, message }, MESSAGE_MAX)
}

/// The payload with a notice.
///
/// # Errors
/// [`FrameError::Long`], if it becomes longer than [`NOTICE_MAX`].
pub fn notice(from: Member, notice: &Notice) -> Result<Vec<u8>, FrameError> {
    let message = notice;
    write(NOTICE_KIND, &Envelope { from, message }, NOTICE_MAX)
}

fn write<T: Serialize>(kind: u8, envelope: &T, most: usize) -> Result<Vec<u8>, FrameError> {
    let begun = vec![VERSION, kind];
    let bytes = postcard::to_extend(envelope, begun).map_err(|_| FrameError::Malformed)?;
    if bytes.len() > most {
        return Err(FrameError::Long(bytes.len()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use selvedge_pcm::Library;

    use super::*;

    const FROM: Member = Member::new(7, 3);

    #[test]
    fn the_format_of_frames_does_not_change() {
        let cancel = message(FROM, &Message::Cancel { number: 300 }).unwrap();
        assert_eq!(cancel, [1, 9, 7, 3, 11, 0xac, 2]);
        let get = notice(FROM, &Notice::Get(Library(5))).unwrap();
        assert_eq!(get, [1, 209, 7, 3, 5, 5]);
    }

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let reported = Message::Cancel { number: 300 };
        let bytes = message(FROM, &reported).unwrap();
        let (from, message) = (FROM, reported);
        let frame = Frame::Message(Box::new(Envelope { from, message }));
        assert_eq!(Frame::decode(&bytes), Ok(frame));
        let reported = Notice::Module(vec![7; 9].into_iter().collect());
        let bytes = notice(FROM, &reported).unwrap();
        let (from, message) = (FROM, reported);
        let frame = Frame::Notice(Box::new(Envelope { from, message }));
        assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    #[test]
    fn other_payloads_are_refused_with_what_is_wrong() {
        assert_eq!(Frame::decode(&[]), Err(FrameError::Malformed));
        assert_eq!(Frame::decode(&[1]), Err(FrameError::Malformed));
        assert_eq!(Frame::decode(&[2, 9, 7, 3]), Err(FrameError::Version(2)));
        assert_eq!(Frame::decode(&[1, 10, 7, 3]), Err(FrameError::Kind(10)));
        let mut bytes = message(FROM, &Message::Here).unwrap();
        bytes.push(0);
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Malformed));
        bytes.truncate(3);
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Malformed));
        bytes.resize(MESSAGE_MAX + 1, 0);
        assert_eq!(
            Frame::decode(&bytes),
            Err(FrameError::Long(MESSAGE_MAX + 1))
        );
        // A list that claims to be long reserves no memory.
        let claims = [1, NOTICE_KIND, 7, 3, 6, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(Frame::decode(&claims), Err(FrameError::Malformed));
    }

    #[test]
    fn the_longest_frame_is_written_and_read_and_a_longer_one_is_not() {
        // A module is preceded by a header, the sender, the kind of notice, and its length in three
        // bytes.
        let module = |len: usize| Notice::Module(vec![0; len].into_iter().collect());
        let mut bytes = notice(FROM, &module(NOTICE_MAX - 8)).unwrap();
        assert_eq!(bytes.len(), NOTICE_MAX);
        assert!(Frame::decode(&bytes).is_ok());
        let long = Err(FrameError::Long(NOTICE_MAX + 1));
        assert_eq!(notice(FROM, &module(NOTICE_MAX - 7)), long);
        bytes.push(0);
        assert!(Frame::decode(&bytes).is_err_and(|it| Err(it) == long));
    }

    proptest! {
        #[test]
        fn any_bytes_may_be_given(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_usize..3) {
            if let (Some(kind), [version, found, ..]) = ([9, NOTICE_KIND].get(kind), bytes.as_mut_slice()) {
                (*version, *found) = (1, *kind);
            }
            crate::fuzz::frame(&bytes);
        }
    }
}

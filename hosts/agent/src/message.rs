//! Messages and questions to all members: a name and a value.

use crate::api::{Kind, Refusal};

/// The most bytes of a message with its name.
const MESSAGE_MAX: usize = 512;

/// The refusal of a message that is too long.
pub(crate) fn too_long() -> Refusal {
    let why = format!(
        "a message or a question has at most {MESSAGE_MAX} bytes with its name: shorten it, or send the name of an entry"
    );
    Refusal::new(Kind::TooLarge, why)
}

/// The bytes of a message: the length of its name, the name, the value. `None` if it is too long.
pub(crate) fn encode(name: &str, value: &[u8]) -> Option<Vec<u8>> {
    let len = u8::try_from(name.len()).ok()?;
    let mut bytes = vec![len];
    bytes.extend(name.as_bytes());
    bytes.extend(value);
    (bytes.len() <= MESSAGE_MAX).then_some(bytes)
}

/// The name and the value; `None` for the broadcast of another program.
pub(crate) fn decode(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (&len, rest) = bytes.split_first()?;
    let (name, value) = rest.split_at_checked(usize::from(len))?;
    Some((core::str::from_utf8(name).ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::{MESSAGE_MAX, decode, encode};

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let value = [0xff, 0, 1];
        let bytes = encode("alarm", &value).unwrap();
        assert_eq!(decode(&bytes), Some(("alarm", &value[..])));
        assert_eq!(encode(&"n".repeat(256), &value), None);
        assert_eq!(encode("n", &[0; MESSAGE_MAX]), None);
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[3, b'a']), None);
        assert_eq!(decode(&[1, 0xff]), None);
    }
}

//! The encoding of fencing tokens.

use proptest::prelude::*;
use selvedge_core::{FencingToken, Incarnation, Member, NodeId, ParseTokenError, Stamp};

fn stamps() -> impl Strategy<Value = Stamp> {
    // Small numbers, too: most pairs of large ones differ in the first byte.
    let number = prop_oneof![0..3_u64, 250..260_u64, any::<u64>()];
    let id = prop_oneof![0..3_u64, any::<u64>()].prop_map(NodeId);
    let incarnation = prop_oneof![0..3_u32, any::<u32>()].prop_map(Incarnation);
    (number, id, incarnation).prop_map(|(number, id, incarnation)| {
        let by = Member { id, incarnation };
        Stamp { number, by }
    })
}

proptest! {
    #[test]
    fn tokens_are_ordered_as_stamps_are(one in stamps(), other in stamps()) {
        let (left, right) = (FencingToken::from(one), FencingToken::from(other));
        prop_assert_eq!(left.cmp(&right), one.cmp(&other));
        prop_assert_eq!(left.to_be_bytes().cmp(&right.to_be_bytes()), one.cmp(&other));
        prop_assert_eq!(left.to_string().cmp(&right.to_string()), one.cmp(&other));
    }

    #[test]
    fn tokens_return_from_bytes_and_text(stamp in stamps()) {
        let token = FencingToken::from(stamp);
        prop_assert_eq!(FencingToken::from_be_bytes(token.to_be_bytes()), token);
        prop_assert_eq!(token.to_string().parse(), Ok(token));
        prop_assert_eq!(token.to_string().to_uppercase().parse(), Ok(token));
    }

    #[test]
    fn other_texts_are_refused(text in "\\PC{0,60}") {
        let is_token = text.len() == 48 && text.bytes().all(|it| it.is_ascii_hexdigit());
        prop_assert_eq!(text.parse::<FencingToken>().is_ok(), is_token);
    }
}

#[test]
fn a_token_with_a_digit_too_few_or_too_many_or_a_sign_is_refused() {
    let token = FencingToken::from_parts(1, 2, 3, 4).to_string();
    for text in [
        &token[1..],
        &format!("{token}0"),
        &format!("+{}", &token[1..]),
        "",
    ] {
        assert_eq!(text.parse::<FencingToken>(), Err(ParseTokenError), "{text}");
    }
}

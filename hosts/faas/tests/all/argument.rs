//! Arguments as text.

use std::collections::HashSet;

use proptest::prelude::*;
use selvedge_faas::{Argument, ArgumentError, text_of};

fn read(text: &str) -> Result<Argument, ArgumentError> {
    text.parse()
}

#[test]
fn a_number_has_the_type_that_it_is_written_as() {
    for (text, wanted) in [
        ("7", Argument::I32(7)),
        ("+7", Argument::I32(7)),
        ("-2147483648", Argument::I32(i32::MIN)),
        ("7i32", Argument::I32(7)),
        ("0xffffffff", Argument::I32(-1)),
        ("0x32", Argument::I32(0x32)),
        ("0xf32", Argument::I32(0xf32)),
        ("0xf64", Argument::I32(0xf64)),
        ("7i64", Argument::I64(7)),
        ("-9223372036854775808i64", Argument::I64(i64::MIN)),
        ("0xffffffffffffffffi64", Argument::I64(-1)),
        ("1.5", Argument::F64(1.5)),
        ("-0.0", Argument::F64(-0.0)),
        ("2e3", Argument::F64(2_000.0)),
        ("2f64", Argument::F64(2.0)),
        ("2f32", Argument::F32(2.0)),
        ("-1.5f32", Argument::F32(-1.5)),
        ("inf", Argument::F64(f64::INFINITY)),
        ("-inff32", Argument::F32(f32::NEG_INFINITY)),
        ("NaN", Argument::F64(f64::NAN)),
    ] {
        assert_eq!(read(text), Ok(wanted), "{text}");
    }
}

#[test]
fn arguments_are_equal_where_a_function_is_given_the_same() {
    let nan = || Argument::F64(f64::NAN);
    let all = [nan(), nan(), Argument::F64(0.0), Argument::F64(-0.0)];
    let more = [Argument::I32(0), Argument::I64(0), Argument::F32(0.0)];
    let different: HashSet<Argument> = all.into_iter().chain(more).collect();
    assert_eq!(different.len(), 6);
}

#[test]
fn bytes_are_written_in_hexadecimal_or_as_text() {
    assert_eq!(read("hex:00fFA5"), Ok(Argument::Bytes(vec![0, 255, 0xa5])));
    assert_eq!(read("hex:"), Ok(Argument::Bytes(vec![])));
    assert_eq!(read("text:a b:7"), Ok(Argument::Bytes(b"a b:7".to_vec())));
    assert_eq!(read("text:"), Ok(Argument::Bytes(vec![])));
    for text in ["hex:0", "hex:0g", "hex:+1", "hex:é", "hex:0x00"] {
        assert_eq!(read(text), Err(ArgumentError::Hex), "{text}");
    }
}

#[test]
fn what_is_no_argument_says_why() {
    for text in [
        "", "-", "abc", "1 ", " 1", "7i", "i32", "0x", "0x-1", "0x+1i64", "1.5i32", "1_000",
        "@file", "--1", "7u8",
    ] {
        assert_eq!(read(text), Err(ArgumentError::Syntax), "{text}");
    }
    for text in [
        "2147483648",
        "-2147483649",
        "0x100000000",
        "9223372036854775808i64",
        "99999999999999999999",
    ] {
        assert_eq!(read(text), Err(ArgumentError::TooLarge), "{text}");
    }
}

#[test]
fn equal_arguments_have_equal_bits() {
    assert_eq!(Argument::F64(f64::NAN), Argument::F64(f64::NAN));
    let other = f64::from_bits(f64::NAN.to_bits() ^ 1);
    assert_ne!(Argument::F64(f64::NAN), Argument::F64(other));
    assert_ne!(Argument::F32(0.0), Argument::F32(-0.0));
    assert_ne!(Argument::I32(1), Argument::I64(1));
    assert_ne!(Argument::I32(0), Argument::Bytes(vec![]));
}

#[test]
fn a_result_is_shown_as_text_where_it_is_text() {
    assert_eq!(text_of(b"-7i64"), "-7i64");
    assert_eq!(text_of("21 °C\n\tcold".as_bytes()), "21 °C\n\tcold");
    assert_eq!(text_of(b""), "");
    assert_eq!(text_of(b"a\0"), "hex:6100");
    assert_eq!(text_of(b"\x1b[2J"), "hex:1b5b324a");
    assert_eq!(text_of(&[0xff, 0x00]), "hex:ff00");
    // It cannot be mistaken for the byte 0.
    assert_eq!(text_of(b"hex:00"), "hex:6865783a3030");
    assert_eq!(text_of(b"\0"), "hex:00");
    // All text is shown in its own order.
    for odd in ['\u{61c}', '\u{200f}', '\u{2028}', '\u{202e}', '\u{2066}'] {
        let bytes = format!("1{odd}2").into_bytes();
        let shown = text_of(&bytes);
        assert_eq!(shown.parse(), Ok(Argument::Bytes(bytes)), "{shown}");
    }
}

pub(crate) fn any_argument() -> impl Strategy<Value = Argument> {
    prop_oneof![
        any::<i32>().prop_map(Argument::I32),
        any::<i64>().prop_map(Argument::I64),
        any::<u32>().prop_map(|it| Argument::F32(f32::from_bits(it))),
        any::<u64>().prop_map(|it| Argument::F64(f64::from_bits(it))),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Argument::Bytes),
    ]
}

/// The argument with a canonical NaN, as parsing returns it.
fn without_payload(argument: Argument) -> Argument {
    match argument {
        Argument::F32(it) if it.is_nan() => Argument::F32(f32::NAN),
        Argument::F64(it) if it.is_nan() => Argument::F64(f64::NAN),
        other => other,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(argument in any_argument()) {
        prop_assert_eq!(argument.to_string().parse(), Ok(without_payload(argument)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,20}") {
        if let Ok(argument) = text.parse::<Argument>() {
            prop_assert_eq!(argument.to_string().parse(), Ok(argument));
        }
    }
}

//! Calls as functions of PCM.

use proptest::prelude::*;
use selvedge_faas::call::{MAX_ARGUMENTS, MAX_CALL, MAX_EXPORT};
use selvedge_faas::{Argument, Call, CallError, ModuleId};
use selvedge_pcm::{Function, Library};

use crate::argument::any_argument;
use crate::support::arguments;

fn id() -> ModuleId {
    ModuleId::of(b"\0asm\x01\0\0\0")
}

fn example() -> Call {
    let all = arguments(&["-7", "300i64", "1.5f32", "-2.0", "text:abc"]);
    Call::new(id(), "mean", all).unwrap()
}

#[test]
fn a_module_is_named_by_its_sha_256() {
    let text = "93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476";
    assert_eq!(id().to_string(), text);
    assert_eq!(text.parse(), Ok(id()));
    assert_eq!(id().library(), Library(0x93a4_4bbb_96c7_5121));
    for text in [
        "",
        "93a4",
        &"0".repeat(62),
        &"0".repeat(66),
        &"g".repeat(64),
    ] {
        assert!(text.parse::<ModuleId>().is_err(), "{text}");
    }
}

#[test]
fn the_encoding_of_a_call_stays_as_it_is() {
    let mut wanted = vec![1];
    wanted.extend(id().0);
    wanted.extend(b"\x04mean\x05");
    wanted.extend(b"\x00\x0d"); // -7 as a number with its sign last
    wanted.extend(b"\x01\xd8\x04");
    wanted.extend(b"\x02\x00\x00\xc0\x3f");
    wanted.extend(b"\x03\x00\x00\x00\x00\x00\x00\x00\xc0");
    wanted.extend(b"\x04\x03abc");
    assert_eq!(example().encode().unwrap(), wanted);
    assert_eq!(Call::decode(&wanted), Ok(example()));
}

#[test]
fn a_function_of_pcm_is_a_call_with_its_module_as_library() {
    let function = example().to_function().unwrap();
    assert_eq!(*function.libraries, [id().library()]);
    assert_eq!(Call::from_function(&function), Ok(example()));
    let wrong = Err(CallError::Libraries(id()));
    for libraries in [&[][..], &[Library(1)], &[id().library(), Library(1)]] {
        let function = Function {
            libraries: libraries.iter().copied().collect(),
            ..function.clone()
        };
        assert_eq!(Call::from_function(&function), wrong, "{libraries:?}");
    }
    assert_eq!(
        Call::from_function(&Function::new(b"7 * 7")),
        Err(CallError::Version(b'7'))
    );
    assert_eq!(
        Call::from_function(&Function::new(b"")),
        Err(CallError::Malformed)
    );
}

#[test]
fn a_call_is_bounded() {
    let longest = "x".repeat(MAX_EXPORT);
    assert!(Call::new(id(), &longest, []).is_ok());
    let longer = format!("{longest}x");
    assert_eq!(
        Call::new(id(), &longer, []),
        Err(CallError::Export(MAX_EXPORT + 1))
    );
    let seven = || Argument::I32(7);
    let most = std::iter::repeat_with(seven).take(MAX_ARGUMENTS);
    assert!(Call::new(id(), "f", most).is_ok());
    let endless = std::iter::repeat_with(seven);
    assert_eq!(Call::new(id(), "f", endless), Err(CallError::Arguments));
    // Version, module, name with its length, number of arguments, kind, and its length: 40 bytes.
    let fits = MAX_CALL - 40;
    let call = Call::new(id(), "f", [Argument::Bytes(vec![0; fits])]).unwrap();
    assert_eq!(call.encode().unwrap().len(), MAX_CALL);
    assert_eq!(Call::from_function(&call.to_function().unwrap()), Ok(call));
    let error = Call::new(id(), "f", [Argument::Bytes(vec![0; fits + 1])]);
    assert_eq!(error, Err(CallError::TooLong(MAX_CALL + 1)));
    assert_eq!(
        Call::decode(&vec![1; MAX_CALL + 1]),
        Err(CallError::TooLong(MAX_CALL + 1))
    );
}

#[test]
fn what_was_bounded_is_bounded_when_it_is_read() {
    let mut encoded = vec![1];
    encoded.extend(id().0);
    let with = |rest: &[u8]| [&encoded, rest].concat();
    let name = [&[65][..], &[b'x'; 65], &[0]].concat();
    assert_eq!(Call::decode(&with(&name)), Err(CallError::Export(65)));
    let seventeen = [&b"\x01f\x11"[..], &[0; 34]].concat();
    assert_eq!(Call::decode(&with(&seventeen)), Err(CallError::Arguments));
    // A length without the bytes.
    assert_eq!(
        Call::decode(&with(b"\x01f\x01\x04\xff\xff\xff\xff\x0f")),
        Err(CallError::Malformed)
    );
    assert_eq!(
        Call::decode(&with(b"\xff\xff\xff\xff\x0f")),
        Err(CallError::Malformed)
    );
}

#[test]
fn a_call_has_one_encoding() {
    let encoded = example().encode().unwrap();
    let more = [&encoded[..], &[0]].concat();
    assert_eq!(Call::decode(&more), Err(CallError::Malformed));
    // The length of the name, in two bytes.
    let longer = [&encoded[..33], &[0x84, 0x00], &encoded[34..]].concat();
    assert_eq!(Call::decode(&longer), Err(CallError::Malformed));
    let mut other = encoded.clone();
    other[0] = 3;
    assert_eq!(Call::decode(&other), Err(CallError::Version(3)));
    for len in 0..encoded.len() {
        assert_eq!(
            Call::decode(&encoded[..len]),
            Err(CallError::Malformed),
            "{len}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        export in "[a-z_$é]{0,20}",
        arguments in proptest::collection::vec(any_argument(), 0..=MAX_ARGUMENTS),
    ) {
        let call = Call::new(id(), &export, arguments.clone()).unwrap();
        prop_assert_eq!(call.arguments(), arguments);
        prop_assert_eq!(call.export(), export);
        let function = call.to_function().unwrap();
        prop_assert_eq!(Call::from_function(&function), Ok(call));
    }
}

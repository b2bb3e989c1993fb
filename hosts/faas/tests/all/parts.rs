//! Modules that nobody here wrote, where `functions/fetch.sh` has fetched them.

use std::fs;

use selvedge_faas::{Argument, Call, Engine, Failure, Limits, ModuleError, Outcome, Ran};
use xxhash_rust::{xxh32, xxh64};

use crate::support::{failed, part, value};

fn engine(limits: Limits, path: &str) -> Option<(Engine, selvedge_faas::ModuleId)> {
    let bytes = fs::read(part(path)?).unwrap();
    let mut engine = Engine::new(limits).unwrap();
    let id = engine.insert(&bytes).unwrap();
    Some((engine, id))
}

#[test]
fn xxhash_hashes_as_its_specification_says() {
    let limits = Limits::new();
    let Some((mut engine, id)) = engine(limits, "node_modules/xxhash-wasm/workerd/xxhash.wasm")
    else {
        return;
    };
    let mut hash = |export: &str, bytes: &[u8], seed: Argument| {
        let arguments = [Argument::Bytes(bytes.to_vec()), seed];
        value(&engine.run(&Call::new(id, export, arguments).unwrap()))
    };
    // Of nothing, by the specification.
    assert_eq!(
        hash("xxh32", b"", Argument::I32(0)),
        0x02cc_5d05_u32.cast_signed().to_string()
    );
    let none = 0xef46_db37_51d8_e999_u64.cast_signed();
    assert_eq!(hash("xxh64", b"", Argument::I64(0)), format!("{none}i64"));
    for len in [1, 4, 15, 16, 31, 32, 33, 100, 5_000] {
        let bytes: Vec<u8> = (0..len).map(|it| (it * 31) as u8).collect();
        let (short, long) = (0x9e37_79b1_u32, 0x9e37_79b1_85eb_ca87_u64);
        let wanted = xxh32::xxh32(&bytes, short).cast_signed();
        let seed = Argument::I32(short.cast_signed());
        assert_eq!(
            hash("xxh32", &bytes, seed),
            wanted.to_string(),
            "{len} bytes"
        );
        let wanted = xxh64::xxh64(&bytes, long).cast_signed();
        let seed = Argument::I64(long.cast_signed());
        assert_eq!(
            hash("xxh64", &bytes, seed),
            format!("{wanted}i64"),
            "{len} bytes"
        );
    }
}

const RESIZE: &str = "node_modules/@jsquash/resize/lib/resize/pkg/squoosh_resize_bg.wasm";

/// An image of 8 by 8 pixels, made 3 by 3 by the filter of this number.
fn resize(engine: &mut Engine, id: selvedge_faas::ModuleId, filter: i32) -> Ran {
    let pixel = |at: u32| {
        let (x, y) = (at % 8, at / 8);
        [x * 32, y * 32, x * y * 5, 255].map(|it| it as u8)
    };
    let mut arguments = vec![Argument::Bytes((0..64).flat_map(pixel).collect())];
    arguments.extend([8, 8, 3, 3, filter, 0, 0].map(Argument::I32));
    engine.run(&Call::new(id, "resize", arguments).unwrap())
}

#[test]
fn an_image_is_resized_as_in_a_browser() {
    let Some((mut engine, id)) = engine(Limits::new(), RESIZE) else {
        return;
    };
    // What the package's own JavaScript returned, in V8.
    for (filter, wanted) in [
        (
            0,
            "232306ff702313ffbd2321ff237013ff70703dffbd7067ff23bd21ff70bd67ffbdbdaeff",
        ),
        (
            1,
            "1d1d04ff701d10ffc31d1bff1d7010ff70703dffc3706bff1dc31bff70c36bffc3c3baff",
        ),
        (
            2,
            "212105ff702112ffbf211fff217012ff70703dffbf7068ff21bf1fff70bf68ffbfbfb2ff",
        ),
        (
            3,
            "1a1a03ff701a0effc61a19ff1a700eff70703dffc6706cff1ac619ff70c66cffc6c6c0ff",
        ),
    ] {
        assert_eq!(
            value(&resize(&mut engine, id, filter)),
            format!("hex:{wanted}"),
            "{filter}"
        );
    }
}

#[test]
fn an_image_is_not_resized_beyond_the_limits() {
    let of = |limits: Limits| {
        let (mut engine, id) = engine(limits, RESIZE)?;
        Some(resize(&mut engine, id, 0).outcome)
    };
    let outcome = |limits: Limits, wanted: Outcome| of(limits).is_none_or(|it| it == wanted);
    assert!(outcome(
        Limits::new().with_memory(1_000_000),
        failed(Failure::OutOfMemory)
    ));
    assert!(outcome(
        Limits::new().with_fuel(20_000),
        failed(Failure::OutOfFuel)
    ));
    assert!(outcome(
        Limits::new().with_result(35),
        failed(Failure::ResultTooLong)
    ));
}

#[test]
fn what_imports_something_of_a_browser_is_refused_with_its_name() {
    let path = "node_modules/@jsquash/resize/lib/magic-kernel/pkg/jsquash_magic_kernel_bg.wasm";
    let Some(path) = part(path) else {
        return;
    };
    let mut engine = Engine::new(Limits::new()).unwrap();
    let error = engine.insert(&fs::read(path).unwrap()).unwrap_err();
    assert!(
        matches!(&error, ModuleError::UnknownImport { module, .. } if module == "wbg"),
        "{error}"
    );
}

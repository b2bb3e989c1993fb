//! Modules of other authors, if `functions/fetch.sh` has fetched them.

use std::fs;

use nnnoiseless::DenoiseState;
use selvedge_faas::{
    Argument, Call, CallMismatch, Engine, Failure, Limits, ModuleId, Outcome, Ran, Stub, Trap,
};
use xxhash_rust::{xxh32, xxh64};

use crate::support::{failed, part, trapped, value};

fn engine(limits: Limits, path: &str) -> Option<(Engine, ModuleId)> {
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
    // The hash of nothing, by the specification.
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

/// An image of 8 by 8 pixels, resized to 3 by 3 by the filter of this number.
fn resize(engine: &mut Engine, id: ModuleId, filter: i32) -> Ran {
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
    // The result of the package's own JavaScript, in V8.
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
fn what_imports_something_of_a_browser_is_not_called_without_stubs() {
    let path = "node_modules/@jsquash/resize/lib/magic-kernel/pkg/jsquash_magic_kernel_bg.wasm";
    let Some((engine, id)) = engine(Limits::new(), path) else {
        return;
    };
    let error = engine.check(&Call::new(id, "resize", []).unwrap());
    assert!(
        matches!(&error, Err(CallMismatch::Import { module, .. }) if module == "wbg"),
        "{error:?}"
    );
}

/// Both modules that follow have 16 MiB of memory from the beginning.
fn roomy() -> Limits {
    Limits::new().with_memory(20 << 20)
}

fn call(id: ModuleId, export: &str, arguments: Vec<Argument>, stubs: &[&str]) -> Call {
    let stubs = stubs.iter().map(|it| it.parse::<Stub>().unwrap());
    let call = Call::new(id, export, arguments).unwrap();
    call.with_stubs(stubs).unwrap()
}

/// Imports: files, and more memory.
const KISSFFT: [&str; 4] = ["a.a", "a.b", "a.d", "a.e"];

fn bytes(numbers: &[f64]) -> Vec<u8> {
    let bytes = numbers.iter().flat_map(|it| (*it as f32).to_le_bytes());
    bytes.collect()
}

fn numbers(ran: &Ran) -> Vec<f64> {
    let Outcome::Value(value) = &ran.outcome else {
        panic!("{:?}", ran.outcome);
    };
    let (chunks, rest) = value.as_chunks::<4>();
    assert!(rest.is_empty());
    chunks
        .iter()
        .map(|it| f32::from_le_bytes(*it).into())
        .collect()
}

/// Each term of the transform by its definition, in f64.
fn transform(signal: &[f64]) -> Vec<f64> {
    let count = signal.len() / 2;
    let term = |of: usize| {
        let parts = signal.chunks_exact(2).enumerate().map(|(at, it)| {
            let turn = -core::f64::consts::TAU * ((at * of) % count) as f64 / count as f64;
            let (sin, cos) = turn.sin_cos();
            [it[0] * cos - it[1] * sin, it[0] * sin + it[1] * cos]
        });
        parts.fold([0.0, 0.0], |sum, it| [sum[0] + it[0], sum[1] + it[1]])
    };
    (0..count).flat_map(term).collect()
}

fn assert_close(found: &[f64], wanted: &[f64], slack: f64) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() <= slack, "{found} for {wanted}");
    }
}

#[test]
fn kissfft_transforms_as_its_definition_says_and_back() {
    let Some((mut engine, id)) = engine(roomy(), "kissfft.wasm") else {
        return;
    };
    let mut run = |export: &str, numbers: &[f64]| {
        let arguments = vec![Argument::Bytes(bytes(numbers))];
        engine.run(&call(id, export, arguments, &KISSFFT))
    };
    // Lengths with the factors that have special cases, and a prime one.
    for count in [1_usize, 8, 15, 16, 30, 31, 32] {
        let signal = (0..2 * count).map(|it| ((it * it * 7 + it * 3) % 23) as f64 / 11.5 - 1.0);
        let signal: Vec<f64> = signal.collect();
        let there = numbers(&run("fft", &signal));
        assert_close(&there, &transform(&signal), 1e-5 * count as f64);
        assert_close(&numbers(&run("ifft", &there)), &signal, 1e-5);
    }
    // A wave of three turns is one line of its spectrum.
    let wave = (0..32).flat_map(|it| {
        let (sin, cos) = (core::f64::consts::TAU * 3.0 * f64::from(it) / 32.0).sin_cos();
        [cos, sin]
    });
    let spectrum = numbers(&run("fft", &wave.collect::<Vec<f64>>()));
    let mut line = vec![0.0; 64];
    line[6] = 32.0;
    assert_close(&spectrum, &line, 1e-4);
}

#[test]
fn what_asks_for_16_mib_fails_within_the_usual_limits() {
    let Some((mut engine, id)) = engine(Limits::new(), "kissfft.wasm") else {
        return;
    };
    let fft = call(id, "fft", vec![Argument::Bytes(vec![0; 8])], &KISSFFT);
    assert_eq!(engine.run(&fft).outcome, failed(Failure::OutOfMemory));
}

#[test]
fn kissfft_fails_where_it_needs_more_memory_and_its_stub_for_that_traps() {
    let Some((mut engine, id)) = engine(Limits::new().with_memory(30 << 20), "kissfft.wasm") else {
        return;
    };
    let mut malloc = |stubs: &[&str]| {
        let arguments = vec![Argument::I32(17 << 20)];
        engine.run(&call(id, "malloc", arguments, stubs)).outcome
    };
    assert_eq!(malloc(&KISSFFT), trapped(Trap::Stub));
    // The stub returns that no memory is left, and the allocator returns null.
    let outcome = malloc(&["a.a", "a.b", "a.d=0", "a.e"]);
    assert_eq!(outcome, Outcome::Value(b"0".to_vec()));
    assert_eq!(malloc(&["a.a", "a.b", "a.d"]), failed(Failure::NoImport));
    let more = ["a.a", "a.b", "a.d", "a.e", "a.f"];
    assert_eq!(malloc(&more), failed(Failure::NoImport));
}

/// Samples that rise for 5 ms and then fall at once, as a vowel at 200 Hz does.
fn saw() -> Vec<i16> {
    (0..240).map(|it| it * 100 - 12_000).collect()
}

fn triangle() -> Vec<i16> {
    (0..240_i16)
        .map(|it| (it * 37 % 240 - 120).abs() * 100 - 6_000)
        .collect()
}

/// The result of a port of the net into Rust for the last of these frames.
fn ported(samples: &[i16], frames: usize) -> f32 {
    let mut net = DenoiseState::new();
    let mut samples = samples.iter().cycle().map(|it| f32::from(*it));
    let mut out = [0.0; DenoiseState::FRAME_SIZE];
    let of_frames = (0..frames).map(|_| {
        let frame: Vec<f32> = samples.by_ref().take(DenoiseState::FRAME_SIZE).collect();
        net.process_frame(&mut out, &frame)
    });
    of_frames.last().unwrap_or(0.0)
}

#[test]
fn rnnoise_hears_as_in_a_browser_and_as_its_port_does() {
    let Some((mut engine, id)) = engine(roomy().with_fuel(1_000_000_000), "rnnoise.wasm") else {
        return;
    };
    let mut voice = |samples: &[i16], frames: u16| -> f32 {
        let samples = samples.iter().flat_map(|it| it.to_le_bytes()).collect();
        let arguments = vec![Argument::Bytes(samples), Argument::I32(frames.into())];
        let text = value(&engine.run(&call(id, "voice", arguments, &["a.a"])));
        text.strip_suffix("f32").unwrap().parse().unwrap()
    };
    let silence = vec![0; 240];
    // The result of the package's module, in V8.
    let received: [(&[i16], u16, f32); 7] = [
        (&saw(), 1, 0.787_591),
        (&saw(), 2, 0.964_229_1),
        (&saw(), 10, 0.999_137_04),
        (&triangle(), 1, 0.456_949_8),
        (&triangle(), 2, 0.641_956_1),
        (&triangle(), 10, 0.979_940_2),
        (&silence, 5, 0.0),
    ];
    for (samples, frames, wanted) in received {
        let found = voice(samples, frames);
        assert_eq!(found.to_bits(), wanted.to_bits(), "{found} for {wanted}");
        // The module computes in another order, and the first frame has little information for the
        // net.
        let ported = ported(samples, frames.into());
        assert!((found - ported).abs() < 0.1, "{found}, and ported {ported}");
    }
}

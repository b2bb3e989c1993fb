//! Results that do not depend on the place of a run.

use selvedge_faas::{Call, Engine, Failure, Ran};

use crate::support::{arguments, failed, limits, run, run_within, value, wasm};

#[test]
fn the_same_call_in_fresh_engines_has_the_same_outcome_and_takes_the_same_fuel() {
    let text = r#"(module (memory (export "m") 1) (func (export "f") (param i32 i32) (result f64)
        (local $sum f64)
        (loop
            (local.set $sum (f64.sqrt (f64.add (local.get $sum) (f64.convert_i32_u (i32.load8_u (local.get 0))))))
            (local.set 0 (i32.add (local.get 0) (i32.const 1)))
            (br_if 0 (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
        (local.get $sum)))"#;
    let first = run(text, &["text:the quick brown fox"]);
    assert_eq!(value(&first), "11.446354709257214");
    assert!(first.fuel > 100);
    for _ in 0..3 {
        assert_eq!(run(text, &["text:the quick brown fox"]), first);
    }
    // The same engine, with the module compiled and other calls run before.
    let mut engine = Engine::new(limits()).unwrap();
    let id = engine.insert(&wasm(text)).unwrap();
    let call = Call::new(id, "f", arguments(&["text:the quick brown fox"])).unwrap();
    let runs: Vec<Ran> = (0..3).map(|_| engine.run(&call)).collect();
    assert_eq!(runs, [first.clone(), first.clone(), first]);
}

#[test]
fn the_fuel_of_a_call_stays_as_it_is() {
    // Followers of one mesh that count differently disagree. When this number changes, the version
    // of the protocol has to change.
    let text = r#"(module (func $f (export "f") (param i32) (result i32)
        (if (result i32) (i32.lt_u (local.get 0) (i32.const 2))
            (then (local.get 0))
            (else (i32.add
                (call $f (i32.sub (local.get 0) (i32.const 1)))
                (call $f (i32.sub (local.get 0) (i32.const 2))))))))"#;
    let ran = run(text, &["15"]);
    assert_eq!((value(&ran), ran.fuel), ("610".to_owned(), 21_699));
    let ran = run_within(&limits().with_fuel(100), text, &["15"]);
    assert_eq!((ran.outcome, ran.fuel), (failed(Failure::OutOfFuel), 100));
}

#[test]
fn nans_that_arithmetic_makes_are_canonical() {
    // The bits of a float, as a whole number: 32 of them, or 64.
    let bits32 = |float: &str| {
        run(
            &format!(r#"(module (func (export "f") (result i32) (i32.reinterpret_f32 {float})))"#),
            &[],
        )
    };
    let bits64 = |float: &str| {
        run(
            &format!(r#"(module (func (export "f") (result i64) (i64.reinterpret_f64 {float})))"#),
            &[],
        )
    };
    let (nan32, nan64) = (
        0x7fc0_0000_i32.to_string(),
        format!("{}i64", 0x7ff8_0000_0000_0000_i64),
    );
    let odd32 = "(f32.const -nan:0x200123)";
    let odd64 = "(f64.const -nan:0x4000000000123)";
    for float in [
        "(f32.div (f32.const 0) (f32.const 0))",
        "(f32.sub (f32.const inf) (f32.const inf))",
        "(f32.sqrt (f32.const -1))",
        &format!("(f32.add {odd32} (f32.const 1))"),
        &format!("(f32.mul (f32.const 1) {odd32})"),
        &format!("(f32.min {odd32} (f32.const 1))"),
        &format!("(f32.ceil {odd32})"),
        &format!("(f32.nearest {odd32})"),
        &format!("(f32.demote_f64 {odd64})"),
    ] {
        assert_eq!(value(&bits32(float)), nan32, "{float}");
    }
    for float in [
        "(f64.div (f64.const -0) (f64.const 0))",
        "(f64.sqrt (f64.const -1))",
        &format!("(f64.sub (f64.const 1) {odd64})"),
        &format!("(f64.max {odd64} (f64.const 1))"),
        &format!("(f64.trunc {odd64})"),
        &format!("(f64.promote_f32 {odd32})"),
    ] {
        assert_eq!(value(&bits64(float)), nan64, "{float}");
    }
    // Operations that only move bits do not change them.
    let odd = (0xffa0_0123_u32.cast_signed()).to_string();
    assert_eq!(value(&bits32(odd32)), odd);
    let flipped = (0x7fa0_0123_i32).to_string();
    assert_eq!(value(&bits32(&format!("(f32.neg {odd32})"))), flipped);
    // As a result all NaNs have the same text.
    let text = format!(r#"(module (func (export "f") (result f32) {odd32}))"#);
    assert_eq!(value(&run(&text, &[])), "NaNf32");
}

#[test]
fn an_argument_that_is_nan_comes_in_as_it_is() {
    let text = r#"(module (func (export "f") (param f32) (result i32) (i32.reinterpret_f32 (local.get 0))))"#;
    let mut engine = Engine::new(limits()).unwrap();
    let id = engine.insert(&wasm(text)).unwrap();
    let odd = f32::from_bits(0xffe0_0123);
    let call = Call::new(id, "f", [selvedge_faas::Argument::F32(odd)]).unwrap();
    let decoded = Call::decode(&call.encode().unwrap()).unwrap();
    assert_eq!(
        value(&engine.run(&decoded)),
        0xffe0_0123_u32.cast_signed().to_string()
    );
}

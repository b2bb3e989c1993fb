//! Imports that the host does not have.

use std::iter;

use selvedge_faas::call::{MAX_EXPORT, MAX_STUBS, StubError};
use selvedge_faas::{
    Call, CallError, CallMismatch, Does, Failure, Module, ModuleError, ModuleId, Outcome, Ran, Run,
    Stub, Trap,
};

use crate::support::{failed, limits, trapped, wasm};

const IMPORTS: &str = r#"(module
    (import "env" "notify" (func $notify (param i32)))
    (import "env" "resize" (func $resize (param i32) (result i32)))
    (func (export "none") (result i32) i32.const 7)
    (func (export "notify") (result i32) (call $notify (i32.const 5)) i32.const 8)
    (func (export "resize") (result i32) (call $resize (i32.const 5))))"#;

fn stub(text: &str) -> Stub {
    text.parse().unwrap()
}

fn call(id: ModuleId, export: &str, stubs: &[&str]) -> Call {
    let call = Call::new(id, export, []).unwrap();
    call.with_stubs(stubs.iter().map(|it| stub(it))).unwrap()
}

fn run(export: &str, stubs: &[&str]) -> Ran {
    let module = Module::compile(&wasm(IMPORTS), &limits()).unwrap();
    Run::new(&module, &call(module.id(), export, stubs), &limits()).finish()
}

fn returned(number: &str) -> Outcome {
    Outcome::Value(number.as_bytes().to_vec())
}

#[test]
fn a_stub_fails_where_it_is_called_or_does_nothing() {
    let trap = ["env.notify", "env.resize"];
    assert_eq!(run("none", &trap).outcome, returned("7"));
    assert_eq!(run("notify", &trap).outcome, trapped(Trap::Stub));
    assert_eq!(run("resize", &trap).outcome, trapped(Trap::Stub));
    let nothing = ["env.notify=0", "env.resize=0"];
    assert_eq!(run("notify", &nothing).outcome, returned("8"));
    assert_eq!(run("resize", &nothing).outcome, returned("0"));
    let both = ["env.resize", "env.notify=0"];
    assert_eq!(run("notify", &both).outcome, returned("8"));
    assert_eq!(run("resize", &both).outcome, trapped(Trap::Stub));
}

#[test]
fn each_import_needs_a_stub_and_each_stub_an_import() {
    let module = Module::compile(&wasm(IMPORTS), &limits()).unwrap();
    let missing: Vec<(&str, &str)> = module.missing().collect();
    assert_eq!(missing, [("env", "notify"), ("env", "resize")]);
    let check = |stubs: &[&str]| module.check(&call(module.id(), "none", stubs));
    assert_eq!(check(&["env.notify", "env.resize"]), Ok(()));
    let import = CallMismatch::Import {
        module: "env".to_owned(),
        name: "resize".to_owned(),
    };
    assert_eq!(check(&["env.notify"]), Err(import));
    let unused = CallMismatch::UnusedStub(stub("env.other"));
    assert_eq!(
        check(&["env.notify", "env.resize", "env.other"]),
        Err(unused)
    );
    // A follower that gets such a call all the same fails, as all others do.
    assert_eq!(run("none", &[]).outcome, failed(Failure::NoImport));
}

#[test]
fn an_import_that_is_there_twice_is_one_and_has_one_type() {
    let module = |ty: &str| {
        wasm(&format!(
            r#"(module (import "env" "f" (func)) (import "env" "f" {ty}))"#
        ))
    };
    let alike = Module::compile(&module("(func)"), &limits()).unwrap();
    assert_eq!(alike.missing().collect::<Vec<_>>(), [("env", "f")]);
    let name = "f".to_owned();
    let other = Module::compile(&module("(func (param i32))"), &limits());
    assert_eq!(other.unwrap_err(), ModuleError::ImportType { name });
}

#[test]
fn a_stub_reads_as_it_is_written() {
    let traps = Stub {
        module: "./bg.js".to_owned(),
        name: "f".to_owned(),
        does: Does::Traps,
    };
    assert_eq!(stub("./bg.js.f"), traps);
    assert_eq!(stub("a.b=0").does, Does::ReturnsZero);
    for text in ["./bg.js.f", "a.b=0", "a.b"] {
        assert_eq!(stub(text).to_string(), text);
    }
    assert_eq!("a".parse::<Stub>(), Err(StubError));
}

#[test]
fn stubs_are_bounded_and_in_order_and_calls_without_any_keep_their_encoding() {
    let call = Call::new(ModuleId([7; 32]), "f", []).unwrap();
    let plain = call.encode().unwrap();
    assert_eq!(plain[0], 1);
    let with = |texts: &[&str]| call.clone().with_stubs(texts.iter().map(|it| stub(it)));
    let both = with(&["b.a", "a.b=0"]).unwrap();
    assert_eq!(both, with(&["a.b=0", "b.a"]).unwrap());
    let encoded = both.encode().unwrap();
    let tail = b"\x02\x01a\x01b\x01\x01b\x01a\x00";
    assert_eq!(encoded, [&[2], &plain[1..], tail].concat());
    assert_eq!(Call::decode(&encoded), Ok(both));
    // The fuzzer begins with this input.
    assert_eq!(
        encoded,
        include_bytes!("../../../../fuzz/hosts/corpus/faas_call/seed-stubs")
    );
    assert_eq!(with(&["a.b", "a.b=0"]), Err(CallError::StubTwice));
    let wrong_order = [&[2], &plain[1..], b"\x02\x01b\x01a\x00\x01a\x01b\x01"].concat();
    assert_eq!(Call::decode(&wrong_order), Err(CallError::StubTwice));
    // No stubs, in the version with stubs.
    let none = [&[2], &plain[1..], &[0]].concat();
    assert_eq!(Call::decode(&none), Err(CallError::Malformed));
    let longest = format!("a.{}", "x".repeat(MAX_EXPORT));
    assert!(with(&[&longest]).is_ok());
    let long = format!("{longest}x");
    assert_eq!(with(&[&long]), Err(CallError::Export(MAX_EXPORT + 1)));
    let many = |count| {
        let mut names = (0_u32..).map(|it| stub(&format!("a.{it}")));
        let names: Vec<Stub> = iter::from_fn(|| names.next()).take(count).collect();
        call.clone().with_stubs(names)
    };
    assert!(many(MAX_STUBS).is_ok());
    assert_eq!(many(MAX_STUBS + 1), Err(CallError::Stubs));
}

#[test]
fn a_module_that_imports_more_than_a_call_may_have_stubs_for_is_refused() {
    let importing = |count: usize| {
        let import = |nth: usize| format!(r#"(import "env" "{}" (func))"#, nth % count);
        // Each import stands twice, which counts once.
        let imports: String = (0..2 * count).map(import).collect();
        Module::compile(&wasm(&format!("(module {imports})")), &limits())
    };
    let most = importing(MAX_STUBS).unwrap();
    assert_eq!(most.missing().count(), MAX_STUBS);
    for count in [MAX_STUBS + 1, 3_000] {
        let error = importing(count).unwrap_err();
        assert!(
            matches!(&error, ModuleError::TooMuch(what) if what.contains("imports more than 16")),
            "{error}"
        );
    }
}

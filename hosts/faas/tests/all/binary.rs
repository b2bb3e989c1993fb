//! Start functions, which become exports.

use selvedge_faas::{Call, Module, ModuleError, Run};

use crate::support::{limits, run, value, wasm};

#[test]
fn a_start_function_runs_wherever_its_section_is() {
    let begin =
        "(global $n (mut i32) (i32.const 0)) (func $s (global.set $n (i32.const 7))) (start $s)";
    let get = r#"(func (export "f") (result i32) (global.get $n))"#;
    for rest in [
        "",
        r#"(memory 1) (data (i32.const 0) "abc")"#,
        "(table 1 funcref) (elem (i32.const 0) $s)",
        r#"(memory 1) (data $d "abc") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))"#,
        r#"(@custom "name" (before start) "x") (@custom "other" (after start) "y")"#,
    ] {
        let text = format!("(module {begin} {get} {rest})");
        assert_eq!(value(&run(&text, &[])), "7", "{rest}");
    }
    // Without another export, a section is added for it.
    let alone = format!("(module {begin} (memory 1) (data (i32.const 0) \"a\"))");
    let module = Module::compile(&wasm(&alone), &limits()).unwrap();
    let call = Call::new(module.id(), "f", []).unwrap();
    assert!(module.check(&call).is_err());
}

#[test]
fn many_exports_are_kept_besides_the_start_function() {
    // 127 exports take one byte for their number, and 128 take two.
    let padding = "(drop (i64.const 0x123456789abcdef))".repeat(4);
    let exports: String = (0..127)
        .map(|nth| format!(r#"(func (export "f{nth}") (result i32) {padding} (i32.add (i32.const {nth}) (global.get $n)))"#))
        .collect();
    let begin =
        "(global $n (mut i32) (i32.const 0)) (func $s (global.set $n (i32.const 1000))) (start $s)";
    let module = Module::compile(&wasm(&format!("(module {begin} {exports})")), &limits()).unwrap();
    for nth in [0, 63, 126] {
        let call = Call::new(module.id(), &format!("f{nth}"), []).unwrap();
        let ran = Run::new(&module, &call, &limits()).finish();
        assert_eq!(value(&ran), (1_000 + nth).to_string());
    }
}

fn refused(bytes: &[u8]) -> bool {
    matches!(
        Module::compile(bytes, &limits()),
        Err(ModuleError::Invalid(_))
    )
}

#[test]
fn a_start_function_that_is_none_is_refused() {
    let parts = |sections: &[&[u8]]| {
        let mut bytes = b"\0asm\x01\0\0\0".to_vec();
        sections.iter().for_each(|it| bytes.extend(*it));
        bytes
    };
    let types = b"\x01\x08\x02\x60\0\0\x60\x01\x7f\0"; // () and (i32)
    let functions = b"\x03\x03\x02\0\x01";
    let code = b"\x0a\x07\x02\x02\0\x0b\x02\0\x0b";
    let start = |index: u8| [8, 1, index];
    let whole = |start: &[u8]| parts(&[types, functions, start, code]);
    assert!(!refused(&whole(&start(0))));
    assert!(refused(&whole(&start(1))), "it has a parameter");
    assert!(refused(&whole(&start(2))), "it is not there");
    assert!(
        refused(&whole(&[start(0), start(0)].concat())),
        "there are two"
    );
    assert!(refused(&whole(b"\x08\x02\0\0")), "its section is too long");
    assert!(refused(&whole(b"\x08\0")), "its section is empty");
    assert!(
        refused(&parts(&[types, functions, code, &start(0)])),
        "it comes late"
    );
    // The name of the new export must be unique.
    let named = wasm(r#"(module (func $s) (start $s) (func (export "selvedge:start")))"#);
    assert!(refused(&named));
    let named = wasm(r#"(module (func (export "selvedge:start")))"#);
    assert!(!refused(&named));
}

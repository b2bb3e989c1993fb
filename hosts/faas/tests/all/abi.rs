//! Arguments and results of exports.

use selvedge_faas::{Call, CallMismatch, Failure, Module, ModuleError, Trap};

use crate::support::{arguments, failed, limits, run, run_within, trapped, value, wasm};

/// A module that reads its arguments by imports, and writes all of them, one after another.
const READS: &str = r#"(module
    (import "selvedge" "argument_count" (func $count (result i32)))
    (import "selvedge" "argument_len" (func $len (param i32) (result i32)))
    (import "selvedge" "argument_read" (func $read (param i32 i32)))
    (import "selvedge" "result_write" (func $write (param i32 i32)))
    (memory (export "memory") 1)
    (func (export "f") (local $nth i32) (local $at i32)
        (block $end (loop $next
            (br_if $end (i32.ge_u (local.get $nth) (call $count)))
            (call $read (local.get $nth) (local.get $at))
            (local.set $at (i32.add (local.get $at) (call $len (local.get $nth))))
            (local.set $nth (i32.add (local.get $nth) (i32.const 1)))
            (br $next)))
        (call $write (i32.const 0) (local.get $at))))"#;

#[test]
fn an_export_without_parameters_reads_arguments_of_all_kinds() {
    let ran = run(READS, &["7", "-2i64", "1.5f32", "1.5", "text:abc", "hex:"]);
    let wanted = "hex:07000000feffffffffffffff0000c03f000000000000f83f616263";
    assert_eq!(value(&ran), wanted);
    assert_eq!(value(&run(READS, &[])), "");
}

#[test]
fn an_export_with_parameters_takes_numbers_as_such() {
    let of = |ty: &str, add: &str| {
        format!(
            "(module (func (export \"f\") (param {ty} {ty}) (result {ty}) ({add} (local.get 0) (local.get 1))))"
        )
    };
    assert_eq!(value(&run(&of("i32", "i32.sub"), &["3", "5"])), "-2");
    assert_eq!(
        value(&run(&of("i64", "i64.sub"), &["3i64", "5i64"])),
        "-2i64"
    );
    assert_eq!(
        value(&run(&of("f32", "f32.sub"), &["3f32", "5.5f32"])),
        "-2.5f32"
    );
    assert_eq!(value(&run(&of("f64", "f64.sub"), &["3.0", "1.0"])), "2.0");
}

/// A module that sums the bytes of two ranges, and logs their places.
fn sums(allocator: &str) -> String {
    format!(
        r#"(module
        (import "selvedge" "log" (func $log (param i32 i32)))
        (memory (export "any name") 1)
        {allocator}
        (func $sum (param $at i32) (param $len i32) (result i32) (local $sum i32)
            (block $end (loop $next
                (br_if $end (i32.eqz (local.get $len)))
                (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $at))))
                (local.set $at (i32.add (local.get $at) (i32.const 1)))
                (local.set $len (i32.sub (local.get $len) (i32.const 1)))
                (br $next)))
            (local.get $sum))
        (func (export "f") (param i32 i32 i64 i32 i32) (result i32)
            (i32.store (i32.const 8) (local.get 0))
            (i32.store (i32.const 12) (local.get 3))
            (call $log (i32.const 8) (i32.const 8))
            (i32.add
                (i32.mul (i32.const 1000) (call $sum (local.get 0) (local.get 1)))
                (call $sum (local.get 3) (local.get 4)))))"#
    )
}

/// The places of the two ranges, from the log.
fn places(log: &[u8]) -> [u32; 2] {
    let at = |it: usize| u32::from_le_bytes(log[it..it + 4].try_into().unwrap());
    [at(0), at(4)]
}

#[test]
fn bytes_lie_where_the_module_allocates_them() {
    for name in ["alloc", "malloc"] {
        let bump = format!(
            r#"(global $next (mut i32) (i32.const 1024))
            (func (export "{name}") (param i32) (result i32)
                (global.get $next)
                (global.set $next (i32.add (global.get $next) (local.get 0))))"#
        );
        let ran = run(&sums(&bump), &["hex:0102", "0i64", "hex:030405"]);
        assert_eq!(value(&ran), "3012");
        assert_eq!(places(&ran.log), [1024, 1026]);
    }
}

#[test]
fn bytes_lie_in_pages_at_the_end_where_nothing_allocates_them() {
    let ran = run(&sums(""), &["hex:0102", "0i64", "hex:030405"]);
    assert_eq!(value(&ran), "3012");
    assert_eq!(places(&ran.log), [65_536, 65_552]);
    // Pages are added once, though the first bytes are empty.
    let two = limits().with_memory(2 * 65_536);
    let ran = run_within(&two, &sums(""), &["hex:", "0i64", "hex:030405"]);
    assert_eq!(
        (value(&ran).as_str(), places(&ran.log)),
        ("12", [65_536; 2])
    );
    // An export of another type is no allocator.
    let other = r#"(func (export "alloc") (param i64) (result i32) unreachable)"#;
    assert_eq!(
        value(&run(&sums(other), &["hex:0102", "0i64", "hex:"])),
        "3000"
    );
    // Without bytes no page is added: there might be no room for one.
    let full = limits().with_memory(65_536);
    assert_eq!(
        value(&run_within(&full, &sums(""), &["hex:", "0i64", "hex:"])),
        "0"
    );
    let ran = run_within(&full, &sums(""), &["hex:", "0i64", "hex:01"]);
    assert_eq!(ran.outcome, failed(Failure::OutOfMemory));
    let bounded = sums("").replace(r#"(export "any name") 1"#, r#"(export "any name") 1 1"#);
    let ran = run(&bounded, &["hex:", "0i64", "hex:01"]);
    assert_eq!(ran.outcome, failed(Failure::OutOfMemory));
}

#[test]
fn a_page_and_what_is_copied_into_it_cost_fuel() {
    let nothing = r#"(module (memory (export "m") 1) (func (export "f") (param i32 i32)))"#;
    let fuel = |len: usize| run(nothing, &[&format!("hex:{}", "00".repeat(len))]).fuel;
    // One unit for 64 bytes each.
    assert_eq!(fuel(640) - fuel(0), 65_536 / 64 + 640 / 64);
}

#[test]
fn an_allocator_may_give_null_for_nothing() {
    let null = r#"(func (export "alloc") (param i32) (result i32) i32.const 0)"#;
    assert_eq!(value(&run(&sums(null), &["hex:", "0i64", "hex:"])), "0");
}

#[test]
fn an_allocator_that_fails_fails_the_call() {
    let of = |answer: &str| {
        sums(&format!(
            r#"(func (export "alloc") (param i32) (result i32) {answer})"#
        ))
    };
    let outcome = |answer: &str| run(&of(answer), &["hex:0102", "0i64", "hex:03"]).outcome;
    assert_eq!(outcome("i32.const 0"), failed(Failure::OutOfMemory));
    assert_eq!(outcome("i32.const -1"), trapped(Trap::MemoryOutOfBounds));
    assert_eq!(outcome("i32.const 65535"), trapped(Trap::MemoryOutOfBounds));
    assert_eq!(outcome("unreachable"), trapped(Trap::Unreachable));
    assert_eq!(
        outcome("(loop (br 0)) unreachable"),
        failed(Failure::OutOfFuel)
    );
}

#[test]
fn a_result_of_wasm_bindgen_lies_behind_a_pointer() {
    let of = |len: u32| {
        format!(
            r#"(module
            (memory (export "memory") 1)
            (global $stack (mut i32) (i32.const 4096))
            (func (export "__wbindgen_add_to_stack_pointer") (param i32) (result i32)
                (global.set $stack (i32.add (global.get $stack) (local.get 0)))
                (global.get $stack))
            (func (export "__wbindgen_malloc") (param i32 i32) (result i32)
                (i32.add (i32.const 8191) (local.get 1)))
            (func (export "f") (param i32 i32 i32 i32)
                (i32.store8 (local.get 1) (local.get 3))
                (i32.store (local.get 0) (local.get 1))
                (i32.store offset=4 (local.get 0)
                    (i32.add (local.get 2) (i32.const {len})))))"#
        )
    };
    assert_eq!(value(&run(&of(0), &["text:-bc", "97"])), "abc");
    // The stack grows towards zero.
    let full = of(0).replace("(i32.const 4096)", "(i32.const 65536)");
    assert_eq!(value(&run(&full, &["text:-bc", "97"])), "abc");
    // The result may be too long, or beyond the memory.
    assert_eq!(
        value(&run(&of(253), &["text:-bc", "97"])).len(),
        4 + 2 * 256
    );
    assert_eq!(
        run(&of(254), &["text:-bc", "97"]).outcome,
        failed(Failure::ResultTooLong)
    );
    let large = limits().with_result(65_535);
    let ran = run_within(&large, &of(60_000), &["text:-bc", "97"]);
    assert_eq!(ran.outcome, trapped(Trap::MemoryOutOfBounds));
}

#[test]
fn what_is_written_last_is_the_result() {
    let of = |end: &str| {
        format!(
            r#"(module
            (import "selvedge" "result_write" (func $write (param i32 i32)))
            (memory (export "memory") 1) (data (i32.const 0) "onetwo")
            (func (export "f") (result i32)
                (call $write (i32.const 0) (i32.const 3))
                (call $write (i32.const 3) (i32.const 3))
                {end}))"#
        )
    };
    assert_eq!(value(&run(&of("i32.const 5"), &[])), "two");
    assert_eq!(
        run(&of("unreachable"), &[]).outcome,
        trapped(Trap::Unreachable)
    );
}

#[test]
fn a_result_may_have_as_many_bytes_as_the_limit_says() {
    let of = |len: u32| {
        format!(
            r#"(module
            (import "selvedge" "result_write" (func $write (param i32 i32)))
            (memory (export "memory") 1)
            (func (export "f") (call $write (i32.const 0) (i32.const {len}))))"#
        )
    };
    assert_eq!(value(&run(&of(256), &[])).len(), 4 + 512);
    assert_eq!(run(&of(257), &[]).outcome, failed(Failure::ResultTooLong));
    // The text of a number, too.
    let number = r#"(module (func (export "f") (result i32) i32.const -12345))"#;
    let short = limits().with_result(6);
    assert_eq!(value(&run_within(&short, number, &[])), "-12345");
    let ran = run_within(&short.with_result(5), number, &[]);
    assert_eq!(ran.outcome, failed(Failure::ResultTooLong));
}

#[test]
fn the_log_takes_what_it_has_room_for() {
    let text = r#"(module
        (import "selvedge" "log" (func $log (param i32 i32)))
        (memory (export "memory") 1) (data (i32.const 0) "0123456789")
        (func (export "f")
            (call $log (i32.const 0) (i32.const 7))
            (call $log (i32.const 3) (i32.const 7))
            (call $log (i32.const 0) (i32.const 7))
            unreachable))"#;
    let ran = run_within(&limits().with_log(10), text, &[]);
    assert_eq!(ran.log, b"0123456345");
    // The log is kept when the call fails: that is its purpose.
    assert_eq!(ran.outcome, trapped(Trap::Unreachable));
    assert_eq!(run_within(&limits().with_log(0), text, &[]).log, b"");
}

#[test]
fn an_import_that_is_given_nonsense_traps() {
    let of = |call: &str, memory: &str| {
        format!(
            r#"(module
            (import "selvedge" "argument_len" (func $len (param i32) (result i32)))
            (import "selvedge" "argument_read" (func $read (param i32 i32)))
            (import "selvedge" "result_write" (func $write (param i32 i32)))
            (import "selvedge" "log" (func $log (param i32 i32)))
            (memory {memory} 1)
            (func (export "f") {call}))"#
        )
    };
    let exported = r#"(export "memory")"#;
    let outcome = |call: &str| run(&of(call, exported), &["text:abc"]).outcome;
    let out = trapped(Trap::MemoryOutOfBounds);
    assert_eq!(outcome("(call $read (i32.const 0) (i32.const 65534))"), out);
    assert_eq!(outcome("(call $read (i32.const 0) (i32.const -1))"), out);
    assert_eq!(
        outcome("(call $write (i32.const 65530) (i32.const 7))"),
        out
    );
    assert_eq!(outcome("(call $log (i32.const -1) (i32.const 1))"), out);
    assert_eq!(outcome("(call $log (i32.const 1) (i32.const -1))"), out);
    let none = trapped(Trap::NoArgument);
    assert_eq!(outcome("(call $read (i32.const 1) (i32.const 0))"), none);
    assert_eq!(outcome("(call $read (i32.const -1) (i32.const 0))"), none);
    let len = of(
        "(call $write (i32.const 0) (i32.eqz (i32.add (i32.const 1) (call $len (i32.const 9)))))",
        exported,
    );
    assert_eq!(value(&run(&len, &[])), "hex:00");
    let hidden = run(&of("(call $write (i32.const 0) (i32.const 0))", ""), &[]);
    assert_eq!(hidden.outcome, trapped(Trap::NoMemory));
}

#[test]
fn initialize_runs_first_and_after_the_start_function() {
    let text = r#"(module
        (global $seen (mut i32) (i32.const 0))
        (func $note (param i32)
            (global.set $seen (i32.add (i32.mul (global.get $seen) (i32.const 10)) (local.get 0))))
        (func $begin (call $note (i32.const 1)))
        (start $begin)
        (func (export "_initialize") (call $note (i32.const 2)))
        (func (export "f") (result i32) (call $note (i32.const 3)) (global.get $seen)))"#;
    assert_eq!(value(&run(text, &[])), "123");
    // Each call has its own instance: no state of the call before is left.
    assert_eq!(value(&run(text, &[])), "123");
}

#[test]
fn what_is_named_initialize_and_takes_or_returns_something_is_not_called() {
    for ty in ["(param i32)", "(result i32)"] {
        let text = format!(
            r#"(module
            (func (export "_initialize") {ty} unreachable)
            (func (export "f") (result i32) i32.const 7))"#
        );
        assert_eq!(value(&run(&text, &[])), "7");
    }
}

#[test]
fn a_start_function_is_no_export() {
    let text = r#"(module (func $begin) (start $begin) (func (export "f")) (global (export "g") i32 i32.const 1))"#;
    let module = Module::compile(&wasm(text), &limits()).unwrap();
    assert_eq!(module.functions().collect::<Vec<_>>(), ["f"]);
}

fn mismatch(text: &str, texts: &[&str]) -> CallMismatch {
    let module = Module::compile(&wasm(text), &limits()).unwrap();
    let call = Call::new(module.id(), "f", arguments(texts)).unwrap();
    let mismatch = module.check(&call).unwrap_err();
    // A run returns the same, with fewer details.
    let wanted = match mismatch {
        CallMismatch::NoExport(_) => Failure::NoExport,
        _ => Failure::WrongArguments,
    };
    let ran = run(text, texts);
    assert_eq!((ran.outcome, ran.fuel), (failed(wanted), 0));
    mismatch
}

#[test]
fn a_call_that_does_not_match_its_export_is_refused_before_it_runs() {
    let takes = |parameters: &str| CallMismatch::Arguments {
        parameters: parameters.to_owned(),
    };
    let text = r#"(module (memory (export "m") 1) (func (export "f") (param i32 i64 f32 f64)))"#;
    let types = takes("i32, i64, f32, f64");
    for texts in [
        &["1", "1", "1f32", "1.0"][..],
        &["1"],
        &[],
        &["1", "1i64", "1f32", "1.0", "1"],
    ] {
        assert_eq!(mismatch(text, texts), types, "{texts:?}");
    }
    assert_eq!(mismatch(text, &["hex:00"]), types);
    let text = r#"(module (func (export "f") (param i32 i32)))"#;
    assert_eq!(mismatch(text, &["hex:00"]), CallMismatch::NoMemory);
    let text = r#"(module (func (export "g")) (memory (export "f") 1))"#;
    assert_eq!(mismatch(text, &[]), CallMismatch::NoExport("f".to_owned()));
    let text = r#"(module (func (export "f") (result i32 i32) i32.const 1 i32.const 2))"#;
    assert_eq!(mismatch(text, &[]), CallMismatch::Results);
    let text = r#"(module (func (export "f") (result externref) ref.null extern))"#;
    assert_eq!(mismatch(text, &[]), CallMismatch::Results);
    let text = r#"(module (func (export "f") (param externref)))"#;
    assert_eq!(mismatch(text, &["1"]), takes("externref"));
    // Arguments that the function would not read.
    assert_eq!(
        mismatch(r#"(module (func (export "f")))"#, &["1"]),
        takes("")
    );
}

#[test]
fn imports_that_there_are_not_are_named() {
    let refused =
        |import: &str| Module::compile(&wasm(&format!("(module (import {import}))")), &limits());
    let unknown = |module: &str, name: &str| ModuleError::UnknownImport {
        module: module.to_owned(),
        name: name.to_owned(),
    };
    let error = refused(r#""selvedge" "clock" (func (result i64))"#);
    assert_eq!(error.unwrap_err(), unknown("selvedge", "clock"));
    let error = refused(r#""env" "memory" (memory 1)"#);
    assert_eq!(error.unwrap_err(), unknown("env", "memory"));
    for ty in [
        "(func (param i32))",
        "(func (param i64 i32))",
        "(func (param i32 i32) (result i32))",
        "(memory 1)",
        "(global i32)",
    ] {
        let error = refused(&format!(r#""selvedge" "log" {ty}"#)).unwrap_err();
        let name = "log".to_owned();
        assert_eq!(error, ModuleError::ImportType { name }, "{ty}");
    }
    // The same import twice counts once.
    let twice = r#"(module
        (import "selvedge" "log" (func (param i32 i32)))
        (import "selvedge" "log" (func (param i32 i32)))
        (func (export "f") (result i32) i32.const 1))"#;
    assert_eq!(value(&run(twice, &[])), "1");
}

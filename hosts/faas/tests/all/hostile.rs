//! Hostile modules.

use selvedge_faas::wasm::MAX_CALLS;
use selvedge_faas::{Call, Engine, Failure, Limits, Module, ModuleError, Outcome, Trap};

use crate::support::{failed, limits, run, run_within, trapped, value, wasm};

/// The number of bytes of a thread's stack on a small host.
const SMALL_STACK: usize = 512 * 1_024;

fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(SMALL_STACK);
    thread.spawn(work).unwrap().join().unwrap()
}

fn refused(text: &str) -> ModuleError {
    Module::compile(&wasm(text), &limits()).unwrap_err()
}

#[test]
fn a_loop_ends_when_its_fuel_does() {
    let ran = run(r#"(module (func (export "f") (loop (br 0))))"#, &[]);
    assert_eq!(
        (ran.outcome, ran.fuel),
        (failed(Failure::OutOfFuel), 1_000_000)
    );
}

#[test]
fn a_start_function_that_loops_ends_when_its_fuel_does() {
    let text = r#"(module (func $s (loop (br 0))) (start $s) (func (export "f")))"#;
    let ran = run(text, &[]);
    assert_eq!(
        (ran.outcome, ran.fuel),
        (failed(Failure::OutOfFuel), 1_000_000)
    );
    // And it can be stopped between slices.
    let (ran, slices) = crate::support::run_in_slices(&limits(), &wasm(text), &[], 1_000);
    assert_eq!(ran.outcome, failed(Failure::OutOfFuel));
    assert_eq!(slices, 1_000);
}

#[test]
fn imports_take_fuel_for_what_they_copy() {
    // Each turn copies 4 KiB: the fuel suffices for some 15,000 turns, not for 250,000.
    let text = r#"(module
        (import "selvedge" "argument_read" (func $read (param i32 i32)))
        (memory (export "memory") 1)
        (global $turns (export "turns") (mut i32) (i32.const 0))
        (func (export "f") (result i32) (local $turns i32)
            (loop $next
                (call $read (i32.const 0) (i32.const 0))
                (local.set $turns (i32.add (local.get $turns) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $turns) (i32.const 10000))))
            (local.get $turns)))"#;
    let bytes = format!("hex:{}", "00".repeat(4_096));
    let ran = run(text, &[&bytes]);
    assert_eq!(value(&ran), "10000");
    assert!((640_000..800_000).contains(&ran.fuel), "{}", ran.fuel);
    let short = limits().with_fuel(600_000);
    let ran = run_within(&short, text, &[&bytes]);
    assert_eq!(
        (ran.outcome, ran.fuel),
        (failed(Failure::OutOfFuel), 600_000)
    );
}

#[test]
fn memory_ends_at_the_limit() {
    let grows = r#"(module (memory 1) (func (export "f") (result i32)
        (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (memory.size)))"#;
    assert_eq!(run(grows, &[]).outcome, failed(Failure::OutOfMemory));
    // A module's own limit is independent.
    let bounded = grows.replace("(memory 1)", "(memory 1 3)");
    assert_eq!(value(&run(&bounded, &[])), "3");
    let exact = r#"(module (memory 4) (func (export "f") (result i32) memory.size))"#;
    assert_eq!(value(&run(exact, &[])), "4");
    for pages in ["5", "65536"] {
        let more = exact.replace("(memory 4)", &format!("(memory {pages})"));
        assert_eq!(
            run(&more, &[]).outcome,
            failed(Failure::OutOfMemory),
            "{pages}"
        );
    }
    let more = r#"(module (memory 0) (func (export "f") (drop (memory.grow (i32.const 65536)))))"#;
    assert_eq!(run(more, &[]).outcome, failed(Failure::OutOfMemory));
}

#[test]
fn memory_takes_fuel() {
    let text = r#"(module (memory 4) (func (export "f")))"#;
    let ran = run(text, &[]);
    assert!((4_096..4_106).contains(&ran.fuel), "{}", ran.fuel);
    let ran = run_within(&limits().with_fuel(4_000), text, &[]);
    assert_eq!((ran.outcome, ran.fuel), (failed(Failure::OutOfFuel), 4_000));
    // A memory cannot shrink; a module can fill it again and again.
    let fills = r#"(module (memory 4) (func (export "f")
        (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 262144)) (br 0))))"#;
    let ran = run(fills, &[]);
    assert_eq!(ran.outcome, failed(Failure::OutOfFuel));
}

#[test]
fn tables_count_as_memory_and_do_not_grow() {
    let of = |elements: u32| {
        format!(
            r#"(module (table {elements} funcref) (table 1 externref) (memory 1)
            (func (export "f") (result i32) (table.size 0)))"#
        )
    };
    let most = (4 * 65_536 - 65_536) / 8 - 1;
    assert_eq!(value(&run(&of(most), &[])), most.to_string());
    assert_eq!(
        run(&of(most + 1), &[]).outcome,
        failed(Failure::OutOfMemory)
    );
    assert_eq!(
        run(&of(4_000_000_000), &[]).outcome,
        failed(Failure::OutOfMemory)
    );
    let grows = r#"(module (table 1 funcref)
        (func (export "f") (result i32) (table.grow 0 (ref.null func) (i32.const 1))))"#;
    assert_eq!(value(&run(grows, &[])), "-1");
    let many = "(table 0 funcref)".repeat(101);
    assert!(matches!(
        refused(&format!("(module {many})")),
        ModuleError::Invalid(_)
    ));
}

#[test]
fn a_module_has_a_bounded_number_of_everything() {
    let too_much = |part: &str, times: usize| {
        let error = refused(&format!("(module (memory 1) {})", part.repeat(times)));
        assert!(matches!(error, ModuleError::TooMuch(_)), "{part}: {error}");
    };
    too_much("(global i32 (i32.const 1))", 1_001);
    too_much("(data (i32.const 0) \"a\")", 1_001);
    too_much("(func)", 10_001);
    let parameters = "i32 ".repeat(33);
    too_much(&format!("(type (func (param {parameters})))"), 1);
    // There is one memory in WebAssembly 2.0.
    let two = refused("(module (memory 1) (memory 1))");
    assert!(matches!(two, ModuleError::Invalid(_)), "{two}");
    let fine = format!(
        "(module {} (func (export \"f\")))",
        "(global i32 (i32.const 1))".repeat(1_000)
    );
    assert_eq!(value(&run(&fine, &[])), "");
}

#[test]
fn a_module_that_is_too_long_is_not_looked_at() {
    let bytes = wasm(&format!(
        "(module (memory 1) (data \"{}\"))",
        "a".repeat(1_000)
    ));
    let len = bytes.len() as u32;
    let error = Module::compile(&bytes, &limits().with_module(len - 1)).unwrap_err();
    let wanted = ModuleError::TooLong {
        len: bytes.len(),
        most: len - 1,
    };
    assert_eq!(error, wanted);
    assert!(Module::compile(&bytes, &limits().with_module(len)).is_ok());
}

#[test]
fn what_webassembly_forbids_is_a_trap_of_its_kind() {
    let of = |body: &str| {
        let text = format!(
            r#"(module (memory 1) (table 2 funcref) (elem (i32.const 0) $g)
            (type $other (func (param i64)))
            (func $g)
            (func (export "f") {body}))"#
        );
        run(&text, &[]).outcome
    };
    assert_eq!(of("unreachable"), trapped(Trap::Unreachable));
    let by_zero = "(drop (i32.div_s (i32.const 1) (i32.const 0)))";
    assert_eq!(of(by_zero), trapped(Trap::DivisionByZero));
    let by_zero = "(drop (i64.rem_u (i64.const 1) (i64.const 0)))";
    assert_eq!(of(by_zero), trapped(Trap::DivisionByZero));
    let least = "(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))";
    assert_eq!(of(least), trapped(Trap::Overflow));
    let large = "(drop (i32.trunc_f32_s (f32.const 1e30)))";
    assert_eq!(of(large), trapped(Trap::Overflow));
    assert_eq!(
        of("(drop (i32.trunc_f32_s (f32.const nan)))"),
        trapped(Trap::NotANumber)
    );
    let out = trapped(Trap::MemoryOutOfBounds);
    assert_eq!(of("(drop (i32.load (i32.const 65533)))"), out);
    assert_eq!(of("(i32.store8 (i32.const -1) (i32.const 1))"), out);
    assert_eq!(
        of("(drop (i32.load offset=4294967295 (i32.const 65533)))"),
        out
    );
    assert_eq!(
        of("(memory.fill (i32.const 1) (i32.const 1) (i32.const 65536))"),
        out
    );
    assert_eq!(
        of("(memory.copy (i32.const 1) (i32.const 0) (i32.const -1))"),
        out
    );
    assert_eq!(of("(call_indirect (i32.const 1))"), trapped(Trap::NullCall));
    assert_eq!(
        of("(call_indirect (i32.const 2))"),
        trapped(Trap::TableOutOfBounds)
    );
    let other = "(call_indirect (type $other) (i64.const 1) (i32.const 0))";
    assert_eq!(of(other), trapped(Trap::BadSignature));
    assert_eq!(
        of("(drop (table.get 0 (i32.const 9)))"),
        trapped(Trap::TableOutOfBounds)
    );
}

#[test]
fn segments_that_do_not_fit_are_traps() {
    let data = r#"(module (memory 1) (data (i32.const 65535) "ab") (func (export "f")))"#;
    assert_eq!(run(data, &[]).outcome, trapped(Trap::MemoryOutOfBounds));
    let elements =
        r#"(module (table 1 funcref) (elem (i32.const 1) $g) (func $g) (func (export "f")))"#;
    assert_eq!(run(elements, &[]).outcome, trapped(Trap::TableOutOfBounds));
}

/// A function that calls itself to the depth in its argument, with these variables at each level.
fn recursion(locals: &str) -> String {
    format!(
        r#"(module (func $f (export "f") (param i32) (result i32) {locals}
            (if (result i32) (i32.eqz (local.get 0))
                (then (i32.const 0))
                (else (i32.add (i32.const 1) (call $f (i32.sub (local.get 0) (i32.const 1))))))))"#
    )
}

#[test]
fn recursion_ends_at_the_limit_and_takes_no_native_stack() {
    let deepest = (MAX_CALLS - 1).to_string();
    let (fits, not, endless) = on_a_small_stack(move || {
        let text = recursion("");
        let fits = run(&text, &[&deepest]);
        let not = run(&text, &[&MAX_CALLS.to_string()]);
        (value(&fits), not.outcome, run(&text, &["-1"]).outcome)
    });
    assert_eq!(fits, (MAX_CALLS - 1).to_string());
    assert_eq!(not, trapped(Trap::StackOverflow));
    assert_eq!(endless, trapped(Trap::StackOverflow));
    // Large frames fill the interpreter's stack sooner.
    let large = recursion(&format!("(local {})", "i64 ".repeat(1_000)));
    assert_eq!(run(&large, &["20"]).outcome, Outcome::Value(b"20".to_vec()));
    assert_eq!(run(&large, &["100"]).outcome, trapped(Trap::StackOverflow));
}

#[test]
fn long_code_takes_no_native_stack() {
    // Each instruction would be a native call, if calls were not turned into jumps.
    let ended = on_a_small_stack(|| {
        let text = format!(
            "(module (func (export \"f\") (param i32) (result i32) (local.get 0) {}))",
            "(i32.const 1) i32.add (i32.popcnt) (i32.clz)".repeat(5_000)
        );
        let straight = run(&text, &["1"]).outcome;
        let around = r#"(module (func (export "f") (param i32) (result i32) (local i32)
            (loop
                (local.set 1 (i32.add (i32.const 3) (i32.mul (local.get 1) (i32.const 5))))
                (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
            (local.get 1)))"#;
        (straight, run(around, &["50000"]).outcome)
    });
    assert!(
        matches!(ended, (Outcome::Value(_), Outcome::Value(_))),
        "{ended:?}"
    );
}

#[test]
fn deep_nesting_is_validated_and_run_without_native_stack() {
    on_a_small_stack(|| {
        for depth in [1_000, 20_000] {
            let text = format!(
                "(module (func (export \"f\") (result i32) {} i32.const 7 {}))",
                "block (result i32) ".repeat(depth),
                "end ".repeat(depth)
            );
            // The reader of the text format, which is not under test, needs a large stack.
            let bytes = std::thread::Builder::new().stack_size(1 << 28);
            let bytes = bytes.spawn(move || wasm(&text)).unwrap().join().unwrap();
            let mut engine = Engine::new(limits()).unwrap();
            let id = engine.insert(&bytes).unwrap();
            let ran = engine.run(&Call::new(id, "f", []).unwrap());
            assert_eq!(ran.outcome, Outcome::Value(b"7".to_vec()));
        }
    });
}

#[test]
fn constant_expressions_do_not_nest() {
    // The interpreter would evaluate them on the native stack.
    let nested = r#"(module (global i32 (i32.add (i32.const 1) (i32.const 2))))"#;
    assert!(matches!(refused(nested), ModuleError::Invalid(_)));
}

#[test]
fn a_function_has_a_bounded_number_of_variables() {
    let of = |count: usize| {
        format!(
            "(module (func) (func (export \"f\") (local {})))",
            "i64 ".repeat(count)
        )
    };
    assert_eq!(value(&run(&of(1_024), &[])), "");
    assert_eq!(refused(&of(1_025)), ModuleError::Locals(1_025));
    // 50,000 variables are 400,000 bytes to clear at each call.
    assert_eq!(refused(&of(50_000)), ModuleError::Locals(50_000));
}

#[test]
fn features_that_are_not_there_are_refused() {
    for text in [
        "(module (memory i64 1))",
        "(module (func (result v128) (v128.const i64x2 0 0)))",
        "(module (func $f (return_call $f)))",
        "(module (tag))",
        "(module (memory 1 2 shared))",
    ] {
        assert!(matches!(refused(text), ModuleError::Invalid(_)), "{text}");
    }
}

#[test]
fn bytes_that_are_no_module_are_refused() {
    let whole = wasm(
        r#"(module (memory 1) (func $s) (start $s) (func (export "f")) (data (i32.const 0) "abc"))"#,
    );
    for len in 0..whole.len() {
        // A module may end after any section; the shortest one is its header.
        if let Ok(module) = Module::compile(&whole[..len], &limits()) {
            assert!(len == 8 || whole[len] <= 12, "{len} {module:?}");
        }
    }
    for bytes in [
        &b""[..],
        b"hello",
        b"\0asm\x02\0\0\0",
        b"\0asm\x01\0\0\0\x07",
        b"\0asm\x01\0\0\0\x01\xff\xff\xff\xff\x0f",
    ] {
        let error = Module::compile(bytes, &limits()).unwrap_err();
        assert!(matches!(error, ModuleError::Invalid(_)), "{bytes:?}");
    }
}

#[test]
fn the_largest_module_of_jump_tables_compiles_in_bounded_memory_and_time() {
    // A compiled jump table takes more than its bytes.
    let targets = "0 ".repeat(20_000);
    let text = format!("(module (func (export \"f\") (br_table {targets} (i32.const 5))))");
    let module = Module::compile(&wasm(&text), &Limits::new());
    assert!(module.is_ok(), "{module:?}");
}

#[test]
fn code_after_the_end_of_a_function_is_refused() {
    // A function's type, the function, and its body: no variables, `end`, and the rest.
    let with = |rest: &[u8]| {
        let mut bytes = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0".to_vec();
        let body = [b"\0\x0b", rest].concat();
        bytes.extend([0x0a, body.len() as u8 + 2, 1, body.len() as u8]);
        bytes.extend(body);
        Module::compile(&bytes, &limits())
    };
    assert!(with(b"").is_ok());
    for rest in [
        &b"\x01"[..],
        b"\x0b",
        b"\x01\x0b",
        b"\x00\x0b",
        b"\x41\0\x1a\x0b",
        b"\x20\0",
        b"\x0c\0",
        b"\x02\x40\x0b\x0b",
    ] {
        let error = with(rest).unwrap_err();
        assert!(
            matches!(error, ModuleError::Invalid(_)),
            "{rest:?}: {error}"
        );
    }
}

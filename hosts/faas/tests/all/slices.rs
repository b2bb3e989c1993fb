//! The same call has the same outcome and takes the same fuel, in slices or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use selvedge_faas::{Call, Module, Run, Step};

use crate::support::{limits, run_in_slices, wasm};

/// Calls, bulk memory, tables, imports that copy, growing, a start function and an allocator.
const MIXED: &str = r#"(module
    (import "selvedge" "argument_len" (func $len (param i32) (result i32)))
    (import "selvedge" "argument_read" (func $read (param i32 i32)))
    (import "selvedge" "result_write" (func $write (param i32 i32)))
    (import "selvedge" "log" (func $log (param i32 i32)))
    (memory (export "memory") 1)
    (table $t 8 funcref)
    (elem $e func $inc $twice)
    (global $next (mut i32) (i32.const 2048))
    (func $inc (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
    (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
    (func $begin (local i32)
        (loop (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 50))))
        (table.init $t $e (i32.const 2) (i32.const 0) (i32.const 2)))
    (start $begin)
    (func (export "alloc") (param i32) (result i32)
        (global.get $next)
        (global.set $next (i32.add (global.get $next) (local.get 0))))
    (func (export "f") (param $at i32) (param $size i32) (param $turns i32) (result i32)
        (local $sum i32) (local $i i32)
        (loop $next
            (drop (memory.grow (i32.const 0)))
            (call $read (i32.const 0) (i32.const 8192))
            (memory.copy (i32.const 20000) (i32.const 8192) (call $len (i32.const 0)))
            (memory.fill (i32.const 40000) (local.get $i) (i32.const 3000))
            (local.set $sum (i32.add (local.get $sum)
                (i32.load8_u (i32.add (local.get $at) (i32.rem_u (local.get $i) (local.get $size))))))
            (local.set $sum (call_indirect $t (param i32) (result i32) (local.get $sum)
                (i32.add (i32.const 2) (i32.and (local.get $i) (i32.const 1)))))
            (drop (table.grow $t (ref.null func) (i32.const 3)))
            (table.copy $t $t (i32.const 4) (i32.const 2) (i32.const 2))
            (table.fill $t (i32.const 6) (ref.null func) (i32.const 2))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (if (i32.eq (local.get $i) (i32.const 10)) (then (drop (memory.grow (i32.const 1)))))
            (br_if $next (i32.lt_u (local.get $i) (local.get $turns))))
        (i32.store (i32.const 0) (local.get $sum))
        (call $log (i32.const 0) (i32.const 4))
        (if (i32.gt_u (local.get $turns) (i32.const 30)) (then unreachable))
        (i32.add (local.get $sum) (table.size $t))))"#;

#[test]
fn slices_change_neither_the_outcome_nor_the_fuel() {
    let bytes = wasm(MIXED);
    let data = format!("hex:{}", "a5".repeat(1_000));
    for turns in ["25", "31"] {
        let texts = [&data, turns];
        let (whole, slices) = run_in_slices(&limits(), &bytes, &texts, u64::MAX);
        assert_eq!(slices, 1);
        assert!(whole.fuel > 3_000, "{whole:?}");
        for slice in [1, 2, 3, 7, 50, 51, 99, 1_000, whole.fuel - 1] {
            let (ran, slices) = run_in_slices(&limits(), &bytes, &texts, slice);
            assert_eq!(ran, whole, "slices of {slice}");
            assert!(slices > 1, "slices of {slice}");
        }
        // With exactly this much fuel the outcome is the same, and with one unit less the fuel runs
        // out.
        let exact = limits().with_fuel(whole.fuel);
        for slice in [1, 13, u64::MAX] {
            assert_eq!(run_in_slices(&exact, &bytes, &texts, slice).0, whole);
        }
    }
}

#[test]
fn where_fuel_runs_out_does_not_depend_on_slices() {
    let bytes = wasm(MIXED);
    let data = format!("hex:{}", "a5".repeat(1_000));
    let texts = [data.as_str(), "25"];
    let (whole, _) = run_in_slices(&limits(), &bytes, &texts, u64::MAX);
    let mut failures = 0;
    for fuel in (1_000..whole.fuel + 40).step_by(17) {
        let limits = limits().with_fuel(fuel);
        let (wanted, _) = run_in_slices(&limits, &bytes, &texts, u64::MAX);
        for slice in [1, 40, 1_000] {
            let (ran, _) = run_in_slices(&limits, &bytes, &texts, slice);
            assert_eq!(ran, wanted, "{fuel} in slices of {slice}");
        }
        assert_eq!(
            wanted == whole,
            fuel >= whole.fuel,
            "{fuel} of {}",
            whole.fuel
        );
        failures += u32::from(wanted != whole);
    }
    assert!(failures > 50, "{failures}");
}

fn endless() -> Run {
    let bytes = wasm(r#"(module (func (export "f") (loop (br 0))))"#);
    let limits = limits().with_fuel(u64::MAX);
    let module = Module::compile(&bytes, &limits).unwrap();
    Run::new(&module, &Call::new(module.id(), "f", []).unwrap(), &limits)
}

#[test]
fn a_run_goes_to_another_thread_and_is_stopped_from_this_one() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut run = endless();
    assert_eq!(run.step(1_000), Step::More);
    let runner = thread::spawn({
        let stop = Arc::clone(&stop);
        move || (run.finish_unless(&stop, 100_000), run.fuel())
    });
    thread::sleep(Duration::from_millis(20));
    assert!(!runner.is_finished());
    stop.store(true, Ordering::Relaxed);
    let (ran, fuel) = runner.join().unwrap();
    assert_eq!(ran, None);
    assert!(fuel > 100_000, "{fuel}");
}

#[test]
fn a_slice_takes_about_the_fuel_that_it_is_given() {
    let mut run = endless();
    for nth in 1..=100 {
        assert_eq!(run.step(1_000), Step::More);
        assert!(
            run.fuel().abs_diff(nth * 1_000) <= 10 * nth,
            "{} after {nth}",
            run.fuel()
        );
    }
}

#[test]
fn a_run_that_is_over_says_so_again() {
    let bytes = wasm(r#"(module (func (export "f") (result i32) i32.const 7))"#);
    let module = Module::compile(&bytes, &limits()).unwrap();
    let call = Call::new(module.id(), "f", []).unwrap();
    let mut run = Run::new(&module, &call, &limits());
    assert_eq!(run.fuel(), 0);
    let first = run.step(1_000);
    assert!(matches!(first, Step::Finished(_)));
    assert_eq!(run.step(1), first);
}

//! The modules that an engine keeps.

use selvedge_faas::{Call, CallMismatch, Engine, Failure, ModuleId, Outcome, Step};
use selvedge_pcm::Function;

use crate::support::{failed, limits, value, wasm};

/// A module that returns this number.
fn constant(number: u32) -> Vec<u8> {
    wasm(&format!(
        r#"(module (func (export "f") (result i32) i32.const {number}))"#
    ))
}

fn call(id: ModuleId) -> Call {
    Call::new(id, "f", []).unwrap()
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let mut engine = Engine::new(limits().with_modules(2)).unwrap();
    let a = engine.insert(&constant(1)).unwrap();
    let b = engine.insert(&constant(2)).unwrap();
    assert_eq!(value(&engine.run(&call(a))), "1");
    let c = engine.insert(&constant(3)).unwrap();
    let mut kept = [a, c];
    kept.sort();
    assert_eq!(engine.modules().collect::<Vec<_>>(), kept);
    assert_eq!(engine.run(&call(b)).outcome, failed(Failure::NoModule));
    assert_eq!(engine.check(&call(b)), Err(CallMismatch::NoModule(b)));
    assert_eq!(engine.check(&call(a)), Ok(()));
    // Inserting is a use, also of a module that is kept.
    assert_eq!(engine.insert(&constant(1)), Ok(a));
    let d = engine.insert(&constant(4)).unwrap();
    assert_eq!(engine.run(&call(c)).outcome, failed(Failure::NoModule));
    assert_eq!(value(&engine.run(&call(a))), "1");
    assert_eq!(value(&engine.run(&call(d))), "4");
}

#[test]
fn many_modules_take_bounded_room() {
    let mut engine = Engine::new(limits().with_modules(3)).unwrap();
    for number in 0..50 {
        let id = engine.insert(&constant(number)).unwrap();
        assert_eq!(value(&engine.run(&call(id))), number.to_string());
        assert!(engine.modules().count() <= 3);
    }
    // A refused module removes no other.
    let before: Vec<ModuleId> = engine.modules().collect();
    assert!(engine.insert(b"no module").is_err());
    assert_eq!(engine.modules().collect::<Vec<_>>(), before);
}

#[test]
fn a_library_that_is_unloaded_is_gone_and_its_runs_go_on() {
    let mut engine = Engine::new(limits()).unwrap();
    let id = engine.insert(&constant(7)).unwrap();
    let mut run = engine.start(&call(id));
    assert!(engine.remove(id.library()));
    assert!(!engine.remove(id.library()));
    assert_eq!(engine.run(&call(id)).outcome, failed(Failure::NoModule));
    let Step::Finished(ran) = run.step(1_000) else {
        panic!("it takes no more");
    };
    assert_eq!(value(&ran), "7");
}

#[test]
fn a_function_of_pcm_is_run() {
    let mut engine = Engine::new(limits()).unwrap();
    let id = engine.insert(&constant(7)).unwrap();
    let function = call(id).to_function().unwrap();
    assert_eq!(value(&engine.start_function(&function).finish()), "7");
    let ran = engine.start_function(&Function::new(b"7 * 7")).finish();
    assert_eq!((ran.outcome, ran.fuel), (failed(Failure::NoCall), 0));
}

#[test]
fn a_call_of_one_module_is_not_run_by_another() {
    let mut engine = Engine::new(limits()).unwrap();
    let a = engine.insert(&constant(1)).unwrap();
    let b = ModuleId::of(&constant(2));
    let module = selvedge_faas::Module::compile(&constant(1), &limits()).unwrap();
    assert_eq!(module.check(&call(b)), Err(CallMismatch::OtherModule(a)));
    let ran = selvedge_faas::Run::new(&module, &call(b), &limits()).finish();
    assert_eq!(ran.outcome, Outcome::Failed(Failure::NoModule));
}

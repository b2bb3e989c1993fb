//! Limits that can work.

use selvedge_faas::{Engine, Limits};

#[test]
fn a_limit_that_cannot_work_is_named() {
    let refused = |limits: Limits| Engine::new(limits).unwrap_err().0.name;
    assert_eq!(refused(Limits::new().with_fuel(0)), "fuel");
    assert_eq!(refused(Limits::new().with_module(7)), "module");
    assert_eq!(refused(Limits::new().with_result(0)), "result");
    assert_eq!(refused(Limits::new().with_modules(0)), "modules");
    let least = Limits::new().with_fuel(1).with_module(8).with_result(1);
    let least = least.with_modules(1).with_memory(0).with_log(0);
    assert_eq!(*Engine::new(least).unwrap().limits(), least);
}

//! Calls of modules in the text format.

use std::env;
use std::path::PathBuf;

use selvedge_faas::{
    Argument, Call, Engine, Failure, Limits, Module, Outcome, Ran, Run, Step, Trap,
};

/// Limits that are small, but that small modules do not reach.
pub(crate) fn limits() -> Limits {
    Limits::new().with_fuel(1_000_000).with_memory(4 * 65_536)
}

/// The bytes of a module, from its text.
pub(crate) fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

pub(crate) fn arguments(texts: &[&str]) -> Vec<Argument> {
    texts.iter().map(|it| it.parse().unwrap()).collect()
}

/// Runs `f` of a module in a fresh engine.
pub(crate) fn run(text: &str, texts: &[&str]) -> Ran {
    run_within(&limits(), text, texts)
}

pub(crate) fn run_within(limits: &Limits, text: &str, texts: &[&str]) -> Ran {
    let mut engine = Engine::new(*limits).unwrap();
    let id = engine.insert(&wasm(text)).unwrap();
    let call = Call::new(id, "f", arguments(texts)).unwrap();
    engine.run(&call)
}

/// The same, in slices of `slice` fuel.
pub(crate) fn run_in_slices(
    limits: &Limits,
    bytes: &[u8],
    texts: &[&str],
    slice: u64,
) -> (Ran, u64) {
    let module = Module::compile(bytes, limits).unwrap();
    let call = Call::new(module.id(), "f", arguments(texts)).unwrap();
    let mut run = Run::new(&module, &call, limits);
    for slices in 1.. {
        if let Step::Finished(ran) = run.step(slice) {
            return (ran, slices);
        }
    }
    panic!("it does not end");
}

/// The value, as text.
#[track_caller]
pub(crate) fn value(ran: &Ran) -> String {
    match &ran.outcome {
        Outcome::Value(value) => selvedge_faas::text_of(value),
        Outcome::Failed(failure) => panic!("failed: {failure}"),
    }
}

pub(crate) const fn failed(failure: Failure) -> Outcome {
    Outcome::Failed(failure)
}

pub(crate) const fn trapped(trap: Trap) -> Outcome {
    Outcome::Failed(Failure::Trapped(trap))
}

/// A file that `functions/fetch.sh` has fetched. If it is missing, a line reports it; with
/// `SELVEDGE_PARTS_REQUIRED=1` that is a failure.
pub(crate) fn part(path: &str) -> Option<PathBuf> {
    let parts = env::var_os("SELVEDGE_PARTS").map(PathBuf::from);
    let found = parts
        .map(|it| it.join("faas").join(path))
        .filter(|it| it.exists());
    if found.is_none() {
        let is_required = env::var_os("SELVEDGE_PARTS_REQUIRED").is_some_and(|it| it == "1");
        assert!(!is_required, "{path} is required: run functions/fetch.sh");
        println!("skipped, for {path} is not in SELVEDGE_PARTS: run functions/fetch.sh");
    }
    found
}

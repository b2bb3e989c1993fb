//! Times of calls: `cargo run --release --example time`.

#![allow(
    clippy::disallowed_methods,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "it measures time"
)]

use core::error::Error;
use core::time::Duration;
use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use selvedge_faas::{Argument, Call, Engine, Limits, Module};

const RUNS: usize = 201;

fn main() -> Result<(), Box<dyn Error>> {
    let functions = Path::new(env!("CARGO_MANIFEST_DIR")).join("functions");
    let bytes = |len: usize| Argument::Bytes((0..len).map(|it| it as u8).collect());
    let before = resident()?;
    println!(
        "{:<34}{:>12}{:>12}{:>10}",
        "call", "compile", "call", "fuel"
    );
    measure(
        &functions.join("gcd.wasm"),
        "gcd",
        &["1071i64", "462i64"],
        None,
    )?;
    measure(
        &functions.join("samples.wasm"),
        "median",
        &[],
        Some(bytes(128)),
    )?;
    measure(
        &functions.join("sha256.wasm"),
        "sha256",
        &[],
        Some(bytes(1_000)),
    )?;
    measure(
        &functions.join("image.wasm"),
        "sobel",
        &["16"],
        Some(bytes(256)),
    )?;
    measure(
        &functions.join("network.wasm"),
        "classify",
        &[],
        Some(bytes(16)),
    )?;
    if let Some(parts) = env::var_os("SELVEDGE_PARTS") {
        let parts = Path::new(&parts).join("faas/node_modules");
        let xxhash = parts.join("xxhash-wasm/workerd/xxhash.wasm");
        measure(&xxhash, "xxh32", &["0"], Some(bytes(1_000)))?;
        let resize = parts.join("@jsquash/resize/lib/resize/pkg/squoosh_resize_bg.wasm");
        let numbers = ["8", "8", "3", "3", "0", "0", "0"];
        measure(&resize, "resize", &numbers, Some(bytes(256)))?;
    }
    memory(before)?;
    Ok(())
}

/// Prints the time and fuel of the call, the median of many.
fn measure(
    module: &Path,
    export: &str,
    numbers: &[&str],
    bytes: Option<Argument>,
) -> Result<(), Box<dyn Error>> {
    let name = module.file_stem().unwrap_or_default().to_string_lossy();
    let module = fs::read(module)?;
    let limits = Limits::new();
    let mut engine = Engine::new(limits)?;
    let id = engine.insert(&module)?;
    let mut arguments: Vec<Argument> = bytes.into_iter().collect();
    for number in numbers {
        arguments.push(number.parse()?);
    }
    let call = Call::new(id, export, arguments)?;
    let fuel = engine.run(&call).fuel;
    let compile = median(|| Module::compile(&module, &limits).is_ok());
    let run = median(|| engine.run(&call).fuel == fuel);
    let name = format!("{export} of {name} ({} B)", module.len());
    println!("{name:<34}{compile:>12.1?}{run:>12.1?}{fuel:>10}");
    Ok(())
}

fn median(mut work: impl FnMut() -> bool) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let before = Instant::now();
            let is_fine = work();
            let took = before.elapsed();
            assert!(is_fine, "each run is the same");
            took
        })
        .collect();
    times.sort_unstable();
    times.get(RUNS / 2).copied().unwrap_or_default()
}

/// Prints the memory of kept modules, and of runs in progress.
fn memory(before: u64) -> Result<(), Box<dyn Error>> {
    let text = r#"(module (memory 1) (func (export "f") (loop (br 0))))"#;
    let module = wat::parse_str(text)?;
    let limits = Limits::new();
    let start = resident()?;
    let count: u64 = 1_000;
    let modules = (0..count).map(|_| Module::compile(&module, &limits));
    let modules: Vec<Module> = modules.collect::<Result<_, _>>()?;
    let kept = resident()?;
    let mut runs = Vec::new();
    for module in &modules {
        let mut run = selvedge_faas::Run::new(module, &Call::new(module.id(), "f", [])?, &limits);
        run.step(2_000);
        runs.push(run);
    }
    let running = resident()?;
    println!("resident: {before} KiB at first, {start} after these calls");
    println!(
        "a small module that is kept: {:.1} KiB",
        (kept - start) as f64 / count as f64
    );
    println!(
        "a run of it under way, with a page of memory (64 KiB): {:.1} KiB",
        (running - kept) as f64 / count as f64
    );
    Ok(())
}

/// The memory of this process, in KiB.
fn resident() -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let number = line.and_then(|it| it.split_whitespace().next());
    Ok(number.ok_or("the system does not report memory")?.parse()?)
}

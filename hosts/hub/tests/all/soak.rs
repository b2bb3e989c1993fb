//! The soak of `examples/soak`, in short: plugs lose their power under load, and the hub is killed.

use std::env;
use std::process::Command;

#[test]
fn a_home_under_load_loses_no_run_and_tells_an_order_that_explains_the_end() {
    // Beside this program; `cargo test` builds examples, unless it is given the tests to build.
    let soak = env::current_exe().unwrap();
    let soak = soak.with_file_name("../examples/soak");
    assert!(soak.exists(), "no soak: cargo build --example soak");
    let notified = Command::new(soak)
        .args(["--minutes", "0.2", "--devices", "20", "--rate", "5"])
        .args(["--kills", "2", "--hub", env!("CARGO_BIN_EXE_selvedge-hub")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&notified.stdout);
    assert!(notified.status.success(), "{text}{notified:?}");
    println!("{text}");
}

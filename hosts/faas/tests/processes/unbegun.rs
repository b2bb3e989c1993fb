//! Functions that do not begin within their time.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use selvedge_core::{NodeId, Span};
use selvedge_faas::Access;
use selvedge_faas::executor::{Executor, Job, Stop};
use selvedge_faas::find::Gateways;
use selvedge_faas::follower::{self, Options};
use selvedge_pcm::follower::Config;
use selvedge_pcm::{DutyCycle, Failure, Returned};

use crate::support::{Dir, run, spawn, text, wait_for};

/// An executor that begins no function with the code `waits`, and ends none.
struct Endless;

impl Executor for Endless {
    fn execute(&self, job: &Job, stop: &Stop) -> Returned {
        stop.set_waiting(*job.function.code == *b"waits");
        while !stop.is_stopped() {
            thread::sleep(Duration::from_millis(5));
        }
        Returned::Failed(Failure::Trapped)
    }
}

fn start_follower(id: u64, gateway: &str) {
    let duty = DutyCycle {
        active_ms: 500,
        busy_ms: 0,
        asleep_ms: 200,
    };
    let gateways = [(NodeId(1), gateway.parse().unwrap())];
    let options = Options {
        id: NodeId(id),
        gateways: Gateways::new(gateways).unwrap(),
        access: Access::default(),
        config: Config::new(duty).with_time(Span::millis(300)),
        room: None,
        is_verbose: false,
    };
    // It ends with the test's process.
    thread::spawn(move || follower::run(options, Arc::new(Endless)));
}

#[test]
fn a_function_that_did_not_begin_fails_by_its_host_and_another_one_took_too_long() {
    let (dir, broker) = (Dir::new("unbegun"), "127.61.24.1:18831");
    let data = dir.file("1");
    let _gateway = spawn(&format!(
        "gateway --id 1 --listen {broker} --data {data} --first"
    ));
    wait_for(broker);
    (101..104).for_each(|id| start_follower(id, broker));
    for (code, why) in [("waits", "could not run it"), ("runs", "took too long")] {
        let failed = run(&format!("submit --code {code} --gateway 1={broker}"), "");
        let reported = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(3), "{reported}");
        assert!(reported.contains(why), "{code}: {reported}");
    }
}

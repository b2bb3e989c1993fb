#![allow(clippy::all, warnings)]
use selvedge_safehome::check::*;
use selvedge_safehome::check::Happening::*;
use selvedge_safehome::*;
use selvedge_sim::check::*;
fn go(name: &str, setup: Setup) {
    let t = std::time::Instant::now();
    let s = Scenario::new(name, Expected::Holds { states: 0 }, move || setup.model());
    let limits = Limits { states: 3_000_000, ..Default::default() };
    let r = s.run(&limits, &mut |_| core::ops::ControlFlow::Continue(()));
    println!("== {name}: {:?} {} states", t.elapsed(), r[0].states);
    for r in r { if r.outcome_name() != "holds" { println!("   {} {} steps {} {:?}", r.property, r.outcome_name(), r.steps, r.outcome); } }
}
fn main() {
    const A: &[Do] = &[Do::set(0, 1), Do::set(1, 1), Do::set(2, 1)];
    const B: &[Do] = &[Do::set(1, 2), Do::set(2, 2), Do::set(1, 5)];
    const C: &[Do] = &[Do::set(2, 3), Do::maybe(0, 3)];
    const D: &[Do] = &[Do { only_if: Some((1, 2)), ..Do::set(0, 4) }, Do{undo: Some(9), ..Do::long(2, 4)}];
    for (visibility, scheduler) in [(Visibility::Eventual, Scheduler::FirstCome), (Visibility::Eventual, Scheduler::JustInTime), (Visibility::Eventual, Scheduler::Timeline), (Visibility::PartitionedStrict, Scheduler::Timeline), (Visibility::GlobalStrict, Scheduler::Timeline), (Visibility::StrongGlobalStrict, Scheduler::Timeline), (Visibility::Weak, Scheduler::Timeline)] {
        println!("{visibility:?} {scheduler:?}");
        let s = |h| Setup { scheduler, visibility, ..Setup::home(3, h) };
        go("ring", s(&[Submit(A), Submit(B), Submit(C)]));
        go("ring fails, restarts", Setup { faults: 1, ..s(&[Submit(A), Submit(B), Submit(C), Fails(0), Restarts(1)])});
        go("ring cond", Setup { faults: 1, ..s(&[Submit(A), Submit(D), Submit(B), Cancel(0)]) });
        go("ring restarts cond", Setup { faults: 1, ..s(&[Submit(A), Submit(D), Submit(C), Restarts(2), Restarts(1), Cancel(1)]) });
    }
}

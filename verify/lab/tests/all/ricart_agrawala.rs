//! The example machine keeps its promises, and breaks where the paper states it. The deep
//! scenarios are for `selvedge check ricart-agrawala --deep`.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test may fail"
)]

use selvedge_lab::ricart_agrawala::checks;
use selvedge_sim::check::Outcome;

#[test]
fn every_quick_scenario_ends_as_expected() {
    for scenario in checks::scenarios() {
        if !scenario.is_deep() {
            scenario.verify().unwrap();
        }
    }
}

/// Both are inside at the end, and node 3 sent OK to both.
#[test]
fn the_counterexamples_are_those_of_the_paper() {
    for model in [checks::symmetric(), checks::asymmetric()] {
        let broken = model.verify().unwrap_err();
        let Outcome::Breaks { trace } = &broken.0.outcome else {
            panic!("{broken}");
        };
        let effects = |wanted: &str| {
            let effects = trace.steps.iter().flat_map(|step| &step.effects);
            effects.filter(|effect| *effect == wanted).count()
        };
        assert_eq!(effects("reports Entered"), 2, "{broken}");
        assert_eq!(effects("reports Exited"), 0, "{broken}");
        for id in [1, 2] {
            let ok = format!("Ok from n3#0 to n{id} arrives");
            assert!(trace.steps.iter().any(|step| step.what == ok), "{broken}");
        }
    }
}

//! The theorems of the paper as properties.

use alloc::vec::Vec;

use selvedge_sim::check::{Model, State};

use super::setup::{Promise, Setup};
use super::world::World;
use crate::routines::{End, Stage, StepOutcome};

type Mesh = State<World, ()>;

impl Setup {
    pub(super) fn with_properties(self, model: Model<World>) -> Model<World> {
        let all = [
            Promise::Apart,
            Promise::NoStrays,
            Promise::Inherited,
            Promise::Once,
            Promise::OneDefinition,
            Promise::Ends,
        ];
        if let Some(promise) = self.only {
            return with_promise(model, promise);
        }
        let model = all.into_iter().fold(model, with_promise);
        model
            .always(
                "a routine that executes holds its devices",
                |state: &Mesh| state.machines().all(do_executing_hold),
            )
            .always("a report says what was done", |state: &Mesh| {
                state.machines().all(are_reports_right)
            })
            .sometimes("all is over", |state: &Mesh| {
                state.machines().all(World::is_over)
            })
            .sometimes("a leader that took over leads to the end", move |state| {
                self.takeovers == 0 || state.machines().any(|it| it.is_over() && is_led_anew(it))
            })
    }
}

fn with_promise(model: Model<World>, promise: Promise) -> Model<World> {
    match promise {
        Promise::Apart => model.always(
            "theorem 3: no two routines that share a device execute at once",
            |state: &Mesh| state.machines().all(are_apart),
        ),
        Promise::NoStrays => model.always(
            "theorem 3: no device gets a command of a routine that does not execute",
            |state: &Mesh| state.machines().all(|it| !it.watch.strays),
        ),
        Promise::Inherited => model.always(
            "lemmas 1 and 2: no step is repeated or left out",
            |state: &Mesh| state.machines().all(|it| !it.watch.repeats),
        ),
        Promise::Once => model.always(
            "an occurrence starts one run at most, and none before it has come",
            |state: &Mesh| state.machines().all(does_each_start_once),
        ),
        Promise::OneDefinition => model.always(
            "a run has one definition, and none of an older site follows",
            |state: &Mesh| state.machines().all(|it| !it.watch.redefined),
        ),
        Promise::Ends => model.progress(
            "theorems 4 and 5: all that is triggered is run to its end",
            |state: &Mesh| state.machines().all(World::is_over),
        ),
    }
}

fn are_apart(world: &World) -> bool {
    let executing = |number: &usize| world.executes(*number).is_some();
    let all: Vec<usize> = (0..world.routines.len()).filter(executing).collect();
    let locks = |number: usize| {
        let group = world.routines.get(number);
        group
            .map(|it| it.state.definition().locks())
            .unwrap_or_default()
    };
    all.iter().enumerate().all(|(at, &one)| {
        let mine = locks(one);
        let mut others = all.iter().skip(at + 1);
        others.all(|&other| !locks(other).iter().any(|it| mine.contains(it)))
    })
}

fn do_executing_hold(world: &World) -> bool {
    world.routines.iter().enumerate().all(|(number, group)| {
        world.executes(number).is_none_or(|claim| {
            let mut locks = group.state.definition().locks().into_iter();
            locks.all(|device| world.holder(device) == Some(claim) || !world.is_open(device))
        })
    })
}

/// Nothing fails here, so each step is done, or passed over because of its condition.
fn are_reports_right(world: &World) -> bool {
    let plans = world.setup.routines;
    let all = world.routines.iter().zip(plans).enumerate();
    all.into_iter().all(|(number, (group, plan))| {
        let Some(report) = group.state.report() else {
            return group.state.instance() <= 1;
        };
        let is_last = match group.state.stage() {
            Stage::NotTriggered | Stage::ReleasingLocks { .. } => {
                report.instance == group.state.instance()
            }
            Stage::AcquiringLocks { .. } | Stage::Executing { .. } => {
                report.instance + 1 == group.state.instance()
            }
        };
        let fits = |(step, outcome): (usize, &StepOutcome)| match outcome {
            StepOutcome::Done => !plan.passes_over(number, step),
            StepOutcome::Skipped => plan.passes_over(number, step),
            StepOutcome::Unknown => {
                plan.delivery == crate::Delivery::AtMostOnce || world.setup.timeouts
            }
            StepOutcome::NotReached => report.end != End::Completed,
            StepOutcome::Failed => false,
        };
        is_last && report.steps.iter().enumerate().all(fits)
    })
}

/// A routine that is triggered by time alone has run no more often than its trigger has come.
fn does_each_start_once(world: &World) -> bool {
    let both = world.routines.iter().zip(world.setup.routines).next();
    both.is_none_or(|(group, plan)| {
        let runs = group.state.instance() + u64::from(group.state.is_queued());
        plan.occurrences == 0 || runs <= world.come()
    })
}

fn is_led_anew(world: &World) -> bool {
    world.routines.iter().any(|it| it.present > 0) || world.clusters.iter().any(|it| it.present > 0)
}

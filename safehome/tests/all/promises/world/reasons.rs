//! The reasons why routines wait, from the hub and from the home.

use selvedge_core::Span;
use selvedge_safehome::WaitCause;

use super::World;

impl World {
    /// Each unfinished routine waits for something, of which there is a reason.
    pub(super) fn all_wait(&self) {
        let hub = self.hub.machine();
        let open = self.oracle.records.iter().filter(|it| !it.1.is_finished());
        for (&id, record) in open {
            let Some(wait) = hub.wait(id) else {
                self.broken("nobody knows for what it waits");
            };
            let is_step = usize::from(wait.step) < record.fates.len();
            let is_true = match wait.cause {
                WaitCause::Outcome => {
                    let thing = self.things.iter().find(|it| Some(it.id) == wait.device);
                    let open = thing.and_then(|it| it.open?.whose);
                    open.is_some_and(|it| it.0 == id)
                }
                WaitCause::Hold => record.holds.is_some_and(|it| Some(it.0) == wait.device),
                WaitCause::Routine(other) | WaitCause::Held(other) => {
                    let theirs = self.oracle.records.get(&other);
                    other != id && theirs.is_some_and(|it| !it.is_finished())
                }
                WaitCause::Late => {
                    let thing = self.things.iter().find(|it| Some(it.id) == wait.device);
                    // A restarted hub waits for the whole time again.
                    thing.is_some_and(|it| it.lateness > Span::ZERO)
                }
                WaitCause::Rollback => wait.device.is_some(),
                _ => wait.device.is_none(),
            };
            if !is_step || !is_true || wait.since > self.now {
                self.broken(&format!("{wait:?} is not so"));
            }
        }
    }
}

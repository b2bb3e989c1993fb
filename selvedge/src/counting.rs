//! Counting the nodes of the mesh, for the bound of all sections.

use selvedge_camera::estimate::{self, Estimator};
use selvedge_camera::sections::{self, Sections};
use selvedge_core::{Context, Input, Span};

use crate::config::Counting;
use crate::{Event, Message, Node, Reject, Timer};

impl Node {
    pub(super) fn ask_estimator(
        &mut self,
        input: Input<Estimator>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let missing = self.missing();
        let estimator = self.present.as_mut().and_then(|it| it.estimator.as_mut());
        let estimator = estimator.ok_or(missing)?;
        let mut estimated = None;
        let emit = |event, cx: &mut Context<'_, Self>| {
            if let estimate::Event::Estimated {
                max_lives: upper, ..
            } = event
            {
                estimated = Some(upper);
            }
            cx.event(Event::Estimate(event));
        };
        estimator.step(cx, input, Message::Estimate, Timer::Estimate, emit)?;
        if let Some(nodes) = estimated {
            self.raise_bound(nodes, cx);
        }
        Ok(())
    }

    /// Begins an estimate, when its time has come.
    pub(super) fn count(&mut self, cx: &mut Context<'_, Self>) {
        self.count_later(cx);
        // One is under way, or there are no other nodes: next time.
        let begin = Input::Command(estimate::Command::Estimate);
        let _begun = self.ask_estimator(begin, cx).is_ok();
    }

    pub(super) fn count_later(&self, cx: &mut Context<'_, Self>) {
        if let Some(counting) = self.counting()
            && counting.every > Span::ZERO
        {
            cx.arm(Timer::Count, counting.every);
        }
    }

    /// Raises the bound to this number of nodes. The bound is never lowered: nodes behind a
    /// partition are not counted.
    fn raise_bound(&mut self, nodes: u32, cx: &mut Context<'_, Self>) {
        let spare = self.counting().map_or(0, |counting| counting.spare);
        let upper = nodes.saturating_add(spare);
        let bound = |it: &Sections| it.config().section.max_lives;
        if self.sections().is_none_or(|it| upper <= bound(it)) {
            return;
        }
        if let Some(exclusion) = &mut self.exclusion {
            exclusion.sections.section.max_lives = upper;
        }
        let bound = Input::Command(sections::Command::SetMaxLives(upper));
        if self.ask_sections(bound, cx).is_ok() {
            cx.event(Event::MaxLivesRaised(upper));
        }
    }

    fn counting(&self) -> Option<&Counting> {
        self.exclusion.as_ref()?.counting.as_ref()
    }
}

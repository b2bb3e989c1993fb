//! The end of permissions that sections keep after an exit.
//!
//! While a section keeps permissions its request is open, and each restart of another node is one
//! more life in its bound. A node that is cut off learns of no restart, so a timer of its own ends it.

use selvedge_camera::sections::{Command, Name};
use selvedge_core::{Context, Input};

use crate::{Node, Timer};

/// A section that keeps permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Keeping {
    name: Name,
    /// True if its time has passed while the node was inside or waited.
    is_over: bool,
}

impl Node {
    /// Handles an exit. The time runs from the first one, so that a node which enters again and
    /// again gives back, too.
    pub(super) fn keep_after_exit(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        match self.keeping(name).map(|it| it.is_over) {
            Some(true) => self.give_back(name, cx),
            Some(false) => {}
            None => self.begin_keeping(name, cx),
        }
    }

    fn begin_keeping(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        let section = self.sections().and_then(|it| it.get(name));
        let keeps = section.is_some_and(|it| it.kept().next().is_some());
        if let (true, Some(exclusion), Some(present)) = (keeps, &self.exclusion, &mut self.present)
        {
            let is_over = false;
            present.keeping.push(Keeping { name, is_over });
            cx.arm(Timer::GiveBack(name), exclusion.keep_for);
        }
    }

    /// Handles the end of a section's time. If its permissions are in use, the exit gives them back.
    pub(super) fn end_keeping(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        let Some(keeping) = self.keeping(name) else {
            // The timer is one of a former life.
            return;
        };
        keeping.is_over = true;
        self.give_back(name, cx);
    }

    /// Gives back before a section is closed: a section that is not open takes no command.
    pub(super) fn stop_keeping(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        if self.keeping(name).is_some() {
            self.give_back(name, cx);
        }
    }

    fn give_back(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        // Refused where a user waits or is inside: then the next exit gives back.
        let back = Input::Command(Command::GiveBack(name));
        if self.ask_sections(back, cx).is_ok()
            && let Some(present) = &mut self.present
        {
            present.keeping.retain(|it| it.name != name);
            cx.disarm(Timer::GiveBack(name));
        }
    }

    fn keeping(&mut self, name: Name) -> Option<&mut Keeping> {
        let keeping = &mut self.present.as_mut()?.keeping;
        keeping.iter_mut().find(|it| it.name == name)
    }
}

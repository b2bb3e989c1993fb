//! The end of permissions that sections keep after an exit.
//!
//! While a section keeps permissions its request is open, and each restart of another node is one
//! more life in its bound. A node that is cut off learns of no restart, so a timer of its own ends it.
//! The request is open also when no permission is kept any more, because all others asked meanwhile:
//! until its end they wait for this node, if it dies.

use selvedge_camera::Camera;
use selvedge_camera::sections::{Command, Name};
use selvedge_core::{Context, Input};

use crate::{Node, Timer};

/// A section whose request stayed open after an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Keeping {
    name: Name,
    /// True if its time has passed while the node was inside or waited.
    is_over: bool,
}

impl Node {
    /// Handles an exit, or the end of a request without an entry. The time runs from the first exit,
    /// so that a node which enters again and again gives back, too.
    pub(super) fn keep_or_end(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        let section = self.sections().and_then(|it| it.get(name));
        let is_open = section.is_some_and(Camera::has_request);
        match self.keeping(name).map(|it| it.is_over) {
            Some(is_over) if is_over || !is_open => self.give_back(name, cx),
            None if is_open => self.begin_keeping(name, cx),
            Some(_) | None => {}
        }
    }

    fn begin_keeping(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        if let (Some(exclusion), Some(present)) = (&self.exclusion, &mut self.present) {
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

    /// Gives back, also before a section is closed: a section that is not open takes no command.
    pub(super) fn give_back(&mut self, name: Name, cx: &mut Context<'_, Self>) {
        // Refused where a user waits or is inside: then the next exit gives back. Nothing is sent where
        // no request is open.
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

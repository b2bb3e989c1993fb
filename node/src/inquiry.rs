//! Nodes that a section has met, and of which membership does not say that they are here, or over.

use selvedge_camera::Timer;
use selvedge_camera::sections;
use selvedge_core::{Context, Input, Member};
use selvedge_membership::{Command, Status};

use crate::Mesh;

impl Mesh {
    /// Whoever a section waits for, or gave its OK, may be gone, and membership may have missed that, or
    /// never have heard of it at all: it is asked to find out. Of one of them at a time, when the
    /// section itself asks again.
    pub(super) fn inquire(
        &mut self,
        sections::Timer { section, timer }: sections::Timer,
        cx: &mut Context<'_, Self>,
    ) {
        if !matches!(timer, Timer::Resend | Timer::Refresh) {
            return;
        }
        let camera = self.sections().and_then(|it| it.get(section));
        let met = || {
            camera
                .into_iter()
                .flat_map(|it| it.waits_for().chain(it.granted()))
        };
        let doubtful = || met().filter(|&member| self.is_doubtful(member));
        let chosen = match doubtful().count() {
            0 => None,
            count => doubtful().nth(cx.below(count as u64) as usize),
        };
        if let Some(member) = chosen {
            // While it says good-bye it refuses.
            let inquire = Input::Command(Command::Inquire(member));
            let _asked = self.ask_membership(inquire, cx).is_ok();
        }
    }

    /// Whether membership has told neither that this life is here nor that it has certainly ended.
    fn is_doubtful(&self, member: Member) -> bool {
        self.membership().member(member.id).is_none_or(|view| {
            let is_failed = view.member == member && view.status == Status::Failed;
            is_failed || member.supersedes(view.member)
        })
    }
}

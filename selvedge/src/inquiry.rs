//! Nodes that a section has met, and that membership does not list as present.

use alloc::vec::Vec;

use selvedge_camera::Timer;
use selvedge_camera::sections::{self, Name};
use selvedge_core::{Context, Delta, Input, Member};
use selvedge_membership::{Command, Status};

use crate::Node;

/// The state of an absent life in membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// It is over, for certain.
    Over(Delta),
    Failed,
    /// It was never on the list, or is forgotten.
    Unknown,
}

impl Node {
    /// Handles a node that a section waits for, or gave its OK, and that may have left or failed.
    /// If membership has it as over, the section has forgotten that and met the node once more: all
    /// such ends are repeated. If not, membership may have missed its end, or never have met it: it
    /// inquires, about one node at a time, when the section itself asks again.
    pub(super) fn inquire(
        &mut self,
        sections::Timer { section, timer }: sections::Timer,
        cx: &mut Context<'_, Self>,
    ) {
        if !matches!(timer, Timer::Resend | Timer::Refresh) {
            return;
        }
        let ends: Vec<Delta> = self
            .absent(section)
            .filter_map(|(_, absent)| match absent {
                Absent::Over(end) => Some(end),
                Absent::Failed | Absent::Unknown => None,
            })
            .collect();
        for end in ends {
            self.repeat_to_sections(end, cx);
        }
        let doubtful = || self.absent(section);
        // The section's need starts an inquiry, and not a message of an unlisted sender: a node that an OK
        // names may never have sent a message here, and an outsider that sends must cost nothing. Tests:
        // `tests/all/unanswered.rs`.
        let chosen = match doubtful().count() {
            0 => None,
            count => doubtful().nth(cx.below(count as u64) as usize),
        };
        let Some((member, absent)) = chosen else {
            return;
        };
        if absent == Absent::Failed {
            self.repeat_to_sections(Delta::Failed(member), cx);
        }
        // While this node is leaving, membership refuses.
        let inquire = Input::Command(Command::Inquire(member));
        let _asked = self.ask_membership(inquire, cx).is_ok();
    }

    /// Repeats a delta that the sections have received already, and a section may have forgotten.
    fn repeat_to_sections(&mut self, delta: Delta, cx: &mut Context<'_, Self>) {
        // They refuse only deltas about this node itself, which is not among the met ones.
        let _taken = self.ask_sections(Input::Membership(delta), cx).is_ok();
    }

    /// The nodes that this section waits for, or gave its OK, and that are not here.
    fn absent(&self, section: Name) -> impl Iterator<Item = (Member, Absent)> + '_ {
        let camera = self.sections().and_then(|it| it.get(section));
        let met = camera
            .into_iter()
            .flat_map(|it| it.waits_for().chain(it.granted()));
        met.filter_map(|member| Some((member, self.standing(member)?)))
    }

    /// The state of this life, unless it is present.
    fn standing(&self, member: Member) -> Option<Absent> {
        let Some(view) = self.membership().member(member.id) else {
            return Some(Absent::Unknown);
        };
        if view.member.supersedes(member) {
            return Some(Absent::Over(Delta::Confirmed(member)));
        }
        if view.member != member {
            return Some(Absent::Unknown);
        }
        match view.status {
            Status::Alive | Status::Suspect => None,
            Status::Failed => Some(Absent::Failed),
            Status::Left => Some(Absent::Over(Delta::Left(member))),
        }
    }
}

//! Dropping of sections, and the numbers that dropped sections leave.

use crate::state::Camera;
use crate::{Message, Token};

/// The three numbers that are kept for all sections that were dropped. Every section that is made
/// later begins with them. So its tokens are above all that its former state knew, and this node
/// never uses a request number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Remains {
    /// The highest token that may have been used in any of them.
    floor: Token,
    /// The highest number of a request of this node in any of them.
    issued: u64,
    /// The highest number that a token of this node might have had in any of them. Others may still
    /// name this node as a rival up to that number, and a RELEASE or an abstention has to report
    /// that these requests are over.
    over: u64,
}

impl Remains {
    /// Takes over the numbers of a section in which nothing is open.
    pub(super) fn absorb(&mut self, camera: &Camera) {
        self.floor = self.floor.max(camera.tokens.floor());
        self.issued = self.issued.max(camera.issued.highest());
        // Permissions that were kept go with it.
        self.over = self.over.max(camera.issued.kept_to());
    }

    /// Makes a new section begin with the numbers of dropped sections.
    pub(super) fn pass_on(&self, camera: &mut Camera) {
        camera.tokens.raise(self.floor);
        camera.issued.start_above(self.issued, self.over);
    }
}

/// Returns true if nothing is open in this section: no node has this node's OK, waits for it, or is
/// asked for its own, and this node is in no tree.
///
/// The section is compared with a new section to which everything that may be forgotten was copied.
/// So any field that a later version adds counts as open until it is copied here.
pub(super) fn is_vacant(camera: &Camera) -> bool {
    if !camera.granted.has_none_open() {
        return false;
    }
    let mut blank = Camera::unchecked(camera.me, camera.config, camera.rules);
    // Every section begins with the list of members; a life that only messages named will be named
    // again.
    blank.peers = camera.peers.clone();
    // `Remains` takes over these numbers. Other nodes' numbers order requests that are open,
    // and the highest token that was certainly used is for nodes that have our OK: no node has it.
    blank.issued = camera.issued;
    blank.tokens = camera.tokens;
    // A late request gets an OK again; its sender answers that with the end of the request.
    blank.granted = camera.granted.closed();
    // A permission that is not in use may be lost.
    blank.kept = camera.kept.clone();
    blank.forest = camera.forest.cleared();
    blank == *camera
}

/// Returns true if nothing is open in a vacant section after it has received this message.
pub(super) const fn leaves_it_vacant(message: &Message) -> bool {
    matches!(
        message,
        Message::Ok { .. }
            | Message::Wait { .. }
            | Message::Release { .. }
            | Message::Fence { .. }
            | Message::Floor { .. }
            | Message::Over { .. }
            | Message::Nack { .. }
            | Message::Broken { .. }
            | Message::Abstain { .. }
    )
}

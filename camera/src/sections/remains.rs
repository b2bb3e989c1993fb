//! Which section may be dropped, and what it leaves behind.

use crate::state::Camera;
use crate::{Message, Token};

/// What is kept of all sections that were dropped, in three numbers. Every section that is made
/// later begins with them. So its tokens are above all that its former state knew of, and no number
/// of a request of ours ever comes twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Remains {
    /// The highest token that may have been used in any of them.
    floor: Token,
    /// The highest number of a request of ours in any of them.
    issued: u64,
    /// The highest number that a token of ours might have had in any of them. Others may still name
    /// us as a rival up to that number, and a RELEASE or an abstention has to say that this is
    /// over.
    over: u64,
}

impl Remains {
    /// Takes over what matters of a section in which nothing is open.
    pub(super) fn absorb(&mut self, camera: &Camera) {
        self.floor = self.floor.max(camera.tokens.floor());
        self.issued = self.issued.max(camera.issued.highest());
        // Permissions that were kept go with it.
        self.over = self.over.max(camera.issued.kept_to());
    }

    /// Makes a new section begin with what dropped sections left.
    pub(super) fn pass_on(&self, camera: &mut Camera) {
        camera.tokens.raise(self.floor);
        camera.issued.start_above(self.issued, self.over);
    }
}

/// Whether nothing is open in this section: no node has our OK, waits for it, or is asked for one,
/// and we stand in no tree.
///
/// The section is compared with a new one that was told what may be forgotten. So whatever else a
/// section may come to remember counts as open until it is added here.
pub(super) fn is_vacant(camera: &Camera) -> bool {
    if !camera.granted.has_none_open() {
        return false;
    }
    let mut blank = Camera::unchecked(camera.me, camera.config, camera.rules);
    // Every section is told which nodes are here, and lives that were only heard of are heard of
    // again.
    blank.peers = camera.peers.clone();
    // Numbers, which go over into what remains. Other nodes' numbers order requests that are open,
    // and the highest token that was certainly used is for nodes that have our OK: no node has it.
    blank.issued = camera.issued;
    blank.tokens = camera.tokens;
    // A request that comes late gets an OK once more; its sender answers that with the request's
    // end.
    blank.granted = camera.granted.closed();
    // A permission that is not used is as good as none.
    blank.kept = camera.kept.clone();
    blank.forest = camera.forest.cleared();
    blank == *camera
}

/// Whether a section in which nothing is open stays so when it hears this.
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

//! The limits of a member's memory, and a member in a line.

use alloc::format;
use alloc::string::{String, ToString};

use crate::Replica;
use crate::check::Journal;
use crate::encoding::encoded_len;
use crate::replica::Role;

/// Checks that a member's memory stays within its settings.
pub(super) fn check_limits(it: &Replica<Journal>) -> Result<(), String> {
    let pending = it.config.pending as usize;
    let members = it.configuration().members().count();
    let on_its_way: usize = it.acceptor.tail().map(encoded_len).sum();
    let held = match &it.role {
        Role::Leader(lead) => {
            lead.backlog.len() <= pending && lead.questions.len() <= pending + members
        }
        Role::Candidate(candidacy) => candidacy.promises.len() <= members,
        Role::Follower => true,
    };
    let fetched = it
        .fetching
        .as_ref()
        .is_none_or(|state| state.bytes.len() <= it.config.state_limit as usize);
    // Reads that wait for a round that no leader sends would wait for ever.
    if let Role::Leader(lead) = &it.role
        && let Some(question) = lead.questions.first()
        && question.round > lead.round
    {
        return Err(format!("no round is on its way: {}", sketch(it)));
    }
    if held && fetched && it.waiting() <= pending && on_its_way <= it.entry_room() {
        return Ok(());
    }
    Err(format!("a limit is passed: {}", sketch(it)))
}

/// A machine in a line.
pub(super) fn sketch(it: &Replica<Journal>) -> String {
    let role = match &it.role {
        Role::Follower => "follows".to_string(),
        Role::Candidate(candidacy) => format!("{candidacy:?}"),
        Role::Leader(leadership) => format!("{leadership:?}"),
    };
    let acceptor = &it.acceptor;
    format!(
        "\n  {:?} (voter {:?}, votes {}, c{}) promised {:?} accepted {:?} committed {} end {} lead {:?} \
         waits {} watches {} tied {} fetching {:?} active {} work {:?} {role}",
        it.me(),
        it.voter(),
        it.votes(),
        it.configuration().number,
        acceptor.promised(),
        acceptor.accepted(),
        acceptor.committed(),
        acceptor.end(),
        it.lead,
        it.waits_to_stand,
        it.watches,
        it.is_tied,
        it.fetching,
        it.is_active,
        it.work,
    )
}

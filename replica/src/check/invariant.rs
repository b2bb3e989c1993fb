//! The invariant on which safety rests, as a property of whole states.
//!
//! A history shows a broken promise long after the step that broke it: two members have to apply
//! the two updates, and a reader has to look. The invariant breaks in that step. It is the
//! invariant of the crate page's "Why it is safe":
//!
//! - All entries that are accepted under one ballot, and all that its leader sends, are part of one
//!   sequence.
//! - A leader counts no member as holding more than it does, unless another leader has replaced it.
//! - No two members know different entries to be committed at one version.
//! - A leader answers no read with the version that ends its configuration, or a later one.
//!
//! It compares the entries that members still hold: committed ones are kept for a [window](crate::Config::window).

use alloc::format;
use alloc::string::String;

use crate::message::{Body, Message};
use crate::replica::Role;
use crate::{Ballot, Entry, Replica, State, Version};

/// The first part of the invariant that these members, all of one group and correct, and the
/// messages between them break, in words. `None` where it holds.
///
/// O(n^2) comparisons of logs for n members, and O(n) for each message.
pub fn broken<'a, S: State>(
    members: &[&Replica<S>],
    messages: impl IntoIterator<Item = &'a Message<S::Update>>,
) -> Option<String>
where
    S::Update: 'a,
{
    for (nth, one) in members.iter().enumerate() {
        for other in members.iter().skip(nth + 1) {
            if let Some(broken) = differ(one, other) {
                return Some(broken);
            }
        }
    }
    let counted = members.iter().find_map(|it| counts_too_much(it, members));
    counted.or_else(|| {
        (messages.into_iter()).find_map(|it| members.iter().find_map(|member| denies(member, it)))
    })
}

/// The entries that a member holds, each with its version.
fn log<S: State>(of: &Replica<S>) -> impl Iterator<Item = (Version, &Entry<S::Update>)> {
    let oldest = of.acceptor.oldest();
    let entries = of.acceptor.entries(oldest).into_iter().flatten();
    (oldest + 1..).zip(entries)
}

/// Compares two entries: a witness keeps them without their updates.
fn is_same<U: PartialEq>(one: &Entry<U>, other: &Entry<U>) -> bool {
    match (one, other) {
        (Entry::Elided, it) | (it, Entry::Elided) => !it.seals(),
        (one, other) => one == other,
    }
}

/// The ballot under which the log of a member goes on.
fn ballot<S: State>(of: &Replica<S>) -> (u64, Ballot) {
    (of.configuration().number, of.acceptor.accepted())
}

fn differ<S: State>(one: &Replica<S>, other: &Replica<S>) -> Option<String> {
    let in_ballot = ballot(one) == ballot(other);
    let ends = |it: &Replica<S>| it.acceptor.committed();
    // A leader proposed its whole log.
    let begins = match (one.leads(), other.leads()) {
        (true, _) => ends(other),
        (_, true) => ends(one),
        (false, false) => ends(one).max(ends(other)),
    };
    let committed = ends(one).min(ends(other));
    let differs = log(one).find_map(|(version, entry)| {
        let is_bound = version <= committed || in_ballot && version > begins;
        let same = log(other).find(|it| it.0 == version)?.1;
        (is_bound && !is_same(entry, same)).then_some(version)
    });
    differs.map(|version| {
        let (one, other) = (one.me(), other.me());
        format!("{one:?} and {other:?} hold different entries at {version}, both committed or accepted under one ballot")
    })
}

/// Returns a leader's belief about a follower that the follower's log contradicts, if any.
fn counts_too_much<S: State>(leader: &Replica<S>, members: &[&Replica<S>]) -> Option<String> {
    let Role::Leader(leadership) = &leader.role else {
        return None;
    };
    let configuration = leader.configuration().number;
    let is_replaced = members.iter().any(|it| {
        let number = it.configuration().number;
        number > configuration
            || number == configuration && it.acceptor.promised() > leadership.ballot
    });
    if is_replaced {
        return None;
    }
    leadership.followers.iter().find_map(|follower| {
        let is_it = |it: &&&Replica<S>| {
            it.me().id == follower.member.id
                && it.votes()
                && it.configuration().number == configuration
        };
        let member = members.iter().find(is_it)?;
        let matched = follower.matched?;
        let holds =
            member.acceptor.accepted() == leadership.ballot && member.acceptor.end() >= matched;
        (!holds).then(|| {
            let (leader, member) = (leader.me(), member.me());
            format!("{leader:?} counts {member:?} as holding its entries up to {matched}")
        })
    })
}

/// Returns the part of a message that a member's log contradicts, if any.
fn denies<S: State>(member: &Replica<S>, message: &Message<S::Update>) -> Option<String> {
    let number = message.configuration;
    match &message.body {
        Body::Accept {
            ballot: sent,
            after,
            entries,
            ..
        } if ballot(member) == (number, *sent) => {
            // Entries that a member learned are not of its ballot; a leader's entries all are.
            let begins = match member.leads() {
                true => 0,
                false => member.acceptor.committed(),
            };
            let mut sent = (*after + 1..).zip(entries.iter());
            sent.find_map(|(version, entry)| {
                let held = log(member).find(|it| it.0 == version)?.1;
                let differs = version > begins && !is_same(entry, held);
                differs.then(|| {
                    format!(
                        "{:?} holds another entry at {version} than the leader of its ballot sends",
                        member.me()
                    )
                })
            })
        }
        Body::ReadAt {
            number: asked,
            version,
            ..
        } if *asked != 0 => {
            let end = log(member).find_map(|(end, entry)| match entry {
                Entry::Configure(next) if next.number == number + 1 => Some(end),
                Entry::Update(_) | Entry::Configure(_) | Entry::Elided => None,
            })?;
            let is_committed = end <= member.acceptor.committed();
            (is_committed && *version >= end).then(|| {
                format!("a read is answered with {version} by configuration {number}, which ended with {end}")
            })
        }
        Body::Accept { .. }
        | Body::ReadAt { .. }
        | Body::Prepare { .. }
        | Body::Promise { .. }
        | Body::Refuse { .. }
        | Body::Accepted { .. }
        | Body::Missing { .. }
        | Body::Learn { .. }
        | Body::Fetch { .. }
        | Body::Page { .. }
        | Body::Propose { .. }
        | Body::Read { .. }
        | Body::Stand { .. }
        | Body::Current { .. }
        | Body::Rejoin { .. } => None,
    }
}

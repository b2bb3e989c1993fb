//! The memory of a member: its promise, its accepted entries, and the committed state.
//!
//! Each change is a [`Fact`], and the same method makes it when the fact is folded.
//!
//! Invariants:
//! - `promised >= accepted`, both of the present configuration;
//! - `tail` begins right after `committed`, and was accepted under `accepted` as a whole: it holds
//!   everything that the leader of `accepted` had adopted;
//! - an entry that seals the configuration is the last of `tail`.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use selvedge_core::{Incarnation, Member};

use crate::configuration::{BALLOT_MAX, VERSION_MAX};
use crate::fact::{Damage, Fact, Snapshot, Stored};
use crate::group::Group;
use crate::origin::{Origin, is_later};
use crate::sessions::{Admission, Sessions};
use crate::tail::Tail;
use crate::{Ballot, Configuration, Entry, Proposal, State, Version};

/// The outcome of accepting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accept {
    /// The member holds all of the entries.
    Held,
    /// Entries are missing before it.
    Gap,
}

/// The effect of a committed entry.
#[derive(Clone, Debug)]
pub(crate) enum Committed<S: State> {
    Applied {
        by: Member,
        number: u64,
        version: Version,
        outcome: S::Outcome,
    },
    Forgotten {
        by: Member,
        number: u64,
    },
    Configured,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Acceptor<S: State> {
    promised: Ballot,
    accepted: Ballot,
    group: Arc<Group>,
    state: Option<S>,
    sessions: Sessions,
    committed: Version,
    /// The last entries that were committed, for members that lack them.
    window: VecDeque<Entry<S::Update>>,
    window_limit: usize,
    tail: Tail<S::Update>,
    /// True if the configuration names this member, in any of its lives.
    is_named: bool,
    /// True if the configuration names it in a life to which its memory answers.
    is_named_so: bool,
    /// True if this member keeps entries without their updates.
    is_witness: bool,
    origin: Origin,
    /// The present life.
    life: Incarnation,
}

impl<S: State> Acceptor<S> {
    pub(crate) fn new(
        origin: Origin,
        life: Incarnation,
        configuration: Configuration,
        state: Option<S>,
        window_limit: usize,
    ) -> Self {
        let mut acceptor = Self {
            promised: Ballot::default(),
            accepted: Ballot::default(),
            group: Arc::new(Group::new(configuration)),
            state,
            sessions: Sessions::default(),
            committed: 0,
            window: VecDeque::new(),
            window_limit,
            tail: Tail::new(),
            is_named: false,
            is_named_so: false,
            is_witness: false,
            origin,
            life,
        };
        acceptor.note_part();
        if acceptor.is_witness {
            acceptor.state = None;
        }
        acceptor
    }

    pub(crate) const fn promised(&self) -> Ballot {
        self.promised
    }

    pub(crate) const fn accepted(&self) -> Ballot {
        self.accepted
    }

    pub(crate) const fn committed(&self) -> Version {
        self.committed
    }

    /// The state. A node that held it as a member, and no longer is one, keeps it until the next
    /// configuration has installed it.
    pub(crate) const fn state(&self) -> Option<&S> {
        self.state.as_ref()
    }

    /// Returns true if it has no state, and is not a witness.
    pub(crate) const fn lacks_state(&self) -> bool {
        self.state.is_none() && !self.is_witness
    }

    /// Returns true if it holds a state that it does not need: it is a witness, or the
    /// configuration does not name it.
    pub(crate) fn holds_in_vain(&self) -> bool {
        self.state.is_some() && (self.is_witness || !self.is_named)
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    pub(crate) fn configuration(&self) -> &Configuration {
        &self.group.configuration
    }

    pub(crate) const fn voter(&self) -> Member {
        self.origin.voter
    }

    pub(crate) const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns true if the configuration names this node in a life before its memory began: then it
    /// asks to be named again. A later life than the present one was meant for another process.
    pub(crate) fn is_named_before(&self) -> bool {
        let named = self.configuration().voter(self.origin.voter.id);
        let is_before = |life| is_later(self.origin.voter.incarnation, life);
        !self.is_named_so && named.is_some_and(|it| is_before(it.member.incarnation))
    }

    pub(crate) const fn is_witness(&self) -> bool {
        self.is_witness
    }

    /// Returns true if this member votes: the configuration names it in a life to which its memory
    /// [answers](Origin::answers_to), and it has the state, or needs none.
    pub(crate) fn votes(&self) -> bool {
        self.is_named_so && (self.is_witness || self.state.is_some())
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The last version that this member holds.
    pub(crate) fn end(&self) -> Version {
        self.committed + self.tail.len() as Version
    }

    /// The entries that are accepted and not known to be committed.
    pub(crate) fn tail(&self) -> impl DoubleEndedIterator<Item = &Entry<S::Update>> {
        self.tail.behind(0)
    }

    /// The bytes that these entries take in a frame.
    pub(crate) const fn len_on_its_way(&self) -> usize {
        self.tail.encoded_len()
    }

    /// Returns true if the configuration ends with an accepted entry.
    pub(crate) fn is_sealed(&self) -> bool {
        self.tail.back().is_some_and(Entry::seals)
    }

    /// The version that the oldest entry in the window follows.
    pub(crate) fn oldest(&self) -> Version {
        self.committed - self.window.len() as Version
    }

    /// The entries behind `after`, from the window and the tail. `None` where some are no longer
    /// kept.
    pub(crate) fn entries(
        &self,
        after: Version,
    ) -> Option<impl Iterator<Item = &Entry<S::Update>>> {
        let oldest = self.oldest();
        let skipped = usize::try_from(after.checked_sub(oldest)?).ok()?;
        let kept = self.window.len();
        let window = self.window.range(skipped.min(kept)..);
        Some(window.chain(self.tail.behind(skipped.saturating_sub(kept))))
    }

    /// The committed entries behind `after`. `None` where some are no longer kept.
    pub(crate) fn committed_entries(
        &self,
        after: Version,
    ) -> Option<impl Iterator<Item = &Entry<S::Update>>> {
        let count = usize::try_from(self.committed.checked_sub(after)?).ok()?;
        Some(self.entries(after)?.take(count))
    }

    pub(crate) fn snapshot(&self) -> Snapshot<S> {
        Snapshot {
            version: self.committed,
            configuration: self.configuration().clone(),
            sessions: self.sessions.clone(),
            state: self.state.clone(),
        }
    }

    pub(crate) fn promise(&mut self, ballot: Ballot) {
        self.promised = ballot;
    }

    /// Accepts under `ballot` the entries behind `after`; its leader knows the entries up to
    /// `commit` to be committed. Entries that the member holds already under this ballot stay: a
    /// leader never changes them.
    pub(crate) fn accept(
        &mut self,
        ballot: Ballot,
        (after, commit): (Version, Version),
        entries: impl IntoIterator<Item = Entry<S::Update>>,
    ) -> Accept {
        let in_ballot = self.accepted == ballot;
        let held = if in_ballot {
            self.end()
        } else {
            self.committed
        };
        if after > held {
            return Accept::Gap;
        }
        self.promised = self.promised.max(ballot);
        if !in_ballot {
            self.tail.clear();
            self.accepted = ballot;
        }
        let room = self.group.entry_room();
        let over = usize::try_from(commit.saturating_sub(self.committed)).unwrap_or(usize::MAX);
        let skipped = usize::try_from(held - after).unwrap_or(usize::MAX);
        for entry in entries.into_iter().skip(skipped) {
            if self.is_sealed() {
                break; // No leader appends behind the last entry; a liar may.
            }
            let entry = if self.is_witness {
                entry.elided()
            } else {
                entry
            };
            if !self.tail.push(entry, over, room) {
                break; // No leader has more in flight than fits into a frame; a liar may.
            }
        }
        Accept::Held
    }

    /// Commits the entries behind `after`, under any ballot. Returns true if this member had accepted
    /// all of them.
    pub(crate) fn learn(
        &mut self,
        after: Version,
        entries: impl IntoIterator<Item = Entry<S::Update>>,
        mut emit: impl FnMut(Committed<S>),
    ) -> bool {
        let mut was_accepted = true;
        let Some(held) = self.committed.checked_sub(after) else {
            return was_accepted; // It lacks the entries before.
        };
        let number = self.configuration().number;
        for entry in entries.into_iter().skip(held as usize) {
            let entry = if self.is_witness {
                entry.elided()
            } else {
                entry
            };
            // An accepted entry that differs was never committed, nor were the entries behind it.
            if self.tail.pop_front().is_none_or(|it| it != entry) {
                self.tail.clear();
                was_accepted = false;
            }
            self.apply(entry, &mut emit);
            if self.configuration().number != number {
                break; // The next entries are of another configuration: they are asked for again.
            }
        }
        was_accepted
    }

    /// Commits the accepted entries, up to `version` and as far as it holds them.
    pub(crate) fn commit(&mut self, version: Version, mut emit: impl FnMut(Committed<S>)) {
        while self.committed < version
            && let Some(entry) = self.tail.pop_front()
        {
            self.apply(entry, &mut emit);
        }
    }

    fn apply(&mut self, entry: Entry<S::Update>, emit: &mut impl FnMut(Committed<S>)) {
        self.committed += 1;
        let version = self.committed;
        match &entry {
            Entry::Update(proposal) => self.apply_update(proposal, version, emit),
            Entry::Configure(next) => {
                self.configure((**next).clone());
                emit(Committed::Configured);
            }
            // Only a witness has these, and it has no state. If the life that stored one was not a
            // witness yet, its state lacks the update.
            Entry::Elided if self.state.is_some() => self.retire(),
            Entry::Elided => {}
        }
        if self.window_limit > 0 && self.state.is_some() {
            if self.window.len() == self.window_limit {
                self.window.pop_front();
            }
            self.window.push_back(entry);
        } else {
            self.window.clear();
        }
    }

    fn apply_update(
        &mut self,
        proposal: &Proposal<S::Update>,
        version: Version,
        emit: &mut impl FnMut(Committed<S>),
    ) {
        let Some(state) = &mut self.state else {
            return; // A node that never had the state, or gave it up.
        };
        let Proposal {
            by,
            number,
            first,
            since,
            ref update,
        } = *proposal;
        let limit = self.group.configuration.proposers.into();
        match (self.sessions).admit((by, number), (first, since), version, limit) {
            Admission::New => {
                let outcome = state.apply(update);
                emit(Committed::Applied {
                    by,
                    number,
                    version,
                    outcome,
                });
            }
            Admission::Old => {}
            Admission::Forgotten => emit(Committed::Forgotten { by, number }),
        }
    }

    /// Goes over to the next link of the chain; ballots begin at 0 again.
    fn configure(&mut self, next: Configuration) {
        debug_assert!(
            self.tail.is_empty(),
            "nothing follows the last entry of a configuration"
        );
        self.tail.clear();
        self.group = Arc::new(Group::new(next));
        self.promised = Ballot::default();
        self.accepted = Ballot::default();
        self.note_part();
    }

    /// Goes over at once, in spite of entries in flight: the published rule.
    pub(crate) fn switch(&mut self, next: Configuration) {
        self.tail.clear();
        self.configure(next);
    }

    /// Replaces the held state by `snapshot`, which is no earlier.
    pub(crate) fn install(&mut self, snapshot: Snapshot<S>) {
        let Snapshot {
            version,
            configuration,
            sessions,
            state,
        } = snapshot;
        debug_assert!(
            version >= self.committed,
            "a state is not replaced by an earlier one"
        );
        let held = usize::try_from(version.saturating_sub(self.committed)).unwrap_or(usize::MAX);
        self.committed = version;
        self.sessions = sessions;
        self.window.clear();
        if configuration.number == self.configuration().number {
            // The entries that were accepted behind it may be committed.
            self.tail.forget(held);
        } else {
            self.tail.clear();
            self.configure(configuration);
        }
        // A witness that held a state keeps the next one until the configuration is active.
        if !self.is_witness || self.state.is_some() {
            self.state = state;
        }
    }

    /// Gives up the state: the next configuration holds it, and this node needs it no longer.
    pub(crate) fn retire(&mut self) {
        self.state = None;
        self.window.clear();
        self.sessions = Sessions::default();
    }

    pub(crate) fn fold(&mut self, fact: &Fact<S>) -> Result<(), Damage> {
        match fact {
            Fact::Promised(ballot) => {
                check_fact(ballot.number <= BALLOT_MAX)?;
                self.promise(*ballot);
            }
            Fact::Accepted {
                ballot,
                after,
                committed,
                commit,
                entries,
            } => {
                check_fact(ballot.number <= BALLOT_MAX && self.follows(*after, entries))?;
                self.commit(*committed, |_| ());
                if self.accept(*ballot, (*after, *commit), entries.iter().cloned()) == Accept::Gap {
                    return Err(Damage::Missing);
                }
                self.commit(*commit, |_| ());
            }
            Fact::Committed(version) if *version > self.end() => return Err(Damage::Missing),
            Fact::Committed(version) => self.commit(*version, |_| ()),
            Fact::Learned { after, entries } => {
                check_fact(self.follows(*after, entries))?;
                self.commit(*after, |_| ());
                if *after > self.committed {
                    return Err(Damage::Missing);
                }
                let _was_accepted = self.learn(*after, entries.iter().cloned(), |_| ());
            }
            Fact::Installed(snapshot) => {
                let is_taken = self.origin.takes(snapshot.configuration.number);
                check_fact(is_taken && snapshot.is_sound() && snapshot.version >= self.committed)?;
                self.install((**snapshot).clone());
            }
            Fact::Retired => self.retire(),
        }
        Ok(())
    }

    /// Returns true if entries behind this version can be of this configuration.
    fn follows(&self, after: Version, entries: &[Entry<S::Update>]) -> bool {
        let end = after.saturating_add(entries.len() as Version);
        let next = self.configuration().number + 1;
        end <= VERSION_MAX && Entry::are_of_one_configuration(entries, next)
    }

    fn note_part(&mut self) {
        let named = self.configuration().voter(self.origin.voter.id);
        self.is_named = named.is_some();
        let answers = |life| self.origin.answers_to(life, self.life);
        let named = named.filter(|it| answers(it.member.incarnation));
        self.is_named_so = named.is_some();
        self.is_witness = named.is_some_and(|it| it.is_witness);
    }
}

impl<S: State> Acceptor<S> {
    pub(crate) fn stored(&self) -> Stored<S> {
        Stored {
            origin: self.origin,
            promised: self.promised,
            accepted: self.accepted,
            snapshot: self.snapshot(),
            tail: self.tail().cloned().collect(),
        }
    }

    pub(crate) fn restore(life: Incarnation, stored: Stored<S>, window_limit: usize) -> Self {
        let Stored {
            origin,
            promised,
            accepted,
            snapshot,
            tail,
        } = stored;
        let mut acceptor = Self::new(origin, life, snapshot.configuration, None, window_limit);
        acceptor.state = snapshot.state;
        acceptor.sessions = snapshot.sessions;
        acceptor.committed = snapshot.version;
        acceptor.promised = promised;
        acceptor.accepted = accepted;
        let room = acceptor.group.entry_room();
        for entry in tail {
            if !acceptor.tail.push(entry, 0, room) {
                break;
            }
        }
        acceptor
    }
}

const fn check_fact(is_sound: bool) -> Result<(), Damage> {
    match is_sound {
        true => Ok(()),
        false => Err(Damage::Unsound),
    }
}

//! Catching up: committed entries, or the state whole, for a member that lacks them.
//!
//! Committed entries are final, so they are sent and taken under any ballot and configuration.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{Context, Member};

use crate::encoding::{decode, encode, encoded_len};
use crate::fact::Snapshot;
use crate::message::{Body, Wants};
use crate::pages::{Fetching, Serving};
use crate::replica::Replica;
use crate::sessions::Fate;
use crate::{Entries, Event, Fact, SnapshotId, State, Timer, Version};

impl<S: State> Replica<S> {
    /// Asks a member for the entries or the state that this one lacks.
    pub(crate) fn ask_for_missing(&mut self, from: Member, cx: &mut Context<'_, Self>) {
        if self.fetching.is_some() {
            return; // One state at a time; the member asks for the rest behind it.
        }
        let body = Body::Missing {
            committed: self.acceptor.committed(),
            wants: self.wants(),
        };
        self.send(from, body, cx);
    }

    fn wants(&self) -> Wants {
        match (self.acceptor.state(), self.acceptor.is_witness()) {
            (Some(_), _) => Wants::Entries,
            (None, false) => Wants::State,
            (None, true) => Wants::Bare,
        }
    }

    /// Returns true if the other node needs no application state. A node that holds a state gets
    /// the next one also where it is a witness there: the others may need it until they have it.
    fn is_bare(&self, from: Member, wants: Wants) -> bool {
        let named = self.configuration().voter(from.id);
        match wants {
            Wants::Entries => false,
            Wants::State => named.is_some_and(|it| it.is_witness),
            Wants::Bare => true,
        }
    }

    /// Handles the request of a node that lacks the entries behind `committed`, or the state.
    pub(crate) fn on_lacking(
        &mut self,
        from: Member,
        configuration: u64,
        (committed, wants): (Version, Wants),
        cx: &mut Context<'_, Self>,
    ) {
        let own = self.acceptor.committed();
        if committed > own {
            return; // It has more: this member asks for it when it learns that something is missing.
        }
        let is_bare = self.is_bare(from, wants);
        // A node that knows of no configuration yet lacks that.
        let knows = configuration == self.configuration().number;
        if committed == own && knows && (wants != Wants::State || is_bare) {
            return self.on_caught_up(from, cx);
        }
        if self.acceptor.state().is_none() {
            // A witness knows which nodes have it. A node that lacks it, or gave it up, would be asked
            // again for each answer.
            if self.is_active && !self.acceptor.lacks_state() {
                self.send_current(from, cx);
            }
            return;
        }
        if wants == Wants::Entries && self.send_learn(from, committed, cx) {
            return;
        }
        // A state that the node has already would not help.
        let slot = usize::from(is_bare);
        if let Some(slot) = self.serving.get_mut(slot) {
            slot.take_if(|it| {
                let version = it.snapshot.version;
                version <= committed && !(wants == Wants::State && version == committed)
            });
        }
        self.send_page(from, None, is_bare, cx);
    }

    /// Goes on, at the leader, from a member that has every entry committed here.
    fn on_caught_up(&mut self, from: Member, cx: &mut Context<'_, Self>) {
        if self.leads() {
            self.on_follower_here(from.id, false, cx);
        }
    }

    /// Sends committed entries, if they are still kept.
    fn send_learn(&self, to: Member, after: Version, cx: &mut Context<'_, Self>) -> bool {
        let Some(behind) = self.acceptor.committed_entries(after) else {
            return false;
        };
        let mut left = self.entry_room();
        let mut entries = Entries::new();
        for entry in behind {
            let len = encoded_len(entry);
            if len > left {
                break;
            }
            left -= len;
            entries.push(entry.clone());
            if entry.seals() {
                break;
            }
        }
        if entries.is_empty() {
            return false; // It was decided when frames were longer.
        }
        self.send(to, Body::Learn { after, entries }, cx);
        true
    }

    pub(crate) fn on_learn(
        &mut self,
        from: Member,
        after: Version,
        entries: Entries<S::Update>,
        cx: &mut Context<'_, Self>,
    ) {
        let before = self.acceptor.committed();
        let until = after.saturating_add(entries.len() as Version);
        let lacks_state = self.acceptor.lacks_state();
        if after > before || until <= before || lacks_state {
            self.counters.stale += 1;
            return;
        }
        if self.acceptor.is_witness() && self.acceptor.holds_in_vain() {
            self.on_active(cx);
        }
        // Only the entries that are new here are stored. The others may differ from the committed ones if the
        // sender lies, and a later life, which begins with fewer versions committed, would apply them.
        let known = usize::try_from(before - after).unwrap_or(usize::MAX);
        let entries: Entries<S::Update> = entries.into_iter().skip(known).collect();
        let fact = Fact::Learned {
            after: before,
            entries: entries.clone(),
        };
        Self::emit_fact(fact, cx);
        let number = self.configuration().number;
        let mut committed = Vec::new();
        let was_accepted = (self.acceptor).learn(before, entries, |it| committed.push(it));
        for it in committed {
            self.on_committed(it, cx);
        }
        if !was_accepted {
            self.end_lead(cx);
        }
        if self.configuration().number != number {
            self.on_configured(cx);
        }
        self.answer_reads(cx);
        self.evaluate(cx);
        self.append_backlog(cx);
        // There may be more.
        self.ask_for_missing(from, cx);
    }

    /// Ends the lead of this member, if it leads: an entry was committed that it did not propose,
    /// so another ballot decides. It must send nothing more under its own ballot: members that
    /// accepted its own entries would take the learned ones for the same.
    fn end_lead(&mut self, cx: &mut Context<'_, Self>) {
        if self.leads() {
            self.step_down(cx);
            self.find_leader(cx);
        }
    }

    /// Sends a page of the state: the first one of the latest state, or the requested one.
    fn send_page(
        &mut self,
        to: Member,
        asked: Option<(SnapshotId, u32)>,
        is_bare: bool,
        cx: &mut Context<'_, Self>,
    ) {
        let oldest = self
            .acceptor
            .committed()
            .saturating_sub(self.config.window.into());
        let slot = usize::from(is_bare);
        let served = self.serving.get(slot).and_then(Option::as_ref);
        // It stays as it is while others fetch it, however old: else no node would ever have it
        // whole.
        let is_kept = served.is_some_and(|it| match asked {
            Some((asked, _)) => asked.version <= it.snapshot.version,
            None => it.snapshot.version >= oldest,
        });
        if !is_kept {
            let mut snapshot = self.acceptor.snapshot();
            if is_bare {
                snapshot.state = None;
                snapshot.sessions = Default::default();
            }
            let Some(bytes) = encode(&snapshot) else {
                debug_assert!(false, "postcard encodes what serde can serialize");
                return;
            };
            let serving = Serving {
                snapshot: SnapshotId {
                    version: snapshot.version,
                    is_bare,
                    total: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                },
                bytes: bytes.into(),
            };
            if let Some(slot) = self.serving.get_mut(slot) {
                *slot = Some(serving);
            }
        }
        let Some(serving) = self.serving.get(slot).and_then(Option::as_ref) else {
            return;
        };
        // Pages of another state than the requested one begin at the first.
        let snapshot = serving.snapshot;
        let asked = asked.filter(|&(asked, offset)| asked == snapshot && offset < snapshot.total);
        let offset = asked.map_or(0, |(_, offset)| offset);
        let room = self.entry_room();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = serving.bytes.get(start..).unwrap_or_default();
        let is_last = bytes.len() <= room;
        let page = Body::Page {
            snapshot,
            offset,
            bytes: bytes.iter().take(room).copied().collect(),
        };
        if is_last && let Some(slot) = self.serving.get_mut(slot) {
            *slot = None;
        }
        self.send(to, page, cx);
    }

    pub(crate) fn on_fetch(
        &mut self,
        from: Member,
        snapshot: SnapshotId,
        offset: u32,
        cx: &mut Context<'_, Self>,
    ) {
        if self.acceptor.state().is_none() {
            return self.send_current(from, cx);
        }
        self.send_page(from, Some((snapshot, offset)), snapshot.is_bare, cx);
    }

    /// Returns true if a state of this version is of use to this node.
    fn needs_state(&self, version: Version) -> bool {
        let own = self.acceptor.committed();
        version > own || version == own && self.acceptor.lacks_state()
    }

    pub(crate) fn on_page(
        &mut self,
        from: Member,
        id: SnapshotId,
        offset: u32,
        page: &[u8],
        cx: &mut Context<'_, Self>,
    ) -> Result<(), crate::Misbehaviour> {
        if !self.needs_state(id.version) {
            self.counters.stale += 1;
            return Ok(());
        }
        if id.total > self.config.state_limit {
            self.counters.too_long += 1;
            return Ok(());
        }
        let follows = self.fetching.as_ref().is_some_and(|it| {
            let held = u32::try_from(it.bytes.len()).unwrap_or(u32::MAX);
            it.from.id == from.id && it.snapshot == id && held == offset
        });
        // One state at a time: another one replaces it if its sender has no more of this one.
        let replaces = self.fetching.as_ref().is_none_or(|it| {
            let is_later = id.version >= it.snapshot.version && id != it.snapshot;
            it.from.id == from.id && is_later
        });
        if !follows && (offset != 0 || !replaces) {
            self.counters.stale += 1;
            return Ok(());
        }
        let held = match &self.fetching {
            Some(fetching) if follows => fetching.bytes.as_slice(),
            _ => &[],
        };
        let whole = held.len() + page.len();
        if whole < usize::try_from(id.total).unwrap_or(usize::MAX) {
            if page.is_empty() {
                self.counters.stale += 1;
                return Ok(());
            }
            let fetching = self.fetching.take_if(|_| follows);
            let mut bytes = fetching.map(|it| it.bytes).unwrap_or_default();
            bytes.extend_from_slice(page);
            self.fetching = Some(Fetching {
                from,
                snapshot: id,
                bytes,
                attempts: 0,
            });
            self.fetch_next(cx);
            return Ok(());
        }
        let snapshot: Option<Snapshot<S>> = decode(&[held, page].concat());
        let is_it = |it: &Snapshot<S>| {
            it.version == id.version && it.state.is_none() == id.is_bare && it.is_sound()
        };
        let Some(snapshot) = snapshot.filter(is_it) else {
            return Err(crate::Misbehaviour::State);
        };
        if snapshot.state.is_none() && self.acceptor.state().is_some() {
            self.counters.stale += 1;
            return Ok(()); // The member asked for a state while it held none.
        }
        self.on_state(from, snapshot, cx);
        Ok(())
    }

    /// Asks for the next page.
    fn fetch_next(&mut self, cx: &mut Context<'_, Self>) {
        let Some(fetching) = &self.fetching else {
            return;
        };
        let body = Body::Fetch {
            snapshot: fetching.snapshot,
            offset: u32::try_from(fetching.bytes.len()).unwrap_or(u32::MAX),
        };
        self.send(fetching.from, body, cx);
        cx.arm(Timer::Fetch, self.config.resend);
    }

    pub(crate) fn on_fetch_tick(&mut self, cx: &mut Context<'_, Self>) {
        // Another member may have sent the state meanwhile.
        let fetching = self.fetching.take();
        self.fetching = fetching.filter(|it| self.needs_state(it.snapshot.version));
        let Some(fetching) = &mut self.fetching else {
            return;
        };
        fetching.attempts += 1;
        if fetching.attempts <= self.config.attempts {
            return self.fetch_next(cx);
        }
        // This member asks another one when it receives a message from it.
        self.fetching = None;
    }

    /// Installs a state that has arrived whole.
    fn on_state(&mut self, from: Member, snapshot: Snapshot<S>, cx: &mut Context<'_, Self>) {
        if self.fetching.take().is_some() {
            cx.disarm(Timer::Fetch);
        }
        let before = self.configuration().number;
        let number = snapshot.configuration.number;
        if number < before || !self.acceptor.origin().takes(number) {
            self.counters.stale += 1;
            return; // Of a configuration that has ended.
        }
        self.counters.installed += 1;
        Self::emit_fact(Fact::Installed(Box::new(snapshot.clone())), cx);
        let version = snapshot.version;
        self.acceptor.install(snapshot);
        cx.event(Event::Installed(version));
        self.overtake(cx);
        if number == before {
            // A state does not contain the entries that led to it.
            self.end_lead(cx);
        }
        if self.configuration().number != before {
            let number = self.configuration().number;
            cx.event(Event::Configured { number, version });
            self.on_configured(cx);
        }
        self.answer_reads(cx);
        self.evaluate(cx);
        self.append_backlog(cx);
        self.ask_for_missing(from, cx);
    }

    /// Ends the waiting proposals that the state holds already or rules out.
    pub(crate) fn overtake(&mut self, cx: &mut Context<'_, Self>) {
        let sessions = self.acceptor.sessions();
        let mut over = Vec::new();
        self.work.proposals.retain(|it| {
            let (by, number) = (it.by, it.number);
            match sessions.fate(by, number, it.since) {
                Fate::Open => return true,
                Fate::Applied => over.push((it.first, by, Event::Overtaken { by, number })),
                Fate::Over => over.push((it.first, by, Event::Forgotten { by, number })),
            }
            false
        });
        let is_any = !over.is_empty();
        for (first, by, event) in over {
            if by == self.me && matches!(event, Event::Forgotten { .. }) {
                self.work.forget_row(first);
            }
            cx.event(event);
        }
        if is_any {
            self.note_progress(cx);
        }
    }
}

//! A gateway of the paper: its inputs, and how tables are copied (sections 4.1, 4.2, 4.3.1).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::{Context, Delta, Input, Machine, Member, Span};

use super::rules::{Published, Rules};
use super::tables::{Base, Label, Shared};
use super::watch::Notified;

/// A message between the paper's gateways.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// To the optimal gateway: the manager is silent.
    Inform,
    /// A candidate asks for votes in an era.
    Stand(u8),
    /// A vote in an era, with the voter's table and its label.
    Vote(u8, Label, Shared),
    /// From the manager of an era: its table (Figure 3, kinds 2 and 4).
    Copy(u8, Label, Shared),
    /// To the manager: the table with this label is stored.
    Stored(Label),
    /// To the manager: a follower, in this version (Figure 3, kind 3).
    Received(usize, u8),
    /// From the manager: in this era, which begins, this gateway manages.
    Successor(u8, u64),
    /// To the other candidates: a table to be merged.
    Merge(Shared),
}

/// A command to one of the paper's gateways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ask {
    /// A follower of the gateway arrives or leaves: its version is the next one.
    Change(usize),
    /// This manager hands over to a better gateway, by id.
    HandOver(u64),
    /// This manager misses a gateway, by id, and takes it off the base.
    Rebase(u64),
}

/// Tags of the timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// No message of a manager arrived.
    Silence,
    /// The votes of a candidate are not enough.
    Election,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Dispatcher,
    /// With the gateways that have voted for it.
    Candidate(BTreeSet<u64>),
    /// With the gateways that have its latest table, and true if that table is committed.
    Manager(BTreeSet<u64>, bool),
}

/// A gateway of the paper.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dispatcher {
    pub(super) rules: Rules,
    pub(super) me: u64,
    /// The gateways that it has discovered, itself included.
    pub(super) known: Vec<u64>,
    /// The gateways that it takes for failed.
    pub(super) ended: BTreeSet<u64>,
    pub(super) era: u8,
    /// The gateway that got its vote in this era.
    pub(super) voted: Option<u64>,
    /// The gateway that it takes for the manager.
    pub(super) manager: u64,
    pub(super) label: Label,
    pub(super) shared: Shared,
    pub(super) role: Role,
}

impl Dispatcher {
    /// Gateway `me` of the gateways with ids 1 to `count`. It has discovered the gateways in `known`. Gateway
    /// 1 manages era 1, and all have this table.
    #[must_use]
    pub fn new(me: u64, count: u64, known: &[u64], table: [u8; 2], rules: &[Published]) -> Self {
        let base = Base((1..=count).collect());
        let role = match me {
            1 => Role::Manager(base.0.iter().copied().collect(), true),
            _ => Role::Dispatcher,
        };
        Self {
            rules: Rules::published(rules),
            me,
            known: known.to_vec(),
            ended: BTreeSet::new(),
            era: 1,
            voted: Some(1),
            manager: 1,
            label: Label { era: 1, index: 0 },
            shared: Shared {
                table: table.into(),
                base,
                next: None,
            },
            role,
        }
    }

    /// Arms the first timer of a life.
    pub(super) fn begin(&self, cx: &mut Context<'_, Self>) {
        if matches!(self.role, Role::Dispatcher) {
            cx.arm(Timer::Silence, Span::secs(1));
        }
    }

    /// The state after a crash. The table stays: it would be copied again in any case.
    pub(super) fn again(&self) -> Self {
        let mut next = self.clone();
        next.role = Role::Dispatcher;
        next.ended = BTreeSet::new();
        if self.rules.volatile_vote() {
            (next.era, next.voted) = (0, None);
        }
        next
    }

    pub(super) fn follow(&mut self, manager: u64, cx: &mut Context<'_, Self>) {
        self.manager = manager;
        self.role = Role::Dispatcher;
        cx.disarm(Timer::Election);
        cx.arm(Timer::Silence, Span::secs(1));
    }

    pub(super) fn notify(&self, message: &Message, cx: &mut Context<'_, Self>) {
        for &to in self.known.iter().filter(|&&it| it != self.me) {
            cx.send(member(to), message.clone());
        }
    }

    /// Labels this manager's table, which has changed, and sends it to all gateways.
    pub(super) fn relabel(&mut self, label: Label, cx: &mut Context<'_, Self>) {
        self.label = label;
        cx.event(Notified::Labels(label, self.shared.clone()));
        self.role = Role::Manager([self.me].into(), false);
        self.notify(&Message::Copy(self.era, label, self.shared.clone()), cx);
        self.look_whether_committed(cx);
    }

    fn next_label(&self) -> Label {
        let Label { era, index } = self.label;
        let index = index.saturating_add(1);
        Label { era, index }
    }

    fn look_whether_committed(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Manager(stored, false) = &self.role else {
            return;
        };
        if !self.has_majority(stored) {
            return;
        }
        self.role = Role::Manager(stored.clone(), true);
        cx.event(Notified::Commits(self.label, self.shared.clone()));
        if let Some(base) = self.shared.next.take() {
            self.shared.base = base;
            self.relabel(self.next_label(), cx);
        }
    }

    fn is_later(&self, label: Label) -> bool {
        let Label { era, index } = self.label;
        match self.rules.either_greater() {
            true => label.era > era || label.index > index,
            false => label > self.label,
        }
    }

    fn on_copy(
        &mut self,
        from: u64,
        (era, label): (u8, Label),
        shared: Shared,
        cx: &mut Context<'_, Self>,
    ) {
        let is_old = era < self.era;
        if is_old && !self.rules.either_greater() {
            return; // The sender learns of the later era from the next candidate or manager.
        }
        if !is_old {
            if era > self.era {
                self.era = era;
                self.voted = (!self.rules.vote_after_base()).then_some(from);
            } else if self.voted.is_none() && !self.rules.vote_after_base() {
                self.voted = Some(from);
            }
            self.follow(from, cx);
        }
        if self.is_later(label) {
            if label < self.label {
                cx.event(Notified::WentBack);
            }
            (self.label, self.shared) = (label, shared);
        }
        if self.label == label && !is_old {
            cx.send(member(from), Message::Stored(label));
        }
    }

    fn on_received(&mut self, follower: usize, version: u8, cx: &mut Context<'_, Self>) {
        let truncates = self.rules.truncates();
        let is_manager = matches!(self.role, Role::Manager(..));
        if is_manager && self.shared.learn(follower, version, truncates) {
            self.relabel(self.next_label(), cx);
        }
    }

    fn receive(&mut self, from: u64, message: Message, cx: &mut Context<'_, Self>) {
        match message {
            Message::Inform => self.on_inform(cx),
            Message::Stand(era) => self.on_stand(from, era, cx),
            Message::Vote(era, label, shared) => self.on_vote(from, era, (label, shared), cx),
            Message::Copy(era, label, shared) => self.on_copy(from, (era, label), shared, cx),
            Message::Stored(label) => {
                if let Role::Manager(stored, _) = &mut self.role
                    && self.label == label
                {
                    stored.insert(from);
                    self.look_whether_committed(cx);
                }
            }
            Message::Received(follower, version) => self.on_received(follower, version, cx),
            Message::Successor(era, to) => self.on_successor(from, era, to, cx),
            Message::Merge(shared) => {
                if let Role::Candidate(_) = self.role {
                    self.shared.append(&shared);
                }
            }
        }
    }

    fn command(&mut self, ask: Ask, cx: &mut Context<'_, Self>) -> Result<(), &'static str> {
        let is_manager = matches!(self.role, Role::Manager(..));
        match ask {
            Ask::Change(follower) => {
                let version = self.shared.version(follower) + 1;
                match is_manager {
                    true => self.on_received(follower, version, cx),
                    false => cx.send(member(self.manager), Message::Received(follower, version)),
                }
            }
            Ask::HandOver(to) if is_manager => self.hand_over(to, cx),
            Ask::Rebase(without) if is_manager && self.shared.next.is_none() => {
                let mut base = self.shared.base.clone();
                base.0.retain(|it| *it != without);
                match self.rules.base_at_once() {
                    true => self.shared.base = base,
                    false => self.shared.next = Some(base),
                }
                self.relabel(self.next_label(), cx);
            }
            Ask::HandOver(_) | Ask::Rebase(_) => {
                return Err("it does not manage, or changes already");
            }
        }
        Ok(())
    }
}

impl Machine for Dispatcher {
    type Message = Message;
    type Timer = Timer;
    type Command = Ask;
    type Event = Notified;
    type Reject = &'static str;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), &'static str> {
        match input {
            Input::Message { from, message } => self.receive(from.id.0, message, cx),
            Input::Tick(Timer::Silence) => self.on_silence(cx),
            Input::Tick(Timer::Election) => self.on_election_over(cx),
            Input::Membership(Delta::Failed(it)) => {
                self.ended.insert(it.id.0);
            }
            Input::Membership(it) => {
                self.ended.remove(&it.member().id.0);
            }
            Input::Command(ask) => return self.command(ask, cx),
        }
        Ok(())
    }
}

pub(super) const fn member(id: u64) -> Member {
    Member::new(id, 0)
}

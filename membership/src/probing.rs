//! The probe of this period, and this node's own state as its probes show it.

use selvedge_core::{Member, NodeId, Span, Time, Untracked};

/// The open probe, the members of which messages arrived, and the stretch of own timeouts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Probing {
    probe: Option<Probe>,
    /// The moment at which the direct ping of the probe left, until it is acknowledged; only where
    /// distances are measured. It changes nothing but weights, and every promise holds under any.
    sent: Untracked<Option<Time>>,
    received: Received,
    /// Own timeouts are longer by this factor plus 1: probes failed, perhaps because this node is
    /// slow.
    stretch: u8,
}

/// The probe of this period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Probe {
    pub(crate) target: Member,
    pub(crate) is_answered: bool,
}

/// The members of which a message arrived in this period, each once. A member for which there is no
/// room is probed nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct Received([Option<NodeId>; 8]);

impl Probing {
    /// Begins the probe of a period.
    pub(crate) fn begin(&mut self, target: Member) {
        debug_assert!(self.probe.is_none(), "one probe a period");
        self.probe = Some(Probe {
            target,
            is_answered: false,
        });
    }

    /// Notes that the target showed that it is alive. Returns true if that answers the probe, for
    /// the first time.
    pub(crate) fn on_answer(&mut self, member: Member) -> bool {
        match &mut self.probe {
            Some(probe) if probe.target == member && !probe.is_answered => {
                probe.is_answered = true;
                true
            }
            _ => false,
        }
    }

    /// Ends the probe of the period that is over.
    pub(crate) const fn end(&mut self) -> Option<Probe> {
        self.probe.take()
    }

    /// Notes that the direct ping of the probe leaves now.
    pub(crate) const fn begin_measuring(&mut self, now: Time) {
        self.sent.0 = Some(now);
    }

    /// Ends the wait for the direct acknowledgement. Returns the moment at which the ping left, if
    /// it was not acknowledged.
    pub(crate) const fn end_measuring(&mut self) -> Option<Time> {
        self.sent.0.take()
    }

    /// The moment at which the direct ping left that this member acknowledges for the first time.
    pub(crate) fn take_measured(&mut self, from: Member) -> Option<Time> {
        let is_it = self.probe.is_some_and(|probe| probe.target == from);
        self.sent.0.take_if(|_| is_it)
    }

    /// Ends the probe if this node is its target. Returns true if it was.
    pub(crate) fn cancel(&mut self, target: NodeId) -> bool {
        let is_it = self.probe.take_if(|it| it.target.id == target).is_some();
        self.sent.0.take_if(|_| is_it);
        is_it
    }

    /// Stretches own timeouts more, up to `limit`.
    pub(crate) fn stretch(&mut self, limit: u8) {
        self.stretch = (self.stretch + 1).min(limit);
    }

    /// Stretches own timeouts less.
    pub(crate) const fn relax(&mut self) {
        self.stretch = self.stretch.saturating_sub(1);
    }

    /// Returns true if own timeouts are longer than they are set.
    pub(crate) const fn is_stretched(&self) -> bool {
        self.stretch > 0
    }

    /// Notes a message of this member.
    pub(crate) fn note_heard(&mut self, id: NodeId) {
        let Received(received) = &mut self.received;
        if !received.contains(&Some(id))
            && let Some(vacant) = received.iter_mut().find(|it| it.is_none())
        {
            *vacant = Some(id);
        }
    }

    /// Begins a period, in which no message has arrived.
    pub(crate) fn forget_heard(&mut self) {
        self.received = Received::default();
    }

    pub(crate) fn was_heard(&self, id: NodeId) -> bool {
        self.received.0.contains(&Some(id))
    }

    /// The probe that is open.
    pub(crate) const fn probe(&self) -> Option<Probe> {
        self.probe
    }

    /// This node's own timeout `timeout`, stretched to its present length.
    pub(crate) fn stretched(&self, timeout: Span) -> Span {
        timeout * (u64::from(self.stretch) + 1)
    }
}

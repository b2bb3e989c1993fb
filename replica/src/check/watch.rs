//! A record of updates, reads and leaders, from events.

use alloc::vec::Vec;

use selvedge_core::Member;
use selvedge_sim::check::Observer;

use super::Journal;
use super::setup::Earlier;
use crate::{Ballot, Command, Event, Replica, Version};

/// An update that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Applied {
    pub(super) version: Version,
    by: Member,
    number: u64,
    outcome: usize,
}

/// A read that is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Asked {
    node: usize,
    read: u64,
    /// The highest version that was applied or read anywhere when it was asked.
    least: Version,
}

/// Remembers the applied updates, the reads and the leaders that events report.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Watch {
    /// In order of versions.
    pub(super) applied: Vec<Applied>,
    pub(super) differs: bool,
    pub(super) doubles: bool,
    pub(super) leads_again: bool,
    /// In order.
    asked: Vec<Asked>,
    /// The highest version that was read, where one was.
    pub(super) read: Option<Version>,
    /// True if a read missed something that was applied or read before it was asked.
    pub(super) reads_late: bool,
    pub(super) has_installed: bool,
    /// The configurations and ballots under which nodes led, in order.
    pub(super) led: Vec<(u64, Ballot)>,
    /// The number of the configuration in the last event of each node.
    pub(super) numbers: Vec<u64>,
    /// The numbers with which lives without memory begin.
    first: Vec<u64>,
}

impl Watch {
    /// A watch over these nodes, and their outputs up to now.
    pub(super) fn of(machines: &[Replica<Journal>], before: &[Earlier]) -> Self {
        let leads = |it: &Replica<Journal>| it.leader().filter(|_| it.leads());
        let numbered = |it: &Replica<Journal>| (it.configuration().number, leads(it));
        let led = machines.iter().map(numbered);
        let led = led.filter_map(|(number, it)| Some((number, it?.1)));
        let numbers = || machines.iter().map(|it| it.configuration().number);
        let mut watch = Self {
            led: led.collect(),
            numbers: numbers().collect(),
            first: numbers().collect(),
            ..Self::default()
        };
        for (node, event) in before {
            if matches!(event, Event::Applied { .. }) {
                watch.event(*node, event);
            }
        }
        watch
    }

    fn on_readable(&mut self, node: usize, read: u64, version: Version) {
        let is_it = |it: &Asked| it.node == node && it.read == read;
        // A read that was asked before anything happened is not noted.
        if let Some(at) = self.asked.iter().position(is_it) {
            self.reads_late |= self.asked.remove(at).least > version;
        }
        self.read = self.read.max(Some(version));
    }

    fn on_applied(&mut self, new: Applied) {
        let is_same = |it: &Applied| it.by == new.by && it.number == new.number;
        self.doubles |= self
            .applied
            .iter()
            .any(|it| is_same(it) && it.version != new.version);
        let at = self.applied.partition_point(|it| it.version < new.version);
        match self.applied.get(at).filter(|it| it.version == new.version) {
            Some(other) => self.differs |= *other != new,
            None => self.applied.insert(at, new),
        }
    }
}

impl Observer<Replica<Journal>> for Watch {
    fn event(&mut self, node: usize, event: &Event<Journal>) {
        match event {
            Event::Applied {
                version,
                by,
                number,
                outcome,
            } => self.on_applied(Applied {
                version: *version,
                by: *by,
                number: *number,
                outcome: *outcome,
            }),
            Event::Elected { leader, ballot } if leader.0 == node as u64 + 1 => {
                let led = (self.numbers.get(node).copied().unwrap_or_default(), *ballot);
                match self.led.binary_search(&led) {
                    Ok(_) => self.leads_again = true,
                    Err(at) => self.led.insert(at, led),
                }
            }
            Event::Configured { number, .. } => {
                if let Some(slot) = self.numbers.get_mut(node) {
                    *slot = *number;
                }
            }
            Event::Readable { read, version } => self.on_readable(node, *read, *version),
            Event::Unreadable(read) => {
                self.asked.retain(|it| it.node != node || it.read != *read);
            }
            Event::Installed(_) => self.has_installed = true,
            Event::Elected { .. }
            | Event::Fact(_)
            | Event::Overtaken { .. }
            | Event::Forgotten { .. }
            | Event::Abandoned { .. }
            | Event::Deposed(_)
            | Event::Unavailable { .. }
            | Event::Available => {}
        }
    }

    fn commanded(&mut self, node: usize, command: &Command<u16>) {
        let Command::Read(read) = *command else {
            return;
        };
        let applied = self.applied.last().map(|it| it.version);
        let least = applied.max(self.read).unwrap_or_default();
        let asked = Asked { node, read, least };
        let at = self.asked.partition_point(|it| *it < asked);
        self.asked.insert(at, asked);
    }

    fn crashed(&mut self, node: usize) {
        self.asked.retain(|it| it.node != node);
    }

    fn restarted(&mut self, node: usize) {
        if let (Some(slot), Some(first)) = (self.numbers.get_mut(node), self.first.get(node)) {
            *slot = *first;
        }
    }
}

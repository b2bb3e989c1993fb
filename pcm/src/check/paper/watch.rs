//! The history of a run that properties need, taken from the gateways' events.

use alloc::collections::BTreeMap;

use selvedge_sim::check::Observer;

use super::dispatcher::Dispatcher;
use super::tables::{Label, Shared};

/// An event of a gateway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notified {
    /// It is a candidate in this era.
    Stands(u8),
    /// It is the resource manager of this era.
    Manages(u8),
    /// It has labelled a table.
    Labels(Label, Shared),
    /// More than half of the gateways that vote have the table with this label.
    Commits(Label, Shared),
    /// It replaced a table by one with an earlier label.
    WentBack,
}

/// An observer that remembers managers, labelled tables and committed versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watch {
    /// The first gateway that managed in each era.
    pub(super) managed: BTreeMap<u8, usize>,
    /// True if two gateways managed in one era.
    pub(super) two_manage: bool,
    labelled: BTreeMap<Label, Shared>,
    /// True if two tables have one label.
    pub(super) differs: bool,
    /// The highest committed version of each follower, and the first label under which it was committed.
    pub(super) committed: BTreeMap<usize, (u8, Label)>,
    /// The highest era in which a gateway stood.
    pub(super) stood: u8,
    /// True if a gateway stood in an era although none had stood in the era before it.
    pub(super) is_skipped: bool,
    pub(super) went_back: bool,
}

impl Watch {
    /// More than half of the gateways have this table before anything happens.
    pub(super) fn of(table: &[u8]) -> Self {
        let label = Label { era: 1, index: 0 };
        let committed = table.iter().map(|&version| (version, label));
        Self {
            committed: committed.enumerate().filter(|it| it.1.0 > 0).collect(),
            ..Self::default()
        }
    }

    /// Returns true if each labelled table has all versions that were committed under earlier labels.
    pub(super) fn is_complete(&self) -> bool {
        self.labelled.iter().all(|(&label, shared)| {
            let mut before = self.committed.iter().filter(|it| it.1.1 < label);
            before.all(|(&follower, &(version, _))| shared.version(follower) >= version)
        })
    }
}

impl Observer<Dispatcher> for Watch {
    fn event(&mut self, node: usize, event: &Notified) {
        match event {
            Notified::Stands(era) => {
                self.is_skipped |= *era > self.stood.max(1) + 1;
                self.stood = self.stood.max(*era);
            }
            Notified::Manages(era) => {
                let first = self.managed.entry(*era).or_insert(node);
                self.two_manage |= *first != node;
            }
            Notified::Labels(label, shared) => {
                let first = self
                    .labelled
                    .entry(*label)
                    .or_insert_with(|| shared.clone());
                self.differs |= first != shared;
            }
            Notified::Commits(label, shared) => {
                for (follower, &version) in shared.table.iter().enumerate() {
                    let known = self.committed.entry(follower).or_default();
                    if version > known.0 {
                        *known = (version, *label);
                    }
                }
            }
            Notified::WentBack => self.went_back = true,
        }
    }
}

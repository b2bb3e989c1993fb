//! What a run has come to, as events tell it.

use alloc::collections::BTreeMap;

use selvedge_sim::check::Observer;

use super::dispatcher::Dispatcher;
use super::tables::{Label, Shared};

/// What a gateway tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notified {
    /// It is a candidate in this era.
    Stands(u8),
    /// It is the resource manager of this era.
    Manages(u8),
    /// It has labelled a table.
    Labels(Label, Shared),
    /// More than half of the gateways that count have the table with this label.
    Commits(Label, Shared),
    /// A table with a later label gave way to one with an earlier.
    WentBack,
}

/// Remembers what was labelled, committed and led.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Watch {
    /// Which gateway manages, or did, in which era.
    pub(super) managed: BTreeMap<u8, usize>,
    /// Two did in one era.
    pub(super) two_manage: bool,
    labelled: BTreeMap<Label, Shared>,
    /// Two tables have one label.
    pub(super) differs: bool,
    /// Of each follower, the highest version that is committed, and under which label it was first.
    pub(super) committed: BTreeMap<usize, (u8, Label)>,
    /// The highest era in which somebody stood.
    pub(super) stood: u8,
    /// An era came before that nobody stood in.
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

    /// Whether each table has all that was committed under labels before its own.
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

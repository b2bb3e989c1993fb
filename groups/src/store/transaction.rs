//! Transactions, step by step.

use crate::store::{Action, Bytes, Compare, Expected, Key, Owner, Transaction};

/// ```
/// use selvedge_groups::store::{Expected, Transaction};
///
/// // Renames an entry, if no other entry has the new name.
/// let rename = Transaction::new()
///     .when("old", Expected::Version(7))
///     .when("new", Expected::Absent)
///     .put("new", b"value")
///     .remove("old");
/// assert_eq!((rename.compare.len(), rename.then.len()), (2, 2));
/// ```
impl Transaction {
    /// A transaction without conditions and steps.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition.
    #[must_use]
    pub fn when(mut self, key: impl Into<Key>, expected: Expected) -> Self {
        let key = key.into();
        self.compare.extend([Compare { key, expected }]);
        self
    }

    /// Then puts an entry, which no session owns.
    #[must_use]
    pub fn put(self, key: impl Into<Key>, value: &[u8]) -> Self {
        self.add(put(key.into(), value, None))
    }

    /// Then puts an entry, which this session owns.
    #[must_use]
    pub fn put_owned(self, key: impl Into<Key>, value: &[u8], owner: impl Into<Owner>) -> Self {
        self.add(put(key.into(), value, Some(owner.into())))
    }

    /// Then puts an entry with a name of its own, see [`Action::Append`].
    #[must_use]
    pub fn append(self, prefix: impl Into<Key>, value: &[u8]) -> Self {
        self.add(append(prefix.into(), value, None))
    }

    /// Then puts an entry with a name of its own, which this session owns.
    #[must_use]
    pub fn append_owned(
        self,
        prefix: impl Into<Key>,
        value: &[u8],
        owner: impl Into<Owner>,
    ) -> Self {
        self.add(append(prefix.into(), value, Some(owner.into())))
    }

    /// Then removes an entry.
    #[must_use]
    pub fn remove(self, key: impl Into<Key>) -> Self {
        self.add(Action::Remove { key: key.into() })
    }

    /// If a condition does not hold, puts an entry, which no session owns.
    #[must_use]
    pub fn otherwise_put(self, key: impl Into<Key>, value: &[u8]) -> Self {
        self.add_other(put(key.into(), value, None))
    }

    /// If a condition does not hold, removes an entry.
    #[must_use]
    pub fn otherwise_remove(self, key: impl Into<Key>) -> Self {
        self.add_other(Action::Remove { key: key.into() })
    }

    fn add(mut self, step: Action) -> Self {
        self.then.extend([step]);
        self
    }

    fn add_other(mut self, step: Action) -> Self {
        self.otherwise.extend([step]);
        self
    }
}

fn put(key: Key, value: &[u8], owner: Option<Owner>) -> Action {
    Action::Put {
        key,
        value: bytes(value),
        owner,
    }
}

fn append(prefix: Key, value: &[u8], owner: Option<Owner>) -> Action {
    Action::Append {
        prefix,
        value: bytes(value),
        owner,
    }
}

fn bytes(value: &[u8]) -> Bytes {
    value.iter().copied().collect()
}

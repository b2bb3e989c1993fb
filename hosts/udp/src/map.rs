//! The application's requests to maps.

use selvedge_core::{Sha256Sortition, Span};
use selvedge_groups::GroupId;
use selvedge_groups::store::{Entry, Expected, Key, Operation, Owner, Page, Stored, Transaction};

use crate::service::{Answer, Error, Question, misplaced};
use crate::{Handle, PrefixWatch, Watch};

/// A map that a k-group holds, of names to bytes. See [`Handle::map`].
///
/// A request waits until the node has joined, and is repeated until an answer comes, which may be
/// never if too few nodes are up: put a timeout around it. A dropped future stops waiting, and its
/// request continues.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    pub(crate) node: &'a Handle,
    pub(crate) group: GroupId,
}

impl Map<'_> {
    /// Its group, which events name.
    #[must_use]
    pub const fn group(&self) -> GroupId {
        self.group
    }

    /// The entry of this name, as it was at one moment after the question.
    ///
    /// # Errors
    /// When the node takes no part in k-groups, has too many open requests, begins a new life or
    /// has stopped, also before it joined.
    pub async fn get(&self, key: impl Into<Key>) -> Result<Option<Entry>, Error> {
        let answer = self.ask(Question::Get(key.into())).await?;
        let Answer::Found(entry) = answer else {
            return Err(misplaced(&answer));
        };
        Ok(entry)
    }

    /// Puts an entry, in place of an existing one.
    ///
    /// # Errors
    /// As [`get`](Self::get); the change may have been made.
    pub async fn put(&self, key: impl Into<Key>, value: &[u8]) -> Result<Stored, Error> {
        self.compare_and_set(key, Expected::Any, Some(value)).await
    }

    /// Removes an entry, if there is one.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn remove(&self, key: impl Into<Key>) -> Result<Stored, Error> {
        self.compare_and_set(key, Expected::Any, None).await
    }

    /// Changes an entry if it is as expected; without a value, removes it.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn compare_and_set(
        &self,
        key: impl Into<Key>,
        expected: Expected,
        value: Option<&[u8]>,
    ) -> Result<Stored, Error> {
        let operation = Operation::set(key, expected, value.map(|it| it.iter().copied().collect()));
        self.change(operation).await
    }

    /// Watches an entry: returns when the node has accepted the watch. [`next`](Watch::next) of the
    /// watch returns the present entry first, and then the entry after changes.
    ///
    /// ```no_run
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let mut front = node.map("doors").watch("front").await?;
    /// loop {
    ///     match front.next().await? {
    ///         Some(entry) => println!("version {}: {:?}", entry.version, entry.value),
    ///         None => println!("no such entry"),
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn watch(&self, key: impl Into<Key>) -> Result<Watch, Error> {
        let mut watch = Watch::new(self.node, self.group, key.into());
        watch.register().await?;
        Ok(watch)
    }

    /// Makes several changes as one: all are done at one version of the map, or none.
    ///
    /// ```no_run
    /// use selvedge_udp::selvedge::groups::store::{Expected, Transaction};
    ///
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let swap = Transaction::new()
    ///     .when("front", Expected::Version(7))
    ///     .put("front", b"shut")
    ///     .remove("front/guest");
    /// println!("{:?}", node.map("doors").transact(swap).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn transact(&self, transaction: Transaction) -> Result<Stored, Error> {
        self.change(Operation::Transact(transaction)).await
    }

    /// Puts an entry, and returns the version of the map that has it. It is removed after its time to live, of a second to a day, or a little more; earlier where
    /// this node leaves. A put again gives it another time to live. Each put takes, for its time to
    /// live, one of the map's [`SESSIONS_MAX`](selvedge_groups::store::SESSIONS_MAX) sessions.
    ///
    /// # Errors
    /// As [`session_with`](Self::session_with).
    pub async fn put_for(
        &self,
        key: impl Into<Key>,
        value: &[u8],
        ttl: Span,
    ) -> Result<u64, Error> {
        let put = Transaction::new().put_owned(key, value, Owner::Begun);
        let begun = self.session_with(ttl, put).await?;
        let _left_alone = begun.session.detach();
        Ok(begun.version)
    }

    /// Some entries whose names begin so, by name, as they were at one moment after the question: as many as
    /// have room in a frame, from the one after `after` on. An empty prefix is that of all entries.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn list(&self, prefix: impl Into<Key>, after: Option<&str>) -> Result<Page, Error> {
        let prefix = prefix.into();
        let after = after.map(Key::from);
        let answer = self.ask(Question::List { prefix, after }).await?;
        let Answer::Listed(page) = answer else {
            return Err(misplaced(&answer));
        };
        Ok(page)
    }

    /// All entries whose names begin so, by name: page after page, which may be of different moments. The
    /// version is that of the first one, so a [watch](Self::watch_prefix) since then reports all changes that
    /// the list may have missed.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn list_all(&self, prefix: impl Into<Key>) -> Result<Page, Error> {
        let prefix = prefix.into();
        let mut all = self.list(prefix.clone(), None).await?;
        while !all.is_last {
            let after = all.entries.last().map(|it| it.0.clone());
            let next = self.list(prefix.clone(), after.as_deref()).await?;
            all.entries.extend(next.entries);
            all.is_last = next.is_last;
        }
        Ok(all)
    }

    /// Watches all entries whose names begin so: returns when the node has accepted the watch.
    /// [`next`](PrefixWatch::next) of the watch returns the entries that were changed or removed since this
    /// version of the map, and then each change. Since 0, it returns all present entries first, if there is
    /// one. Give the version of a [list](Self::list_all) or of a change.
    ///
    /// ```no_run
    /// use selvedge_udp::PrefixNews;
    ///
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let doors = node.map("doors");
    /// let present = doors.list_all("floor/2/").await?;
    /// let mut later = doors.watch_prefix("floor/2/", present.version).await?;
    /// loop {
    ///     match later.next().await? {
    ///         PrefixNews::Changed { changes, .. } => println!("{changes:?}"),
    ///         PrefixNews::Compacted => println!("all entries follow"),
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn watch_prefix(
        &self,
        prefix: impl Into<Key>,
        since: u64,
    ) -> Result<PrefixWatch, Error> {
        let mut watch = PrefixWatch::new(self.node, self.group, prefix.into(), since);
        watch.register().await?;
        Ok(watch)
    }

    async fn change(&self, operation: Operation) -> Result<Stored, Error> {
        let answer = self.ask(Question::Change(operation)).await?;
        let Answer::Stored(stored) = answer else {
            return Err(misplaced(&answer));
        };
        Ok(stored)
    }

    async fn ask(&self, question: Question) -> Result<Answer, Error> {
        self.node.ask_group(self.group, question).await
    }
}

impl Handle {
    /// The map of this name, which all nodes of the mesh share. It begins when it is used. A node asks at most
    /// [`pending`](selvedge_groups::store::StoreConfig::pending) maps in one life, 256 by default; give
    /// what changes names to the entries of a few maps.
    ///
    /// ```no_run
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), selvedge_udp::Error> {
    /// let doors = node.map("doors");
    /// doors.put("front", b"shut").await?;
    /// assert!(doors.get("front").await?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn map(&self, name: &str) -> Map<'_> {
        Map {
            node: self,
            group: GroupId::map(name, &Sha256Sortition),
        }
    }
}

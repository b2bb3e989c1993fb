//! The application's requests to k-groups.

use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_groups::{
    GroupId,
    store::{Entry, Expected, Key, Operation, Stored},
};
use selvedge_kgroup as kgroup;
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Outcome, TriggerId};
use selvedge_routine::State;

use crate::service::{Answer, Command, Error, Question, misplaced};
use crate::{Handle, Watch};

/// A map that a k-group holds, of names to bytes. See [`Handle::map`].
///
/// A request waits until the node has joined, and is repeated until an answer comes, which may be
/// never if too few nodes are up: put a timeout around it. A dropped future stops waiting, and its
/// request continues.
#[derive(Clone, Copy, Debug)]
pub struct Map<'a> {
    node: &'a Handle,
    group: GroupId,
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
        let operation = Operation {
            key: key.into(),
            expected,
            value: value.map(|it| it.iter().copied().collect()),
        };
        let answer = self.ask(Question::Change(operation)).await?;
        let Answer::Stored(stored) = answer else {
            return Err(misplaced(&answer));
        };
        Ok(stored)
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

    /// Triggers a routine of the site ([`Site::routine`](selvedge_kgroup::Site::routine)). Returns
    /// when its group has decided about the trigger; an id that was used before starts nothing.
    ///
    /// # Errors
    /// As [`Map::get`].
    pub async fn trigger(&self, routine: GroupId, id: TriggerId) -> Result<(), Error> {
        let asked = self.ask_group(routine, Question::Trigger(id)).await?;
        debug_assert!(matches!(asked, Answer::Done), "it is decided: {asked:?}");
        Ok(())
    }

    /// Reports a device's answer to a ping
    /// ([`devices::Event::Ping`](kgroup::devices::Event::Ping)), or an unsolicited message: its
    /// state, or nothing for an answer without one. Then the cluster's group keeps its last known
    /// state, which may differ from the last report of this node.
    ///
    /// # Errors
    /// When this node does not lead the device's cluster; as [`Map::get`].
    pub async fn reported(&self, device: NodeId, value: Option<State>) -> Result<(), Error> {
        let reported = kgroup::Command::Reported { device, value };
        self.ask(selvedge::Command::Groups(reported)).await
    }

    /// Reports the outcome of a command to a device
    /// ([`devices::Event::Act`](kgroup::devices::Event::Act)).
    ///
    /// # Errors
    /// As [`reported`](Self::reported).
    pub async fn acted(&self, ticket: Ticket, outcome: Outcome) -> Result<(), Error> {
        let acted = kgroup::Command::Acted { ticket, outcome };
        self.ask(selvedge::Command::Groups(acted)).await
    }

    async fn ask_group(&self, group: GroupId, question: Question) -> Result<Answer, Error> {
        self.submit_in(Command::Group { group, question }).await
    }
}

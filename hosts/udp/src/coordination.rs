//! The application's requests to k-groups.

use std::sync::Arc;

use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_groups::{
    self as groups, GroupId, SiteError,
    store::{Entry, Expected, Key, Operation, Stored},
};
use selvedge_kgroup as kgroup;
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Outcome, Site, TriggerId};
use selvedge_routine::State;

use crate::service::{Answer, Command, Error, Question, Reject, misplaced};
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
        let operation = Operation::set(key, expected, value.map(|it| it.iter().copied().collect()));
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

    /// The present site of the k-groups, with its generation; `None` where the node takes no part in them,
    /// has not joined, or does not know the site of the others yet. [`NodeEvent::Site`](crate::NodeEvent::Site)
    /// reports each later one.
    #[must_use]
    pub fn site(&self) -> Option<Arc<Site>> {
        self.state().site.clone()
    }

    /// Has the building take the nodes, devices, places and routines of `site` while it runs, and returns
    /// the generation in which it has them. It is decided then, and this node has it; the others follow.
    /// Make it from the present one by its edits: what both have in common goes on
    /// ([`Site::changed_to`]).
    ///
    /// ```no_run
    /// use selvedge_kgroup::routines::Definition;
    /// use selvedge_routine::{Routine, Step};
    /// use selvedge_udp::NodeId;
    /// use selvedge_udp::selvedge::groups::Place;
    /// use selvedge_udp::selvedge::kgroup::Site;
    ///
    /// # async fn run(node: &selvedge_udp::Handle) -> Result<(), Box<dyn std::error::Error>> {
    /// let present = node.site().ok_or("the node has not joined")?;
    /// let lamp = NodeId(103);
    /// let steps = vec![Step::new(lamp, "on".into())];
    /// let next = Site::clone(&present)
    ///     .with_device(lamp, Place([250, 400, 0]))?
    ///     .with_routine(Definition::new(Routine { steps }))?;
    /// println!("generation {} has the lamp", node.change_site(next).await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It waits until the node has joined and knows the present site, and for a quorum of the registry,
    /// the group that holds the site. A dropped future stops waiting, and the change may be decided.
    ///
    /// # Errors
    /// [`Reject::OtherChange`](crate::Reject::OtherChange) when another site was decided first; when the
    /// site cannot follow on the present one, with the part that differs; when this node proposes another
    /// one already; as [`Map::get`].
    pub async fn change_site(&self, site: impl Into<Arc<Site>>) -> Result<u32, Error> {
        let answer = self
            .submit_at_site(Command::ChangeSite(site.into()))
            .await?;
        let Answer::Generation(generation) = answer else {
            return Err(misplaced(&answer));
        };
        let has_it = |it: &Arc<Site>| it.generation() >= generation;
        self.wait_for(|it| it.site.as_ref().is_some_and(has_it))
            .await?;
        Ok(generation)
    }

    /// Has a group begin anew that lost its memory for good: a map ([`Map::group`]), a routine
    /// ([`Site::routine`]) or a cluster of devices ([`Site::cluster`]). The last two begin anew by themselves where all
    /// nodes but f are here. A group has lost its memory where more of
    /// its members than may fail are away for good, or lost their folders. What it held is lost, also if
    /// members come back: so those that are away must have stopped, or be cut off from all devices.
    ///
    /// Returns when the node has accepted it. The node repeats the request until the registry has decided;
    /// requests to the group are answered from then on. A node that knows nothing of the group repeats it until an
    /// epoch begins, or others send news of the group: if requests get no answer then, call this again.
    ///
    /// # Errors
    /// When the site has no such group, or the node waits for too many to begin anew; as [`Map::get`].
    pub async fn begin_anew(&self, group: GroupId) -> Result<(), Error> {
        let answer = self.submit_at_site(Command::BeginAnew(group)).await?;
        debug_assert!(
            matches!(answer, Answer::Done),
            "it has no answer: {answer:?}"
        );
        Ok(())
    }

    /// Asks the other nodes to spare this one, which runs low on power or memory (true), or takes its share
    /// of the k-groups again (false). By itself that changes no group: from the next epoch on the node is
    /// chosen as one of weight 0, so it is a member where too few others are up, and leads where no other
    /// member can. Until then it answers and acts as before.
    ///
    /// It holds until the process ends, also after the node has begun another life. A message to each other
    /// node now, and again in each epoch.
    ///
    /// ```no_run
    /// # async fn run(node: &selvedge_udp::Handle, battery: u8) -> Result<(), selvedge_udp::Error> {
    /// node.set_spared(battery < 20).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the node takes no part in k-groups, or has stopped.
    pub async fn set_spared(&self, is_spared: bool) -> Result<(), Error> {
        let spared = kgroup::Command::SetSpared(is_spared);
        self.ask(selvedge::Command::Groups(spared)).await
    }

    /// Submits a command that needs the present site, and once more when the node knows it.
    async fn submit_at_site(&self, command: Command) -> Result<Answer, Error> {
        match self.submit_in(command.clone()).await {
            Err(Error::Rejected(Reject::Node(selvedge::Reject::Groups(
                kgroup::Reject::Groups(groups::Reject::Site(SiteError::Unknown)),
            )))) => {
                self.wait_for(|it| it.site.is_some()).await?;
                self.submit_in(command).await
            }
            outcome => outcome,
        }
    }

    async fn ask_group(&self, group: GroupId, question: Question) -> Result<Answer, Error> {
        self.submit_in(Command::Group { group, question }).await
    }
}

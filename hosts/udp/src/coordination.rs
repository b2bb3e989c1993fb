//! The application's requests to k-groups, except maps.

use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_groups::{self as groups, GroupId, SiteError};
use selvedge_kgroup as kgroup;
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Outcome, Site, TriggerId};
use selvedge_routine::State;

use crate::Handle;
use crate::service::{Answer, Command, Error, Question, Reject, misplaced};

impl Handle {
    /// Triggers a routine of the site ([`Site::routine`](selvedge_kgroup::Site::routine)). Returns
    /// when its group has decided about the trigger; an id that was used before starts nothing.
    ///
    /// # Errors
    /// As [`Map::get`](crate::Map::get).
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
    /// When this node does not lead the device's cluster; as [`Map::get`](crate::Map::get).
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
    /// one already; as [`Map::get`](crate::Map::get).
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

    /// Has a group begin anew that lost its memory for good: a map ([`Map::group`](crate::Map::group)), a routine
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
    /// When the site has no such group, or the node waits for too many to begin anew; as [`Map::get`](crate::Map::get).
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

    pub(crate) async fn ask_group(
        &self,
        group: GroupId,
        question: Question,
    ) -> Result<Answer, Error> {
        self.submit_in(Command::Group { group, question }).await
    }
}

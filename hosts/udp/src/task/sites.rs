//! The site of the k-groups: changes of it, and events about it.

use std::sync::Arc;

use selvedge_groups::{self as groups, GroupId};
use selvedge_kgroup::{self as kgroup, Site};

use super::Task;
use crate::NodeEvent;
use crate::event::OtherSite;
use crate::service::Reject;
use crate::sites::held_to;

impl Task {
    /// Proposes a site. Returns the number of the proposal, which its outcome names.
    pub(super) fn propose(&mut self, site: &Arc<Site>) -> Result<u64, Reject> {
        self.check_change()?;
        let present = self
            .driver
            .machine()
            .kgroup()
            .map(|it| it.site().generation());
        if let Some(generation) = present.filter(|it| site.generation() < *it) {
            return Err(Reject::OtherChange { generation });
        }
        let frame_budget = u16::try_from(self.frame_budget).unwrap_or(u16::MAX);
        let site = held_to(site, frame_budget).map_err(selvedge::Reject::from)?;
        let change = kgroup::Command::ChangeSite(Box::new(Site::clone(&site)));
        self.command(selvedge::Command::Groups(change))?;
        let kgroup = self.driver.machine().kgroup();
        Ok(kgroup.map_or(0, |it| it.groups().proposed()))
    }

    /// Has a group begin anew.
    pub(super) fn begin_anew(&mut self, group: GroupId) -> Result<(), Reject> {
        self.check_change()?;
        let anew = kgroup::Command::BeginAnew(group);
        Ok(self.command(selvedge::Command::Groups(anew))?)
    }

    fn check_change(&self) -> Result<(), Reject> {
        let other = self.sites.refusal_of_change(self.driver.machine());
        other.map_or(Ok(()), |it| Err(Reject::OtherSite(it)))
    }

    /// Publishes the site of the machine.
    pub(super) fn follow_site(&mut self) {
        let kgroup = self.driver.machine().kgroup();
        let groups = kgroup.map(|it| it.groups()).filter(|it| it.has_site());
        let site = groups.map(|it| Arc::clone(it.site()));
        if let Some(site) = &site {
            self.sites.follow(site);
        }
        self.publisher.set_site(site);
    }

    /// Refuses the requests that wait, if no group answers them.
    pub(super) fn refuse_requests(&mut self) {
        let machine = self.driver.machine();
        if let Some(other) = self.sites.refusal(machine) {
            self.pending.refuse_all(Reject::OtherSite(other));
        }
        if let Some(other) = self.sites.refusal_of_change(machine) {
            self.sites.refuse_change(Reject::OtherSite(other));
        }
    }

    /// Handles an event of the k-groups that concerns the site. Returns what the application gets of it,
    /// and of other events.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all other events, also later ones, are the application's"
    )]
    pub(super) fn on_site_event(&mut self, event: kgroup::Event) -> Option<NodeEvent> {
        match event {
            kgroup::Event::Site { generation } => {
                self.follow_site();
                Some(NodeEvent::Site { generation })
            }
            kgroup::Event::OtherSite { present, own, why } => {
                let why = *why;
                let other = OtherSite::Own { present, own, why };
                self.sites.note_own(other);
                self.refuse_requests();
                Some(NodeEvent::OtherSite(other))
            }
            kgroup::Event::Groups(groups::Event::Proposed {
                number,
                generation,
                is_decided,
            }) => {
                let outcome = match is_decided {
                    true => Ok(generation),
                    false => Err(Reject::OtherChange { generation }),
                };
                let is_asked = self.sites.on_proposed(number, outcome);
                (!is_asked).then_some(NodeEvent::Groups(event))
            }
            other => Some(NodeEvent::Groups(other)),
        }
    }
}

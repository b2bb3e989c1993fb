//! Another site: its way into the registry, and out of it to the leaders of this node.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use selvedge_core::{Context, Input};
use selvedge_groups as groups;
use selvedge_groups::{Begins, GroupId};

use crate::event::{Event, Reject};
use crate::leading::LeaderInput;
use crate::state::GroupState;
use crate::{ConfigError, Kgroup, Site};

impl Kgroup {
    /// Proposes the site that has the nodes, devices and routines of `wanted`.
    pub(crate) fn change_site(
        &mut self,
        wanted: &Site,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let (found, present) = (wanted.generation(), self.site.0.generation());
        if found < present {
            // It would undo the changes since.
            let refused = groups::Reject::from(groups::SiteError::Generation { found, present });
            return Err(refused.into());
        }
        let next = self.site.0.changed_to(wanted)?;
        let command = groups::Command::ChangeSite {
            generation: next.generation(),
            site: GroupState::encode(&next),
        };
        self.ask_groups(Input::Command(command), cx)
    }

    /// The site has another generation now.
    pub(crate) fn on_site(&mut self, generation: u32, cx: &mut Context<'_, Self>) {
        self.site.0 = Arc::clone(self.groups().site());
        cx.event(Event::Site { generation });
        let led: Vec<GroupId> = self.leads().collect();
        for group in led {
            self.on(group, LeaderInput::Site, cx);
        }
        self.report_due(cx);
        self.forget_triggers(cx);
        let id = self.me().id;
        let nodes = self.site.0.nodes();
        if nodes.binary_search_by_key(&id, |it| it.id).is_err() {
            let own = self.wanted.0.as_ref().map_or(0, |it| it.generation());
            let why = ConfigError::NoNode(id);
            return Self::report_other((generation, own), why, cx);
        }
        self.propose_wanted(cx);
    }

    /// Routines that were removed take no trigger any more.
    fn forget_triggers(&mut self, cx: &mut Context<'_, Self>) {
        let site = &self.site.0;
        let removed = self.triggers.iter().filter(|it| site.is_removed(it.0));
        let removed: Vec<_> = removed.copied().collect();
        for (routine, id) in removed {
            self.triggers.remove(&(routine, id));
            cx.event(Event::Untriggered { routine, id });
        }
    }

    /// A site of this node was decided, or another one.
    pub(crate) fn on_proposed(&mut self, is_decided: bool, cx: &mut Context<'_, Self>) {
        if !is_decided {
            self.propose_wanted(cx);
        }
    }

    /// Proposes the site with which this node began, once it knows that of the others.
    pub(crate) fn propose_wanted(&mut self, cx: &mut Context<'_, Self>) {
        if !self.groups().has_site() {
            return;
        }
        let id = self.me().id;
        let nodes = self.site.0.nodes();
        if nodes.binary_search_by_key(&id, |it| it.id).is_err() {
            return; // The others refuse its messages.
        }
        let Some(wanted) = self.wanted.0.take() else {
            return;
        };
        let (own, present) = (wanted.generation(), self.site.0.generation());
        if own < present {
            return; // The others have a later one.
        }
        match self.site.0.changed_to(&wanted) {
            Ok(_) if own > present => {
                // Refused while another one is proposed: it is tried again.
                let _later = self.change_site(&wanted, cx).is_err();
                self.wanted.0 = Some(wanted);
            }
            Ok(next) => {
                if let Some((kind, id)) = self.site.0.difference(&next) {
                    let why = ConfigError::Differs { kind, id };
                    Self::report_other((present, own), why, cx);
                }
            }
            Err(why) => Self::report_other((present, own), why, cx),
        }
    }

    fn report_other((present, own): (u32, u32), why: ConfigError, cx: &mut Context<'_, Self>) {
        let why = Box::new(why);
        cx.event(Event::OtherSite { present, own, why });
    }
}

//! The commands of the application, except joining and leaving.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{Context, NodeId};

use crate::message::Metadata;
use crate::target::weight;
use crate::{Config, Membership, Reject, Selection};

impl Membership {
    /// Sends some bytes to all members: they are piggybacked on other messages, and arrive with
    /// high probability at every member that is reachable, at most once.
    ///
    /// # Errors
    /// [`Reject::NotJoined`], [`Reject::BroadcastTooLong`], [`Reject::BroadcastsFull`].
    pub(crate) fn broadcast(&mut self, payload: Box<[u8]>) -> Result<(), Reject> {
        if !self.presence.is_joined() {
            return Err(Reject::NotJoined);
        }
        let (len, limit) = (payload.len(), usize::from(self.config.broadcast_len));
        if len > limit {
            return Err(Reject::BroadcastTooLong { len, limit });
        }
        Ok(self.broadcasting.start(self.own.member(), payload)?)
    }

    /// Replaces this node's metadata.
    ///
    /// # Errors
    /// [`Reject::MetadataTooLong`].
    pub(crate) fn set_metadata(&mut self, metadata: Metadata) -> Result<(), Reject> {
        let (len, limit) = (metadata.0.len(), usize::from(self.config.metadata_limit));
        if len > limit {
            return Err(Reject::MetadataTooLong { len, limit });
        }
        self.replace_own_metadata(metadata);
        Ok(())
    }

    /// Sets the distance of a member: it weighs 1/r^m from now on, without the changes by feedback.
    /// No measured round trip changes it. O(log N).
    ///
    /// # Errors
    /// [`Reject::UnknownMember`], [`Reject::ZeroDistance`], [`Reject::OwnMember`].
    pub(crate) fn set_distance(&mut self, id: NodeId, distance: u32) -> Result<(), Reject> {
        if distance == 0 {
            return Err(Reject::ZeroDistance(id));
        }
        if id == self.own.id() {
            return Err(Reject::OwnMember(id));
        }
        let slot = self.list.find(id).ok_or(Reject::UnknownMember(id))?;
        let weight = weight(distance, self.config.unit_distance, self.config.exponent);
        self.list.set_own_weight(slot, weight);
        let is_neighbour = distance <= self.config.neighbour_distance;
        self.list
            .note(slot, |entry| entry.set_neighbour(is_neighbour));
        if let Some(round_trip) = self.list.measure(slot) {
            round_trip.set();
        }
        Ok(())
    }

    /// Changes the settings while running. Another exponent or unit takes effect at once for distances
    /// that are measured, and else for those that are set from then on; smaller limits shrink tables as their entries are removed. Data that
    /// is longer than the new settings allow is not sent any more: waiting broadcasts are given up
    /// and counted, and the metadata of others is kept for the application alone.
    ///
    /// # Errors
    /// [`Reject::Config`] when they cannot work, [`Reject::MetadataTooLong`] when the metadata of
    /// this node is longer than they allow.
    pub(crate) fn configure(
        &mut self,
        config: Box<Config>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        config.check()?;
        let len = self.own_metadata().map_or(0, |metadata| metadata.0.len());
        let limit = usize::from(config.metadata_limit);
        if len > limit {
            return Err(Reject::MetadataTooLong { len, limit });
        }
        let was_mix = matches!(self.config.selection, Selection::BoundedMix { .. });
        let measures = |config: &Config| (config.round_trip_unit, config.exponent);
        let was_measured = measures(&self.config);
        self.config = config;
        if measures(&self.config) != was_measured {
            self.weigh_anew();
        }
        self.list.set_limit(self.config.member_limit as usize);
        self.updates.set_limit(self.config.gossip_limit.into());
        let given_up = self.broadcasting.set_limits(
            self.config.broadcast_limit.into(),
            self.config.broadcast_len.into(),
        );
        self.counters.broadcasts_dropped += given_up;
        let is_mix = matches!(self.config.selection, Selection::BoundedMix { .. });
        if was_mix != is_mix {
            self.round_robin.clear();
        }
        if is_mix && !was_mix {
            let others: Vec<NodeId> = self.members().map(|view| view.member.id).collect();
            for id in others {
                self.round_robin.enter(id, cx);
            }
        }
        Ok(())
    }
}

//! Notices about later starts: sending, and handling of received ones.

use std::net::SocketAddr;

use selvedge::frame;
use selvedge_core::NodeId;
use selvedge_seal::Epoch;

use super::Task;
use crate::address;
use crate::event::{NodeEvent, Twin};
use crate::notice::{KIND, Meaning, Notice};

impl Task {
    /// A datagram of an earlier start of `sender` came from `source`: sends that process a notice
    /// of the later one.
    pub(super) async fn notify(&mut self, sender: NodeId, source: SocketAddr) {
        let me = self.driver.machine().membership().me().id;
        let latest = (self.sealing.as_ref()).and_then(|it| it.datagrams.latest(sender));
        // Datagrams of this node may be sent back to it. A notice about its own start under its own
        // seal would be a sign of another process.
        if let Some(epoch) = latest
            && sender != me
            && self.paces.send(self.clock.now())
        {
            let notice = Notice {
                id: sender,
                epoch: epoch.0,
                address: self.directory.get(sender),
            };
            self.send_notice(&notice, source).await;
        }
    }

    /// Takes a notice that `sender` has sealed.
    pub(super) async fn on_notice(&mut self, sender: NodeId, notice: Notice, source: SocketAddr) {
        let Some(epoch) = (self.sealing.as_ref()).map(|it| it.datagrams.epoch()) else {
            return;
        };
        let me = self.driver.machine().membership().me().id;
        match notice.meaning((me, epoch), (sender, source)) {
            Meaning::Nothing => self.traffic.untimely.add(1),
            Meaning::Superseding(twin) => self.note(twin),
            Meaning::Superseded(twin) => {
                let (later, now) = (Epoch(notice.epoch), self.clock.now());
                let own = self.sealing.as_mut();
                if let Some(epoch) = own.and_then(|it| it.overtake(later, now)) {
                    return self.begin_epoch_of_seal(epoch).await;
                }
                self.note(twin);
                let there = twin.address.filter(|&it| {
                    address::reachable(it)
                        && self.socket.reaches(it)
                        && !self.own.is(it, &*self.socket)
                });
                // Our own notices go no further.
                if let Some(there) = there
                    && sender != me
                    && self.paces.send(self.clock.now())
                {
                    self.send_notice(&notice, there).await;
                }
            }
        }
    }

    /// Seals in this epoch from now on, once it is stored. The node waits for that: other nodes refuse what it sends
    /// meanwhile, and this comes after a wrong clock alone.
    async fn begin_epoch_of_seal(&mut self, epoch: Epoch) {
        let me = self.driver.machine().membership().me().id;
        let stored = match (&mut self.keeping, self.folder.take()) {
            (Some(keeping), _) => keeping.set_epoch(me, epoch).await,
            (None, None) => Ok(()),
            (None, Some(mut folder)) => {
                let set = move || folder.set_epoch(me, epoch).map(|()| folder);
                // A disk may be slow, and other tasks share the thread.
                let set = tokio::task::spawn_blocking(set).await;
                let set = set.map_err(|it| it.to_string());
                let folder = set.and_then(|it| it.map_err(|it| it.to_string()));
                folder.map(|it| self.folder = Some(it))
            }
        };
        match (stored, &mut self.sealing) {
            (Ok(()), Some(sealing)) => sealing.set(epoch),
            (Ok(()), None) => {}
            (Err(why), _) => self.on_written(Err(why)).await,
        }
    }

    fn note(&mut self, twin: Twin) {
        self.traffic.twins.add(1);
        if self.paces.emit(self.clock.now()) {
            self.emit(NodeEvent::Twin(twin));
        }
    }

    async fn send_notice(&mut self, notice: &Notice, to: SocketAddr) {
        let from = self.driver.machine().membership().me();
        if frame::encode(from, notice, self.frame_budget, &mut self.frame).is_err() {
            self.traffic.too_long.add(1);
            return;
        }
        self.traffic.notices.add(1);
        self.send_frame(KIND, to).await;
    }
}

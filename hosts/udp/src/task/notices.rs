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
                if (self.sealing.as_mut()).is_some_and(|it| it.overtake(later, now)) {
                    return;
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

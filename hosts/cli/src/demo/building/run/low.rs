//! A node whose battery runs low.

use std::io::Write;

use selvedge_core::{NodeId, Time};
use tokio::time::timeout;

use super::Play;
use crate::demo::building::course::Low;
use crate::demo::plan::seconds;

impl<W: Write> Play<W> {
    /// Has the node that leads the most groups ask the others to spare it.
    pub(super) async fn go_low(&mut self) {
        let leaders = self.shared().course().leaders();
        let led = |node: NodeId| leaders.values().filter(|it| **it == node).count();
        let up = self.shared().up();
        let Some((node, handle)) = up.into_iter().max_by_key(|it| led(it.0)) else {
            return;
        };
        let from = self.now();
        let asked = timeout(self.limits.asked.into(), handle.set_spared(true)).await;
        if !matches!(asked, Ok(Ok(()))) {
            return;
        }
        let out = None;
        self.shared().course().low = Some(Low { node, from, out });
        self.say(&format!(
            "the battery of node {node}, which leads {} groups, runs low, and it asks to be spared",
            led(node)
        ));
    }

    /// Notes and announces when the node is in no group.
    pub(super) fn look_at_low(&mut self) {
        let now = self.now();
        let low = {
            let shared = self.shared();
            let mut course = shared.course();
            let low = course.low.filter(|it| it.out.is_none());
            let low = low.filter(|it| course.groups_of(it.node, now) == 0);
            if let Some(it) = &low {
                course.low = Some(Low {
                    out: Some(now),
                    ..*it
                });
            }
            low
        };
        if let Some(low) = low {
            let took = seconds(Time::ZERO + now.since(low.from));
            self.say(&format!(
                "node {} is in no group any more, after {took:.2} s",
                low.node
            ));
        }
    }
}

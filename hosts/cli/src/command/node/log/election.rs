//! The lines about elections.

use selvedge_celect as celect;
use selvedge_core::{Member, NodeId};

use super::{Line, Log};

impl Log {
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "events may be added; all present ones are named"
    )]
    pub(super) fn election(&self, event: celect::Event, me: NodeId) -> (&'static str, Line) {
        use celect::Event as It;
        let name = |member: Member| {
            if member.id == me {
                "this node".to_owned()
            } else {
                format!("node {}", member.id)
            }
        };
        let mut missing_from = None;
        let (kind, node, ballot, text) = match event {
            It::Electing(ballot) => {
                let text = format!("there is no leader: election {}", ballot.epoch);
                ("electing", None, Some(ballot), text)
            }
            It::Yielded { to, .. } => {
                let text = format!("the election of node {} continues instead", to.initiator.id);
                ("yielded", None, Some(to), text)
            }
            It::Stalled {
                ballot,
                known,
                needed,
            } => {
                let text = format!("the election can ask {known} lists and needs {needed}");
                ("too-few", None, Some(ballot), self.form.colour.bad(&text))
            }
            It::Elected { leader, ballot } => {
                let text = self.leads(&format!("{} leads", name(leader)));
                ("elected", Some(leader), Some(ballot), text)
            }
            It::Deposed { by, .. } => {
                let text = "this node leads no longer".to_owned();
                ("deposed", None, Some(by), self.form.colour.bad(&text))
            }
            It::Lost { leader, ballot } => {
                let text = format!("the leader is lost: node {}", leader.id);
                (
                    "lost",
                    Some(leader),
                    Some(ballot),
                    self.form.colour.bad(&text),
                )
            }
            It::Regained { leader, ballot } => {
                let text = self.leads(&format!("{} still leads", name(leader)));
                ("regained", Some(leader), Some(ballot), text)
            }
            It::LeaseExpired { leader, ballot } => {
                let text = format!(
                    "node {} leads no longer: its lease was not renewed",
                    leader.id
                );
                (
                    "lease-over",
                    Some(leader),
                    Some(ballot),
                    self.form.colour.bad(&text),
                )
            }
            It::Ended(ballot) => {
                let text = "this node leads no longer: too few acknowledge it".to_owned();
                ("ended", None, Some(ballot), self.form.colour.bad(&text))
            }
            It::Concluded {
                ballot,
                missing_from: c,
                ..
            } => {
                missing_from = Some(c.into());
                let text = format!("the election holds if {c} lists at most lack a live node");
                ("concluded", None, Some(ballot), text)
            }
            It::Measured(found) => {
                missing_from = Some(found.upper_bound);
                let text = format!(
                    "{} lists at most lack a live node, by a sample",
                    found.upper_bound
                );
                ("measured", None, None, text)
            }
            It::Unmeasured(why) => (
                "unmeasured",
                None,
                None,
                self.form.colour.bad(&why.to_string()),
            ),
            It::BoundChanged {
                missing_from: c, ..
            } => {
                missing_from = Some(c.into());
                let text = format!("elections rest on {c} lists at most that lack a live node");
                ("tolerates", None, None, text)
            }
            other => ("unknown", None, None, format!("{other:?}")),
        };
        let mut line = Line::new(text);
        (line.node, line.ballot) = (node.map(|it| it.id), ballot);
        line.missing_from = missing_from;
        (kind, line)
    }
}

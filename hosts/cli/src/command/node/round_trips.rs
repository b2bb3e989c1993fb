//! The round trips to the other nodes, as a line from time to time.

use std::collections::BTreeMap;

use selvedge_core::{NodeId, Span};
use selvedge_udp::MemberInfo;

use super::log::Line;

/// The number of nodes that a line for people names, the nearest first.
const NAMED: usize = 8;

/// The round trips that the last line had.
#[derive(Default)]
pub(super) struct RoundTrips(BTreeMap<NodeId, Span>);

impl RoundTrips {
    /// A line, if a live node is new or has another round trip, by more than a quarter.
    pub(super) fn line(&mut self, members: &[MemberInfo]) -> Option<Line> {
        let live = members.iter().filter(|it| it.status.is_live());
        let found = live.filter_map(|it| Some((it.member.id, it.round_trip?)));
        self.changed(found.collect())
    }

    fn changed(&mut self, found: BTreeMap<NodeId, Span>) -> Option<Line> {
        let is_shown = |(id, now): (&NodeId, &Span)| {
            let shown = self.0.get(id);
            shown.is_some_and(|shown| now.0.abs_diff(shown.0) <= shown.0 / 4)
        };
        if found.iter().all(is_shown) {
            return None;
        }
        let line = Line::round_trips(text(&found), &found);
        self.0 = found;
        Some(line)
    }
}

fn text(found: &BTreeMap<NodeId, Span>) -> String {
    let mut nearest: Vec<(Span, NodeId)> = found.iter().map(|(&id, &it)| (it, id)).collect();
    nearest.sort_unstable();
    let named = nearest.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|(it, id)| format!("{:.1} to node {id}", it.0 as f64 / 1_000.0))
        .collect();
    let more = match nearest.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more nodes"),
    };
    format!("round trips in ms: {}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_with_a_new_node_and_a_new_distance() {
        let mut shown = RoundTrips::default();
        for (found, is_news) in [
            (vec![], false),
            (vec![(1, 100)], true),
            (vec![(1, 125)], false),
            (vec![(1, 126)], true),
            (vec![(1, 126), (2, 5)], true),
            (vec![(2, 5)], false),
        ] {
            let found = found.into_iter().map(|(id, it)| (NodeId(id), Span(it)));
            let found: BTreeMap<_, _> = found.collect();
            let line = shown.changed(found.clone());
            assert_eq!(line.is_some(), is_news, "{found:?}");
        }
    }

    #[test]
    fn the_nearest_are_named() {
        let found = (1..=10).map(|id| (NodeId(id), Span(100_000 - id * 1_050)));
        assert_eq!(
            text(&found.collect()),
            "round trips in ms: 89.5 to node 10, 90.5 to node 9, 91.6 to node 8, 92.7 to node 7, \
             93.7 to node 6, 94.8 to node 5, 95.8 to node 4, 96.8 to node 3, and 2 more nodes"
        );
    }
}

//! Numbers for Prometheus.
//!
//! | metric | meaning |
//! |---|---|
//! | `selvedge_members` | members on the list, by `status` |
//! | `selvedge_is_leader` | 1 if this node leads the mesh |
//! | `selvedge_is_in` | 1 if it has joined |
//! | `selvedge_holds` | locks, leaderships, permits, sessions and listings of clients |
//! | `selvedge_nodes` | nodes that hold maps |
//! | `selvedge_datagrams_total` | datagrams, by `way`: `sent`, `received`, `refused` (dropped for any reason) |
//! | `selvedge_bytes_total` | bytes of datagrams, by `way` |
//! | `selvedge_audit_lines_total` | lines of the audit, by `outcome`: `written`, `lost` |
//! | `selvedge_log_lines_lost_total` | lines of the log that found no room, or could not be written |
//! | `selvedge_connections_refused_total` | connections that were closed because their peer had too many |
//! | `selvedge_change_seconds` | histogram of the times to decide a change of a map: an entry, a transaction, an item that is pushed, a summand |
//! | `selvedge_wait_seconds` | histogram of the times until a client had what it waited for, by `kind`: `lock`, `semaphore`, `election`, `barrier` |

use core::fmt::{self, Write as _};

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use selvedge_udp::selvedge::membership::Status;

use super::Api;
use crate::log::Log;

/// The format of the text.
const TYPE: [(&str, &str); 1] = [("content-type", "text/plain; version=0.0.4; charset=utf-8")];

pub(super) async fn metrics(State(api): State<Api>) -> Response {
    // A string takes all that is written.
    (TYPE, text(&api).unwrap_or_default()).into_response()
}

fn text(api: &Api) -> Result<String, fmt::Error> {
    let state = api.node.state();
    let report = api.node.traffic().report();
    let count = |status| {
        state
            .members
            .iter()
            .filter(|it| it.status == status)
            .count() as u64
    };
    let members = [
        ("{status=\"alive\"}", count(Status::Alive)),
        ("{status=\"suspected\"}", count(Status::Suspect)),
        ("{status=\"failed\"}", count(Status::Failed)),
        ("{status=\"left\"}", count(Status::Left)),
    ];
    let is_leader = state.leader.is_some_and(|it| it.0 == state.me);
    let nodes = state.site.as_ref().map_or(0, |it| it.nodes().len());
    let mut text = String::new();
    write(
        &mut text,
        "members",
        "gauge",
        "Members on the list",
        &members,
    )?;
    let one = |it: u64| [("", it)];
    write(
        &mut text,
        "is_leader",
        "gauge",
        "1 if this node leads",
        &one(is_leader.into()),
    )?;
    write(
        &mut text,
        "is_in",
        "gauge",
        "1 if it has joined",
        &one(state.is_in.into()),
    )?;
    write(
        &mut text,
        "holds",
        "gauge",
        "Holds of clients",
        &one(api.holds.count() as u64),
    )?;
    write(
        &mut text,
        "nodes",
        "gauge",
        "Nodes that hold maps",
        &one(nodes as u64),
    )?;
    let datagrams = [
        ("{way=\"sent\"}", report.sent),
        ("{way=\"received\"}", report.received),
        (
            "{way=\"refused\"}",
            report.faults().iter().map(|it| it.1).sum(),
        ),
    ];
    write(
        &mut text,
        "datagrams_total",
        "counter",
        "Datagrams",
        &datagrams,
    )?;
    let bytes = [
        ("{way=\"sent\"}", report.sent_bytes),
        ("{way=\"received\"}", report.received_bytes),
    ];
    write(
        &mut text,
        "bytes_total",
        "counter",
        "Bytes of datagrams",
        &bytes,
    )?;
    let (written, lost) = api.audit.counts();
    let audit = [
        ("{outcome=\"written\"}", written),
        ("{outcome=\"lost\"}", lost),
    ];
    write(
        &mut text,
        "audit_lines_total",
        "counter",
        "Lines of the audit",
        &audit,
    )?;
    write(
        &mut text,
        "log_lines_lost_total",
        "counter",
        "Lines of the log that were not written",
        &one(api.log.as_ref().map_or(0, Log::lost)),
    )?;
    write(
        &mut text,
        "connections_refused_total",
        "counter",
        "Connections beyond the limit of their peer",
        &one(api.peers.refused()),
    )?;
    api.latencies.write(&mut text)?;
    Ok(text)
}

fn write(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    all: &[(&str, u64)],
) -> fmt::Result {
    writeln!(text, "# HELP selvedge_{name} {help}")?;
    writeln!(text, "# TYPE selvedge_{name} {kind}")?;
    all.iter()
        .try_for_each(|(labels, number)| writeln!(text, "selvedge_{name}{labels} {number}"))
}

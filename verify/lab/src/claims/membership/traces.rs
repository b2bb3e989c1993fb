//! Recorded events of Medley-F in a lossy mesh, for claims of protocols that run on it.

use selvedge_core::{Member, Span, Time};
use selvedge_membership::Event;
use selvedge_sim::network::{MembershipTrace, Topology};

pub(in crate::claims) use super::lab::{Losses, PERIOD, Placement};
use super::lab::{Setting, Variant};
pub(in crate::claims) use super::nodes::{id, member};
use crate::claims::Fault;

/// A mesh that has settled under loss, and in which no node ever fails.
#[derive(Clone, Debug)]
pub(in crate::claims) struct Recording {
    /// Where the nodes are.
    pub(in crate::claims) topology: Topology,
    /// When the trace begins.
    pub(in crate::claims) begin: Time,
    /// The members that each node lists then, without itself.
    pub(in crate::claims) lists: Vec<Vec<Member>>,
    /// The changes that they learn from then on.
    pub(in crate::claims) trace: MembershipTrace,
}

/// Records a number of periods, under the thesis' rules (m = 3), of nodes in this placement.
pub(in crate::claims) fn recorded(
    placement: Placement,
    nodes: usize,
    losses: &Losses,
    periods: u64,
    seed: u64,
) -> Result<Recording, Fault> {
    let setting = Setting {
        placement,
        nodes,
        ..Setting::new(Variant::Plain, 3)
    };
    let mut mesh = setting.settled(seed, losses.clone())?;
    let begin = mesh.now();
    let lists = mesh
        .machines()
        .map(|(me, machine)| {
            let is_there = |it: &usize| {
                let record = machine.member(id(*it));
                *it != me && record.is_some_and(|it| it.status.is_live())
            };
            (0..nodes).filter(is_there).map(member).collect()
        })
        .collect();
    mesh.record_membership(|event| {
        let Event::Changed(delta) = event else {
            return None;
        };
        Some(*delta)
    });
    mesh.keep_events(false);
    mesh.run_for(Span::millis(PERIOD * periods));
    let trace = mesh.take_membership();
    if let Some(entry) = trace
        .entries()
        .iter()
        .find(|entry| entry.delta.member().incarnation != member(0).incarnation)
    {
        let life = entry.delta.member();
        return Err(Fault::Outcome(format!("a false failure began {life}")));
    }
    Ok(Recording {
        topology: mesh.topology().clone(),
        begin,
        lists,
        trace,
    })
}

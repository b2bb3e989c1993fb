//! The same machines in the simulator: many settings, and hops.

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_celect as celect;
use selvedge_core::wire::frame_len;
use selvedge_core::{Choose, Incarnation, Member, Span};
use selvedge_membership as membership;
use selvedge_sim::network::{Link, Network, Topology};

use super::{HEADERS, Setting, Takeover, kbit};
use crate::claims::Fault;
use selvedge::{Command, Election, Event, Message, Node};
use selvedge_seal::overhead;

/// The places of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// All nodes are neighbours: a datagram takes one hop.
    Flat,
    /// A square grid in which each node relays for the others, and all know how many hops away the
    /// others are.
    Grid,
    /// The same grid, but no node knows the distances.
    Unknown,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// kbit/s that all nodes together sent, sealed, without the headers of IP and UDP.
    pub payload: f64,
    /// The same with headers.
    pub wire: f64,
    /// The same with headers, once for each hop.
    pub hops: f64,
    /// The mean number of hops of a byte.
    pub mean_hops: f64,
    /// The result of each crash of the leader.
    pub takeovers: Vec<Takeover>,
}

/// A node of `setting`, as `selvedge node` makes it.
fn node(me: Member, setting: &Setting) -> Result<Node, Fault> {
    let period = setting.period;
    let config = membership::Config::default()
        .with_period(period)
        .with_jitter(Span(period.0 / 10))
        .with_probe_timeout(Span(period.0 * 3 / 10))
        .with_suspicion(setting.suspicion());
    let mut election = Election::paced(period, 2, 1);
    election.config.lease = setting.lease;
    Node::builder(me)
        .membership(config)
        .election(election)
        .build()
        .map_err(Fault::network)
}

/// The length of a datagram with its headers, from a node with a short id and the seconds of its
/// start for a life.
fn size(message: &Message) -> usize {
    let from = Member::new(16, u32::MAX);
    let frame = if let Message::Membership(message) = message {
        frame_len(from, message)
    } else if let Message::Election(message) = message {
        frame_len(from, message)
    } else {
        debug_assert!(
            false,
            "these nodes are members and elect leaders: {message:?}"
        );
        0
    };
    frame + overhead(from.id, 1_000) + HEADERS as usize
}

const fn member(node: usize, life: u32) -> Member {
    Member::new(node as u64 + 1, life)
}

/// A mesh of processes that never saw a crash, for `idle`; and then `crashes` crashes of the
/// leader, one after the other, each node back before the next.
///
/// # Errors
/// When the nodes do not learn of each other, or have no leader for long.
pub fn run(
    setting: &Setting,
    place: Place,
    side: u32,
    idle: Span,
    crashes: usize,
    seed: u64,
) -> Result<Simulated, Fault> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut mesh = settled(setting, place, side, seed)?;
    let sent = |mesh: &Network<Node>| mesh.counters().sent;
    let (before, from) = (mesh.counters(), sent(&mesh));
    mesh.run_for(idle);
    let after = mesh.counters();
    let seconds = core::time::Duration::from(idle).as_secs_f64();
    let bytes = (after.bytes - before.bytes) as f64;
    let headers = ((sent(&mesh) - from) * HEADERS) as f64;
    let hops = (after.hop_bytes - before.hop_bytes) as f64;
    let mut takeovers = Vec::new();
    for life in 1..=crashes {
        // Anywhere within a period.
        mesh.run_for(setting.period * 10 + Span(rng.below(setting.period.0)));
        let life = u32::try_from(life).unwrap_or_default();
        takeovers.push(crash(&mut mesh, setting, life)?);
    }
    Ok(Simulated {
        payload: kbit(bytes - headers, seconds),
        wire: kbit(bytes, seconds),
        hops: kbit(hops, seconds),
        mean_hops: hops / bytes,
        takeovers,
    })
}

fn settled(setting: &Setting, place: Place, side: u32, seed: u64) -> Result<Network<Node>, Fault> {
    let nodes = (side * side) as usize;
    let topology = match place {
        Place::Flat => Topology::full_mesh(nodes),
        Place::Grid | Place::Unknown => Topology::grid(side, side, 1_000, 1_000),
    };
    let topology = topology.map_err(Fault::network)?;
    let link = Link {
        min_delay: Span::micros(50),
        max_delay: Span::micros(500),
        ..Link::default()
    };
    let mut mesh = Network::new(seed, topology, link).map_err(Fault::network)?;
    mesh.set_identity(|it: &Node| it.membership().me());
    mesh.set_size(size);
    mesh.set_relays(selvedge_sim::network::Relays::All);
    for nth in 0..nodes {
        let me = member(nth, 0);
        mesh.add(me, node(me, setting)?).map_err(Fault::network)?;
        join(&mut mesh, nth)?;
    }
    wait(&mut mesh, setting, nodes)?;
    if place == Place::Grid {
        for nth in 0..nodes {
            tell_distances(&mut mesh, nth)?;
        }
    }
    // Updates that all nodes have received are not repeated any more.
    mesh.run_for(setting.period * 40);
    drop(mesh.drain_events());
    Ok(mesh)
}

fn join(mesh: &mut Network<Node>, node: usize) -> Result<(), Fault> {
    let seed = (0..mesh.len()).find(|&other| other != node && mesh.is_up(other));
    let seeds = seed.map(|seed| member(seed, 0).id).into_iter().collect();
    let join = membership::Command::Join { seeds };
    mesh.command(node, Command::Membership(join))
        .map_err(Fault::network)
}

fn tell_distances(mesh: &mut Network<Node>, node: usize) -> Result<(), Fault> {
    for other in (0..mesh.len()).filter(|&other| other != node) {
        let distance = mesh.hops(node, other).unwrap_or(1).into();
        let command = membership::Command::SetDistance {
            id: member(other, 0).id,
            distance,
        };
        mesh.command(node, Command::Membership(command))
            .map_err(Fault::network)?;
    }
    Ok(())
}

/// Waits until all nodes know all others and follow one leader.
fn wait(mesh: &mut Network<Node>, setting: &Setting, nodes: usize) -> Result<(), Fault> {
    const PERIODS: u64 = 2_000;
    let limit = mesh.now() + setting.period * PERIODS;
    let is_settled = |mesh: &Network<Node>| {
        let all_known = mesh
            .machines()
            .all(|(_, it)| it.membership().live() == nodes);
        all_known && followed(mesh).is_some()
    };
    let settled = mesh.run_until_met(limit, is_settled);
    settled.then_some(()).ok_or(Fault::NotSettled(PERIODS))
}

/// The nodes that have not crashed.
fn up(mesh: &Network<Node>) -> impl Iterator<Item = &Node> {
    let up = mesh.machines().filter(|&(node, _)| mesh.is_up(node));
    up.map(|(_, machine)| machine)
}

fn followed(mesh: &Network<Node>) -> Option<Member> {
    let mut leaders = up(mesh).map(Node::leader);
    let first = leaders.next()??;
    leaders.all(|it| it == Some(first)).then_some(first.0)
}

/// The leader crashes, and comes back when all follow another one.
fn crash(mesh: &mut Network<Node>, setting: &Setting, life: u32) -> Result<Takeover, Fault> {
    const PERIODS: u64 = 2_000;
    let nodes = mesh.len();
    let leader = followed(mesh).ok_or(Fault::NotSettled(0))?;
    let place = mesh.find(leader.id).ok_or(Fault::NotSettled(0))?;
    let former = mesh.machine(place).and_then(Node::leader).map(|it| it.1);
    drop(mesh.drain_events());
    let start = mesh.now();
    mesh.crash(place).map_err(Fault::network)?;
    let limit = start + setting.period * PERIODS;
    let is_led = |mesh: &Network<Node>| followed(mesh).is_some_and(|it| it.id != leader.id);
    if !mesh.run_until_met(limit, is_led) {
        return Err(Fault::NotSettled(PERIODS));
    }
    let end = mesh.now();
    let (mut detected, mut elected) = (None, None);
    for (at, _, event) in mesh.drain_events() {
        match event {
            Event::Election(
                celect::Event::Lost { ballot, .. } | celect::Event::LeaseExpired { ballot, .. },
            ) if Some(ballot) == former => detected = detected.or(Some(at)),
            Event::Election(celect::Event::Elected {
                ballot,
                leader: new,
            }) if Some(ballot) > former && new.id != leader.id => {
                elected = elected.or(Some(at));
            }
            Event::Election(_)
            | Event::Membership(_)
            | Event::Sections(_)
            | Event::Estimate(_)
            | Event::Present(_)
            | Event::MaxLivesRaised(_) => {}
            // Nothing else is measured.
            Event::Groups(_) | _ => {}
        }
    }
    let elected = elected.unwrap_or(end);
    let detected = detected.unwrap_or(elected);
    let seconds = |span: Span| core::time::Duration::from(span).as_secs_f64();
    let heir = Member {
        id: leader.id,
        incarnation: Incarnation(leader.incarnation.0.max(life) + 1),
    };
    mesh.restart(place, heir, node(heir, setting)?)
        .map_err(Fault::network)?;
    join(mesh, place)?;
    wait(mesh, setting, nodes)?;
    Ok(Takeover {
        detected: seconds(detected.since(start)),
        elected: seconds(elected.since(detected)),
        received: seconds(end.since(elected)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Consequences of the rules, for any seed.
    #[test]
    fn shorter_periods_cost_more_and_detect_sooner_and_a_grid_costs_more_by_its_hops() {
        let run = |setting: &str, place, crashes| {
            let setting: Setting = setting.parse().unwrap();
            run(&setting, place, 4, Span::secs(120), crashes, 7).unwrap()
        };
        let (quick, slow) = (run("500:1", Place::Flat, 5), run("4000:1", Place::Flat, 5));
        assert!(quick.payload > 4.0 * slow.payload);
        let last = |it: &Simulated| {
            it.takeovers
                .iter()
                .map(|it| it.detected)
                .fold(0.0, f64::max)
        };
        assert!(last(&quick) < last(&slow) && last(&quick) > 0.5);
        assert!(
            slow.takeovers
                .iter()
                .all(|it| it.elected > 0.0 && it.received > 0.0)
        );
        assert!(slow.payload < slow.wire && slow.mean_hops <= 1.0);
        let (near, any) = (run("1000", Place::Grid, 0), run("1000", Place::Unknown, 0));
        // Of all pairs of a grid of 4 by 4 the mean is 8 / 3.
        assert!(near.mean_hops < 2.2 && (any.mean_hops - 8.0 / 3.0).abs() < 0.15);
        // Renewals go to all.
        let leased = run("4000:1:9000", Place::Flat, 0);
        assert!(leased.payload > 1.5 * slow.payload);
    }
}

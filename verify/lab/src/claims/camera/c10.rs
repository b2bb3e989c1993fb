//! C10: the cost of Camera above the algorithm that it extends.

use std::sync::Arc;

use selvedge_camera::{Camera, Command, Config, Event};
use selvedge_core::wire::{HEADER_LEN, member_len, varint_len};
use selvedge_core::{Choose, Machine, Member, Span};
use selvedge_sim::network::{Action, Link, Network, Topology};

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;

use super::lab::{member, notify, plot, words};
use crate::claims::stats::mean;
use crate::claims::{Claim, Experiment, Fault, Judgement, Paper, Sample, Samples, Verdict};
use crate::ricart_agrawala::{self, RicartAgrawala};

const NODES: [usize; 3] = [16, 64, 256];
/// The number of nodes that ask at the same moment; each asks again as soon as it is out.
const REQUESTERS: [usize; 2] = [1, 10];
const VISITS: usize = 3;
const INSIDE: Span = Span::millis(100);
/// A run that has not served all by then has failed.
const PATIENCE: Span = Span::secs(3_600);

pub(super) fn claim() -> Claim {
    Claim {
        id: "C10",
        claim: "an entry costs as many messages as Ricart and Agrawala's, and a RELEASE; bytes of frames more than theirs by",
        source: "Camera, section 4.3",
        unit: "%, at 16, 64 and 256 nodes, with one requester; with ten",
        experiments: REQUESTERS
            .into_iter()
            .flat_map(|requesters| NODES.map(|nodes| experiment(nodes, requesters)))
            .collect(),
        judge,
    }
}

fn name(nodes: usize, requesters: usize) -> String {
    format!("camera: beside Ricart and Agrawala, {requesters} of {nodes} nodes ask, nothing lost")
}

fn experiment(nodes: usize, requesters: usize) -> Experiment {
    Experiment {
        name: name(nodes, requesters),
        trials: 100,
        run: Arc::new(move |seed| {
            let default = Config::new(u32::try_from(nodes).unwrap_or(u32::MAX));
            // Nothing is lost, so no node needs to ask again.
            let patient = default.with_resend(PATIENCE).with_resend_limit(PATIENCE);
            let costs = [
                camera(nodes, requesters, patient, seed)?,
                ricart_agrawala(nodes, requesters, seed)?,
                camera(nodes, requesters, default, seed)?,
            ];
            Ok(Sample(costs.into_iter().flatten().map(Some).collect()))
        }),
    }
}

/// The length of a frame's header and of the longest sender in these meshes.
fn around(nodes: usize) -> u64 {
    (HEADER_LEN + member_len(member(nodes.saturating_sub(1)))) as u64
}

/// Messages, how many of them are multicasts, and the bytes of all, without headers and senders.
type Cost = [u64; 3];

fn camera(nodes: usize, requesters: usize, config: Config, seed: u64) -> Result<Cost, Fault> {
    let mut mesh = mesh(nodes, seed, |me| Camera::new(me, config))?;
    mesh.set_size(|message: &selvedge_camera::Message| message.encoded_len());
    for node in 0..nodes {
        notify(&mut mesh, node, 0..nodes)?;
    }
    let [enter, exit] = [Command::Enter, Command::Exit];
    serve(&mut mesh, requesters, seed, [enter, exit], |event| {
        matches!(event, Event::Entered(_))
    })?;
    Ok(cost(&mesh, nodes))
}

fn ricart_agrawala(nodes: usize, requesters: usize, seed: u64) -> Result<Cost, Fault> {
    use ricart_agrawala::{Command, Event, Message};
    let peers = || (0..nodes).map(member);
    let mut mesh = mesh(nodes, seed, |me| {
        Ok::<_, Fault>(RicartAgrawala::new(me, peers()))
    })?;
    // As postcard would encode it: the variant, then the fields.
    mesh.set_size(|message: &Message| match message {
        Message::Request(request) => 1 + varint_len(request.number.into()) + member_len(request.by),
        Message::Ok => 1,
    });
    let [enter, exit] = [Command::Enter, Command::Exit];
    serve(&mut mesh, requesters, seed, [enter, exit], |event| {
        *event == Event::Entered
    })?;
    Ok(cost(&mesh, nodes))
}

fn mesh<M: Machine, E: core::fmt::Display>(
    nodes: usize,
    seed: u64,
    machine: impl Fn(Member) -> Result<M, E>,
) -> Result<Network<M>, Fault> {
    let topology = Topology::full_mesh(nodes).map_err(Fault::network)?;
    let mut mesh = Network::new(seed, topology, Link::default()).map_err(Fault::network)?;
    for node in 0..nodes {
        let machine = machine(member(node)).map_err(Fault::network)?;
        mesh.add(member(node), machine).map_err(Fault::network)?;
    }
    Ok(mesh)
}

/// Lets the same nodes enter equally often.
fn serve<M: Machine>(
    mesh: &mut Network<M>,
    requesters: usize,
    seed: u64,
    [enter, exit]: [M::Command; 2],
    is_entry: impl Fn(&M::Event) -> bool,
) -> Result<(), Fault> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut all: Vec<usize> = (0..mesh.len()).collect();
    let entries = VISITS * requesters;
    let mut asked = 0;
    for _ in 0..requesters {
        let node = all.swap_remove(rng.below(all.len() as u64) as usize);
        mesh.command(node, enter.clone()).map_err(Fault::network)?;
        asked += 1;
    }
    let end = mesh.now() + PATIENCE;
    let mut served = 0;
    while served < entries {
        if mesh.step().is_none() || mesh.now() > end {
            return Err(Fault::Outcome(format!("{served} of {entries} got in")));
        }
        let events: Vec<_> = mesh.drain_events().collect();
        for (at, node, event) in events {
            if !is_entry(&event) {
                continue;
            }
            served += 1;
            let out = at + INSIDE;
            let command = exit.clone();
            mesh.schedule(out, Action::Command { node, command })
                .map_err(Fault::network)?;
            if asked < entries {
                asked += 1;
                let command = enter.clone();
                mesh.schedule(out + Span::micros(1), Action::Command { node, command })
                    .map_err(Fault::network)?;
            }
        }
    }
    mesh.run_for(INSIDE + Span::secs(1));
    Ok(())
}

fn cost<M: Machine>(mesh: &Network<M>, nodes: usize) -> Cost {
    let counters = mesh.counters();
    // A multicast reached all others, and is one message.
    let copies = counters.multicasts * (nodes as u64 - 1);
    let single = counters.sent - copies;
    [single, counters.multicasts, counters.bytes]
}

/// An entry in the mean of all trials.
struct Entry {
    messages: f64,
    releases: f64,
    /// Bytes of frames, with a release counted once.
    bytes: f64,
    /// Bytes of frames, with a release to each node.
    all_bytes: f64,
}

/// The algorithm that makes the entries.
#[derive(Clone, Copy, Debug)]
enum Whose {
    /// Camera's, where no node asks again.
    Ours = 0,
    /// Ricart and Agrawala's.
    Theirs = 3,
    /// Camera's with the default settings.
    Default = 6,
}

fn seen(samples: &Samples, whose: Whose, nodes: usize, requesters: usize) -> Option<Entry> {
    let name = name(nodes, requesters);
    let entries = (VISITS * requesters) as f64;
    let column = |nth: usize| {
        let column: Vec<f64> = samples
            .of(&name)
            .filter_map(|(_, sample)| sample.0.get(whose as usize + nth).copied().flatten())
            .map(|it| it as f64 / entries)
            .collect();
        mean(&column)
    };
    let (messages, releases) = (column(0)?, column(1)?);
    let around = around(nodes) as f64;
    let bytes = column(2)? + (messages + releases) * around;
    // Numbers below 128: variant, number, last.
    let release = 3.0 + around;
    let others = nodes as f64 - 1.0;
    Some(Entry {
        messages,
        releases,
        bytes,
        all_bytes: bytes + releases * (others - 1.0) * release,
    })
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let row = |whose: Whose, requesters: usize, figure: fn(&Entry) -> f64| {
        let entry = |&nodes: &usize| seen(samples, whose, nodes, requesters);
        let figures = NODES.iter().map(|nodes| Some(figure(&entry(nodes)?)));
        figures.collect::<Option<Vec<f64>>>()
    };
    // Of one requester, and of ten.
    let rows = |whose: Whose, figure: fn(&Entry) -> f64| -> Option<[Vec<f64>; 2]> {
        let [one, ten] = REQUESTERS;
        Some([row(whose, one, figure)?, row(whose, ten, figure)?])
    };
    let say = |[one, ten]: &[Vec<f64>; 2]| {
        let (one, ten) = (one.iter().copied(), ten.iter().copied());
        format!("{}; {}", words(one), words(ten))
    };
    let theirs = rows(Whose::Theirs, |it| it.bytes)?;
    let more = |whose: Whose, figure: fn(&Entry) -> f64| -> Option<[Vec<f64>; 2]> {
        let mut ours = rows(whose, figure)?;
        for (ours, theirs) in ours.iter_mut().flatten().zip(theirs.iter().flatten()) {
            *ours = 100.0 * (*ours / theirs - 1.0);
        }
        Some(ours)
    };
    let messages = rows(Whose::Ours, |it| it.messages)?;
    let one_release = rows(Whose::Ours, |it| it.releases)?;
    let their_messages = rows(Whose::Theirs, |it| it.messages)?;
    let is_same = messages == their_messages && one_release.iter().flatten().all(|&it| it == 1.0);
    let names: Vec<String> = NODES.iter().map(ToString::to_string).collect();
    let [_, ten] = REQUESTERS;
    let line = |name, whose, figure| Some((name, row(whose, ten, figure)?));
    let lines = [
        line("Camera", Whose::Ours, |it| it.bytes)?,
        line("Camera, RELEASE to each", Whose::Ours, |it| it.all_bytes)?,
        line("Ricart and Agrawala", Whose::Theirs, |it| it.bytes)?,
    ];
    Some(Judgement {
        paper: "as many messages, and a RELEASE".to_owned(),
        ours: say(&more(Whose::Ours, |it| it.bytes)?),
        verdict: if is_same {
            Verdict::Holds
        } else {
            Verdict::Differs
        },
        reason: format!(
            "In a full mesh that loses nothing, {VISITS} entries each, the next one asked for as soon as \
             one is over. Messages an entry, without RELEASE: {}, theirs {}. Bytes, as encoded, with \
             header and sender: {}, theirs {}. Where RELEASE goes to each and not to all at once: {}, \
             which is {}% more. An OK says who else has one, so it grows with the requesters, and what \
             the highest token is; theirs says nothing. With the default settings, where who waits for \
             long asks again, for something could have been lost: {} messages, {}% more bytes. Holds when \
             there are as many messages and one RELEASE.",
            say(&messages),
            say(&their_messages),
            say(&rows(Whose::Ours, |it| it.bytes)?),
            say(&theirs),
            say(&rows(Whose::Ours, |it| it.all_bytes)?),
            say(&more(Whose::Ours, |it| it.all_bytes)?),
            say(&rows(Whose::Default, |it| it.messages)?),
            say(&more(Whose::Default, |it| it.bytes)?),
        ),
        trials: REQUESTERS
            .iter()
            .flat_map(|&requesters| NODES.map(|nodes| samples.of(&name(nodes, requesters)).count()))
            .min()?,
        plots: vec![plot(
            "Bytes an entry, ten requesters",
            ("nodes", &names),
            "bytes",
            lines,
            Paper::reports("as many messages, and a RELEASE; it counts no bytes"),
        )],
    })
}

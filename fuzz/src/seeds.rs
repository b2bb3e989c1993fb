//! The first inputs of the corpora: they reach every kind of message.

mod camera;
mod celect;
mod home;
mod home_file;
mod home_text;
mod hosted;
mod kgroup;
mod kgroup_operations;
mod membership;
mod own;
mod pcm;
mod pcm_operations;
mod replica;
mod stored;

pub(crate) use kgroup::{operation, requests};

use selvedge_core::Member;

use crate::datagrams::WITH_GROUPS;
use crate::group_facts::{coordination, maps};

/// An input of a target's corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The target that it is for.
    pub target: &'static str,
    /// The name of its file behind `seed-`.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// Frames of the node's protocols, each from another sender, in the clear and sealed, to a node without
/// k-groups and to one with them.
fn datagram_seeds() -> Vec<Seed> {
    let frames = membership::decode_seeds().into_iter();
    let frames = frames
        .chain(camera::decode_seeds())
        .chain(celect::decode_seeds());
    // A node of a mesh takes part in many sections, and no program has it measure.
    let of_others = [selvedge_camera::KIND, selvedge_camera::estimate::KIND].map(Some);
    let is_taken = |it: &Seed| !of_others.contains(&it.bytes.get(1).copied());
    let frames = frames.filter(is_taken).map(|it| it.bytes);
    let without = datagram_seeds_of(0, "", &frames.collect::<Vec<_>>());
    let with = datagram_seeds_of(WITH_GROUPS, "groups-", &group_frames());
    without.into_iter().chain(with).collect()
}

fn datagram_seeds_of(mode: u8, name: &str, frames: &[Vec<u8>]) -> Vec<Seed> {
    let seed = |(nth, frames): (usize, &[Vec<u8>])| {
        let mut bytes = vec![mode | nth as u8];
        for frame in frames {
            // The id of the sender, in one byte: a frame of another node is dropped where it is sealed.
            bytes.push(frame.get(2).copied().unwrap_or_default());
            bytes.extend((frame.len() as u16).to_be_bytes());
            bytes.extend(frame);
        }
        Seed {
            target: "datagrams",
            name: format!("{name}{nth}"),
            bytes,
        }
    };
    let of_parity = |parity| {
        let few = frames.chunks(6).enumerate();
        few.map(move |(nth, it)| (2 * nth + parity, it))
    };
    of_parity(0).chain(of_parity(1)).map(seed).collect()
}

/// Each message of k-groups to each group of the site, among news of members.
fn group_frames() -> Vec<Vec<u8>> {
    let Some(site) = coordination().map(|it| it.site) else {
        return Vec::new();
    };
    let plan = site.plan().map_or(0, |it| it.digest());
    let of_groups = kgroup::frames(plan, site.groups().chain(maps()));
    let others = [2, 3].map(|id| Member::new(id, 0));
    let news: Vec<_> = others
        .into_iter()
        .flat_map(membership::frames_from)
        .collect();
    let pairs = news.into_iter().cycle().zip(of_groups);
    pairs.flat_map(|(one, other)| [one, other]).collect()
}

/// All seeds of all targets. `cargo run -p selvedge-fuzz --example seeds` writes them.
pub fn seeds() -> impl Iterator<Item = Seed> {
    membership::decode_seeds()
        .into_iter()
        .chain(camera::decode_seeds())
        .chain(celect::decode_seeds())
        .chain(membership::operation_seeds())
        .chain(camera::operation_seeds())
        .chain(celect::operation_seeds())
        .chain(home::operation_seeds())
        .chain(home_file::file_seeds())
        .chain(home_text::file_seeds())
        .chain(own::operation_seeds())
        .chain(replica::decode_seeds())
        .chain(replica::operation_seeds())
        .chain(kgroup::decode_seeds())
        .chain(kgroup_operations::operation_seeds())
        .chain(pcm::decode_seeds())
        .chain(pcm_operations::operation_seeds())
        .chain(stored::seeds())
        .chain(datagram_seeds())
        .chain(hosted::seeds())
}

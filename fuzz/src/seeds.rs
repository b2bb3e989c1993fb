//! The first inputs of the corpora: they reach every kind of message.

mod camera;
mod celect;
mod home;
mod home_file;
mod home_text;
mod kgroup;
mod kgroup_operations;
mod membership;
mod own;
mod pcm;
mod pcm_operations;
mod replica;
mod stored;

/// One input of one target's corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The target that it is for.
    pub target: &'static str,
    /// The name of its file behind `seed-`.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// Frames of the node's protocols, each from another sender, in the clear and sealed.
fn datagram_seeds() -> Vec<Seed> {
    let frames = membership::decode_seeds().into_iter();
    let frames = frames
        .chain(camera::decode_seeds())
        .chain(celect::decode_seeds());
    // A node of a mesh takes part in many sections, and no program has it measure.
    let of_others = [selvedge_camera::KIND, selvedge_camera::estimate::KIND].map(Some);
    let is_taken = |it: &Seed| !of_others.contains(&it.bytes.get(1).copied());
    let frames: Vec<Seed> = frames.filter(is_taken).collect();
    let seed = |(nth, frames): (usize, &[Seed])| {
        let mut bytes = vec![nth as u8];
        for frame in frames {
            // The id of the sender, in one byte: a frame of another node is dropped where it is sealed.
            bytes.push(frame.bytes.get(2).copied().unwrap_or_default());
            bytes.extend((frame.bytes.len() as u16).to_be_bytes());
            bytes.extend(&frame.bytes);
        }
        Seed {
            target: "datagrams",
            name: nth.to_string(),
            bytes,
        }
    };
    let in_the_clear = frames.chunks(6).enumerate().map(|(nth, it)| (2 * nth, it));
    let sealed = frames
        .chunks(6)
        .enumerate()
        .map(|(nth, it)| (2 * nth + 1, it));
    in_the_clear.chain(sealed).map(seed).collect()
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
}

//! Fuzz targets as plain functions.
//!
//! A target takes bytes and panics when a promise is broken. It runs in two ways:
//!
//! - under libFuzzer, for hours:
//!   `cargo +nightly fuzz run decode --features libfuzzer --no-trace-compares`;
//! - in `cargo test -p selvedge-fuzz`, on stable Rust: over the committed corpus
//!   (`fuzz/corpus/<target>/`) and over inputs made from a fixed seed.
//!
//! A new target is a function here, a line in [`TARGETS`], a file in `fuzz_targets/` with its
//! `[[bin]]` in `Cargo.toml`, and seeds in [`seeds`]. A test holds these together.

extern crate alloc;

// The allocator with which the protocols' tests count allocations.
#[path = "../../core/tests/counting/allocator.rs"]
mod allocator;
mod camera_operations;
mod celect_operations;
mod database;
mod datagrams;
mod decode;
mod group_facts;
mod home_assistant;
mod home_file;
mod home_file_yaml;
mod home_operations;
mod hosted;
mod kgroup_operations;
mod membership_operations;
mod own_operations;
mod pcm_operations;
mod replica_operations;
mod sealed;
mod seeds;
mod site;
mod stored_facts;

pub use camera_operations::camera_operations;
pub use celect_operations::celect_operations;
pub use database::database;
pub use datagrams::datagrams;
pub use decode::decode;
pub use group_facts::group_facts;
pub use home_assistant::home_assistant;
pub use home_file::home_file;
pub use home_file_yaml::home_file_yaml;
pub use home_operations::home_operations;
pub use hosted::hosted;
pub use kgroup_operations::kgroup_operations;
pub use membership_operations::membership_operations;
pub use own_operations::own_operations;
pub use pcm_operations::pcm_operations;
pub use replica_operations::replica_operations;
pub use sealed::sealed;
pub use seeds::{Seed, seeds};
pub use site::site;
pub use stored_facts::stored_facts;

/// A function that takes bytes and panics when a promise is broken.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, its binary and its corpus.
    pub name: &'static str,
    /// The function that takes an input.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target {
        name: "camera_operations",
        run: camera_operations,
    },
    Target {
        name: "celect_operations",
        run: celect_operations,
    },
    Target {
        name: "database",
        run: database,
    },
    Target {
        name: "datagrams",
        run: datagrams,
    },
    Target {
        name: "decode",
        run: decode,
    },
    Target {
        name: "group_facts",
        run: group_facts,
    },
    Target {
        name: "home_assistant",
        run: home_assistant,
    },
    Target {
        name: "home_file",
        run: home_file,
    },
    Target {
        name: "home_file_yaml",
        run: home_file_yaml,
    },
    Target {
        name: "home_operations",
        run: home_operations,
    },
    Target {
        name: "hosted",
        run: hosted,
    },
    Target {
        name: "kgroup_operations",
        run: kgroup_operations,
    },
    Target {
        name: "membership_operations",
        run: membership_operations,
    },
    Target {
        name: "own_operations",
        run: own_operations,
    },
    Target {
        name: "pcm_operations",
        run: pcm_operations,
    },
    Target {
        name: "replica_operations",
        run: replica_operations,
    },
    Target {
        name: "sealed",
        run: sealed,
    },
    Target {
        name: "site",
        run: site,
    },
    Target {
        name: "stored_facts",
        run: stored_facts,
    },
];

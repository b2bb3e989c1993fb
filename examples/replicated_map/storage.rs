//! A member's base and the facts since, on a disk.

use std::path::Path;

use selvedge_core::durable::Durable;
use selvedge_core::{Member, NodeId};
use selvedge_replica::{Config, Configuration, Fact, Reject, Replica, Stored};
use selvedge_store::{Beginning, NodeStore, Schema, StoreError};
use thiserror::Error;

use crate::map::Map;

pub(crate) use selvedge_store::Memory;

const SCHEMA: Schema = Schema {
    file: "map.redb",
    base: "selvedge replicated map: base",
    facts: "selvedge replicated map: facts",
    format: 1,
    // A smaller limit in tests.
    limit: if cfg!(test) { 20 } else { 1_000 },
};

#[derive(Debug, Error)]
pub(crate) enum StorageError {
    #[error(
        "{0} (--data names the folder; --first: the node was never started; --forgot: its memory is lost)"
    )]
    Store(#[from] StoreError),
    #[error(transparent)]
    Replica(#[from] Reject),
}

/// The stored part of a member: its life, and the promises of its replica.
pub(crate) type Memories = NodeStore<Stored<Map>, Fact<Map>>;

/// The base of a member.
pub(crate) fn base(replica: &Replica<Map>) -> (Member, Stored<Map>) {
    (replica.me(), replica.stored())
}

/// Opens the directory and begins a life that this node never had before. The life is stored when
/// this returns, so before any peer learns of it.
pub(crate) fn open(
    dir: &Path,
    id: NodeId,
    memory: Memory,
    first: Configuration,
) -> Result<(Memories, Replica<Map>), StorageError> {
    let (mut store, beginning) = memory.open::<Stored<Map>, Fact<Map>>(dir, SCHEMA, id)?;
    let replica = match beginning {
        // A member that lost its memory is not in the first configuration: it has no vote.
        Beginning::First(me) | Beginning::Lost(me) => {
            Replica::new(me, Config::new(), first, Map::default())?
        }
        Beginning::Later(me, found) => {
            let mut replica = Replica::restore(me, Config::new(), found.base)?;
            for fact in &found.facts {
                replica.fold(fact).map_err(Reject::Damaged)?;
            }
            replica
        }
    };
    store.rebase(&base(&replica), |_| Ok(()))?;
    Ok((store, replica))
}

//! Starting a host.

use std::sync::Arc;

use selvedge_core::wire::{HEADER_LEN, MEMBER_MAX_LEN};
use selvedge_core::{Driver, Span, shared};
use selvedge_seal::{Epoch, OVERHEAD};
use tokio::sync::watch;

use crate::beats::Beats;
use crate::keep::{Keep, Volatile};
use crate::parts::{self, Clock, Sealing};
use crate::peers::Peers;
use crate::setup::Setup;
use crate::task::{Round, Task};
use crate::traffic::Counters;
use crate::{Handle, HostError, Hosted};

/// The longest datagram of UDP over IPv4.
const LONGEST: usize = 65_507;

/// Starts hosts.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Host {
    /// Runs `machine` as a task of the present tokio runtime, which must drive I/O and time.
    ///
    /// # Errors
    /// When the address, a peer or a setting cannot be used. Nothing runs then.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start<M: Hosted, S: Send + Sync + 'static>(
        machine: M,
        setup: Setup<M, S>,
    ) -> Result<Handle<M, S>, HostError> {
        let (handle, task) = prepare(machine, setup, |_| Ok(Volatile))?;
        tokio::spawn(task.run());
        Ok(handle)
    }

    /// Does as [`start`](Self::start) without a runtime of the application: the host gets a thread
    /// of its own.
    ///
    /// # Errors
    /// As there, and when the system gives no thread for the host.
    pub fn blocking_start<M: Hosted, S: Send + Sync + 'static>(
        machine: M,
        setup: Setup<M, S>,
    ) -> Result<Handle<M, S>, HostError> {
        in_thread(machine, setup, |_| Ok(Volatile))
    }
}

#[cfg(feature = "store")]
mod durable {
    use selvedge_core::durable::Durable;
    use selvedge_store::Store;
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::{Host, in_thread, prepare};
    use crate::keep::Stored;
    use crate::parts::Disk;
    use crate::setup::Setup;
    use crate::{Handle, HostError, Hosted};

    impl Host {
        /// Runs a machine and stores its facts, before an effect of the same round is carried out and
        /// a command is answered. A base takes their place at the start, before a message is sent, and after [`Schema::limit`](selvedge_store::Schema::limit)
        /// facts: `base` returns all that the machine must not forget, of the type with which the store was
        /// opened: after `Memory::open`, the node's life and its data. The application has made `machine` from the base and the facts that it found in
        /// the store.
        ///
        /// The machine takes no input while a write is under way. A host that cannot store ends
        /// with [`RunError::Store`](crate::RunError::Store), and the effects that waited have not
        /// happened.
        ///
        /// # Errors
        /// As [`start`](Self::start), and when the first base cannot be stored.
        ///
        /// # Panics
        /// Outside of a tokio runtime.
        pub async fn start_durable<M, S, B>(
            machine: M,
            setup: Setup<M, S>,
            store: Store<B, M::Fact>,
            base: impl Fn(&M) -> B + Send + 'static,
        ) -> Result<Handle<M, S>, HostError>
        where
            M: Hosted + Durable<Fact: Serialize + DeserializeOwned + Send>,
            S: Send + Sync + 'static,
            B: Serialize + DeserializeOwned + Send + 'static,
        {
            let (handle, task) = prepare(machine, setup, stored(store, base))?;
            tokio::spawn(task.run());
            Ok(handle)
        }

        /// Does as [`start_durable`](Self::start_durable) in a thread of its own.
        ///
        /// # Errors
        /// As there, and when the system gives no thread for the host.
        pub fn blocking_start_durable<M, S, B>(
            machine: M,
            setup: Setup<M, S>,
            store: Store<B, M::Fact>,
            base: impl Fn(&M) -> B + Send + 'static,
        ) -> Result<Handle<M, S>, HostError>
        where
            M: Hosted + Durable<Fact: Serialize + DeserializeOwned + Send>,
            S: Send + Sync + 'static,
            B: Serialize + DeserializeOwned + Send + 'static,
        {
            in_thread(machine, setup, stored(store, base))
        }
    }

    fn stored<M, B, F>(
        store: Store<B, M::Fact>,
        base: F,
    ) -> impl FnOnce(&M) -> Result<Stored<B, M::Fact, F>, HostError>
    where
        M: Durable<Fact: Serialize + DeserializeOwned + Send + 'static>,
        B: Serialize + DeserializeOwned + Send + 'static,
        F: Fn(&M) -> B,
    {
        move |machine| {
            let disk = Disk::new(store, &base(machine))?;
            Ok(Stored { disk, base })
        }
    }
}

fn in_thread<M: Hosted, S: Send + Sync + 'static, K: Keep<M>>(
    machine: M,
    setup: Setup<M, S>,
    keep: impl FnOnce(&M) -> Result<K, HostError> + Send + 'static,
) -> Result<Handle<M, S>, HostError> {
    let prepare = async move || {
        let (handle, task) = prepare(machine, setup, keep)?;
        Ok((handle, task.run()))
    };
    parts::in_thread("selvedge-host", prepare, HostError::Thread)
}

/// A handle and its task, which does not run yet.
type Prepared<M, S, K> = (Handle<M, S>, Task<M, S, K>);

fn prepare<M: Hosted, S: Send + Sync + 'static, K: Keep<M>>(
    machine: M,
    setup: Setup<M, S>,
    keep: impl FnOnce(&M) -> Result<K, HostError>,
) -> Result<Prepared<M, S, K>, HostError> {
    let (me, budget) = (setup.me, setup.frame_budget);
    let overhead = setup.seal.as_ref().map_or(0, |_| OVERHEAD);
    let least = HEADER_LEN + MEMBER_MAX_LEN + overhead;
    if !(least..=LONGEST).contains(&budget) {
        let most = LONGEST;
        return Err(HostError::Budget {
            budget,
            least,
            most,
        });
    }
    if setup.heartbeat == Some(Span::ZERO) {
        return Err(HostError::Heartbeat);
    }
    let rng = parts::generator(setup.random_seed).map_err(HostError::Entropy)?;
    let senders = setup.peers.len().saturating_add(setup.learned);
    let sealing = match setup.seal {
        Some(seal) => {
            let epoch = Epoch::now().map_err(HostError::Entropy)?;
            Some(Sealing::new(seal, me.id, epoch, senders))
        }
        None => None,
    };
    let address = setup.listen;
    let bound = setup.transport.bind(address);
    let socket = bound.map_err(|source| HostError::Listen { address, source })?;
    let address = socket.local();
    let peers = Peers::new(me.id, &*socket, setup.peers, setup.learned)?;
    let keep = keep(&machine)?;

    let counters = Arc::new(Counters::default());
    let (shared, port) = shared::channel(setup.limits, (setup.view)(&machine));
    let (end, ended) = watch::channel(None);
    let task = Task {
        driver: Driver::new(machine),
        keep,
        socket,
        peers,
        sealing,
        beats: setup.heartbeat.map(Beats::new),
        budget,
        frame_budget: budget - overhead,
        me: me.id,
        identity: setup.identity.unwrap_or_else(|| Box::new(move |_| me)),
        view: setup.view,
        last: setup.last,
        rng,
        clock: Clock::start(),
        port,
        counters: Arc::clone(&counters),
        end,
        round: Round::default(),
        frame: Vec::new(),
        errors: 0,
        is_over: false,
        leaving: Vec::new(),
        has_left: false,
    };
    let handle = Handle {
        shared,
        address,
        counters,
        end: ended,
    };
    Ok((handle, task))
}

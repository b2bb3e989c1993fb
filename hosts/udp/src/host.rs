//! The start of a node.

use std::sync::Arc;

use selvedge_core::{Driver, Member, shared};
use selvedge_host::parts;
use selvedge_membership::{Command, Phase};

use selvedge::{ConfigError, Election, Exclusion, Node};
use selvedge_seal::{Epoch, OVERHEAD};

use crate::directory::Directory;
use crate::error::HostError;
use crate::facts::Facts;
use crate::gates::Gates;
use crate::keeper::Keeper;
use crate::kept::Kept;
use crate::notice::Paces;
use crate::pending::Pending;
use crate::places::{self, Own};
use crate::publisher::Publisher;
use crate::query::Queries;
use crate::sealing::Sealing;
use crate::seeds::{Lookups, Turns};
use crate::sends::Sends;
use crate::setup::Setup;
use crate::sites::{self, Sites};
use crate::task::{Epochs, Progress, Task};
use crate::traffic::Traffic;
use crate::watch::Watches;
use crate::{Handle, MAX_NODE_ID, NodeEvent, NodeState, new_life};

/// The starter of nodes.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Host {
    /// Binds the socket and begins to join. The node runs as a task of the present tokio runtime,
    /// which must drive I/O and time.
    ///
    /// # Errors
    /// When the address, the id or the settings cannot be used. Nothing runs then.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn start(setup: Setup) -> Result<Handle, HostError> {
        let (handle, task) = prepare(setup).await?;
        tokio::spawn(task.run());
        Ok(handle)
    }

    /// Does as [`start`](Self::start) without a runtime of the application: the node gets its own
    /// thread. Not from within a runtime, which this blocks for up to
    /// [`Incarnation::TICK`](selvedge_core::Incarnation::TICK).
    ///
    /// # Errors
    /// The errors of [`start`](Self::start), and when the system gives no thread for the node.
    pub fn blocking_start(setup: Setup) -> Result<Handle, HostError> {
        let prepare = async move || {
            let (handle, task) = prepare(setup).await?;
            Ok((handle, task.run()))
        };
        parts::in_thread("selvedge-node", prepare, HostError::Thread)
    }
}

/// A node that has begun to join, and its task, which does not run yet.
async fn prepare(mut setup: Setup) -> Result<(Handle, Task), HostError> {
    let id = setup.id;
    if id > MAX_NODE_ID {
        return Err(HostError::Id { id });
    }
    places::check(&setup)?;
    set_locks(&mut setup)?;
    let rng = parts::generator(setup.random_seed).map_err(HostError::Entropy)?;
    let incarnation = match setup.life {
        Some(life) => life,
        None => new_life().await.map_err(HostError::Entropy)?,
    };
    let is_needed = setup.coordination.is_some() || setup.seal.is_some();
    let mut facts = match setup.memory.filter(|_| is_needed) {
        // A disk may be slow, and other tasks share the thread.
        Some(memory) => blocking(move || memory.open()).await??,
        None if setup.coordination.is_some() => return Err(HostError::NoState),
        None => None,
    };
    let incarnation = facts
        .as_ref()
        .map_or(incarnation, |it| it.later_life(incarnation));
    let me = Member { id, incarnation };
    let mut config = setup.config;
    let budget = usize::from(config.frame_budget);
    let limit = usize::try_from(config.member_limit).unwrap_or(usize::MAX);
    let mut sealing = None;
    if let Some(seal) = setup.seal {
        config.frame_budget = config.frame_budget.saturating_sub(OVERHEAD as u16);
        let former = facts.as_ref().map(|it| it.epoch(id)).transpose()?.flatten();
        let clock = setup.seal_clock;
        let epoch = Epoch::at(clock(), former).map_err(HostError::Entropy)?;
        let start = (epoch, setup.clock.now());
        sealing = Some(Sealing::new(seal, id, start, clock, limit));
    }
    let frame_budget = config.frame_budget;
    let (room, period) = (config.metadata_limit.into(), config.period);
    let exclusion = setup.exclusion.map(|it| shortened(it, frame_budget));
    let election = setup.election.map(|it| shortened_too(it, frame_budget));
    let mut machine = Node::builder(me)
        .membership(config)
        .locks(exclusion)
        .election(election);
    let epoch = setup.coordination.as_ref().map(|it| it.1);
    let mut stored = None;
    let has_groups = setup.coordination.is_some();
    if let Some((mut coordination, _)) = setup.coordination {
        let site = sites::held_to(&coordination.site, frame_budget);
        coordination.site = site.map_err(ConfigError::from)?;
        machine = match facts.take() {
            None => machine.groups(coordination),
            Some(mut found) => {
                let (start, facts) = found.take(id, coordination.start)?;
                coordination.start = start;
                stored = Some((found, start, facts.clone()));
                machine.restored_groups(coordination, facts)
            }
        };
    }
    let machine = machine.build()?;
    let listen = setup.listen;
    let bound = setup.transport.bind(listen);
    let socket = bound.map_err(|source| HostError::Listen {
        address: listen,
        source,
    })?;
    let local = socket.local();
    let own = Own::new(local, &setup.advertise, setup.tags);
    own.announced().tags.check(room)?;
    let seeds = places::others(setup.seeds, &*socket, &own)?;
    let addresses: Vec<_> = seeds.iter().map(|it| it.addresses().to_vec()).collect();
    // Last, so that a start that fails stores nothing; and before the first datagram.
    let epoch_of_seal = sealing.as_ref().map(|it| it.datagrams.epoch());
    let keep_epoch = move |facts: &mut Facts| match epoch_of_seal {
        Some(epoch) => facts.set_epoch(id, epoch),
        None => Ok(()),
    };
    let (mut keeping, mut folder) = (None, None);
    if let Some((mut found, start, facts)) = stored {
        let keep = move || {
            keep_epoch(&mut found)?;
            found.keep(me, start, facts)
        };
        keeping = Some(blocking(keep).await??);
    } else if let Some(mut found) = facts {
        let keep = move || keep_epoch(&mut found).map(|()| found);
        folder = Some(blocking(keep).await??);
    }

    let traffic = Arc::new(Traffic::default());
    let state = NodeState::new(me);
    let kept = Kept::default();
    let (shared, port) = shared::channel(setup.limits, state.clone());
    let mut task = Task {
        driver: Driver::new(machine),
        socket,
        directory: Directory::new(limit, &addresses),
        turns: Turns::new(addresses.len()),
        lookups: Lookups::new(seeds, setup.clock.now()),
        own,
        sends: Sends::new(period, setup.clock.now()),
        rng,
        budget,
        frame_budget: frame_budget.into(),
        publisher: Publisher::new(port, state),
        gates: Gates::default(),
        pending: Pending::default(),
        kept: Keeper(kept.clone()),
        queries: Queries::default(),
        sites: Sites::default(),
        epoch: epoch.map(Epochs::new),
        local_clock: has_groups.then_some(setup.local_clock),
        keeping,
        folder,
        sealing,
        paces: Paces::default(),
        clock: setup.clock,
        traffic: Arc::clone(&traffic),
        progress: Progress::default(),
        life: me,
        effects: Vec::new(),
        frame: Vec::new(),
    };
    task.announce()?;
    task.begin_epoch();
    task.read_clock();
    for news in task.lookups.begin() {
        task.emit(NodeEvent::Seed(news));
    }
    let seeds = task.turns.stand_ins().collect();
    task.command(selvedge::Command::Membership(Command::Join { seeds }))?;
    if task.driver.machine().membership().phase() == Phase::Joining && task.lookups.are_itself() {
        task.begin_alone();
    }
    let handle = Handle {
        shared,
        id,
        address: local,
        clock: setup.clock,
        traffic,
        watches: Watches::default(),
        kept,
    };
    Ok((handle, task))
}

/// Does work that waits for a disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, HostError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|aborted| HostError::Thread(aborted.into()))
}

/// Applies the settings of locks that stand above those of all sections.
fn set_locks(setup: &mut Setup) -> Result<(), HostError> {
    let Some(exclusion) = &mut setup.exclusion else {
        let given = [
            ("takeover", setup.takeover.is_some()),
            ("keep", setup.keep.is_some()),
            ("eager", setup.eager),
        ];
        return match given.into_iter().find(|it| it.1) {
            Some((setting, _)) => Err(HostError::NoLocks { setting }),
            None => Ok(()),
        };
    };
    let section = &mut exclusion.sections.section;
    section.takeover = setup.takeover.or(section.takeover);
    section.eager |= setup.eager;
    if let Some(time) = setup.keep {
        section.keep = true;
        exclusion.keep_for = time;
    }
    Ok(())
}

/// The settings with frames no longer than those of membership.
fn shortened(mut exclusion: Exclusion, frame_budget: u16) -> Exclusion {
    let longest = &mut exclusion.sections.section.frame_budget;
    *longest = frame_budget.min(*longest);
    exclusion
}

/// Shortens frames, like [`shortened`].
fn shortened_too(mut election: Election, frame_budget: u16) -> Election {
    let longest = &mut election.config.frame_budget;
    *longest = frame_budget.min(*longest);
    election
}

//! Modules at gateways: a client puts one at any gateway, and is notified when most gateways have
//! it on their disks; a gateway that lacks one asks the others.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Member, NodeId, Span, Time};
use selvedge_pcm::Library;

use super::storage::{Storage, StorageError};
use crate::frame::MODULE_MAX;
use crate::notice::{NotKept, Notice};
use crate::shelf;
use crate::wasm::is_module;

/// The wait for other gateways before a message to them is repeated.
const PATIENCE: Span = Span::secs(2);
/// The number of repetitions.
const TRIES: u8 = 3;
/// The number of modules in transfer at a time, in each direction.
const MANY: usize = 16;
/// The number of nodes that wait for a module at a time.
const ASKERS: usize = 64;

/// Notices to send.
pub(crate) type Out = Vec<(NodeId, Notice)>;

/// A module that a client has put here.
#[derive(Debug)]
struct Put {
    client: NodeId,
    /// The gateways that have it on their disks.
    kept: BTreeSet<NodeId>,
    due: Time,
    tries: u8,
}

/// A module that was requested, and is not here.
#[derive(Debug)]
struct Want {
    askers: BTreeSet<NodeId>,
    /// The gateways that do not have it.
    lack: BTreeSet<NodeId>,
    due: Time,
    tries: u8,
}

/// The modules in transfer between gateways.
#[derive(Debug)]
pub(crate) struct Modules {
    me: NodeId,
    others: Vec<NodeId>,
    puts: BTreeMap<Library, Put>,
    wants: BTreeMap<Library, Want>,
}

impl Modules {
    pub(crate) const fn new(me: NodeId, others: Vec<NodeId>) -> Self {
        Self {
            me,
            others,
            puts: BTreeMap::new(),
            wants: BTreeMap::new(),
        }
    }

    /// Handles a node's notice about modules; modules that open tasks need are given. Returns true
    /// if it is a notice for gateways.
    pub(crate) fn on_notice(
        &mut self,
        from: Member,
        notice: Notice,
        (storage, needed): (&mut Storage, &BTreeSet<Library>),
        now: Time,
        out: &mut Out,
    ) -> Result<bool, StorageError> {
        let is_gateway = self.others.contains(&from.id);
        match notice {
            Notice::Put { module, spreads } => {
                self.on_put(from.id, &module, spreads, (storage, needed), now, out)?;
            }
            Notice::Kept { library, .. } if is_gateway => self.on_kept(from.id, library, out),
            // A gateway that keeps fewer modules than this one counts as one without an answer.
            Notice::NotKept { .. } if is_gateway => {}
            Notice::Get(library) => self.on_get(from.id, library, storage, now, out)?,
            Notice::Module(module) if is_gateway => {
                self.on_module(&module, (storage, needed), out)?
            }
            Notice::NoModule(library) if is_gateway => self.on_no_module(from.id, library, out),
            Notice::Kept { .. }
            | Notice::NotKept { .. }
            | Notice::Module(_)
            | Notice::NoModule(_)
            | Notice::Gateways(_)
            | Notice::Status(_)
            | Notice::Unit { .. } => return Ok(false),
        }
        Ok(true)
    }

    fn on_put(
        &mut self,
        from: NodeId,
        module: &[u8],
        spreads: bool,
        (storage, needed): (&mut Storage, &BTreeSet<Library>),
        now: Time,
        out: &mut Out,
    ) -> Result<(), StorageError> {
        let library = shelf::library(module);
        let limit = u32::try_from(MODULE_MAX).unwrap_or(u32::MAX);
        let why = match u32::try_from(module.len()).unwrap_or(u32::MAX) {
            len if len > limit => Some(NotKept::TooLong { len, limit }),
            _ if !is_module(module) => Some(NotKept::NoModule),
            _ if !storage.keep(module, needed)? => Some(NotKept::Full),
            _ => None,
        };
        if let Some(why) = why {
            out.push((from, Notice::NotKept { library, why }));
            return Ok(());
        }
        if !spreads {
            out.push((from, Notice::Kept { library, by: 1 }));
            return Ok(());
        }
        if self.puts.len() >= MANY && !self.puts.contains_key(&library) {
            return Ok(()); // The client puts it again.
        }
        let put = self.puts.entry(library).or_insert(Put {
            client: from,
            kept: BTreeSet::from([self.me]),
            due: now,
            tries: 0,
        });
        put.client = from;
        (put.due, put.tries) = (now + PATIENCE, 0);
        self.spread(library, module, out);
        self.look_at_put(library, out);
        Ok(())
    }

    /// Sends the module to gateways that are not known to have it.
    fn spread(&self, library: Library, module: &[u8], out: &mut Out) {
        let Some(put) = self.puts.get(&library) else {
            return;
        };
        for other in self.others.iter().filter(|it| !put.kept.contains(it)) {
            let module = module.iter().copied().collect();
            let spreads = false;
            out.push((*other, Notice::Put { module, spreads }));
        }
    }

    fn on_kept(&mut self, from: NodeId, library: Library, out: &mut Out) {
        if let Some(put) = self.puts.get_mut(&library) {
            put.kept.insert(from);
            self.look_at_put(library, out);
        }
    }

    /// Notifies the client when most gateways have the module.
    fn look_at_put(&mut self, library: Library, out: &mut Out) {
        let all = self.others.len() + 1;
        let Some(put) = self.puts.get(&library) else {
            return;
        };
        if put.kept.len() > all / 2 {
            let by = u16::try_from(put.kept.len()).unwrap_or(u16::MAX);
            out.push((put.client, Notice::Kept { library, by }));
        }
        if put.kept.len() == all {
            self.puts.remove(&library);
        }
    }

    fn on_get(
        &mut self,
        from: NodeId,
        library: Library,
        storage: &mut Storage,
        now: Time,
        out: &mut Out,
    ) -> Result<(), StorageError> {
        if let Some(module) = storage.module(library)? {
            out.push((from, Notice::Module(module.into_iter().collect())));
            return Ok(());
        }
        let is_full = self.wants.len() >= MANY && !self.wants.contains_key(&library);
        if self.others.contains(&from) || self.others.is_empty() || is_full {
            out.push((from, Notice::NoModule(library)));
            return Ok(());
        }
        let want = self.wants.entry(library).or_insert(Want {
            askers: BTreeSet::new(),
            lack: BTreeSet::new(),
            due: now,
            tries: 0,
        });
        if want.askers.len() < ASKERS {
            want.askers.insert(from);
        }
        if want.tries == 0 {
            self.ask(library, now, out);
        }
        Ok(())
    }

    fn ask(&mut self, library: Library, now: Time, out: &mut Out) {
        if let Some(want) = self.wants.get_mut(&library) {
            want.tries += 1;
            want.due = now + PATIENCE;
            let others = self.others.iter().filter(|it| !want.lack.contains(it));
            out.extend(others.map(|it| (*it, Notice::Get(library))));
        }
    }

    fn on_module(
        &mut self,
        module: &[u8],
        (storage, needed): (&mut Storage, &BTreeSet<Library>),
        out: &mut Out,
    ) -> Result<(), StorageError> {
        let library = shelf::library(module);
        if let Some(want) = self.wants.remove(&library) {
            // The nodes that asked get it all the same.
            let _kept = storage.keep(module, needed)?;
            let askers = want.askers.into_iter();
            out.extend(askers.map(|it| (it, Notice::Module(module.iter().copied().collect()))));
        }
        Ok(())
    }

    fn on_no_module(&mut self, from: NodeId, library: Library, out: &mut Out) {
        if let Some(want) = self.wants.get_mut(&library) {
            want.lack.insert(from);
            if want.lack.len() >= self.others.len() {
                self.give_up(library, out);
            }
        }
    }

    fn give_up(&mut self, library: Library, out: &mut Out) {
        let askers = self.wants.remove(&library).map(|it| it.askers);
        let askers = askers.into_iter().flatten();
        out.extend(askers.map(|it| (it, Notice::NoModule(library))));
    }

    /// Repeats messages without an answer, and gives up after [`TRIES`].
    pub(crate) fn expire(
        &mut self,
        storage: &mut Storage,
        now: Time,
        out: &mut Out,
    ) -> Result<(), StorageError> {
        let due = self.puts.iter().filter(|it| it.1.due <= now);
        let due: Vec<Library> = due.map(|it| *it.0).collect();
        for library in due {
            let module = storage.module(library)?;
            let put = self.puts.get_mut(&library);
            match module.zip(put) {
                Some((module, put)) if put.tries < TRIES => {
                    put.tries += 1;
                    put.due = now + PATIENCE;
                    self.spread(library, &module, out);
                }
                // Gateways that lack it request it when they need it.
                _ => drop(self.puts.remove(&library)),
            }
        }
        let due = self.wants.iter().filter(|it| it.1.due <= now);
        let due: Vec<(Library, u8)> = due.map(|it| (*it.0, it.1.tries)).collect();
        for (library, tries) in due {
            match tries < TRIES {
                true => self.ask(library, now, out),
                false => self.give_up(library, out),
            }
        }
        Ok(())
    }
}

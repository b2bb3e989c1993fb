//! The modules that a follower keeps.

use alloc::collections::BTreeMap;

use selvedge_core::settings::OutOfRange;
use selvedge_pcm::{Function, Library};

use super::limits::Limits;
use super::module::{Module, ModuleError};
use super::outcome::{Failure, Ran};
use super::run::Run;
use super::signature::CallMismatch;
use crate::call::{Call, ModuleId};

/// An engine that keeps modules, and runs calls of their exports within limits.
#[derive(Debug)]
pub struct Engine {
    limits: Limits,
    modules: BTreeMap<ModuleId, Kept>,
    /// The number of uses until now, to find the module that was not used for longest.
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    module: Module,
    used: u64,
}

impl Engine {
    /// An engine without modules.
    ///
    /// # Errors
    /// A limit that is out of its range.
    pub fn new(limits: Limits) -> Result<Self, OutOfRange> {
        limits.check()?;
        Ok(Self {
            limits,
            modules: BTreeMap::new(),
            uses: 0,
        })
    }

    /// Compiles a module and keeps it; the module that was not used for longest makes room. A
    /// module that is kept already stays as it is. Present runs of a removed module continue.
    ///
    /// # Errors
    /// The errors of [`Module::compile`]; nothing changes then.
    pub fn insert(&mut self, bytes: &[u8]) -> Result<ModuleId, ModuleError> {
        let id = ModuleId::of(bytes);
        if self.module(id).is_some() {
            return Ok(id);
        }
        self.keep(Module::compile(bytes, &self.limits)?);
        Ok(id)
    }

    /// Keeps a compiled module, as [`insert`](Self::insert) does.
    pub fn keep(&mut self, module: Module) {
        let id = module.id();
        if self.module(id).is_some() {
            return;
        }
        if self.modules.len() >= usize::from(self.limits.modules) {
            let oldest = self.modules.iter().min_by_key(|(_, it)| it.used);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.modules.remove(&oldest);
            }
        }
        self.modules.insert(
            id,
            Kept {
                module,
                used: self.uses,
            },
        );
    }

    /// Removes the modules of this library. Returns true if there were any.
    pub fn remove(&mut self, library: Library) -> bool {
        let before = self.modules.len();
        self.modules.retain(|id, _| id.library() != library);
        self.modules.len() < before
    }

    /// Begins a call. Nothing runs before its first [step](Run::step).
    pub fn start(&mut self, call: &Call) -> Run {
        match self.module(call.module()) {
            Some(module) => Run::new(&module, call, &self.limits),
            None => Run::failed(Failure::NoModule),
        }
    }

    /// Begins a function of PCM.
    pub fn start_function(&mut self, function: &Function) -> Run {
        match Call::from_function(function) {
            Ok(call) => self.start(&call),
            Err(_) => Run::failed(Failure::NoCall),
        }
    }

    /// Runs a call to its end.
    pub fn run(&mut self, call: &Call) -> Ran {
        self.start(call).finish()
    }

    /// A module that is kept; this counts as a use of it.
    pub fn module(&mut self, id: ModuleId) -> Option<Module> {
        self.uses += 1;
        let kept = self.modules.get_mut(&id)?;
        kept.used = self.uses;
        Some(kept.module.clone())
    }

    /// Checks that a call can run now.
    ///
    /// # Errors
    /// The mismatch of module and call.
    pub fn check(&self, call: &Call) -> Result<(), CallMismatch> {
        let kept = self.modules.get(&call.module());
        let kept = kept.ok_or_else(|| CallMismatch::NoModule(call.module()))?;
        kept.module.check(call)
    }

    /// The modules that are kept, in the order of their names.
    pub fn modules(&self) -> impl Iterator<Item = ModuleId> + '_ {
        self.modules.keys().copied()
    }

    /// The limits of calls.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }
}

//! A compiled module, ready for calls.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use thiserror::Error;
use wasmi::errors::ErrorKind;
use wasmi::{CompilationMode, Config, EnforcedLimits, ExternType, FuncType, Linker};

use super::binary::{self, Flaw};
use super::imports::{self, Missing, State};
use super::limits::{Limits, MAX_CALLS, MAX_LOCALS, MAX_STACK};
use super::signature::{CallMismatch, Signature};
use crate::call::{Call, Does, ModuleId, Stub};

/// A valid, compiled module. The host has its imports, or a call needs a [`Stub`](crate::Stub) for
/// them. Cloning is O(1).
///
/// It has its own interpreter, which is dropped with it: an interpreter keeps all code that it ever
/// compiled.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: ModuleId,
    engine: wasmi::Engine,
    module: wasmi::Module,
    linker: Linker<State>,
    missing: Vec<Missing>,
}

impl Module {
    /// Validates and compiles a module, in time that is bounded by the limit on its length.
    ///
    /// # Errors
    /// A module that is too long, invalid, or exceeds another limit; an import of `selvedge` that
    /// is not in [the table](super), or has another type; an import that is no function.
    pub fn compile(bytes: &[u8], limits: &Limits) -> Result<Self, ModuleError> {
        let (len, most) = (bytes.len(), limits.module);
        if u32::try_from(len).map_or(true, |it| it > most) {
            return Err(ModuleError::TooLong { len, most });
        }
        let prepared = binary::prepare(bytes).map_err(|flaw| match flaw {
            Flaw::Malformed => ModuleError::Invalid(String::from("its sections are malformed")),
            Flaw::Locals(locals) => ModuleError::Locals(locals),
        })?;
        let engine = wasmi::Engine::new(&config());
        // The interpreter translates while it validates, and its translator assumes that nothing
        // follows a function's end: it panics then.
        wasmi::Module::validate(&engine, &prepared).map_err(not_valid)?;
        let module = wasmi::Module::new(&engine, &*prepared).map_err(not_valid)?;
        let is_start = |it: Option<ExternType>| {
            let ty = it.as_ref().and_then(ExternType::func);
            ty.is_some_and(|it| it.params().is_empty() && it.results().is_empty())
        };
        if matches!(prepared, Cow::Owned(_)) && !is_start(module.get_export(binary::START)) {
            let what = "its start function has parameters or results";
            return Err(ModuleError::Invalid(String::from(what)));
        }
        let missing = imports::missing(&module)?;
        let linker = imports::linker(&engine, &missing).map_err(not_valid)?;
        let inner = Inner {
            id: ModuleId::of(bytes),
            engine,
            module,
            linker,
            missing,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> ModuleId {
        self.inner.id
    }

    /// Checks that a call can run: its export exists and takes these arguments, and the host has
    /// each import or the call a stub.
    ///
    /// # Errors
    /// The mismatch.
    pub fn check(&self, call: &Call) -> Result<(), CallMismatch> {
        self.signature(call).map(drop)
    }

    /// The names of its exported functions, in the order of the exports.
    pub fn functions(&self) -> impl Iterator<Item = String> + '_ {
        let exports = self.inner.module.exports();
        let functions = exports.filter(|it| it.ty().func().is_some());
        // The start function is not one of its exports.
        let names = functions.map(|it| it.name().to_string());
        names.filter(|it| it != binary::START)
    }

    /// The imports that the host does not have, in their order: module and name. A call needs a
    /// [`Stub`](crate::Stub) for each.
    pub fn missing(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        let missing = self.inner.missing.iter();
        missing.map(|it| (it.module.as_str(), it.name.as_str()))
    }

    pub(super) fn signature(&self, call: &Call) -> Result<Signature, CallMismatch> {
        if call.module() != self.id() {
            return Err(CallMismatch::OtherModule(self.id()));
        }
        Signature::of(self, call)
    }

    /// The effects of the call's stubs, in the order of the missing imports.
    pub(super) fn stubs(&self, call: &Call) -> Result<Vec<Does>, CallMismatch> {
        let is_of = |it: &Stub, path| (it.module.as_str(), it.name.as_str()) == path;
        let unused = call
            .stubs()
            .iter()
            .find(|stub| !self.missing().any(|it| is_of(stub, it)));
        if let Some(stub) = unused {
            return Err(CallMismatch::UnusedStub(stub.clone()));
        }
        let stubs = self.missing().map(|path| {
            let stub = call.stubs().iter().find(|it| is_of(it, path));
            let (module, name) = (path.0.to_string(), path.1.to_string());
            stub.map(|it| it.does)
                .ok_or(CallMismatch::Import { module, name })
        });
        stubs.collect()
    }

    /// The type of an exported function.
    pub(super) fn function(&self, name: &str) -> Option<FuncType> {
        self.inner.module.get_export(name)?.func().cloned()
    }

    /// The name of the memory that it exports.
    pub(super) fn memory(&self) -> Option<String> {
        let mut exports = self.inner.module.exports();
        let memory = exports.find(|it| it.ty().memory().is_some())?;
        Some(memory.name().to_string())
    }

    pub(super) fn imports_arguments(&self) -> bool {
        let mut imports = self.inner.module.imports();
        imports.any(|it| it.name().starts_with("argument_"))
    }

    pub(super) fn store(&self, state: State) -> wasmi::Store<State> {
        wasmi::Store::new(&self.inner.engine, state)
    }

    pub(super) fn instantiate(
        &self,
        store: &mut wasmi::Store<State>,
    ) -> Result<wasmi::Instance, wasmi::Error> {
        let linker = &self.inner.linker;
        linker.instantiate_and_start(store, &self.inner.module)
    }
}

/// The features that modules may use.
fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        // Code that is compiled at its first call would take fuel in one call, and none in the
        // next.
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(EnforcedLimits::strict())
        .ignore_custom_sections(true)
        .allow_start_fn(false)
        .set_max_recursion_depth(MAX_CALLS as usize)
        .set_max_stack_height(MAX_STACK as usize)
        .set_max_cached_stacks(1)
        // The interpreter evaluates nested constant expressions on the native stack.
        .wasm_extended_const(false)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    config
}

fn not_valid(error: wasmi::Error) -> ModuleError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all other kinds mean that it is invalid"
    )]
    match error.kind() {
        ErrorKind::UserLimits(limit) => ModuleError::TooMuch(limit.to_string()),
        _ => ModuleError::Invalid(error.to_string()),
    }
}

/// The reason why a module is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// It is too long.
    #[error(
        "the module has {len} bytes, the limit is {most}: shorten it, or raise `Limits::module`"
    )]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// [`Limits::module`].
        most: u32,
    },
    /// It is no valid module of WebAssembly 2.0 without vectors.
    #[error("the module is not valid: {0}")]
    Invalid(String),
    /// It has too many parts of one kind, or functions that are very short on average; or it
    /// imports more missing functions than a call may have stubs for.
    #[error("{0}: build it with optimization, or split it into several modules")]
    TooMuch(String),
    /// A function has too many local variables; their number.
    #[error(
        "a function has {0} local variables, the limit is {MAX_LOCALS}: build it with optimization"
    )]
    Locals(u64),
    /// It has an import that the host does not have and that cannot be a stub: of `selvedge`, or no
    /// function.
    #[error(
        "the module imports `{name}` of `{module}`, which the host does not have: see the table of imports"
    )]
    UnknownImport {
        /// The module part of the import.
        module: String,
        /// The name part of the import.
        name: String,
    },
    /// It imports a function with another type than the host's.
    #[error("the module imports `{name}` with another type: see the table of imports")]
    ImportType {
        /// The name of the import.
        name: String,
    },
}

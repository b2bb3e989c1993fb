//! Calling conventions of exports.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use thiserror::Error;
use wasmi::{FuncType, ValType};

use super::module::Module;
use super::outcome::Failure;
use crate::call::{Argument, Call, Does, ModuleId, Stub};

/// The calling convention of an export.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// True if arguments are parameters; otherwise the function reads them by imports.
    pub(super) has_parameters: bool,
    /// The place of bytes.
    pub(super) place: Place,
    /// True if a pointer in front of its parameters leads to its result.
    pub(super) is_behind_pointer: bool,
    /// The effects of stubs, in the order of the missing imports.
    pub(super) stubs: Vec<Does>,
}

/// The place of bytes in the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Allocated by this export, which takes a length.
    Allocated(&'static str),
    /// Allocated by this export, which takes a length and an alignment.
    Aligned(&'static str),
    /// Pages that are added at the end.
    Appended,
}

/// The export of wasm-bindgen that reserves room on the stack in memory, and returns its address.
pub(super) const STACK: &str = "__wbindgen_add_to_stack_pointer";
const ALLOCATORS: [&str; 2] = ["alloc", "malloc"];
const ALIGNED: &str = "__wbindgen_malloc";

impl Signature {
    pub(super) fn of(module: &Module, call: &Call) -> Result<Self, CallMismatch> {
        let stubs = module.stubs(call)?;
        let ty = module.function(call.export());
        let ty = ty.ok_or_else(|| CallMismatch::NoExport(call.export().to_string()))?;
        let results = ty.results();
        if results.len() > 1 || !results.iter().all(is_number) {
            return Err(CallMismatch::Results);
        }
        let mut signature = Self {
            has_parameters: !ty.params().is_empty(),
            place: place(module),
            is_behind_pointer: false,
            stubs,
        };
        if !signature.has_parameters {
            let are_read = call.arguments().is_empty() || module.imports_arguments();
            return match are_read {
                true => Ok(signature),
                false => Err(wrong(&ty)),
            };
        }
        if let [ValType::I32, rest @ ..] = ty.params()
            && results.is_empty()
            && takes(module, STACK, 1)
            && matches(rest, call.arguments())
        {
            signature.is_behind_pointer = true;
        } else if !matches(ty.params(), call.arguments()) {
            return Err(wrong(&ty));
        }
        let has_bytes = call.arguments().iter().any(is_bytes);
        let needs_memory = has_bytes || signature.is_behind_pointer;
        if needs_memory && module.memory().is_none() {
            return Err(CallMismatch::NoMemory);
        }
        Ok(signature)
    }
}

fn place(module: &Module) -> Place {
    let allocator = ALLOCATORS.into_iter().find(|it| takes(module, it, 1));
    match allocator {
        Some(name) => Place::Allocated(name),
        None if takes(module, ALIGNED, 2) => Place::Aligned(ALIGNED),
        None => Place::Appended,
    }
}

/// Returns true if an export takes this number of `i32` and returns one.
fn takes(module: &Module, name: &str, count: usize) -> bool {
    let is_i32 = |it: &ValType| *it == ValType::I32;
    module.function(name).is_some_and(|ty| {
        ty.params().len() == count
            && ty.params().iter().all(is_i32)
            && ty.results() == [ValType::I32]
    })
}

/// Returns true if the arguments match the parameters, with bytes as pointer and length.
fn matches(params: &[ValType], arguments: &[Argument]) -> bool {
    let wanted = arguments.iter().flat_map(|argument| {
        let types: &[ValType] = match argument {
            Argument::I32(_) => &[ValType::I32],
            Argument::I64(_) => &[ValType::I64],
            Argument::F32(_) => &[ValType::F32],
            Argument::F64(_) => &[ValType::F64],
            Argument::Bytes(_) => &[ValType::I32, ValType::I32],
        };
        types
    });
    params.iter().eq(wanted)
}

const fn is_number(ty: &ValType) -> bool {
    matches!(
        ty,
        ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64
    )
}

pub(super) const fn is_bytes(argument: &Argument) -> bool {
    matches!(argument, Argument::Bytes(_))
}

fn wrong(ty: &FuncType) -> CallMismatch {
    let mut parameters = String::new();
    for param in ty.params() {
        if !parameters.is_empty() {
            parameters.push_str(", ");
        }
        parameters.push_str(match param {
            ValType::I32 => "i32",
            ValType::I64 => "i64",
            ValType::F32 => "f32",
            ValType::F64 => "f64",
            ValType::V128 => "v128",
            ValType::FuncRef => "funcref",
            ValType::ExternRef => "externref",
        });
    }
    CallMismatch::Arguments { parameters }
}

impl CallMismatch {
    /// The failure of a run of such a call.
    pub(super) const fn failure(&self) -> Failure {
        match self {
            Self::OtherModule(_) | Self::NoModule(_) => Failure::NoModule,
            Self::NoExport(_) => Failure::NoExport,
            Self::Arguments { .. } | Self::Results | Self::NoMemory => Failure::WrongArguments,
            Self::Import { .. } | Self::UnusedStub(_) => Failure::NoImport,
        }
    }
}

/// The reason why a call cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallMismatch {
    /// It calls another module than this.
    #[error("the call is of another module than {0}")]
    OtherModule(ModuleId),
    /// The host does not have the module.
    #[error("the module {0} is not here: insert it")]
    NoModule(ModuleId),
    /// The module has no function of this name.
    #[error("the module exports no function `{0}`: `wasm-objdump -x` lists what it exports")]
    NoExport(String),
    /// The function takes other arguments.
    #[error(
        "the function takes ({parameters}), and other arguments are given: bytes are passed as two i32"
    )]
    Arguments {
        /// The types of its parameters.
        parameters: String,
    },
    /// The function returns several values, or a value that is no number.
    #[error(
        "the function does not return exactly one number: let it return one, or write its result"
    )]
    Results,
    /// There are bytes among the arguments, and the module exports no memory for them.
    #[error("the module exports no memory for arguments that are bytes")]
    NoMemory,
    /// An import of the module is missing, and the call has no stub for it.
    #[error(
        "the module imports `{name}` of `{module}`, which the host does not have: if it is never \
         called, give the call a stub `{module}.{name}`"
    )]
    Import {
        /// The module part of the import.
        module: String,
        /// The name part of the import.
        name: String,
    },
    /// The call has a stub for a function that the module does not import.
    #[error("the module has no missing import `{0}` of a function: leave that stub out")]
    UnusedStub(Stub),
}

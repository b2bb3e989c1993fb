//! The imports of modules.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use wasmi::errors::HostError;
use wasmi::{Caller, Engine, Error, FuncType, Linker, Memory, Val, ValType};

use super::meter::Meter;
use super::module::ModuleError;
use super::outcome::{Failure, Trap};
use crate::call::{Does, MAX_STUBS};

/// The name of the module that has the host's functions.
const NAME: &str = "selvedge";

/// The number of bytes copied for one unit of fuel, as the interpreter counts.
pub(super) const BYTES_A_FUEL: u64 = 64;

/// Each import, with the numbers of `i32` that it takes and returns.
const IMPORTS: [(&str, usize, usize); 5] = [
    ("argument_count", 0, 1),
    ("argument_len", 1, 1),
    ("argument_read", 2, 0),
    ("log", 2, 0),
    ("result_write", 2, 0),
];

/// The state of a call in a module.
#[derive(Debug)]
pub(super) struct State {
    pub(super) arguments: Vec<Vec<u8>>,
    /// The memory that the module exports.
    pub(super) memory: Option<Memory>,
    pub(super) result: Option<Vec<u8>>,
    pub(super) most_result: u16,
    pub(super) log: Vec<u8>,
    pub(super) most_log: u16,
    /// Fuel that was used beyond the slice's: it counts when the slice ends.
    pub(super) debt: u64,
    /// The stubs of missing imports, in their order.
    pub(super) stubs: Vec<Does>,
    pub(super) meter: Meter,
}

/// An error with which an import ends the call.
#[derive(Debug)]
pub(super) struct Ended(pub(super) Failure);

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl HostError for Ended {}

fn ended(failure: Failure) -> Error {
    Error::host(Ended(failure))
}

fn trapped(trap: Trap) -> Error {
    ended(Failure::Trapped(trap))
}

/// A function that a module imports and the host does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) module: String,
    pub(super) name: String,
    ty: FuncType,
}

/// The missing functions of a module, up to [`MAX_STUBS`]; refuses an import that cannot be a stub,
/// and more of them: no call could run the module. O(number of imports).
pub(super) fn missing(module: &wasmi::Module) -> Result<Vec<Missing>, ModuleError> {
    let mut missing: Vec<Missing> = Vec::new();
    for import in module.imports() {
        let (module, name) = (import.module().to_string(), import.name().to_string());
        let ty = import.ty().func().cloned();
        if import.module() == NAME {
            check(name, ty)?;
            continue;
        }
        let Some(ty) = ty else {
            return Err(ModuleError::UnknownImport { module, name });
        };
        let known = missing
            .iter()
            .find(|it| (&it.module, &it.name) == (&module, &name));
        match known {
            None if missing.len() == MAX_STUBS => {
                let what = format!(
                    "it imports more than {MAX_STUBS} functions that the host does not have"
                );
                return Err(ModuleError::TooMuch(what));
            }
            None => missing.push(Missing { module, name, ty }),
            Some(known) if known.ty == ty => {}
            Some(_) => return Err(ModuleError::ImportType { name }),
        }
    }
    Ok(missing)
}

/// Refuses a function that the host does not have, or that has another type.
fn check(name: String, ty: Option<FuncType>) -> Result<(), ModuleError> {
    let known = IMPORTS.into_iter().find(|it| it.0 == name);
    let Some((_, params, results)) = known else {
        let module = NAME.to_string();
        return Err(ModuleError::UnknownImport { module, name });
    };
    let is_i32 =
        |types: &[ValType], len| types.len() == len && types.iter().all(|it| *it == ValType::I32);
    let is_alike = |ty: FuncType| is_i32(ty.params(), params) && is_i32(ty.results(), results);
    match ty.is_some_and(is_alike) {
        true => Ok(()),
        false => Err(ModuleError::ImportType { name }),
    }
}

pub(super) fn linker(engine: &Engine, missing: &[Missing]) -> Result<Linker<State>, Error> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap(NAME, "argument_count", |it: Caller<'_, State>| {
            i32::try_from(it.data().arguments.len()).unwrap_or(i32::MAX)
        })?
        .func_wrap(NAME, "argument_len", argument_len)?
        .func_wrap(NAME, "argument_read", argument_read)?
        .func_wrap(NAME, "log", log)?
        .func_wrap(NAME, "result_write", result_write)?;
    for (nth, it) in missing.iter().enumerate() {
        let stub = move |caller: Caller<'_, State>, _: &[Val], results: &mut [Val]| {
            stub(&caller, nth, results)
        };
        linker.func_new(&it.module, &it.name, it.ty.clone(), stub)?;
    }
    Ok(linker)
}

/// Handles the call of a missing import.
fn stub(caller: &Caller<'_, State>, nth: usize, results: &mut [Val]) -> Result<(), Error> {
    match caller.data().stubs.get(nth) {
        Some(Does::ReturnsZero) => {
            for result in results {
                *result = Val::default_for_ty(result.ty());
            }
            Ok(())
        }
        Some(Does::Traps) | None => Err(trapped(Trap::Stub)),
    }
}

fn argument_len(caller: Caller<'_, State>, nth: u32) -> i32 {
    let argument = caller.data().arguments.get(nth as usize);
    argument.map_or(-1, |it| i32::try_from(it.len()).unwrap_or(i32::MAX))
}

fn argument_read(mut caller: Caller<'_, State>, nth: u32, at: u32) -> Result<(), Error> {
    let memory = memory(&caller)?;
    let (bytes, state) = memory.data_and_store_mut(&mut caller);
    let argument = state.arguments.get(nth as usize);
    let argument = argument.ok_or_else(|| trapped(Trap::NoArgument))?;
    let from = at as usize;
    let room = from
        .checked_add(argument.len())
        .and_then(|end| bytes.get_mut(from..end));
    room.ok_or_else(|| trapped(Trap::MemoryOutOfBounds))?
        .copy_from_slice(argument);
    let len = argument.len();
    charge(&mut caller, len)
}

fn result_write(mut caller: Caller<'_, State>, at: u32, len: u32) -> Result<(), Error> {
    let most = caller.data().most_result;
    if len > u32::from(most) {
        return Err(ended(Failure::ResultTooLong));
    }
    let bytes = read(&caller, at, len)?.to_vec();
    caller.data_mut().result = Some(bytes);
    charge(&mut caller, len as usize)
}

fn log(mut caller: Caller<'_, State>, at: u32, len: u32) -> Result<(), Error> {
    let memory = memory(&caller)?;
    let (bytes, state) = memory.data_and_store_mut(&mut caller);
    let text = part(bytes, at, len)?;
    let room = usize::from(state.most_log).saturating_sub(state.log.len());
    let text = text.get(..room).unwrap_or(text);
    let len = text.len();
    state.log.extend(text);
    charge(&mut caller, len)
}

fn memory(caller: &Caller<'_, State>) -> Result<Memory, Error> {
    caller.data().memory.ok_or_else(|| trapped(Trap::NoMemory))
}

fn read<'a>(caller: &'a Caller<'_, State>, at: u32, len: u32) -> Result<&'a [u8], Error> {
    part(memory(caller)?.data(caller), at, len)
}

fn part(bytes: &[u8], at: u32, len: u32) -> Result<&[u8], Error> {
    let (from, len) = (at as usize, len as usize);
    let part = from.checked_add(len).and_then(|end| bytes.get(from..end));
    part.ok_or_else(|| trapped(Trap::MemoryOutOfBounds))
}

/// Takes fuel for copying this number of bytes.
fn charge(caller: &mut Caller<'_, State>, bytes: usize) -> Result<(), Error> {
    let costs = bytes as u64 / BYTES_A_FUEL;
    let fuel = caller.get_fuel()?;
    // An import cannot be interrupted. It finishes, and the next instruction finds no fuel.
    caller.data_mut().debt += costs.saturating_sub(fuel);
    caller.set_fuel(fuel.saturating_sub(costs))
}

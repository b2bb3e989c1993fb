//! The machine of a run: a module's instance, and the calls in it one after another.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use wasmi::errors::{ErrorKind, InstantiationError, MemoryError, TableError};
use wasmi::{
    F32, F64, Instance, Memory, ResumableCall, ResumableCallOutOfFuel, Store, TrapCode, Val,
};

use super::binary;
use super::imports::{BYTES_A_FUEL, Ended, State};
use super::limits::Limits;
use super::meter::Meter;
use super::module::Module;
use super::outcome::{Failure, Outcome, Trap};
use super::signature::{self, Place, STACK, Signature};
use crate::call::{Argument, Call};

/// The export that is called first, if the module has it.
const INITIALIZE: &str = "_initialize";

/// The number of bytes of a module's memory for the pointer and the length of a result.
const RESULT_ROOM: i32 = 16;

/// The alignment of arguments in added pages.
const ALIGNMENT: u64 = 16;

const PAGE: u64 = 65_536;

#[derive(Debug)]
pub(super) struct Machine {
    module: Module,
    call: Call,
    signature: Signature,
    most_fuel: u64,
    store: Store<State>,
    instance: Option<Instance>,
    stage: Stage,
    /// The address of the pointer to the result, if one is used.
    pointer: u32,
    /// The inputs of the export, as far as they are known.
    inputs: Vec<Val>,
    /// The outputs of the last call in the module.
    outputs: Vec<Val>,
    paused: Option<ResumableCallOutOfFuel>,
    /// The fuel that it needs to make any progress.
    needs: u64,
    /// The fuel that it has taken.
    took: u64,
}

/// The last completed step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Start,
    Initialize,
    /// Room was requested for the pointer to the result.
    Room,
    /// This number of arguments are inputs now.
    Placed(usize),
    /// Room was requested for this argument.
    Allocated(usize),
    Export,
}

/// The next step.
enum Next {
    /// Call this export of the module with these values.
    Call(&'static str, Vec<Val>),
    /// Call the requested export.
    Wanted(Vec<Val>),
    /// End: this is the result.
    Over(Vec<u8>),
}

impl Machine {
    pub(super) fn new(module: &Module, call: &Call, limits: &Limits) -> Result<Self, Failure> {
        let signature = module.signature(call).map_err(|it| it.failure())?;
        let state = State {
            arguments: call.arguments().iter().map(Argument::to_bytes).collect(),
            memory: None,
            result: None,
            most_result: limits.result,
            log: Vec::new(),
            most_log: limits.log,
            debt: 0,
            stubs: signature.stubs.clone(),
            meter: Meter::new(limits.memory),
        };
        let mut store = module.store(state);
        store.limiter(|state| &mut state.meter);
        Ok(Self {
            module: module.clone(),
            call: call.clone(),
            signature,
            most_fuel: limits.fuel,
            store,
            instance: None,
            stage: Stage::Nothing,
            pointer: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            paused: None,
            needs: 0,
            took: 0,
        })
    }

    /// Runs for this much fuel, or to the end.
    pub(super) fn step(&mut self, fuel: u64) -> Result<Option<Vec<u8>>, Failure> {
        let until = self.took.saturating_add(fuel.max(self.needs));
        loop {
            if let Some(paused) = self.paused.take() {
                let given = self.give(until)?;
                let resumed = paused.resume(&mut self.store, &mut self.outputs);
                if !self.look_at(given, resumed)? {
                    return Ok(None);
                }
            }
            let (name, inputs) = match self.next()? {
                Next::Over(value) => return Ok(Some(value)),
                Next::Call(name, inputs) => (name, inputs),
                Next::Wanted(inputs) => (self.call.export(), inputs),
            };
            let func = self.instance.and_then(|it| it.get_func(&self.store, name));
            let func = func.ok_or(Failure::NoExport)?;
            let results = func.ty(&self.store).results().len();
            self.outputs.clear();
            self.outputs.resize(results, Val::I32(0));
            let given = self.give(until)?;
            let called = func.call_resumable(&mut self.store, &inputs, &mut self.outputs);
            if !self.look_at(given, called)? {
                return Ok(None);
            }
        }
    }

    /// Gives the interpreter the rest of the slice, and of all fuel.
    fn give(&mut self, until: u64) -> Result<u64, Failure> {
        let given = until.min(self.most_fuel).saturating_sub(self.took);
        self.store.set_fuel(given).map_err(|_| Failure::OutOfFuel)?;
        Ok(given)
    }

    /// Counts the fuel that was used of the given fuel. After the limit on all fuel, no other
    /// outcome counts: so the outcome does not depend on the ends of slices.
    fn take(&mut self, given: u64) -> Result<(), Failure> {
        let left = self.store.get_fuel().map_err(|_| Failure::OutOfFuel)?;
        let debt = mem::take(&mut self.store.data_mut().debt);
        self.spend(given.saturating_sub(left).saturating_add(debt))
    }

    const fn spend(&mut self, fuel: u64) -> Result<(), Failure> {
        self.took = self.took.saturating_add(fuel);
        match self.took > self.most_fuel {
            true => Err(Failure::OutOfFuel),
            false => Ok(()),
        }
    }

    /// Returns true if the call with this fuel has returned; otherwise it is paused.
    fn look_at(
        &mut self,
        given: u64,
        called: Result<ResumableCall, wasmi::Error>,
    ) -> Result<bool, Failure> {
        self.take(given)?;
        match called {
            Ok(ResumableCall::Finished) => {
                self.needs = 0;
                Ok(true)
            }
            Ok(ResumableCall::OutOfFuel(paused)) => {
                self.needs = paused.required_fuel();
                if self.needs > self.most_fuel.saturating_sub(self.took) {
                    return Err(Failure::OutOfFuel);
                }
                self.paused = Some(paused);
                Ok(false)
            }
            Ok(ResumableCall::HostTrap(trap)) => Err(self.failure(trap.host_error())),
            Err(error) => Err(self.failure(&error)),
        }
    }

    fn next(&mut self) -> Result<Next, Failure> {
        loop {
            match self.stage {
                Stage::Nothing => {
                    self.instantiate()?;
                    self.stage = Stage::Start;
                    if self.is_procedure(binary::START) {
                        return Ok(Next::Call(binary::START, Vec::new()));
                    }
                }
                Stage::Start => {
                    self.stage = Stage::Initialize;
                    if self.is_procedure(INITIALIZE) {
                        return Ok(Next::Call(INITIALIZE, Vec::new()));
                    }
                }
                Stage::Initialize if self.signature.is_behind_pointer => {
                    self.stage = Stage::Room;
                    return Ok(Next::Call(STACK, Vec::from([Val::I32(-RESULT_ROOM)])));
                }
                Stage::Initialize => self.stage = Stage::Placed(0),
                Stage::Room => {
                    self.pointer = self.returned().cast_unsigned();
                    self.inputs.push(Val::I32(self.returned()));
                    self.stage = Stage::Placed(0);
                }
                Stage::Placed(count) => {
                    if let Some(next) = self.place(count)? {
                        return Ok(next);
                    }
                }
                Stage::Allocated(nth) => {
                    self.write(nth, self.returned().cast_unsigned())?;
                    self.stage = Stage::Placed(nth + 1);
                }
                Stage::Export => return self.result().map(Next::Over),
            }
        }
    }

    fn instantiate(&mut self) -> Result<(), Failure> {
        let given = self.give(u64::MAX)?;
        let instance = self.module.instantiate(&mut self.store);
        self.take(given)?;
        let instance = instance.map_err(|error| self.failure(&error))?;
        let memory = self.module.memory();
        let memory = memory.and_then(|it| instance.get_memory(&self.store, &it));
        self.instance = Some(instance);
        let state = self.store.data_mut();
        state.memory = memory;
        state.meter.set_up();
        let bytes = state.meter.bytes();
        self.spend(bytes / BYTES_A_FUEL)
    }

    /// Returns true if the module exports a function of this name without parameters and results.
    fn is_procedure(&self, name: &str) -> bool {
        let ty = self.module.function(name);
        ty.is_some_and(|it| it.params().is_empty() && it.results().is_empty())
    }

    /// Makes the next argument an input, requests room for it, or calls the function.
    fn place(&mut self, count: usize) -> Result<Option<Next>, Failure> {
        let argument = match self.signature.has_parameters {
            true => self.call.arguments().get(count),
            false => None,
        };
        let Some(argument) = argument else {
            self.stage = Stage::Export;
            return Ok(Some(Next::Wanted(mem::take(&mut self.inputs))));
        };
        let input = match argument {
            Argument::I32(number) => Val::I32(*number),
            Argument::I64(number) => Val::I64(*number),
            Argument::F32(number) => Val::F32(F32::from_bits(number.to_bits())),
            Argument::F64(number) => Val::F64(F64::from_bits(number.to_bits())),
            Argument::Bytes(bytes) => {
                let len = i32::try_from(bytes.len()).map_err(|_| Failure::OutOfMemory)?;
                self.stage = Stage::Allocated(count);
                return match self.signature.place {
                    Place::Allocated(name) => Ok(Some(Next::Call(name, [Val::I32(len)].into()))),
                    Place::Aligned(name) => {
                        let inputs = Vec::from([Val::I32(len), Val::I32(1)]);
                        Ok(Some(Next::Call(name, inputs)))
                    }
                    Place::Appended => self.append(count).map(|()| None),
                };
            }
        };
        self.inputs.push(input);
        self.stage = Stage::Placed(count + 1);
        Ok(None)
    }

    /// Adds pages for all arguments at the first one that is bytes; finds room behind the last one
    /// at others.
    fn append(&mut self, nth: usize) -> Result<(), Failure> {
        let memory = self.memory()?;
        let bytes = |it: &Argument| match it {
            Argument::Bytes(bytes) => (bytes.len() as u64).next_multiple_of(ALIGNMENT),
            Argument::I32(_) | Argument::I64(_) | Argument::F32(_) | Argument::F64(_) => 0,
        };
        let all = self.call.arguments();
        let is_first = !all.iter().take(nth).any(signature::is_bytes);
        let before: u64 = all.iter().take(nth).map(bytes).sum();
        let needed: u64 = all.iter().map(bytes).sum();
        let pages = needed.div_ceil(PAGE);
        if is_first && pages > 0 {
            self.spend(pages * PAGE / BYTES_A_FUEL)?;
            let grown = memory.grow(&mut self.store, pages);
            grown.map_err(|_| match self.store.data().meter.is_short {
                true => Failure::Host,
                false => Failure::OutOfMemory,
            })?;
        }
        // No code of the module has run since then, so the pages are the last ones.
        let first = memory.size(&self.store).saturating_sub(pages) * PAGE;
        let at = u32::try_from(first + before).map_err(|_| Failure::OutOfMemory)?;
        self.outputs = Vec::from([Val::I32(at.cast_signed())]);
        Ok(())
    }

    /// Writes an argument of bytes into the module's memory.
    fn write(&mut self, nth: usize, at: u32) -> Result<(), Failure> {
        let memory = self.memory()?;
        let len = {
            let (room, state) = memory.data_and_store_mut(&mut self.store);
            let bytes = state.arguments.get(nth).map_or(&[][..], |it| it);
            let from = at as usize;
            let room = from
                .checked_add(bytes.len())
                .and_then(|end| room.get_mut(from..end));
            let room = room.ok_or(Failure::Trapped(Trap::MemoryOutOfBounds))?;
            room.copy_from_slice(bytes);
            bytes.len()
        };
        // An allocator without room returns null.
        if at == 0 && len > 0 && self.signature.place != Place::Appended {
            return Err(Failure::OutOfMemory);
        }
        self.inputs.push(Val::I32(at.cast_signed()));
        self.inputs.push(Val::I32(
            i32::try_from(len).map_err(|_| Failure::OutOfMemory)?,
        ));
        self.spend(len as u64 / BYTES_A_FUEL)
    }

    /// The result of the function: the bytes that it wrote, its number, or the bytes behind the
    /// pointer.
    fn result(&mut self) -> Result<Vec<u8>, Failure> {
        if let Some(written) = self.store.data_mut().result.take() {
            return Ok(written);
        }
        if self.signature.is_behind_pointer {
            return self.result_behind_pointer();
        }
        let number = match self.outputs.first() {
            Some(Val::I32(number)) => Argument::I32(*number),
            Some(Val::I64(number)) => Argument::I64(*number),
            Some(Val::F32(number)) => Argument::F32(f32::from_bits(number.to_bits())),
            Some(Val::F64(number)) => Argument::F64(f64::from_bits(number.to_bits())),
            _ => return Ok(Vec::new()),
        };
        let text = number.to_string().into_bytes();
        match text.len() <= usize::from(self.store.data().most_result) {
            true => Ok(text),
            false => Err(Failure::ResultTooLong),
        }
    }

    fn result_behind_pointer(&self) -> Result<Vec<u8>, Failure> {
        let bytes = self.memory()?.data(&self.store);
        let out_of_bounds = Failure::Trapped(Trap::MemoryOutOfBounds);
        let number = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_le_bytes(*bytes) as usize)
        };
        let at = self.pointer as usize;
        let (from, len) = number(at)
            .zip(number(at.saturating_add(4)))
            .ok_or(out_of_bounds)?;
        if len > usize::from(self.store.data().most_result) {
            return Err(Failure::ResultTooLong);
        }
        let value = from.checked_add(len).and_then(|end| bytes.get(from..end));
        value.map(<[u8]>::to_vec).ok_or(out_of_bounds)
    }

    /// The first `i32` that the last call in the module returned.
    fn returned(&self) -> i32 {
        self.outputs.first().and_then(Val::i32).unwrap_or_default()
    }

    fn memory(&self) -> Result<Memory, Failure> {
        let memory = self.store.data().memory;
        memory.ok_or(Failure::Trapped(Trap::NoMemory))
    }

    fn failure(&self, error: &wasmi::Error) -> Failure {
        let meter = &self.store.data().meter;
        if meter.is_short {
            return Failure::Host;
        }
        if meter.is_exceeded {
            return Failure::OutOfMemory;
        }
        if let Some(Ended(failure)) = error.downcast_ref() {
            return *failure;
        }
        if let ErrorKind::Instantiation(InstantiationError::ElementSegmentDoesNotFit { .. }) =
            error.kind()
        {
            return Failure::Trapped(Trap::TableOutOfBounds);
        }
        match (error.as_trap_code(), error.kind()) {
            (Some(code), _) => failure_of(code),
            // More than a host of 32 bits can address. A host of 64 bits reports that it is beyond
            // the limit.
            (
                None,
                ErrorKind::Memory(
                    MemoryError::MinimumSizeOverflow | MemoryError::MaximumSizeOverflow,
                )
                | ErrorKind::Table(TableError::MinimumSizeOverflow | TableError::MaximumSizeOverflow),
            ) => Failure::OutOfMemory,
            _ => Failure::Host,
        }
    }

    pub(super) const fn fuel(&self) -> u64 {
        self.took
    }

    /// The fuel that counts as taken with this outcome.
    pub(super) const fn fuel_for(&self, outcome: &Outcome) -> u64 {
        match outcome {
            Outcome::Failed(Failure::OutOfFuel) => self.most_fuel,
            Outcome::Value(_) | Outcome::Failed(_) => self.took,
        }
    }

    pub(super) fn take_log(&mut self) -> Vec<u8> {
        mem::take(&mut self.store.data_mut().log)
    }
}

const fn failure_of(code: TrapCode) -> Failure {
    Failure::Trapped(match code {
        TrapCode::UnreachableCodeReached => Trap::Unreachable,
        TrapCode::MemoryOutOfBounds => Trap::MemoryOutOfBounds,
        TrapCode::TableOutOfBounds => Trap::TableOutOfBounds,
        TrapCode::IndirectCallToNull => Trap::NullCall,
        TrapCode::BadSignature => Trap::BadSignature,
        TrapCode::IntegerDivisionByZero => Trap::DivisionByZero,
        TrapCode::IntegerOverflow => Trap::Overflow,
        TrapCode::BadConversionToInteger => Trap::NotANumber,
        TrapCode::StackOverflow => Trap::StackOverflow,
        TrapCode::OutOfFuel => return Failure::OutOfFuel,
        TrapCode::GrowthOperationLimited => return Failure::OutOfMemory,
        TrapCode::OutOfSystemMemory => return Failure::Host,
    })
}

#[cfg(test)]
mod tests {
    use wasmi::ResourceLimiter as _;

    use super::*;

    /// A module that grows its memory by a page; its result is the return value of that.
    const GROWS: &str = r#"(module (memory 0)
        (func (export "f") (result i32) (memory.grow (i32.const 1))))"#;

    #[test]
    fn what_the_host_has_not_is_its_own_failure() {
        let bytes = wat::parse_str(GROWS).unwrap();
        let limits = Limits::new();
        let module = Module::compile(&bytes, &limits).unwrap();
        let call = Call::new(module.id(), "f", []).unwrap();
        let mut machine = Machine::new(&module, &call, &limits).unwrap();
        let short = wasmi::Error::from(MemoryError::OutOfSystemMemory);
        assert_eq!(machine.failure(&short), Failure::Host);
        let large = wasmi::Error::from(MemoryError::MinimumSizeOverflow);
        assert_eq!(machine.failure(&large), Failure::OutOfMemory);
        assert_eq!(failure_of(TrapCode::OutOfSystemMemory), Failure::Host);
        // The interpreter does the same if the host denies memory within the limit.
        let meter = &mut machine.store.data_mut().meter;
        let notified = meter.memory_grow_failed(&MemoryError::OutOfSystemMemory);
        assert!(notified.is_err());
        let denied = wasmi::Error::from(TrapCode::GrowthOperationLimited);
        assert_eq!(machine.failure(&denied), Failure::Host);
    }
}

//! The function of demonstrations and measurements: the greatest common divisor of two numbers.

use selvedge_core::Span;
use selvedge_faas::client::{Client, Notified};
use selvedge_faas::{Argument, Call, CallError, ModuleId};
use selvedge_pcm::Function;

use super::Failure;

const MODULE: &[u8] = include_bytes!("../../functions/gcd.wasm");

/// The function of a task: another call each time, so no answer comes from a cache.
pub(crate) fn function(token: u64) -> Result<Function, CallError> {
    let token = i64::try_from(token).unwrap_or_default();
    let arguments = [12 * token, 18 * token].map(Argument::I64);
    Call::new(ModuleId::of(MODULE), "gcd", arguments)?.to_function()
}

/// The right result of the call.
pub(crate) fn right(token: u64) -> String {
    format!("{}i64", 6 * token)
}

/// Stores the module at the gateways. Returns the number of gateways that keep it.
pub(crate) fn put(client: &Client) -> Result<u16, Failure> {
    client.put(MODULE.to_vec());
    match client.wait(Span::secs(30)) {
        Some(Notified::Kept { by, .. }) => Ok(by),
        Some(_) | None => Err(Failure::NotKept),
    }
}

//! Operations on a small home with a hub that restarts, beside an oracle that tries all orders.

use selvedge_safehome::check::operations::run_under;
use selvedge_safehome::{Config, Hub, Saved};

/// Takes the input for a list of operations (routines, cancels, outcomes, silence, failures,
/// changes by hand, restarts of the hub, time) and panics when a promise of order, of atomicity or
/// of the saved state is broken. The same bytes are also read as a saved state.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn home_operations(data: &[u8]) {
    if let Err(broken) = run_under(data, &[], stored) {
        panic!("{broken}");
    }
    if let Ok(saved) = postcard::from_bytes::<Saved<u8>>(data)
        && let Ok(hub) = Hub::restore(Config::default(), saved)
        && let Err(broken) = hub.check()
    {
        panic!("{broken}");
    }
}

/// Writes a saved state with postcard, and reads it again.
fn stored(saved: Saved<u8>) -> Result<Saved<u8>, String> {
    let bytes = postcard::to_allocvec(&saved).map_err(|error| error.to_string())?;
    postcard::from_bytes(&bytes).map_err(|error| error.to_string())
}

//! A page for a browser that shows what gateways say of themselves, as it changes.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page: one file, which loads nothing else |
//! | `GET /api/status` | a [`View`](crate::view::View) in JSON |
//! | `GET /api/events` | the same twice a second, as server-sent events |
//!
//! It can be read and not written. [`selvedge_door`] says how many connections it serves, and for how long. A
//! listener that is behind misses what is outdated.

mod answer;
#[cfg(test)]
mod tests;

use core::net::SocketAddr;
use core::time::Duration;
use std::time::Instant;
use std::{io, thread};

use selvedge_core::NodeId;
use selvedge_door::{Door, DoorError, Json, NoChance};
pub use selvedge_door::{Token, TokenError};
use thiserror::Error;
use tokio::sync::watch;

pub(crate) use self::answer::{page, router};
use crate::find::Gateways;
use crate::link::{Access, Address};
use crate::view::Seen;
use crate::watch::Watch;

/// How often listeners are told.
const EVERY: Duration = Duration::from_millis(500);

/// At which address the page is served, and what its readers have to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What a reader has to know. Without one, it listens at loopback addresses alone.
    pub token: Option<Token>,
}

/// Why there is no page.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PageError {
    /// It would be there for all, or does not listen.
    #[error("{0} (--page, --page-token)")]
    Door(#[from] DoorError),
    /// There is no chance.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// A thread does not start.
    #[error("cannot start a thread for the page: {0}: see how many this process may have")]
    Thread(io::Error),
}

/// Serves the page until the process ends.
pub(crate) fn start(
    options: &Options,
    gateways: Gateways,
    access: &Access,
    me: NodeId,
    (here, own): (Address, Access),
) -> Result<(), PageError> {
    let door = Door::new(options.listen, options.token.clone())?;
    let seen = Seen::default();
    let (tell, told) = watch::channel(json(&seen, &gateways));
    let page = answer::page()?;
    let router = answer::router(told, page.clone());
    let links = gateways.all().map(|(id, address)| match *id == me {
        true => (me, here.clone(), own.clone()),
        false => (*id, address.clone(), access.clone()),
    });
    let look_on = Watch::open(links, me).map_err(PageError::Thread)?;
    door.open("page", router, &page)?;
    thread::Builder::new()
        .name("page-look".into())
        .spawn(move || look(&look_on, seen, &gateways, &tell))
        .map_err(PageError::Thread)?;
    Ok(())
}

/// Puts together what gateways say, and tells it now and then.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn look(on: &Watch, mut seen: Seen, gateways: &Gateways, tell: &watch::Sender<Json>) {
    let mut next = Instant::now();
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        if let Some((from, status)) = on.wait(wait.into()) {
            seen.see(from, status, Instant::now());
        }
        if Instant::now() >= next {
            next = Instant::now() + EVERY;
            tell.send_replace(json(&seen, gateways));
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn json(seen: &Seen, gateways: &Gateways) -> Json {
    let view = seen.view(gateways.ids(), Instant::now());
    // There is no map in it whose keys are no texts, which is all that could go wrong.
    serde_json::to_string(&view).unwrap_or_default().into()
}

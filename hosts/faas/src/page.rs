//! A page for a browser that shows the statuses of gateways, live.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page: one file, which loads nothing else |
//! | `GET /api/status` | a [`View`](crate::view::View) in JSON |
//! | `GET /api/events` | the same twice a second, as server-sent events |
//!
//! It is read-only. [`selvedge_http`] defines the limits on connections. A listener that is too
//! slow misses outdated views.

mod answer;
#[cfg(test)]
mod tests;

use core::net::SocketAddr;
use core::time::Duration;
use std::time::Instant;
use std::{io, thread};

use selvedge_core::NodeId;
use selvedge_http::{Json, NoChance, Server, ServerError};
pub use selvedge_http::{Token, TokenError};
use thiserror::Error;
use tokio::sync::watch;

pub(crate) use self::answer::{page, router};
use crate::find::Gateways;
use crate::link::{Access, Address};
use crate::view::Seen;
use crate::watch::Watch;

/// The interval at which listeners are notified.
const EVERY: Duration = Duration::from_millis(500);

/// The address of the page, and the token of its readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The address at which it listens.
    pub listen: SocketAddr,
    /// The token that readers need. Without one, it listens at loopback addresses only.
    pub token: Option<Token>,
}

/// An error that prevents the page from starting.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PageError {
    /// It would be open to everyone, or cannot listen.
    #[error("{0} (--page, --page-token)")]
    Server(#[from] ServerError),
    /// The system gives no random numbers.
    #[error(transparent)]
    Chance(#[from] NoChance),
    /// A thread does not start.
    #[error("cannot start a thread for the page: {0}: check the limit on threads")]
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
    let server = Server::new(options.listen, options.token.clone())?;
    let seen = Seen::default();
    let (notify, notified) = watch::channel(json(&seen, &gateways));
    let page = answer::page()?;
    let router = answer::router(notified, page.clone());
    let links = gateways.all().map(|(id, address)| match *id == me {
        true => (me, here.clone(), own.clone()),
        false => (*id, address.clone(), access.clone()),
    });
    let look_on = Watch::open(links, me).map_err(PageError::Thread)?;
    server.open("page", router, &page)?;
    thread::Builder::new()
        .name("page-look".into())
        .spawn(move || look(&look_on, seen, &gateways, &notify))
        .map_err(PageError::Thread)?;
    Ok(())
}

/// Collects the statuses of gateways, and publishes the view periodically.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn look(on: &Watch, mut seen: Seen, gateways: &Gateways, notify: &watch::Sender<Json>) {
    let mut next = Instant::now();
    loop {
        let wait = next.saturating_duration_since(Instant::now());
        if let Some((from, status)) = on.wait(wait.into()) {
            seen.see(from, status, Instant::now());
        }
        if Instant::now() >= next {
            next = Instant::now() + EVERY;
            notify.send_replace(json(&seen, gateways));
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn json(seen: &Seen, gateways: &Gateways) -> Json {
    let view = seen.view(gateways.ids(), Instant::now());
    // Only a map with keys that are no strings could fail, and the view has no such map.
    serde_json::to_string(&view).unwrap_or_default().into()
}

//! A broker inside of a process.

use core::net::{Ipv4Addr, SocketAddr};
use std::collections::HashMap;
use std::net::TcpListener;
use std::{io, thread};

use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};

use crate::access::{Access, Address};
use crate::front::Front;
#[cfg(feature = "tls")]
use crate::tls::Identity;
use crate::users::Users;

/// The largest number of connections at a time.
const CONNECTIONS: usize = 4_096;
/// The bytes that a topic keeps for clients that are away, in each of two segments: then the oldest messages
/// are dropped.
const SEGMENT: usize = 64 * 1024;
const SEGMENTS: usize = 2;

/// Settings of a broker.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The address at which it listens.
    pub listen: SocketAddr,
    /// The credentials of its own process. A name in them is known to the broker.
    pub access: &'a Access,
    /// The other users. Without them, only clients with the name of its own process may connect; without a
    /// name, all may.
    pub users: Option<&'a Users>,
    /// The broker's certificate; without it, the broker has no TLS.
    #[cfg(feature = "tls")]
    pub identity: Option<&'a Identity>,
    /// The longest packet, in bytes.
    pub packet_max: usize,
    /// True if it keeps messages for a client that is away and has asked for that.
    pub keeps_sessions: bool,
}

/// Starts a broker, until the process ends. It keeps everything in memory.
///
/// Returns the broker's address for this process, if that is another one: there it is not encrypted.
///
/// # Errors
/// If it cannot listen at the address.
pub fn start(settings: Settings<'_>) -> io::Result<Option<Address>> {
    let Settings { listen, .. } = settings;
    #[cfg(feature = "tls")]
    let is_behind = settings.identity.is_some() || !settings.keeps_sessions;
    #[cfg(not(feature = "tls"))]
    let is_behind = !settings.keeps_sessions;
    if !is_behind {
        run(listen, settings)?;
        return Ok(None);
    }
    let inside = a_free_port()?;
    run(inside, settings)?;
    let front = Front {
        inside,
        #[cfg(feature = "tls")]
        acceptor: settings.identity.map(Identity::acceptor),
        keeps_sessions: settings.keeps_sessions,
    };
    front.open(listen)?;
    Ok(Some(Address {
        host: inside.ip().to_string(),
        port: inside.port(),
    }))
}

/// A free port of loopback. Another process may take it meanwhile; then the broker does not start.
fn a_free_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The passwords by name; `None` if all clients may connect.
fn known(settings: Settings<'_>) -> Option<HashMap<String, String>> {
    let Settings { access, users, .. } = settings;
    let own = access.user.clone();
    let own = own.map(|user| (user, access.password.clone()));
    let others = users.iter().flat_map(|it| it.all());
    let others = others.map(|it| (it.0.into(), it.1.into()));
    let asks = own.is_some() || users.is_some();
    asks.then(|| others.chain(own).collect())
}

fn run(listen: SocketAddr, settings: Settings<'_>) -> io::Result<()> {
    // The broker does not report that it could not listen.
    drop(TcpListener::bind(listen)?);
    let server = ServerSettings {
        name: "broker".into(),
        listen,
        tls: None,
        next_connection_delay_ms: 0,
        connections: ConnectionSettings {
            connection_timeout_ms: 5_000,
            max_payload_size: settings.packet_max,
            max_inflight_count: 100,
            auth: known(settings),
            external_auth: None,
            // Without it a message for an unknown node ends its sender's connection.
            dynamic_filters: true,
        },
    };
    let config = Config {
        router: RouterConfig {
            max_connections: CONNECTIONS,
            max_outgoing_packet_count: 200,
            max_segment_size: SEGMENT,
            max_segment_count: SEGMENTS,
            ..RouterConfig::default()
        },
        v4: Some(HashMap::from([("broker".into(), server)])),
        ..Config::default()
    };
    let mut broker = Broker::new(config);
    thread::Builder::new()
        .name("broker".into())
        // The process's own link notices a broker that stops.
        .spawn(move || broker.start().ok())?;
    #[cfg(target_os = "linux")]
    crate::nodelay::set(listen);
    Ok(())
}

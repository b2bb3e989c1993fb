//! The broker inside of a gateway.

#[cfg(feature = "tls")]
use core::net::Ipv4Addr;
use core::net::SocketAddr;
use std::collections::HashMap;
use std::net::TcpListener;
use std::{io, thread};

use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};

use crate::gateway::Options;
use crate::link::{Address, PACKET_MAX};

/// How many connections there may be at a time.
const CONNECTIONS: usize = 4_096;
/// A topic keeps so many bytes for those that are away, and as much again: then the oldest go.
const SEGMENT: usize = 64 * 1024;
const SEGMENTS: usize = 2;

/// Starts a broker that listens here, until the process ends. It keeps everything in memory.
///
/// Returns where it is for this process, if that is elsewhere.
///
/// # Errors
/// If it cannot listen there.
pub(crate) fn start(options: &Options, listen: SocketAddr) -> io::Result<Option<Address>> {
    #[cfg(feature = "tls")]
    if let Some(identity) = &options.identity {
        let inside = a_free_port()?;
        run(inside, known(options))?;
        crate::tls::open_door(listen, inside, identity)?;
        return Ok(Some(Address {
            host: inside.ip().to_string(),
            port: inside.port(),
        }));
    }
    run(listen, known(options))?;
    Ok(None)
}

/// A port for this process alone. Somebody else may take it meanwhile; then the broker does not start.
#[cfg(feature = "tls")]
fn a_free_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Names with their passwords; nothing where all may come.
fn known(options: &Options) -> Option<HashMap<String, String>> {
    let own = options.access.user.clone();
    let own = own.map(|user| (user, options.access.password.clone()));
    let others = options.users.iter().flat_map(|it| it.all());
    let others = others.map(|it| (it.0.into(), it.1.into()));
    let asks = own.is_some() || options.users.is_some();
    asks.then(|| others.chain(own).collect())
}

fn run(listen: SocketAddr, auth: Option<HashMap<String, String>>) -> io::Result<()> {
    // The broker tells nobody that it could not listen.
    drop(TcpListener::bind(listen)?);
    let server = ServerSettings {
        name: "broker".into(),
        listen,
        tls: None,
        next_connection_delay_ms: 0,
        connections: ConnectionSettings {
            connection_timeout_ms: 5_000,
            max_payload_size: PACKET_MAX,
            max_inflight_count: 100,
            auth,
            external_auth: None,
            // Without it a message for a node that never was here ends its sender's connection.
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
        // A broker that stops is missed by the gateway's own link.
        .spawn(move || broker.start().ok())?;
    #[cfg(target_os = "linux")]
    crate::nodelay::set(listen);
    Ok(())
}

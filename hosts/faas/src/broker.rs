//! The broker inside of a gateway.

use core::net::SocketAddr;
use std::collections::HashMap;
use std::net::TcpListener;
use std::{io, thread};

use rumqttd::{Broker, Config, ConnectionSettings, RouterConfig, ServerSettings};

use crate::link::{Access, PACKET_MAX};

/// How many connections there may be at a time.
const CONNECTIONS: usize = 4_096;
/// A topic keeps so many bytes for those that are away, and as much again: then the oldest go.
const SEGMENT: usize = 64 * 1024;
const SEGMENTS: usize = 2;

/// Starts a broker that listens here, until the process ends. It keeps everything in memory.
///
/// # Errors
/// If it cannot listen there.
pub(crate) fn start(listen: SocketAddr, access: &Access) -> io::Result<()> {
    // The broker tells nobody that it could not listen.
    drop(TcpListener::bind(listen)?);
    let password = &access.password;
    let auth = access.user.as_ref().map(|user| {
        let known = [(user.clone(), password.clone())];
        HashMap::from(known)
    });
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

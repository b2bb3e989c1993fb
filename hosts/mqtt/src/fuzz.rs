//! Fuzz targets as plain functions: they take bytes, and panic when a promise is broken.
//!
//! They run under libFuzzer, from the package in `fuzz/hosts`, and in this package's tests over a committed
//! corpus and over generated inputs.

use rumqttc::{Packet, Publish, QoS};

use crate::link::{self, LinkEvent};
use crate::users::Users;

/// The longest packet, in bytes.
const PACKET_MAX: usize = 64 * 1024;

/// Reads bytes as the file of users.
///
/// # Panics
/// When a user that is read differs from its line, or an error names no line of the file.
///
/// Returns the number of users, if it is such a file.
pub fn users(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text
        .lines()
        .filter(|it| !it.is_empty() && !it.starts_with('#'));
    let users = match Users::read(&text) {
        Ok(users) => users,
        Err((line, _)) => {
            assert!((1..=text.lines().count()).contains(&line), "line {line}");
            return None;
        }
    };
    let mut count = 0;
    for line in lines {
        let user = line.split_once(':');
        let found = user.and_then(|(name, _)| users.password(name));
        assert_eq!(user.map(|it| it.1), found, "{line:?}");
        count += 1;
    }
    assert_eq!(users.all().count(), count, "each user has a line");
    assert!(
        users
            .all()
            .all(|(name, password)| !name.is_empty() && !password.is_empty())
    );
    Some(count)
}

/// Reads bytes as the first packet of a client of the broker inside.
///
/// # Panics
/// When more changes than the flag of its session.
///
/// Returns true if it is handed on.
#[cfg(feature = "broker")]
pub fn greeting(bytes: &[u8]) -> bool {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return false; // The runtime cannot start.
    };
    let mut rest = bytes;
    let Ok(begin) = runtime.block_on(crate::front::begin_again(&mut rest)) else {
        return false;
    };
    let handed_on = [&begin, rest].concat();
    let flags = begin.len().saturating_sub(1);
    for (at, (was, is)) in bytes.iter().zip(&handed_on).enumerate() {
        let clean = if at == flags { crate::front::CLEAN } else { 0 };
        assert_eq!(was | clean, *is, "byte {at}");
    }
    assert_eq!(bytes.len(), handed_on.len());
    true
}

/// Reads bytes as packets of a broker. Each published message is encoded again, too.
///
/// # Panics
/// When a retained message is taken against the settings, or a packet differs from its predicted length.
///
/// Returns the number of published messages.
pub fn packets(bytes: &[u8]) -> usize {
    let mut stream = bytes.into();
    let mut count = 0;
    while let Ok(packet) = Packet::read(&mut stream, PACKET_MAX) {
        let Packet::Publish(it) = packet else {
            continue;
        };
        count += 1;
        is_predicted(&it);
        let (is_retained, takes) = (it.retain, takes_retained(&it.topic));
        let event = link::published(it, takes_retained);
        let is_left = event == LinkEvent::Retained;
        assert_eq!(is_left, is_retained && !takes, "{event:?}");
    }
    count
}

fn takes_retained(topic: &str) -> bool {
    topic.starts_with("state/")
}

fn is_predicted(it: &Publish) {
    for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
        let mut reported = Publish::new(&it.topic, qos, it.payload.to_vec());
        // The library numbers it.
        reported.pkid = u16::from(qos == QoS::AtLeastOnce);
        let len = link::packet(&it.topic, &it.payload, qos);
        let written = reported.write(&mut Default::default());
        assert_eq!(written.ok(), Some(len), "its length");
    }
}

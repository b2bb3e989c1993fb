//! Connections of this program to brokers.

pub(crate) use selvedge_mqtt::access::{Access, Address, AddressError};
pub(crate) use selvedge_mqtt::link::{Dialect, Link, LinkEvent, Lost, Session, Setup};

use crate::frame::NOTICE_MAX;
use crate::topic::Topic;

/// The longest packet: a payload, its topic and a header.
pub(crate) const PACKET_MAX: usize = NOTICE_MAX + 128;

pub(crate) const DIALECT: Dialect = Dialect {
    packet_max: PACKET_MAX,
    incoming_max: PACKET_MAX,
    takes_retained: |topic| matches!(Topic::parse(topic), Ok(Topic::Gateways(_))),
    credentials: "--user and SELVEDGE_FAAS_PASSWORD",
    certificates: "--tls-ca",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_retained_says_which_gateways_there_are_and_has_nothing_run() {
        let takes = DIALECT.takes_retained;
        assert!(takes("selvedge/faas/1/7/gateways"));
        assert!(!takes("selvedge/faas/1/7"));
        assert!(!takes("recipes"));
    }
}

//! An address as a node's metadata: 6 bytes for IPv4, 18 for IPv6; the length tells which.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The bytes that tell all others where this node listens.
#[must_use]
pub fn to_metadata(address: SocketAddr) -> Box<[u8]> {
    let port = address.port().to_be_bytes();
    match address.ip() {
        IpAddr::V4(ip) => [&ip.octets()[..], &port].concat().into(),
        IpAddr::V6(ip) => [&ip.octets()[..], &port].concat().into(),
    }
}

/// The address that metadata tells, if it tells one that can be sent to.
#[must_use]
pub fn from_metadata(metadata: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = metadata.split_last_chunk::<2>()?;
    let ip = if let Ok(ip) = <[u8; 4]>::try_from(ip) {
        IpAddr::V4(Ipv4Addr::from(ip))
    } else {
        IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(ip).ok()?))
    };
    let address = SocketAddr::new(ip, u16::from_be_bytes(*port));
    reachable(address).then_some(address)
}

/// Whether `address` names one host and port, so that others can send to it.
#[must_use]
pub fn reachable(address: SocketAddr) -> bool {
    let ip = address.ip();
    address.port() != 0 && !ip.is_unspecified() && !ip.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_survived_and_addresses_return(
            bytes in proptest::collection::vec(any::<u8>(), 0..24),
        ) {
            if let Some(address) = from_metadata(&bytes) {
                prop_assert_eq!(&*to_metadata(address), bytes.as_slice());
            }
        }
    }

    #[test]
    fn both_families_fit_and_nowhere_is_refused() {
        for (text, len) in [("10.1.2.3:7001", 6), ("[fe80::1]:7001", 18)] {
            let address: SocketAddr = text.parse().unwrap();
            let metadata = to_metadata(address);
            assert_eq!(metadata.len(), len);
            assert_eq!(from_metadata(&metadata), Some(address));
        }
        for nowhere in ["0.0.0.0:7001", "10.1.2.3:0", "224.0.0.1:7001", "[::]:7001"] {
            assert_eq!(
                from_metadata(&to_metadata(nowhere.parse().unwrap())),
                None,
                "{nowhere}"
            );
        }
    }
}

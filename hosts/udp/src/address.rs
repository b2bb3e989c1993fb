//! Addresses: addresses of one host and of many, and the list of addresses in a node's metadata.
//!
//! One address takes 6 bytes for IPv4 and 18 for IPv6; the length distinguishes them. Several
//! addresses begin with a byte for the number of IPv4 addresses, then these follow, then the IPv6
//! addresses: 13 bytes for two of IPv4, 25 for one of each. Nodes that know only the first form
//! find no address in the second one, and continue to send to the source of datagrams.
//!
//! The scope of a link-local address (`fe80::1%eth0`) is not written, because each host numbers its
//! own interfaces. The reader uses its own interface to that link.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use thiserror::Error;

pub use selvedge_host::transport::{canonical, names_many, reachable};

/// The most addresses that a node announces.
pub const LIMIT: usize = 4;

const V4_LEN: usize = 6;
const V6_LEN: usize = 18;

/// The bytes that announce a node's addresses: the first [`LIMIT`] addresses, IPv4 first; empty
/// without addresses.
pub(crate) fn to_bytes(addresses: &[SocketAddr]) -> Box<[u8]> {
    let addresses = addresses.get(..LIMIT).unwrap_or(addresses);
    let (v4, v6): (Vec<SocketAddr>, Vec<_>) = addresses.iter().partition(|it| it.is_ipv4());
    let mut bytes = Vec::new();
    if addresses.len() > 1 {
        bytes.push(v4.len() as u8);
    }
    for address in v4.into_iter().chain(v6) {
        match address.ip() {
            IpAddr::V4(ip) => bytes.extend(ip.octets()),
            IpAddr::V6(ip) => bytes.extend(ip.octets()),
        }
        bytes.extend(address.port().to_be_bytes());
    }
    bytes.into()
}

/// The addresses in a list to which datagrams can be sent: [`LIMIT`] at most. `None` for bytes that are
/// no list.
pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Vec<SocketAddr>> {
    let (v4, v6) = match (bytes.len(), bytes.split_first()) {
        (V4_LEN, _) => (bytes, [].as_slice()),
        (V6_LEN, _) => ([].as_slice(), bytes),
        (_, Some((&count, rest))) => rest.split_at_checked(usize::from(count) * V4_LEN)?,
        (_, None) => return Some(Vec::new()),
    };
    let (count, rest) = (v4.len() / V4_LEN + v6.len() / V6_LEN, v6.len() % V6_LEN);
    if rest > 0 || count > LIMIT {
        return None;
    }
    let v4 = v4.chunks_exact(V4_LEN).map(one::<4>);
    let v6 = v6.chunks_exact(V6_LEN).map(one::<16>);
    let all = v4.chain(v6).flatten();
    Some(all.filter(|&address| reachable(address)).collect())
}

/// Reads an IP address of `N` bytes and a port.
fn one<const N: usize>(bytes: &[u8]) -> Option<SocketAddr>
where
    IpAddr: From<[u8; N]>,
{
    let (ip, port) = bytes.split_last_chunk::<2>()?;
    let ip = IpAddr::from(<[u8; N]>::try_from(ip).ok()?);
    Some(SocketAddr::new(ip, u16::from_be_bytes(*port)))
}

/// The reason why a text is not an address and a port.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The text is no address and port.
    #[error("{0:?} is no address and port: give one as 192.0.2.1:7001 or [2001:db8::1]:7001")]
    Syntax(String),
    /// This host has no interface of the name in a link-local address.
    #[error("this host has no interface {0}: take one from the list of `ip link`")]
    Interface(String),
}

/// Reads an address and a port. A link-local address has its interface by name or by number:
/// `[fe80::1%eth0]:7001`, `[fe80::1%2]:7001`.
///
/// # Errors
/// When the text is not an address and port, or this host has no such interface.
pub fn parse(text: &str) -> Result<SocketAddr, ParseError> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let syntax = || ParseError::Syntax(text.to_owned());
    let (ip, port) = (text.strip_prefix('['))
        .and_then(|text| text.split_once("]:"))
        .ok_or_else(syntax)?;
    let port: u16 = port.parse().map_err(|_| syntax())?;
    let (bare, interface) = ip.split_once('%').ok_or_else(syntax)?;
    let bare: IpAddr = bare.parse().map_err(|_| syntax())?;
    if !is_link_local(bare) || interface.is_empty() {
        return Err(syntax());
    }
    // The system's resolver knows the names of interfaces, and does no lookup for an address.
    let found = (ip, port).to_socket_addrs().ok();
    let unknown = || ParseError::Interface(interface.to_owned());
    found.and_then(|mut it| it.next()).ok_or_else(unknown)
}

/// Returns true if each link may have a host of this address.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// The number of the interface to the link of this address, if the address has one.
pub(crate) fn scope(address: SocketAddr) -> Option<u32> {
    match address {
        SocketAddr::V6(it) if is_link_local(address.ip()) => {
            Some(it.scope_id()).filter(|&scope| scope != 0)
        }
        SocketAddr::V4(_) | SocketAddr::V6(_) => None,
    }
}

/// The address, on the link of this interface if it is link-local and names none.
pub(crate) fn on_link(mut address: SocketAddr, link: Option<u32>) -> SocketAddr {
    if let (SocketAddr::V6(it), Some(link)) = (&mut address, link)
        && is_link_local((*it.ip()).into())
        && it.scope_id() == 0
    {
        it.set_scope_id(link);
    }
    address
}

/// Returns true if two addresses may be the same: without a scope, a link-local address may be on
/// any link.
pub(crate) fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one == other || on_link(one, scope(other)) == on_link(other, scope(one))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(addresses) = from_bytes(&bytes) {
                prop_assert!(addresses.len() <= LIMIT && addresses.iter().all(|&it| reachable(it)));
                prop_assert_eq!(from_bytes(&to_bytes(&addresses)), Some(addresses));
            }
        }

        #[test]
        fn addresses_return(
            v4 in proptest::collection::vec(any::<([u8; 4], u16)>(), 0..=LIMIT),
            v6 in proptest::collection::vec(any::<([u8; 16], u16)>(), 0..=LIMIT),
        ) {
            let v4 = v4.into_iter().map(SocketAddr::from);
            let all: Vec<SocketAddr> = v4.chain(v6.into_iter().map(SocketAddr::from))
                .filter(|&it| reachable(it))
                .take(LIMIT)
                .collect();
            prop_assert_eq!(from_bytes(&to_bytes(&all)), Some(all));
        }
    }

    #[test]
    fn both_families_fit_alone_and_together() {
        let (v4, v6) = (address("10.1.2.3:7001"), address("[fe80::1]:7001"));
        for (list, len) in [
            (vec![v4], 6),
            (vec![v6], 18),
            (vec![v4, v6], 25),
            (vec![v4, v4], 13),
        ] {
            let bytes = to_bytes(&list);
            assert_eq!(bytes.len(), len);
            assert_eq!(from_bytes(&bytes), Some(list));
        }
        assert_eq!(from_bytes(&to_bytes(&[v6, v4])), Some(vec![v4, v6]));
        assert_eq!(to_bytes(&[]).len(), 0);
        let most = from_bytes(&to_bytes(&[v6; LIMIT + 1])).unwrap();
        assert_eq!(most.len(), LIMIT);
    }

    #[test]
    fn bytes_that_are_no_list_of_addresses_give_none() {
        let v6 = [0x20; V6_LEN];
        let count = |bytes: &[u8]| from_bytes(bytes).map(|it| it.len());
        let list = |nth: usize, rest: &[u8]| count(&[&[0], &*v6.repeat(nth), rest].concat());
        assert_eq!(list(LIMIT, &[]), Some(LIMIT));
        assert_eq!(list(LIMIT + 1, &[]), None);
        assert_eq!(list(1, &[1]), None);
        let v4 = |nth: u8| count(&[&[nth][..], &[9; V4_LEN].repeat(nth.into())].concat());
        assert_eq!((v4(4), v4(5)), (Some(LIMIT), None));
        // A count of IPv4 addresses that exceeds the bytes.
        assert_eq!(from_bytes(&[2, 10, 1, 2, 3, 0x1B, 0x59]), None);
        assert_eq!(from_bytes(&[]), Some(vec![]));
    }

    #[test]
    fn a_link_local_address_is_read_with_its_interface() {
        assert_eq!(parse("10.1.2.3:7001"), Ok(address("10.1.2.3:7001")));
        assert_eq!(parse("[fe80::1%3]:7001"), Ok(address("[fe80::1%3]:7001")));
        let none = parse("[fe80::1%nosuch0]:7001");
        assert_eq!(none, Err(ParseError::Interface("nosuch0".to_owned())));
        #[cfg(target_os = "linux")]
        assert_eq!(parse("[fe80::1%lo]:7001"), Ok(address("[fe80::1%1]:7001")));
        for text in [
            "",
            "10.1.2.3",
            "mesh.example:7001",
            "fe80::1%lo",
            "[fe80::1%]:7001",
            "[fe80::1%lo]:70010",
            "[fe80::1]:",
            "[2001:db8::1%lo]:7001",
            "[10.1.2.3%lo]:7001",
            "[lo%lo]:7001",
        ] {
            let syntax = ParseError::Syntax(text.to_owned());
            assert_eq!(parse(text), Err(syntax), "{text}");
        }
    }

    #[test]
    fn a_link_local_address_without_a_scope_may_be_on_any_link() {
        let [bare, two, three] =
            ["[fe80::1]:7001", "[fe80::1%2]:7001", "[fe80::1%3]:7001"].map(address);
        assert!(same(bare, two) && same(two, bare) && same(two, two) && !same(two, three));
        assert!(!same(bare, address("[fe80::2%2]:7001")));
        assert_eq!((scope(bare), scope(two)), (None, Some(2)));
        assert_eq!(
            (on_link(bare, Some(3)), on_link(two, Some(3))),
            (three, two)
        );
        let global = address("[2001:db8::1]:7001");
        assert_eq!((on_link(global, Some(3)), scope(global)), (global, None));
    }

    /// The format of one address, which nodes of the first release write and read.
    #[test]
    fn one_address_is_written_as_ever() {
        let bytes = to_bytes(&[address("10.1.2.3:7001")]);
        assert_eq!(*bytes, [10, 1, 2, 3, 0x1B, 0x59]);
    }

    #[test]
    fn what_names_nobody_or_many_is_passed_over() {
        for nowhere in [
            "0.0.0.0:7001",
            "10.1.2.3:0",
            "224.0.0.1:7001",
            "255.255.255.255:7001",
            "[::]:7001",
            "[ff02::1]:7001",
            "[::ffff:224.0.0.1]:7001",
            "[::ffff:255.255.255.255]:7001",
        ] {
            let good = address("10.1.2.3:7001");
            let nowhere = address(nowhere);
            let sendable = |list: &[SocketAddr]| from_bytes(&to_bytes(list)).unwrap();
            assert_eq!(sendable(&[nowhere]), [], "{nowhere}");
            assert_eq!(sendable(&[nowhere, good]), [good], "{nowhere}");
        }
    }

    #[test]
    fn what_stands_for_an_address_of_ipv4_is_that() {
        let mapped = address("[::ffff:10.1.2.3]:7001");
        assert_eq!(canonical(mapped), address("10.1.2.3:7001"));
        let scoped = address("[fe80::1%3]:7001");
        assert_eq!(canonical(scoped), scoped);
    }
}

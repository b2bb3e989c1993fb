//! The list of gateways and the addresses of their brokers.

use core::str::FromStr;
use core::time::Duration;
use std::sync::mpsc;
use std::time::Instant;

use selvedge_core::NodeId;
use thiserror::Error;

use crate::frame::Frame;
use crate::link::{Access, Address, AddressError, DIALECT, Link, LinkEvent, Session, Setup};
use crate::notice::{Notice, Place};
use crate::topic::Topic;

/// The longest time for a gateway's answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Gateways with the addresses of their brokers, the preferred one first. At least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateways(Vec<(NodeId, Address)>);

impl Gateways {
    /// These gateways; of several with one id, the first.
    ///
    /// # Errors
    /// [`FindError::None`], if the list is empty.
    pub fn new(all: impl IntoIterator<Item = (NodeId, Address)>) -> Result<Self, FindError> {
        let mut gateways: Vec<(NodeId, Address)> = Vec::new();
        for (id, address) in all {
            if gateways.iter().all(|it| it.0 != id) {
                gateways.push((id, address));
            }
        }
        match gateways.is_empty() {
            true => Err(FindError::None),
            false => Ok(Self(gateways)),
        }
    }

    /// Their ids.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.iter().map(|it| it.0)
    }

    /// Each gateway with the address of its broker.
    pub fn all(&self) -> impl Iterator<Item = &(NodeId, Address)> {
        self.0.iter()
    }

    /// The address of a gateway's broker.
    #[must_use]
    pub fn address(&self, gateway: NodeId) -> Option<&Address> {
        let found = self.0.iter().find(|it| it.0 == gateway);
        found.map(|it| &it.1)
    }
}

/// A gateway as a user gives it: `HOST:PORT`, or `ID=HOST:PORT`, which needs no request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its id, if it is known.
    pub id: Option<NodeId>,
    /// The address of its broker.
    pub address: Address,
}

impl FromStr for Named {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let parts = text.split_once('=');
        let parts = parts.and_then(|(id, address)| Some((id.parse().ok()?, address)));
        let (id, address) = parts.map_or((None, text), |it| (Some(NodeId(it.0)), it.1));
        let address = address.parse()?;
        Ok(Self { id, address })
    }
}

/// An error in finding gateways.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FindError {
    /// No gateway is given.
    #[error("no gateway: give --gateway HOST:PORT for at least one")]
    None,
    /// No given gateway answers.
    #[error("no gateway answers: {0}: start one, or give its id as in 1=HOST:PORT")]
    Silent(String),
}

/// Asks for the list of gateways, unless all are given with their ids. The given ones come first.
///
/// # Errors
/// [`FindError`], if no gateway is given, or none answers.
pub fn find(named: &[Named], access: &Access, me: NodeId) -> Result<Gateways, FindError> {
    let with_id = named
        .iter()
        .filter_map(|it| Some((it.id?, it.address.clone())));
    let mut known: Vec<(NodeId, Address)> = with_id.collect();
    if known.len() == named.len() {
        return Gateways::new(known);
    }
    let mut whys = Vec::new();
    for it in named {
        match ask(&it.address, access, me) {
            Ok(all) => {
                known.extend(in_order(named, all));
                return Gateways::new(known);
            }
            Err(why) => whys.push(format!("{}: {why}", it.address)),
        }
    }
    match known.is_empty() {
        true => Err(FindError::Silent(whys.join(", "))),
        false => Gateways::new(known),
    }
}

/// Puts the given gateways first, in the order in which they were given.
fn in_order(named: &[Named], mut all: Vec<(NodeId, Address)>) -> Vec<(NodeId, Address)> {
    let place = |address: &Address| named.iter().position(|it| it.address == *address);
    all.sort_by_key(|it| place(&it.1).unwrap_or(named.len()));
    all
}

/// The list of one broker's gateway.
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn ask(address: &Address, access: &Access, me: NodeId) -> Result<Vec<(NodeId, Address)>, String> {
    let (notify, notified) = mpsc::sync_channel(64);
    let setup = Setup {
        name: format!("selvedge-faas-{me}-find"),
        address: address.clone(),
        access: access.clone(),
        session: Session::Clean,
        filters: vec![Topic::all_gateways()],
        asides: Vec::new(),
        will: None,
        stays: false,
        dialect: DIALECT,
    };
    let link = Link::open(setup, move |it| notify.send(it).is_ok());
    let link = link.map_err(|it| it.to_string())?;
    let end = Instant::now() + PATIENCE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let event = notified.recv_timeout(left);
        match event.map_err(|_| "it sends no list of gateways".to_owned())? {
            LinkEvent::Up { .. } | LinkEvent::Retained => {}
            LinkEvent::Down(lost) => return Err(lost.why),
            LinkEvent::Published { topic, payload, .. } => {
                if let Some(all) = read(&topic, &payload) {
                    drop(link);
                    return Ok(all);
                }
            }
        }
    }
}

fn read(topic: &str, payload: &[u8]) -> Option<Vec<(NodeId, Address)>> {
    let Ok(Topic::Gateways(gateway)) = Topic::parse(topic) else {
        return None;
    };
    let Ok(Frame::Notice(it)) = Frame::decode(payload) else {
        return None;
    };
    let Notice::Gateways(places) = it.message else {
        return None;
    };
    let address = |it: &Place| core::str::from_utf8(&it.address).ok()?.parse().ok();
    let place = |it: &Place| Some((it.gateway, address(it)?));
    let mut all: Vec<(NodeId, Address)> = places.iter().filter_map(place).collect();
    // The answering gateway comes first.
    all.sort_by_key(|it| it.0 != gateway);
    Some(all)
}

#[cfg(test)]
mod tests {
    use selvedge_core::Member;

    use super::*;
    use crate::frame;

    #[test]
    fn a_gateway_is_named_with_its_id_or_without() {
        let with: Named = "3=127.0.0.1:1883".parse().unwrap();
        assert_eq!(with.id, Some(NodeId(3)));
        let without: Named = "127.0.0.1:1883".parse().unwrap();
        assert_eq!(without.id, None);
        assert_eq!(with.address, without.address);
        assert!("x=y".parse::<Named>().is_err());
    }

    #[test]
    fn gateways_with_ids_are_not_asked_for() {
        let named: Vec<Named> = ["3=127.0.0.1:1", "1=127.0.0.1:2", "3=127.0.0.1:3"]
            .map(|it| it.parse().unwrap())
            .into();
        let found = find(&named, &Access::default(), NodeId(9)).unwrap();
        assert_eq!(found.ids().collect::<Vec<_>>(), [NodeId(3), NodeId(1)]);
        assert_eq!(found.address(NodeId(3)).unwrap().port, 1);
        let none = find(&[], &Access::default(), NodeId(9));
        assert!(matches!(none, Err(FindError::None)));
    }

    #[test]
    fn gateways_that_are_named_come_first_in_the_order_of_their_names() {
        let named: Vec<Named> = ["c:1", "a:1"].map(|it| it.parse().unwrap()).into();
        let all = [(4, "d:1"), (1, "a:1"), (2, "b:1"), (3, "c:1")];
        let all = all.map(|(id, address)| (NodeId(id), address.parse().unwrap()));
        let ordered = in_order(&named, all.into());
        let ids: Vec<u64> = ordered.iter().map(|it| it.0.0).collect();
        assert_eq!(ids, [3, 1, 4, 2]);
    }

    #[test]
    fn what_a_gateway_says_is_read_and_what_others_say_is_not() {
        let place = |id, address: &str| Place {
            gateway: NodeId(id),
            address: address.bytes().collect(),
        };
        let places = [place(1, "a:1"), place(2, "b:2"), place(3, "no address")];
        let notice = Notice::Gateways(places.into_iter().collect());
        let payload = frame::notice(Member::new(2, 1), &notice).unwrap();
        let all = read("selvedge/faas/1/2/gateways", &payload).unwrap();
        let named: Vec<(u64, u16)> = all.iter().map(|it| (it.0.0, it.1.port)).collect();
        assert_eq!(named, [(2, 2), (1, 1)]);
        assert_eq!(read("selvedge/faas/1/2", &payload), None);
        let other = frame::notice(Member::new(2, 1), &Notice::Get(selvedge_pcm::Library(1)));
        assert_eq!(read("selvedge/faas/1/2/gateways", &other.unwrap()), None);
    }
}

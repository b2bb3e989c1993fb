//! An observer of the statuses that gateways publish each second.

use std::io;
use std::sync::mpsc::{self, Receiver};

use selvedge_core::{Member, NodeId, Span};

use crate::find::Gateways;
use crate::frame::Frame;
use crate::link::{Access, Address, DIALECT, Link, LinkEvent, Session, Setup};
use crate::notice::{Notice, Status};
use crate::topic::Topic;

/// The number of statuses that may wait; further ones are dropped.
const WAITING: usize = 256;

/// Links to the brokers of gateways, on which nothing is published.
#[derive(Debug)]
pub struct Watch {
    seen: Receiver<(Member, Status)>,
    _links: Vec<Link>,
}

impl Watch {
    /// Starts to observe these gateways.
    ///
    /// # Errors
    /// If a thread does not start.
    pub fn start(gateways: &Gateways, access: &Access, me: NodeId) -> io::Result<Self> {
        let all = gateways.all();
        let links = all.map(|(id, address)| (*id, address.clone(), access.clone()));
        Self::open(links, me)
    }

    /// Connects to these gateways, each at its broker.
    pub(crate) fn open(
        all: impl Iterator<Item = (NodeId, Address, Access)>,
        me: NodeId,
    ) -> io::Result<Self> {
        let (see, seen) = mpsc::sync_channel(WAITING);
        let mut links = Vec::new();
        for (id, address, access) in all {
            let setup = Setup {
                name: format!("selvedge-faas-{me}-look-{id}"),
                address,
                access,
                session: Session::Clean,
                filters: vec![Topic::Status(id).to_string()],
                asides: Vec::new(),
                will: None,
                stays: true,
                dialect: DIALECT,
            };
            let see = see.clone();
            links.push(Link::open(setup, move |event| {
                if let Some(status) = read(&event) {
                    // A dropped status is outdated within a second.
                    let _seen = see.try_send(status);
                }
                true
            })?);
        }
        Ok(Self {
            seen,
            _links: links,
        })
    }

    /// The next status of a gateway, if one comes within this time.
    #[must_use]
    pub fn wait(&self, most: Span) -> Option<(Member, Status)> {
        self.seen.recv_timeout(most.into()).ok()
    }
}

fn read(event: &LinkEvent) -> Option<(Member, Status)> {
    let LinkEvent::Published { topic, payload, .. } = event else {
        return None;
    };
    let Ok(Topic::Status(gateway)) = Topic::parse(topic) else {
        return None;
    };
    let Ok(Frame::Notice(it)) = Frame::decode(payload) else {
        return None;
    };
    let from = it.from;
    let Notice::Status(status) = it.message else {
        return None;
    };
    (from.id == gateway).then_some((from, *status))
}

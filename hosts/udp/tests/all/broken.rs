//! A socket that fails for good.

use core::task::{Context, Poll};
use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use selvedge_core::shared::block_on;
use selvedge_udp::{Datagrams, Host, Transport};

use crate::bench::setup;

#[derive(Debug)]
struct Broken;

impl Transport for Broken {
    fn bind(self: Box<Self>, _: SocketAddr) -> io::Result<Box<dyn Datagrams>> {
        Ok(self)
    }
}

fn down() -> io::Error {
    io::Error::other("the interface is down")
}

impl Datagrams for Broken {
    fn local(&self) -> SocketAddr {
        ([127, 0, 0, 1], 7_001).into()
    }

    fn reaches(&self, _: SocketAddr) -> bool {
        true
    }

    fn poll_recv(
        &mut self,
        _: &mut Context<'_>,
        _: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        Poll::Ready(Err(down()))
    }

    fn try_recv(&mut self, _: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        Err(down())
    }

    fn poll_send(
        &mut self,
        _: &mut Context<'_>,
        _: &[u8],
        _: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(down()))
    }
}

/// The node counts the errors, goes on, and leaves the processor to others meanwhile.
#[test]
fn an_error_that_stays_does_not_take_the_processor() {
    let node = Host::blocking_start(setup(1, &[]).transport(Broken)).unwrap();
    thread::sleep(Duration::from_millis(300));
    let errors = node.traffic().report().network_errors;
    assert!(node.state().is_in);
    block_on(node.kill());
    // One a millisecond, some at once, and those that are found before a timer is obeyed.
    assert!((17..2_000).contains(&errors), "{errors} errors");
}

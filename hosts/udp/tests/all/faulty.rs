//! Transports with faults: what is lost, held back and late, and that the rest arrives.

use core::future::poll_fn;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge_core::{Ratio, Span};
use selvedge_udp::{Datagrams, FaultControl, Faults, Faulty, Transport, Udp};
use tokio::time::{Instant, timeout};

use crate::bench::{Node, PATIENCE, setup, until};

type Socket = Box<dyn Datagrams>;

fn open(control: &FaultControl, seed: u64) -> (Socket, SocketAddr) {
    let transport = Box::new(Faulty::new(Udp::new(), control, seed));
    let socket = transport.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local();
    (socket, address)
}

async fn send(socket: &mut Socket, datagram: &[u8], to: SocketAddr) -> usize {
    let sent = poll_fn(|cx| socket.poll_send(cx, datagram, to)).await;
    sent.unwrap()
}

async fn recv(socket: &mut Socket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 16];
    let received = poll_fn(|cx| socket.poll_recv(cx, &mut buffer));
    let (len, source) = timeout(PATIENCE, received).await.unwrap().unwrap();
    (buffer[..len].to_vec(), source)
}

#[tokio::test]
async fn a_share_is_lost_and_the_rest_arrives() {
    let control = FaultControl::new(Faults::none().with_loss(Ratio::new(1, 4)));
    let ((mut one, from), (mut two, to)) = (open(&control, 1), open(&control, 2));
    let mut arrived = 0_u64;
    for number in 0..200_u8 {
        assert_eq!(send(&mut one, &[number], to).await, 1);
        // The last ones pass, so that there is an end to wait for.
        if number == 199 {
            control.change(|it| it.loss = Ratio::NEVER);
            send(&mut one, b"end", to).await;
        }
    }
    loop {
        let (datagram, source) = recv(&mut two).await;
        assert_eq!(source, from);
        if datagram == b"end" {
            break;
        }
        arrived += 1;
    }
    // Loss is drawn on arrival, and all arrived after the change.
    assert_eq!((arrived, control.counts().lost), (200, 0));
    control.change(|it| it.loss = Ratio::new(1, 4));
    let mut buffer = [0; 16];
    for number in 0..200_u8 {
        send(&mut one, &[number], to).await;
        let before = control.counts().lost;
        let came = poll_fn(|cx| two.poll_recv(cx, &mut buffer));
        if timeout(Duration::from_millis(20), came).await.is_err() {
            assert_eq!(control.counts().lost, before + 1);
        }
    }
    let lost = control.counts().lost;
    assert!((20..=90).contains(&lost), "{lost} of 200, seed 2");
}

#[tokio::test]
async fn a_partition_holds_back_and_ends() {
    let control = FaultControl::default();
    let ((mut one, _), (mut two, to)) = (open(&control, 1), open(&control, 2));
    control.change(|it| it.cut_off = BTreeSet::from([to]));
    assert_eq!(send(&mut one, b"lost", to).await, 4);
    assert_eq!(control.counts().held_back, 1);
    control.change(|it| it.cut_off.clear());
    send(&mut one, b"heard", to).await;
    assert_eq!(recv(&mut two).await.0, b"heard");
}

#[tokio::test]
#[allow(
    clippy::disallowed_methods,
    reason = "a test of a delay reads the clock"
)]
async fn a_delay_is_kept_and_wakes_the_reader() {
    let delay = Span::millis(80);
    let control = FaultControl::new(Faults::none().with_delay(delay, delay));
    let ((mut one, _), (mut two, to)) = (open(&control, 1), open(&control, 2));
    let begun = Instant::now();
    send(&mut one, b"first", to).await;
    send(&mut one, b"second", to).await;
    assert_eq!(recv(&mut two).await.0, b"first");
    assert!(begun.elapsed() >= Duration::from(delay));
    assert_eq!(recv(&mut two).await.0, b"second");
    assert_eq!(control.counts().delayed, 2);
    let mut buffer = [0; 16];
    let nothing = two.try_recv(&mut buffer).unwrap_err();
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}

/// Delays beyond a probe's timeout are late answers, and not failures: the nodes meet.
#[tokio::test]
async fn nodes_meet_although_datagrams_are_late_and_lost() {
    let faults = Faults::none()
        .with_loss(Ratio::new(1, 10))
        .with_delay(Span::millis(1), Span::millis(40));
    let control = FaultControl::new(faults);
    let faulty = |id, seeds: &[SocketAddr]| {
        setup(id, seeds).transport(Faulty::new(Udp::new(), &control, id))
    };
    let one = Node::start(faulty(1, &[])).await;
    let two = Node::start(faulty(2, &[one.address()])).await;
    until(|| one.live() == 2 && two.live() == 2).await;
    until(|| control.counts().delayed > 20).await;
}

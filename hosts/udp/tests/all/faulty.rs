//! Transports with faults: lost, held back and late datagrams, and the arrival of the rest.

use core::future::poll_fn;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge_core::{Ratio, Span};
use selvedge_udp::faults::{FaultControl, Faults, Faulty};
use selvedge_udp::transport::{Datagrams, Transport, Udp};
use tokio::time::{Instant, advance, timeout};

use crate::bench::{Node, PATIENCE, setup, until};
use crate::network::{Network, at};

type Socket = Box<dyn Datagrams>;

/// Two sockets of a network in memory, with the faults of one control.
fn pair(control: &FaultControl) -> (Socket, Socket) {
    let network = Network::default();
    let open = |port: u16| {
        let transport = Box::new(Faulty::new(network.clone(), control, port.into()));
        transport.bind(at(port)).unwrap()
    };
    (open(1), open(2))
}

async fn send(socket: &mut Socket, datagram: &[u8], to: SocketAddr) {
    let sent = poll_fn(|cx| socket.poll_send(cx, datagram, to)).await;
    assert_eq!(sent.unwrap(), datagram.len());
}

async fn recv(socket: &mut Socket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 16];
    let received = poll_fn(|cx| socket.poll_recv(cx, &mut buffer));
    let (len, source) = timeout(PATIENCE, received).await.unwrap().unwrap();
    (buffer[..len].to_vec(), source)
}

/// The datagram that has arrived by now.
fn arrived(socket: &mut Socket) -> Option<Vec<u8>> {
    let mut buffer = [0; 16];
    match socket.try_recv(&mut buffer) {
        Ok((len, _)) => Some(buffer[..len].to_vec()),
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            None
        }
    }
}

#[test]
fn each_fault_is_set_alone_and_stays_when_another_one_changes() {
    let (loss, short, long) = (Ratio::new(1, 4), Span::millis(1), Span::millis(2));
    let cut_off = BTreeSet::from([at(2)]);
    let faults = Faults::none()
        .with_loss(loss)
        .with_delay(short, long)
        .with_cut_off(cut_off.clone());
    assert_eq!((faults.loss, faults.delay), (loss, (short, long)));
    assert_eq!(faults.cut_off, cut_off);
    let again = faults.clone().with_delay(short, long).with_loss(loss);
    assert_eq!(again, faults);

    let control = FaultControl::new(faults.clone());
    control.change(|it| it.loss = Ratio::NEVER);
    assert_eq!(control.faults(), faults.with_loss(Ratio::NEVER));
}

#[test]
fn a_partition_lets_each_part_speak_within_itself() {
    let faults = Faults::none().with_cut_off(BTreeSet::from([at(1), at(2)]));
    for (one, other, passes) in [(1, 2, true), (3, 4, true), (1, 3, false), (4, 2, false)] {
        assert_eq!(
            faults.passes(at(one), at(other)),
            passes,
            "{one} to {other}"
        );
    }
}

/// Loss is drawn on arrival, and lost datagrams are counted.
#[tokio::test(start_paused = true)]
async fn a_share_is_lost_and_the_rest_arrives() {
    let control = FaultControl::new(Faults::none().with_loss(Ratio::ALWAYS));
    let (mut one, mut two) = pair(&control);
    let (from, to) = (one.local(), two.local());
    for number in 0..200_u8 {
        send(&mut one, &[number], to).await;
    }
    control.change(|it| it.loss = Ratio::NEVER);
    for number in 0..200_u8 {
        assert_eq!(recv(&mut two).await, (vec![number], from));
    }
    assert_eq!(control.counts().lost, 0);
    control.change(|it| it.loss = Ratio::new(1, 4));
    let mut came = 0;
    for number in 0..200_u8 {
        send(&mut one, &[number], to).await;
        came += u64::from(arrived(&mut two).is_some());
    }
    let lost = control.counts().lost;
    assert!((20..=90).contains(&lost), "{lost} of 200, seed 2");
    assert_eq!(came + lost, 200);
}

#[tokio::test(start_paused = true)]
async fn a_partition_holds_back_and_ends() {
    let control = FaultControl::default();
    let (mut one, mut two) = pair(&control);
    let to = two.local();
    control.change(|it| it.cut_off = BTreeSet::from([to]));
    send(&mut one, b"lost", to).await;
    send(&mut one, b"as well", to).await;
    let counts = control.counts();
    assert_eq!((counts.held_back, counts.held_back_bytes), (2, 11));
    control.change(|it| it.cut_off.clear());
    send(&mut one, b"heard", to).await;
    assert_eq!(recv(&mut two).await.0, b"heard");
    assert_eq!(control.counts(), counts);
}

/// Faults change nothing about which addresses a socket can send to.
#[test]
fn a_socket_with_faults_reaches_what_it_reaches_without() {
    let (one, two) = pair(&FaultControl::default());
    assert_eq!((one.local(), two.local()), (at(1), at(2)));
    assert!(one.reaches(two.local()));
    assert!(!one.reaches("[2001:db8::1]:2".parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_kept_and_wakes_the_reader() {
    let delay = Span::millis(80);
    let control = FaultControl::new(Faults::none().with_delay(delay, delay));
    let (mut one, mut two) = pair(&control);
    let to = two.local();
    let begun = Instant::now();
    // Two of one moment, which stay in order.
    send(&mut one, b"first", to).await;
    send(&mut one, b"second", to).await;
    assert_eq!(recv(&mut two).await.0, b"first");
    assert_eq!(begun.elapsed(), Duration::from(delay));
    assert_eq!(recv(&mut two).await.0, b"second");
    assert_eq!(begun.elapsed(), Duration::from(delay));
    assert_eq!(control.counts().delayed, 2);
    assert_eq!(arrived(&mut two), None);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_datagram_is_there_when_it_is_due_and_not_before() {
    let control = FaultControl::new(Faults::none().with_delay(Span::millis(80), Span::millis(80)));
    let (mut one, mut two) = pair(&control);
    send(&mut one, b"late", two.local()).await;
    assert_eq!(arrived(&mut two), None);
    advance(Duration::from_millis(79)).await;
    assert_eq!(arrived(&mut two), None);
    advance(Duration::from_millis(1)).await;
    assert_eq!(arrived(&mut two).as_deref(), Some(&b"late"[..]));
}

/// The reader sleeps for a late datagram when another one comes that is due before.
#[tokio::test(start_paused = true)]
async fn a_shorter_delay_overtakes_a_longer_one() {
    let exactly = |millis| (Span::millis(millis), Span::millis(millis));
    let control = FaultControl::new(Faults::none());
    let (mut one, mut two) = pair(&control);
    let to = two.local();
    let begun = Instant::now();
    control.change(|it| it.delay = exactly(50));
    send(&mut one, b"first", to).await;
    let waits = timeout(Duration::from_millis(5), recv(&mut two)).await;
    assert!(waits.is_err());
    control.change(|it| it.delay = exactly(10));
    send(&mut one, b"second", to).await;
    for (datagram, after) in [(&b"second"[..], 15), (b"first", 50)] {
        assert_eq!(recv(&mut two).await.0, datagram);
        assert_eq!(begun.elapsed(), Duration::from_millis(after));
    }
}

/// Each delay is drawn from the whole range, also where that begins at nothing.
#[tokio::test(start_paused = true)]
async fn delays_lie_between_the_shortest_and_the_longest() {
    for (shortest, longest) in [(0, 64), (100, 164)] {
        let (least, most) = (Span::millis(shortest), Span::millis(longest));
        let control = FaultControl::new(Faults::none().with_delay(least, most));
        let (mut one, mut two) = pair(&control);
        let to = two.local();
        let begun = Instant::now();
        for number in 0..200_u8 {
            send(&mut one, &[number], to).await;
        }
        let (mut early, mut late) = (0_u32, 0_u32);
        for _ in 0..200 {
            recv(&mut two).await;
            let after = begun.elapsed();
            assert!(after >= least.into() && after <= most.into(), "{after:?}");
            let is_early = after < Duration::from_millis(shortest + 32);
            *if is_early { &mut early } else { &mut late } += 1;
        }
        assert!(early >= 50 && late >= 50, "{early}, {late}, seed 2");
        assert_eq!(control.counts().delayed, 200);
    }
}

/// The delayed datagrams of a socket are bounded: further ones are lost, and counted.
#[tokio::test(start_paused = true)]
async fn a_socket_delays_4096_datagrams_and_loses_more() {
    let delay = Span::millis(80);
    let control = FaultControl::new(Faults::none().with_delay(delay, delay));
    let (mut one, mut two) = pair(&control);
    for number in 0..4_099_u16 {
        send(&mut one, &number.to_be_bytes(), two.local()).await;
    }
    assert_eq!(arrived(&mut two), None);
    let counts = control.counts();
    assert_eq!((counts.delayed, counts.lost), (4_096, 3));
    advance(delay.into()).await;
    for number in 0..4_096_u16 {
        assert_eq!(arrived(&mut two), Some(number.to_be_bytes().to_vec()));
    }
    assert_eq!(arrived(&mut two), None);
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

//! A host and the datagrams that no host should get.

#![allow(
    clippy::unwrap_used,
    clippy::std_instead_of_core,
    reason = "helpers of tests are tests, too"
)]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use selvedge::frame::encode;
use selvedge_core::wire::VERSION;
use selvedge_core::{Delta, Member, Span};
use selvedge_membership::{Body, Config, Event, KIND, Message};
use selvedge_udp::{
    Clock, Host, HostError, MAX_NODE_ID, Seed, Seen, Setup, Told, Weather, address,
};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);

struct Bench {
    weather: watch::Sender<Weather>,
    events: mpsc::Sender<Seen>,
    seen: mpsc::Receiver<Seen>,
}

impl Bench {
    fn new() -> Self {
        let (events, seen) = mpsc::channel(256);
        let weather = watch::Sender::new(Weather::fair());
        Self {
            weather,
            events,
            seen,
        }
    }

    fn setup(&self, id: u64, seeds: Vec<SocketAddr>) -> Setup {
        Setup {
            me: Member::new(id, 0),
            listen: "127.0.0.1:0".parse().unwrap(),
            socket: None,
            advertise: Vec::new(),
            seeds: seeds.into_iter().map(Seed::from).collect(),
            config: Config {
                period: Span::millis(200),
                jitter: Span::millis(20),
                probe_timeout: Span::millis(60),
                ..Config::default()
            },
            exclusion: None,
            election: None,
            seal: None,
            seed: Some(id),
            clock: Clock::start(),
            weather: self.weather.subscribe(),
            events: self.events.clone(),
        }
    }

    async fn start(&self, id: u64, seeds: Vec<SocketAddr>) -> Host {
        Host::start(self.setup(id, seeds)).await.unwrap()
    }

    async fn wait_for(&mut self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        loop {
            let seen = timeout(PATIENCE, self.seen.recv()).await.unwrap().unwrap();
            if wanted(&seen) {
                return seen;
            }
        }
    }
}

async fn until(condition: impl Fn() -> bool) {
    let poll = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, poll).await.unwrap();
}

#[tokio::test]
async fn bad_datagrams_are_counted_and_the_node_goes_on() {
    let mut bench = Bench::new();
    let host = bench.start(1, vec![]).await;
    let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let budget = Config::default().frame_budget.into();
    let mut ours = Vec::new();
    let join = Message::bare(Body::Join);
    encode(Member::new(1, 9), &join, budget, &mut ours).unwrap();

    let datagrams: [&[u8]; 7] = [
        &[],
        &[VERSION + 1, KIND, 0],
        &[VERSION, KIND + 1, 0],
        &[VERSION, KIND, 0xFF, 0xFF, 0xFF],
        &ours[..ours.len() - 1],
        &vec![0; budget + 1],
        &ours,
    ];
    for datagram in datagrams {
        stranger.send_to(datagram, host.address()).await.unwrap();
    }
    let traffic = host.traffic();
    until(|| traffic.report().received == datagrams.len() as u64).await;
    let report = traffic.report();
    assert_eq!(report.malformed, 3);
    assert_eq!(
        (report.wrong_version, report.wrong_kind, report.oversize),
        (1, 1, 1)
    );
    // A frame with our own id: somebody else's, or our own come back.
    assert_eq!((report.refused, report.faulty()), (1, 7));

    let other = bench.start(2, vec![host.address()]).await;
    bench
        .wait_for(|seen| {
            seen.node == other.id() && matches!(seen.event, Told::Membership(Event::Membership(_)))
        })
        .await;
    let known = other.members().await.unwrap();
    let first = known.iter().find(|known| known.member.id == host.id());
    assert_eq!(first.unwrap().address, Some(host.address()));
}

#[tokio::test]
async fn a_node_behind_a_wildcard_address_is_reached_where_its_datagrams_come_from() {
    let mut bench = Bench::new();
    let host = bench.start(1, vec![]).await;
    let mut setup = bench.setup(2, vec![host.address()]);
    setup.listen = "0.0.0.0:0".parse().unwrap();
    let other = Host::start(setup).await.unwrap();
    bench
        .wait_for(|seen| {
            seen.node == other.id() && matches!(seen.event, Told::Membership(Event::Membership(_)))
        })
        .await;
    let seen_at = SocketAddr::from(([127, 0, 0, 1], other.address().port()));
    let known = host.members().await.unwrap();
    let second = known.iter().find(|known| known.member.id == other.id());
    assert_eq!(second.unwrap().address, Some(seen_at));
}

#[tokio::test]
async fn a_killed_node_frees_its_port_and_a_departed_one_is_heard_to_leave() {
    let mut bench = Bench::new();
    let host = bench.start(1, vec![]).await;
    let killed = bench.start(2, vec![host.address()]).await;
    let address = killed.address();
    killed.kill().await;
    let mut setup = bench.setup(3, vec![host.address()]);
    setup.listen = address;
    let other = Host::start(setup).await.unwrap();
    bench
        .wait_for(|seen| {
            seen.node == other.id() && matches!(seen.event, Told::Membership(Event::Identity(_)))
        })
        .await;
    other.leave().await.unwrap();
    bench
        .wait_for(|seen| {
            seen.node == host.id()
                && matches!(seen.event, Told::Membership(Event::Membership(Delta::Left(who))) if who.id.0 == 3)
        })
        .await;
}

/// A seed is a member by and by, and then it need not be probed as a seed. When it is gone it is
/// again, and whoever is there then is found.
#[tokio::test]
async fn a_seed_that_is_a_member_is_spared_until_it_is_gone() {
    let mut bench = Bench::new();
    let seed = bench.start(1, vec![]).await;
    let other = bench.start(2, vec![seed.address()]).await;
    let traffic = other.traffic();
    until(|| traffic.report().spared >= 2).await;
    let address = seed.address();
    seed.kill().await;
    let gone = |seen: &Seen, node: u64| {
        let failed = matches!(
            seen.event,
            Told::Membership(Event::Membership(Delta::Failed(_)))
        );
        failed && seen.node.0 == node
    };
    bench.wait_for(|seen| gone(seen, 2)).await;
    let (spared, sent) = (traffic.report().spared, traffic.report().sent);
    until(|| traffic.report().sent > sent).await;
    assert_eq!(traffic.report().spared, spared);
    let mut setup = bench.setup(3, vec![]);
    setup.listen = address;
    let heir = Host::start(setup).await.unwrap();
    let joined = |seen: &Seen| matches!(seen.event, Told::Membership(Event::Membership(Delta::Joined(it))) if it.id == heir.id());
    bench
        .wait_for(|seen| seen.node == other.id() && joined(seen))
        .await;
}

#[tokio::test]
async fn what_cannot_work_is_refused_at_the_start() {
    let bench = Bench::new();
    let reserved = Host::start(bench.setup(MAX_NODE_ID.0 + 1, vec![])).await;
    assert!(matches!(reserved, Err(HostError::Id { .. })));
    let mut setup = bench.setup(1, vec![]);
    setup.advertise = vec!["0.0.0.0:7001".parse().unwrap()];
    assert!(matches!(
        Host::start(setup).await,
        Err(HostError::Advertise { .. })
    ));
    let mut setup = bench.setup(1, vec![]);
    setup.advertise = vec!["127.0.0.1:7001".parse().unwrap(); address::LIMIT + 1];
    assert!(matches!(
        Host::start(setup).await,
        Err(HostError::TooManyAddresses { .. })
    ));
    let v6 = vec!["[::1]:7001".parse().unwrap()];
    assert!(matches!(
        Host::start(bench.setup(1, v6)).await,
        Err(HostError::Family { .. })
    ));
    let mut setup = bench.setup(1, vec![]);
    setup.config.probe_timeout = setup.config.period;
    assert!(matches!(
        Host::start(setup).await,
        Err(HostError::Config(_))
    ));
}

/// Nobody listens at an address of many, is reached there, or is asked there.
#[tokio::test]
async fn addresses_of_many_hosts_are_refused() {
    let bench = Bench::new();
    for (many, any) in [
        ("224.0.0.1:7001", "127.0.0.1:0"),
        ("255.255.255.255:7001", "127.0.0.1:0"),
        ("[ff02::1]:7001", "[::1]:0"),
        ("[::ffff:224.0.0.1]:7001", "[::1]:0"),
    ] {
        let many: SocketAddr = many.parse().unwrap();
        let setup = || {
            let mut setup = bench.setup(1, vec![]);
            setup.listen = any.parse().unwrap();
            setup
        };
        let mut listens = setup();
        listens.listen = many;
        let refused = Host::start(listens).await;
        assert!(
            matches!(refused, Err(HostError::ListenToMany { .. })),
            "{refused:?}"
        );
        let mut advertises = setup();
        advertises.advertise = vec!["10.1.2.3:7001".parse().unwrap(), many];
        let refused = Host::start(advertises).await;
        assert!(
            matches!(refused, Err(HostError::Advertise { .. })),
            "{refused:?}"
        );
        let mut joins = setup();
        joins.seeds = vec![many.into()];
        let refused = Host::start(joins).await;
        assert!(
            matches!(refused, Err(HostError::Seed { .. })),
            "{refused:?}"
        );
    }
    let nobody = vec!["0.0.0.0:7001".parse().unwrap()];
    let refused = Host::start(bench.setup(1, nobody)).await;
    assert!(
        matches!(refused, Err(HostError::Seed { .. })),
        "{refused:?}"
    );
}

/// A socket that nobody reads, and its address.
async fn silence() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn is_in(seen: &Seen, id: u64) -> bool {
    seen.node.0 == id && matches!(seen.event, Told::Membership(Event::Identity(_)))
}

#[tokio::test]
async fn a_seed_that_does_not_answer_is_looked_up_again() {
    let mut bench = Bench::new();
    let host = bench.start(1, vec![]).await;
    let (_silent, former) = silence().await;
    let now = host.address();
    let mut setup = bench.setup(2, vec![]);
    // Its name has two addresses by now, and one of them is for nobody.
    setup.seeds = vec![Seed::found_by("seed", vec![former], move || async move {
        Ok(vec!["224.0.0.1:1".parse().unwrap(), now])
    })];
    let other = Host::start(setup).await.unwrap();
    bench.wait_for(|seen| is_in(seen, 2)).await;
    assert_eq!(other.traffic().report().lookups, 1);
    // It is a member now and answers.
    let traffic = other.traffic();
    until(|| traffic.report().spared >= 2).await;
    assert_eq!(traffic.report().lookups, 1);
}

#[tokio::test]
async fn a_seed_with_several_addresses_is_asked_at_each() {
    let mut bench = Bench::new();
    let host = bench.start(1, vec![]).await;
    let ((_one, first), (_other, second)) = (silence().await, silence().await);
    let mut setup = bench.setup(2, vec![]);
    let addresses = vec![first, second, host.address()];
    // No lookup helps.
    let never = core::future::pending;
    setup.seeds = vec![Seed::found_by("seed", addresses, never)];
    let _other = Host::start(setup).await.unwrap();
    bench.wait_for(|seen| is_in(seen, 2)).await;
}

/// A node at `[::]` has neighbours of both families, and they are known by plain addresses.
#[tokio::test]
async fn a_node_at_any_address_speaks_to_both_families() {
    if UdpSocket::bind("[::1]:0").await.is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return;
    }
    let mut bench = Bench::new();
    let v4 = bench.start(1, vec![]).await;
    let mut setup = bench.setup(2, vec![v4.address()]);
    setup.listen = "[::]:0".parse().unwrap();
    let both = Host::start(setup).await.unwrap();
    bench.wait_for(|seen| is_in(seen, 2)).await;
    let port = both.address().port();
    let mut setup = bench.setup(3, vec![SocketAddr::from((Ipv6Addr::LOCALHOST, port))]);
    setup.listen = "[::1]:0".parse().unwrap();
    let v6 = Host::start(setup).await.unwrap();
    bench.wait_for(|seen| is_in(seen, 3)).await;
    let known = both.members().await.unwrap();
    for host in [&v4, &v6] {
        let line = known.iter().find(|known| known.member.id == host.id());
        assert_eq!(line.unwrap().address, Some(host.address()));
    }
    let known = v4.members().await.unwrap();
    let line = known.iter().find(|known| known.member.id == both.id());
    let seen_at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    assert_eq!(line.unwrap().address, Some(seen_at));
}

/// It tells two addresses, of which the first one leads nowhere.
#[tokio::test]
async fn a_node_with_several_addresses_is_reached_at_one_that_works() {
    let mut bench = Bench::new();
    let host = bench.start(1, vec![]).await;
    let (_silent, nowhere) = silence().await;
    let (free, listen) = silence().await;
    drop(free);
    let mut setup = bench.setup(2, vec![host.address()]);
    setup.listen = listen;
    setup.advertise = vec![nowhere, listen];
    let several = Host::start(setup).await.unwrap();
    let third = bench.start(3, vec![host.address()]).await;
    let joined = |seen: &Seen, who: u64| matches!(seen.event, Told::Membership(Event::Membership(Delta::Joined(it))) if it.id.0 == who);
    bench
        .wait_for(|seen| seen.node == third.id() && joined(seen, 2))
        .await;
    // Longer than it takes to declare somebody failed.
    let (sent, seconds) = (third.traffic().report().sent, Duration::from_secs(4));
    tokio::time::sleep(seconds).await;
    assert!(third.traffic().report().sent > sent);
    while let Ok(seen) = bench.seen.try_recv() {
        let failed = matches!(
            seen.event,
            Told::Membership(Event::Membership(Delta::Failed(_)))
        );
        assert!(!failed, "{seen:?}");
    }
    for other in [&host, &third] {
        let known = other.members().await.unwrap();
        let line = known.iter().find(|known| known.member.id == several.id());
        assert_eq!(line.unwrap().address, Some(listen));
    }
}

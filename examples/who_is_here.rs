//! A web service that answers the question "who is here?". Its requests and its host share one
//! machine through [`selvedge_core::shared`].
//!
//! Type it into two terminals; first the address to serve HTTP on, then the address for the mesh:
//!
//! ```text
//! cargo run -p selvedge-examples --example who_is_here -- 127.0.0.1:8001 127.0.0.1:7001
//! cargo run -p selvedge-examples --example who_is_here -- 127.0.0.1:8002 127.0.0.1:7002 127.0.0.1:7001
//! ```
//!
//! and into a third one:
//!
//! ```text
//! curl 127.0.0.1:8001/members
//! curl -N 127.0.0.1:8001/events &
//! curl -X PUT --data kitchen 127.0.0.1:8002/metadata
//! curl -X POST 127.0.0.1:8002/leave
//! ```

use core::convert::Infallible;
use core::error::Error;
use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use core::time::Duration;
use std::io;
use std::time::UNIX_EPOCH;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post, put};
use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use futures_util::stream;
use selvedge::frame;
use selvedge_core::shared::{self, Handle, Limits, Port, RecvError, Request};
use selvedge_core::{Driver, Effect, Incarnation, Input, Member, NodeId, Time};
use selvedge_membership::{Command, Config, Event, Membership, Message, Metadata, Reject};
use serde::Serialize;
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::{Instant, sleep};

/// A line of the list.
#[derive(Clone, Debug, Serialize)]
struct Line {
    address: String,
    incarnation: u32,
    status: String,
    metadata: String,
}

type Mesh = Handle<Membership, Vec<Line>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let usage = "arguments: who_is_here HTTP UDP [SEED..] (the address to serve on, the address for the mesh, and the nodes to join)";
    let mut addresses = std::env::args().skip(1);
    let http = TcpListener::bind(addresses.next().ok_or(usage)?).await?;
    let udp = UdpSocket::bind(addresses.next().ok_or(usage)?).await?;
    let seeds = addresses
        .map(|seed| Ok(to_id(seed.parse()?)))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let (mesh, port) = shared::channel(Limits::default(), Vec::new());
    let host = Host::new(udp, Config::default(), port).await?;
    tokio::spawn({
        let mesh = mesh.clone();
        async move {
            tokio::signal::ctrl_c().await?;
            println!("saying good-bye");
            mesh.submit(Command::Leave).await.map_err(io::Error::other)
        }
    });
    serve(http, host, mesh, seeds).await
}

/// Joins, and serves until the host has left.
async fn serve(
    http: TcpListener,
    host: Host,
    mesh: Mesh,
    seeds: Vec<NodeId>,
) -> Result<(), Box<dyn Error>> {
    let host = tokio::spawn(host.run());
    mesh.submit(Command::Join { seeds }).await?;
    let routes = Router::new()
        .route("/members", get(members))
        .route("/events", get(events))
        .route("/metadata", put(metadata))
        .route("/leave", post(leave))
        .with_state(mesh);
    let left = async {
        if let Err(error) = host.await {
            eprintln!("the host stopped: {error}");
        }
    };
    Ok(axum::serve(http, routes)
        .with_graceful_shutdown(left)
        .await?)
}

/// Reads the list. It does not delay the host, even with many requests at once.
async fn members(State(mesh): State<Mesh>) -> Response {
    Json(&*mesh.snapshot()).into_response()
}

/// Reports events from now on, a line each, until the node has left or the reader closes.
async fn events(State(mesh): State<Mesh>) -> Body {
    let lines = stream::unfold(mesh.subscribe(), |mut events| async {
        let line = match events.recv().await {
            Ok(event) => format!("{event:?}\n"),
            Err(RecvError::Lagged { missed }) => format!("missed {missed} events\n"),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok::<_, Infallible>(line), events))
    });
    Body::from_stream(lines)
}

/// Replaces the metadata of this node, which all others receive.
async fn metadata(State(mesh): State<Mesh>, bytes: Bytes) -> (StatusCode, String) {
    let metadata = Metadata(bytes.to_vec().into());
    answer(mesh.submit(Command::SetMetadata(metadata)).await)
}

/// Begins to say good-bye. When that is done the service ends.
async fn leave(State(mesh): State<Mesh>) -> (StatusCode, String) {
    answer(mesh.submit(Command::Leave).await)
}

fn answer(outcome: Result<(), shared::Error<Reject>>) -> (StatusCode, String) {
    let status = match outcome {
        Ok(()) => return (StatusCode::OK, "done\n".into()),
        Err(shared::Error::Rejected(_)) => StatusCode::CONFLICT,
        Err(shared::Error::Closed | shared::Error::Unanswered) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let reason = outcome.map_or_else(|error| error.to_string(), |()| String::new());
    (status, reason + "\n")
}

/// The one owner of the machine: a socket, a clock, a generator, a driver, and the port.
struct Host {
    driver: Driver<Membership>,
    rng: ChaCha12Rng,
    start: Instant,
    socket: UdpSocket,
    port: Port<Membership, Vec<Line>>,
    effects: Vec<Effect<Membership>>,
}

impl Host {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    async fn new(
        socket: UdpSocket,
        config: Config,
        port: Port<Membership, Vec<Line>>,
    ) -> Result<Self, Box<dyn Error>> {
        let SocketAddr::V4(address) = socket.local_addr()? else {
            return Err("give an IPv4 address to meet at: it is the node's id".into());
        };
        // A life that this node never had before, even if it restarts at once.
        let (incarnation, wait) = Incarnation::from_clock(UNIX_EPOCH.elapsed()?.into());
        sleep(wait.into()).await;
        let id = to_id(address);
        Ok(Self {
            driver: Driver::new(Membership::new(Member { id, incarnation }, config)?),
            rng: ChaCha12Rng::seed_from_u64(getrandom::u64()?),
            start: Instant::now(),
            socket,
            port,
            effects: Vec::new(),
        })
    }

    /// Runs until the node has left.
    async fn run(mut self) {
        const LONG: Duration = Duration::from_secs(3_600);
        let mut buffer = [0; 1_500];
        loop {
            let wait = self.driver.wait(self.now()).map_or(LONG, Duration::from);
            let mut request = None;
            tokio::select! {
                Ok(Request { command, reply }) = self.port.recv() => {
                    request = Some((reply, self.step(Input::Command(command))));
                }
                // An error of the socket means that an earlier datagram had no receiver.
                Ok((len, _)) = self.socket.recv_from(&mut buffer) => {
                    let datagram = buffer.get(..len).unwrap_or_default();
                    if let Ok(envelope) = frame::decode::<Message>(datagram, self.budget()) {
                        let (from, message) = (envelope.from, envelope.message);
                        // The machine refuses a peer that misbehaves. This host ignores the
                        // refusal.
                        self.step(Input::Message { from, message }).ok();
                    }
                }
                () = sleep(wait) => {
                    let (now, effects) = (self.now(), &mut self.effects);
                    self.driver.expire_into(now, &mut self.rng, effects);
                }
            }
            let events = self.send().await;
            let left = events.contains(&Event::Left);
            if request.is_some() || !events.is_empty() {
                self.port.publish(list(self.driver.machine()), events);
            }
            if let Some((reply, outcome)) = request {
                reply.send(outcome);
            }
            if left {
                return;
            }
        }
    }

    fn step(&mut self, input: Input<Membership>) -> Result<(), Reject> {
        let (now, effects) = (self.now(), &mut self.effects);
        self.driver.step_into(now, &mut self.rng, input, effects)
    }

    /// Sends the messages of the machine, in order, and returns the events.
    async fn send(&mut self) -> Vec<Event> {
        let (mut events, mut datagram) = (Vec::new(), Vec::new());
        let budget = self.budget();
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send { to, message } => {
                    let from = self.driver.machine().me();
                    // A machine keeps to its frame budget.
                    if frame::encode(from, &message, budget, &mut datagram).is_ok() {
                        // Best effort: the protocol makes up for lost messages.
                        self.socket.send_to(&datagram, to_address(to.id)).await.ok();
                    }
                }
                Effect::Event(event) => events.push(event),
                Effect::Multicast { .. } => {} // Not used by this protocol.
            }
        }
        events
    }

    fn budget(&self) -> usize {
        self.driver.machine().config().frame_budget.into()
    }

    fn now(&self) -> Time {
        Time::since_start(self.start.elapsed())
    }
}

fn list(machine: &Membership) -> Vec<Line> {
    machine
        .members()
        .map(|view| Line {
            address: to_address(view.member.id).to_string(),
            incarnation: view.member.incarnation.0,
            status: format!("{:?}", view.status).to_lowercase(),
            metadata: String::from_utf8_lossy(view.metadata).into_owned(),
        })
        .collect()
}

/// With IPv4 the address is the id, so there is nothing to look up.
fn to_id(address: SocketAddrV4) -> NodeId {
    NodeId(u64::from(address.ip().to_bits()) << 16 | u64::from(address.port()))
}

fn to_address(id: NodeId) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from_bits((id.0 >> 16) as u32), id.0 as u16)
}

#[cfg(test)]
mod tests {
    use selvedge_core::Span;
    use serde_json::Value;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    struct Service {
        http: SocketAddr,
        udp: SocketAddr,
        task: JoinHandle<Result<(), String>>,
    }

    async fn start(seeds: &[SocketAddr]) -> Service {
        let http = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (http_address, udp_address) = (http.local_addr().unwrap(), udp.local_addr().unwrap());
        let config = Config::default()
            .with_period(Span::millis(200))
            .with_jitter(Span::millis(20))
            .with_probe_timeout(Span::millis(60));
        let seeds = seeds
            .iter()
            .map(|seed| to_id(seed.to_string().parse().unwrap()))
            .collect();
        let (mesh, port) = shared::channel(Limits::default(), Vec::new());
        let host = Host::new(udp, config, port).await.unwrap();
        let serving = async move {
            let ended = serve(http, host, mesh, seeds).await;
            ended.map_err(|error| error.to_string())
        };
        Service {
            http: http_address,
            udp: udp_address,
            task: tokio::spawn(serving),
        }
    }

    impl Service {
        async fn open(&self, request: &str, body: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.http).await.unwrap();
            let len = body.len();
            let text = format!(
                "{request} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n{body}"
            );
            stream.write_all(text.as_bytes()).await.unwrap();
            stream
        }

        /// Asks, and returns the status and the body.
        async fn ask(&self, request: &str, body: &str) -> (u16, String) {
            let mut answer = String::new();
            let mut stream = self.open(request, body).await;
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let status = head.split(' ').nth(1).unwrap().parse().unwrap();
            (status, body.to_owned())
        }

        /// The line about the node that meets at `udp`.
        async fn line(&self, udp: SocketAddr) -> Option<Value> {
            let (status, body) = self.ask("GET /members", "").await;
            assert_eq!(status, 200);
            let list: Vec<Value> = serde_json::from_str(&body).unwrap();
            let address = udp.to_string();
            list.into_iter().find(|line| line["address"] == address)
        }

        async fn events(&self) -> BufReader<TcpStream> {
            BufReader::new(self.open("GET /events", "").await)
        }
    }

    /// Reads lines until one begins with `wanted`.
    async fn wait_for(events: &mut BufReader<TcpStream>, wanted: &str) {
        let read = async {
            let mut line = String::new();
            while !line.starts_with(wanted) {
                line.clear();
                assert_ne!(events.read_line(&mut line).await.unwrap(), 0, "no {wanted}");
            }
        };
        let found = timeout(PATIENCE, read).await;
        assert!(found.is_ok(), "no {wanted} within {PATIENCE:?}");
    }

    #[tokio::test]
    async fn two_services_answer_who_is_here() {
        let first = start(&[]).await;
        let mut events = first.events().await;
        // The head has been read, so the service has subscribed.
        wait_for(&mut events, "\r\n").await;
        let second = start(&[first.udp]).await;

        wait_for(&mut events, "Changed(Joined(").await;
        assert_eq!(first.line(second.udp).await.unwrap()["status"], "alive");

        let done = second.ask("PUT /metadata", "kitchen").await;
        assert_eq!(done, (200, "done\n".into()));
        // A caller that has the outcome, or saw the event, reads a list that reflects it.
        let own = second.line(second.udp).await.unwrap();
        assert_eq!(own["metadata"], "kitchen");
        wait_for(&mut events, "MetadataChanged(").await;
        let received = first.line(second.udp).await.unwrap();
        assert_eq!(received["metadata"], "kitchen");

        let (status, reason) = second.ask("PUT /metadata", &"x".repeat(601)).await;
        assert_eq!(status, 409);
        assert!(
            reason.contains("601 bytes, but at most 600 are allowed"),
            "{reason}"
        );

        let mut own_events = second.events().await;
        wait_for(&mut own_events, "\r\n").await;
        let (status, _) = second.ask("POST /leave", "").await;
        assert_eq!(status, 200);
        wait_for(&mut own_events, "Left").await;
        wait_for(&mut events, "Changed(Left(").await;
        let gone = first.line(second.udp).await;
        assert!(gone.is_none_or(|line| line["status"] == "left"));
        // The second service ends by itself though a reader is connected; the first one goes on.
        let ended = timeout(PATIENCE, second.task).await;
        assert_eq!(ended.unwrap().unwrap(), Ok(()));
        assert!(!first.task.is_finished());
    }
}

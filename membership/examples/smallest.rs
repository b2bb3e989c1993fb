//! The smallest host: one socket, one loop. Type it into two terminals:
//!
//! ```text
//! cargo run -p selvedge-membership --example smallest -- 127.0.0.1:7001
//! cargo run -p selvedge-membership --example smallest -- 127.0.0.1:7002 127.0.0.1:7001
//! ```

use core::error::Error;
use core::net::{Ipv4Addr, SocketAddrV4};
use std::net::UdpSocket;
use std::time::{Instant, UNIX_EPOCH};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::wire::{Envelope, VERSION};
use selvedge_core::{Driver, Effect, Incarnation, Input, Member, NodeId, Span, Time};
use selvedge_membership::{Command, Config, KIND, Membership, Message};

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn main() -> Result<(), Box<dyn Error>> {
    let addresses: Vec<SocketAddrV4> = (std::env::args().skip(1))
        .map(|address| address.parse())
        .collect::<Result<_, _>>()?;
    let (&listen, seeds) = addresses
        .split_first()
        .ok_or("the address to listen on is missing: run smallest ADDRESS [SEED..]")?;
    let socket = UdpSocket::bind(listen)?;

    // A life that this node never had before, even if it restarts at once.
    let (incarnation, wait) = Incarnation::from_clock(UNIX_EPOCH.elapsed()?.into());
    std::thread::sleep(wait.into());
    let id = to_id(listen);
    let machine = Membership::new(Member { id, incarnation }, Config::default())?;
    let mut driver = Driver::new(machine);
    let mut rng = ChaCha12Rng::seed_from_u64(getrandom::u64()?);
    let start = Instant::now();
    let mut effects = Vec::new();
    let mut buffer = [0; 1_500];

    let seeds = seeds.iter().copied().map(to_id).collect();
    let join = Input::Command(Command::Join { seeds });
    driver.step_into(Time::ZERO, &mut rng, join, &mut effects)?;
    loop {
        // 1. Carry out the machine's effects, in order.
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => {
                    let from = driver.machine().me();
                    let mut frame = vec![VERSION, KIND];
                    frame.extend(postcard::to_allocvec(&Envelope { from, message })?);
                    // Best effort: the protocol makes up for lost messages.
                    socket.send_to(&frame, to_address(to.id)).ok();
                }
                Effect::Event(event) => println!("{event:?}"),
                Effect::Multicast { .. } => {} // Not used by this protocol.
            }
        }
        // 2. When the deadline has come, call `expire`.
        let now = Time::since_start(start.elapsed());
        let wait = driver.wait(now);
        if wait == Some(Span::ZERO) {
            driver.expire_into(now, &mut rng, &mut effects);
            continue;
        }
        // 3. Until then, pass on messages. Any bytes may arrive.
        socket.set_read_timeout(wait.map(Into::into))?;
        let Ok((len, _)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        let Some([VERSION, KIND, body @ ..]) = buffer.get(..len) else {
            continue;
        };
        // A frame with bytes behind the message is invalid.
        let read = postcard::take_from_bytes::<Envelope<Message>>(body);
        if let Ok((Envelope { from, message }, [])) = read {
            let now = Time::since_start(start.elapsed());
            let input = Input::Message { from, message };
            // The machine refuses a peer that misbehaves. This host ignores the refusal.
            driver.step_into(now, &mut rng, input, &mut effects).ok();
        }
    }
}

/// With IPv4 the id encodes the address, so there is nothing to look up.
fn to_id(address: SocketAddrV4) -> NodeId {
    NodeId(u64::from(address.ip().to_bits()) << 16 | u64::from(address.port()))
}

fn to_address(id: NodeId) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::from_bits((id.0 >> 16) as u32), id.0 as u16)
}

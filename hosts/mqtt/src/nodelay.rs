//! Makes the broker inside send packets at once.
//!
//! It leaves Nagle's algorithm on, with which the second of two packets waits for the other side's delayed
//! acknowledgement, 40 ms, and has no setting for it. A connection inherits the option from the listening
//! socket, so it is set there; that socket is found among the files of this process.

use core::net::SocketAddr;
use core::time::Duration;
use std::{fs, io, thread};

use rustix::fd::OwnedFd;
use rustix::net::{getsockname, sockopt};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

/// The number of looks for the socket, a millisecond apart.
const LOOKS: u32 = 2_000;

/// Waits until this process listens here, and makes all new connections send at once. If the system does not
/// allow that, everything works, and is slower.
pub(crate) fn set(listen: SocketAddr) {
    for _ in 0..LOOKS {
        if let Ok(true) | Err(_) = look(listen) {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns true if the socket was found.
fn look(listen: SocketAddr) -> io::Result<bool> {
    let me = pidfd_open(getpid(), PidfdFlags::empty())?;
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|it| it.parse().ok()) else {
            continue;
        };
        // A file that was closed meanwhile is not the socket.
        let Ok(file) = pidfd_getfd(&me, number, PidfdGetfdFlags::empty()) else {
            continue;
        };
        if listens(&file, listen) {
            sockopt::set_tcp_nodelay(&file, true)?;
            return Ok(true);
        }
    }
    Ok(false)
}

fn listens(file: &OwnedFd, listen: SocketAddr) -> bool {
    let is_listening = sockopt::socket_acceptconn(file).unwrap_or(false);
    let address = getsockname(file).ok().filter(|_| is_listening);
    let address = address.and_then(|it| SocketAddr::try_from(it).ok());
    address == Some(listen)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::set;

    #[test]
    fn connections_that_come_send_at_once() {
        let listener = TcpListener::bind("127.61.4.1:0").unwrap();
        let listen = listener.local_addr().unwrap();
        let _before = TcpStream::connect(listen).unwrap();
        assert!(!listener.accept().unwrap().0.nodelay().unwrap());
        set(listen);
        let _after = TcpStream::connect(listen).unwrap();
        assert!(listener.accept().unwrap().0.nodelay().unwrap());
    }
}

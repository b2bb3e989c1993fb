//! Serves the API over TCP and a unix socket, on a thread of its own.

use core::time::Duration;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use axum::Router;
use rustix::fs::Mode;
use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, umask};
use selvedge_http::{Access, Page, Server, ServerError, accept, converse, converse_as};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::Failure;
use crate::api::{Api, served};
use crate::audit::By;
use crate::peers::Connection;

/// The most connections of each of the two; others wait.
pub(crate) const CONNECTIONS: usize = 2_048;
/// The time without a byte after which a connection is closed: longer than any request waits.
const IDLE: Duration = Duration::from_secs(3_700);

/// The interval at which a connection without traffic is probed.
const PROBES: Duration = Duration::from_secs(5);
/// The time after which a connection ends whose peer acknowledges nothing.
const SILENCE: Duration = Duration::from_secs(15);

/// The open files of an agent with all its connections.
const OPEN_FILES: u64 = 8_192;

/// Raises the limit of open files as far as all connections need it, and the system allows it.
pub(crate) fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(OPEN_FILES, |it| it.min(OPEN_FILES));
    if current.is_some_and(|it| it < wanted) {
        let limit = Rlimit {
            current: Some(wanted),
            maximum,
        };
        // With fewer files it serves fewer connections.
        setrlimit(Resource::Nofile, limit).ok();
    }
}

/// A unix socket, which is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may be gone.
        fs::remove_file(&self.path).ok();
    }
}

/// The sockets of an API, bound, so that a node starts only where it can be served.
#[derive(Debug)]
pub(crate) struct Bound {
    tcp: Option<Server>,
    unix: Option<(UnixListener, Socket)>,
}

impl Bound {
    pub(crate) fn new(tcp: Option<Server>, socket: Option<&Path>) -> Result<Self, Failure> {
        let unix = socket.map(bind).transpose()?;
        Ok(Self { tcp, unix })
    }

    /// The addresses, for people.
    pub(crate) fn addresses(&self) -> String {
        let tcp = self
            .tcp
            .as_ref()
            .map(|it| format!("http://{}", it.listens()));
        let unix = self.unix.as_ref();
        let unix = unix.map(|it| format!("unix:{}", it.1.path.display()));
        tcp.into_iter()
            .chain(unix)
            .collect::<Vec<_>>()
            .join(" and ")
    }

    /// Serves a router until the process ends. The socket goes when the answer is dropped.
    pub(crate) fn serve(
        self,
        access: Access,
        api: &Api,
        page: &Page,
    ) -> Result<Option<Socket>, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::Runtime)?;
        let over_tcp = served(api, access, page);
        // Who may open the socket needs no token.
        let over_unix = served(api, Access::default(), page);
        let peers = api.peers().clone();
        let peers_of_unix = peers.clone();
        let tcp = self.tcp.map(Server::into_listener);
        let (unix, socket) = self.unix.unzip();
        let serves = async move {
            let tcp = async {
                let Some(tcp) = tcp else { return Ok(()) };
                let listener = tokio::net::TcpListener::from_std(tcp)?;
                let converse = move |stream: TcpStream| {
                    // Without these options it ends later.
                    ends_with_its_peer(&stream).ok();
                    let address = stream.peer_addr().ok();
                    let by = address.map(|address| By::Address { address });
                    talk(stream, by, over_tcp.clone(), peers.enter(by))
                };
                accept::serve(listener, CONNECTIONS, converse)
                    .await
                    .map(drop)
            };
            let unix = async {
                let Some(unix) = unix else { return Ok(()) };
                let listener = tokio::net::UnixListener::from_std(unix)?;
                let converse = move |stream: tokio::net::UnixStream| {
                    let by = stream.peer_cred().ok().map(|it| By::Process {
                        uid: it.uid(),
                        // A process of another container has none here.
                        pid: it.pid().filter(|it| *it > 0),
                    });
                    talk(stream, by, over_unix.clone(), peers_of_unix.enter(by))
                };
                accept::serve(listener, CONNECTIONS, converse)
                    .await
                    .map(drop)
            };
            tokio::try_join!(tcp, unix)
        };
        thread::Builder::new()
            .name("api".into())
            .spawn(move || runtime.block_on(serves).err())
            .map_err(ServerError::Thread)?;
        Ok(socket)
    }
}

/// Serves a connection, unless its peer has too many: then it is closed.
async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    by: Option<By>,
    router: Router,
    place: Option<Connection>,
) {
    let Some(_place) = place else {
        return;
    };
    match by {
        Some(by) => converse_as(by, stream, router, IDLE).await,
        None => converse(stream, router, IDLE).await,
    }
}

/// Has the system end a connection whose peer is silent, as after a power cut, also while nothing is sent.
fn ends_with_its_peer(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBES)?;
    sockopt::set_tcp_keepintvl(stream, PROBES)?;
    // Of bytes that were sent, and of probes. Other systems have their own limits.
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(
        stream,
        u32::try_from(SILENCE.as_millis()).unwrap_or(u32::MAX),
    )?;
    Ok(())
}

/// Binds a socket that its user alone may open. One that a killed agent has left is replaced.
fn bind(path: &Path) -> Result<(UnixListener, Socket), Failure> {
    let failed = |source: io::Error| Failure::Socket {
        path: path.to_owned(),
        source,
    };
    if UnixStream::connect(path).is_ok() {
        return Err(failed(io::ErrorKind::AddrInUse.into()));
    }
    let is_socket = |it: fs::Metadata| it.file_type().is_socket();
    if fs::symlink_metadata(path).is_ok_and(is_socket) {
        fs::remove_file(path).map_err(failed)?;
    }
    // Not even for a moment may others open it.
    let before = umask(Mode::XUSR | Mode::RWXG | Mode::RWXO);
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener.map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let socket = Socket {
        path: path.to_owned(),
    };
    Ok((listener, socket))
}

#[cfg(test)]
mod tests {
    use rustix::net::sockopt;
    use tokio::net::{TcpListener, TcpStream};

    use super::{PROBES, ends_with_its_peer};

    #[tokio::test]
    async fn a_connection_is_probed_and_has_a_limit_of_silence() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (here, there) = tokio::join!(TcpStream::connect(at), listener.accept());
        let (_here, (there, _)) = (here.unwrap(), there.unwrap());
        ends_with_its_peer(&there).unwrap();
        assert!(sockopt::socket_keepalive(&there).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&there).unwrap(), PROBES);
        assert_eq!(sockopt::tcp_keepintvl(&there).unwrap(), PROBES);
        #[cfg(target_os = "linux")]
        assert_eq!(sockopt::tcp_user_timeout(&there).unwrap(), 15_000);
    }
}

//! Serves the API over TCP and a unix socket, on a thread of its own.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::thread;
use std::{fs, io};

use axum::Router;
use selvedge_http::{Access, Page, Server, ServerError, accept, converse, guarded};

use crate::Failure;

/// The most connections of each of the two; others wait.
const CONNECTIONS: usize = 1_024;
/// The time without a byte after which a connection is closed: longer than any request waits.
const IDLE: Duration = Duration::from_secs(3_700);

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

/// Serves a router until the process ends; returns the address over TCP, and the socket.
pub(crate) fn serve(
    server: Server,
    access: Access,
    socket: Option<&Path>,
    router: Router,
    page: &Page,
) -> Result<(SocketAddr, Option<Socket>), Failure> {
    let address = server.listens();
    let tcp = guarded(router.clone(), access, page);
    // Who may open the socket needs no token.
    let unix = guarded(router, Access::default(), page);
    let bound = socket.map(bind).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let listener = server.into_listener();
    let serves = async move {
        if let Some(listener) = bound {
            tokio::spawn(async move {
                let listener = tokio::net::UnixListener::from_std(listener)?;
                let converse = move |stream| converse(stream, unix.clone(), IDLE);
                accept::serve(listener, CONNECTIONS, converse).await
            });
        }
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let converse = move |stream| converse(stream, tcp.clone(), IDLE);
        accept::serve(listener, CONNECTIONS, converse).await
    };
    thread::Builder::new()
        .name("api".into())
        .spawn(move || runtime.block_on(serves).err())
        .map_err(ServerError::Thread)?;
    let socket = socket.map(|path| Socket {
        path: path.to_owned(),
    });
    Ok((address, socket))
}

/// Binds a socket that its user alone may open. One that a killed agent has left is replaced.
fn bind(path: &Path) -> Result<std::os::unix::net::UnixListener, Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |source: io::Error| Failure::Socket {
        path: path.to_owned(),
        source,
    };
    if std::os::unix::net::UnixStream::connect(path).is_ok() {
        return Err(failed(io::ErrorKind::AddrInUse.into()));
    }
    let is_socket = |it: fs::Metadata| {
        use std::os::unix::fs::FileTypeExt as _;
        it.file_type().is_socket()
    };
    if fs::symlink_metadata(path).is_ok_and(is_socket) {
        fs::remove_file(path).map_err(failed)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

//! Requests, one connection each.

use core::time::Duration;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;

/// The time for which a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The status and the body of an answer; 0 if no server is there, or none answers in time.
pub(crate) fn request(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String) {
    let asked = || {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let len = body.len();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\n{headers}content-length: {len}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, io::Error>(answer)
    };
    let answer = asked().unwrap_or_default();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return (0, String::new());
    };
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    (status.unwrap_or(0), body.into())
}

//! The log of a running process.

use std::io::Read as _;
use std::process::Stdio;

use crate::support::{Node, command};

/// A process whose standard error is read.
pub(crate) fn spawn_received(arguments: &str, password: &str) -> Node {
    let mut command = command(arguments, password);
    Node(
        command
            .arg("--is-child")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

impl Node {
    /// Its log up to a line with this text.
    pub(crate) fn wait_until_said(&mut self, text: &str) -> String {
        let mut reported = String::new();
        let error = self.0.stderr.as_mut().unwrap();
        while !(reported.contains(text) && reported.ends_with('\n')) {
            let mut byte = [0];
            assert_eq!(
                error.read(&mut byte).unwrap(),
                1,
                "no {text:?} in {reported}"
            );
            reported.push(char::from(byte[0]));
        }
        reported
    }
}

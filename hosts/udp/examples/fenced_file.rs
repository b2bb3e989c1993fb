//! A resource that refuses requests of former holders: a file of lines, each with a fencing token.
//!
//! ```console
//! $ cargo run --example fenced_file
//! ```
//!
//! A lock of a mesh ends where its holder sleeps for too long: with `Setup::takeover` another node
//! enters, and the sleeper does not know yet. So each request carries the guard's token
//! (`FencingToken::from(guard.token())`; `FencingToken::from(ballot)` for a leader), and the
//! resource compares. A database does it with a column: `UPDATE .. WHERE token <= ?`.

#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use selvedge_core::FencingToken;
use thiserror::Error;

/// An append-only file. One process has it open, and serves all others.
#[derive(Debug)]
struct FencedFile {
    file: File,
    largest: FencingToken,
}

#[derive(Debug, Error)]
enum AppendError {
    #[error("token {given} is older than {largest}: take the lock again")]
    Stale {
        given: FencingToken,
        largest: FencingToken,
    },
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FencedFile {
    /// Opens the file, or makes it. The largest token is that of the last line, so it survives a
    /// restart of the resource.
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path)?;
        let mut largest = FencingToken::default();
        let mut reader = BufReader::new(&file);
        let (mut line, mut whole) = (String::new(), 0);
        while reader.read_line(&mut line)? > 0 && line.ends_with('\n') {
            let token = line.split(' ').next().and_then(|it| it.parse().ok());
            largest = token.ok_or(io::ErrorKind::InvalidData)?;
            whole += line.len() as u64;
            line.clear();
        }
        // A line that a crash cut off was never reported as stored.
        file.set_len(whole)?;
        Ok(Self { file, largest })
    }

    /// Appends a line, which is on the disk when this returns.
    fn append(&mut self, token: FencingToken, line: &str) -> Result<(), AppendError> {
        if token < self.largest {
            let (given, largest) = (token, self.largest);
            return Err(AppendError::Stale { given, largest });
        }
        // Before the write: if that fails half way, older tokens are refused all the same.
        self.largest = token;
        self.file
            .write_all(format!("{token} {line}\n").as_bytes())?;
        Ok(self.file.sync_data()?)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("fenced-{}.txt", std::process::id()));
    let mut file = FencedFile::open(&path)?;
    // As two holders of one lock have them, one after the other.
    let [ada, bob] = [7, 8].map(|number| FencingToken::from_parts(number, 1, 0, 0));
    file.append(ada, "Ada, who falls asleep with the lock")?;
    file.append(bob, "Bob, who took it over")?;
    let refused = file.append(ada, "Ada, who wakes up").is_err();
    println!("Ada's late line is refused: {refused}");
    let mut file = FencedFile::open(&path)?;
    println!("after a restart, too: {}", file.append(ada, "Ada").is_err());
    print!("{}", std::fs::read_to_string(&path)?);
    Ok(std::fs::remove_file(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_holder_is_refused_also_after_a_crash_in_a_write() -> Result<(), io::Error> {
        let path = std::env::temp_dir().join(format!("fenced-test-{}.txt", std::process::id()));
        let [first, second] = [1, 2].map(|number| FencingToken::from_parts(number, 1, 0, 0));
        let mut file = FencedFile::open(&path)?;
        assert!(file.append(first, "one").is_ok() && file.append(second, "two").is_ok());
        assert!(matches!(
            file.append(first, "late"),
            Err(AppendError::Stale { .. })
        ));
        assert!(file.append(second, "three").is_ok());
        let whole = std::fs::read_to_string(&path)?;
        OpenOptions::new()
            .append(true)
            .open(&path)?
            .write_all(b"0000")?;
        let mut file = FencedFile::open(&path)?;
        assert_eq!(std::fs::read_to_string(&path)?, whole);
        assert!(file.append(first, "late").is_err() && file.append(second, "four").is_ok());
        std::fs::remove_file(path)
    }
}

//! `selvedge key`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use selvedge_seal::create_key_file;

use super::Failure;

/// Make a file with a new key for a mesh, which no other user may read
///
/// Every node of a mesh gets a copy. To change keys without an interruption: add the new file's key
/// line at the end of every node's file, restart all nodes, move the line to the front, restart all
/// nodes, and remove the old line.
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// File to make; an existing file is never overwritten
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Key {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        create_key_file(&self.file)?;
        let path = self.file.display();
        writeln!(
            io::stdout(),
            "{path} has a new key: copy it to every node, and start them with --key"
        )
        .map_err(Failure::Output)?;
        Ok(true)
    }
}

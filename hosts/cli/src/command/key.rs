//! `selvedge key`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use selvedge_seal::create_key_file;

use super::Failure;

/// Make a file with a new key for a mesh, which no other user may read
///
/// All nodes of a mesh get a copy. To change keys without a gap, add the line of a new file's key
/// to the end of everyone's file, restart all, move it to the front, restart all, and take the old
/// one out.
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// The file to make; none is written over
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

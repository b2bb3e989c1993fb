//! `selvedge key` and `selvedge keys`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use selvedge_seal::{
    KeyName, Readers, add_key, create_key_file, read_group_key_file, read_key_file, remove_key,
    use_key,
};

use super::Failure;

/// Make a file with a new key for a mesh, which no other user may read
///
/// Every node of a mesh gets a copy. `selvedge keys` changes the keys.
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

/// List or change the keys in a file, to replace the key of a mesh without an interruption
///
/// The first key seals, all open. Change one file, copy it to all nodes, and send each of them
/// SIGHUP, which has it read the file again and print the names of its keys: first with `add`, then
/// with `use`, and last with `remove` of the old key. Each round is over at all nodes before the next one
/// begins.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Print the names of the keys: the first one seals
    List {
        #[command(flatten)]
        of: File,
    },
    /// Add a new key, which opens and does not seal yet
    Add {
        #[command(flatten)]
        of: File,
    },
    /// Make a key the first one, which seals
    Use {
        #[command(flatten)]
        of: File,
        /// Name of the key, from `selvedge keys list`
        name: KeyName,
    },
    /// Remove a key that does not seal
    Remove {
        #[command(flatten)]
        of: File,
        /// Name of the key, from `selvedge keys list`
        name: KeyName,
    },
}

#[derive(Debug, Args)]
struct File {
    /// File with the keys
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Accept a key file that its group may read (mode 0440 or 0640)
    #[arg(long)]
    group_reads_key: bool,
}

impl File {
    const fn readers(&self) -> Readers {
        match self.group_reads_key {
            true => Readers::Group,
            false => Readers::Owner,
        }
    }
}

impl Keys {
    pub(crate) fn run(self) -> Result<bool, Failure> {
        let of = match self.change {
            Change::List { of } => of,
            Change::Add { of } => {
                add_key(&of.path, of.readers())?;
                of
            }
            Change::Use { of, name } => {
                use_key(&of.path, of.readers(), name)?;
                of
            }
            Change::Remove { of, name } => {
                remove_key(&of.path, of.readers(), name)?;
                of
            }
        };
        let mut out = io::stdout().lock();
        let uses = core::iter::once("seals and opens").chain(core::iter::repeat("opens"));
        let keys = match of.readers() {
            Readers::Owner => read_key_file(&of.path)?,
            Readers::Group => read_group_key_file(&of.path)?,
        };
        for (name, does) in keys.names().zip(uses) {
            writeln!(out, "{name}  {does}").map_err(Failure::Output)?;
        }
        Ok(true)
    }
}

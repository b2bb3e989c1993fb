//! Writes the seeds into the corpora: `cargo run -p selvedge-hosts-fuzz --example seeds`.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/agent_api");
    fs::create_dir_all(&corpus)?;
    let seeds = selvedge_hosts_fuzz::seeds();
    for (name, bytes) in &seeds {
        fs::write(corpus.join(format!("seed-{name}")), bytes)?;
    }
    println!("{} seeds written to {}", seeds.len(), corpus.display());
    Ok(())
}

//! Writes the seeds into the corpora: `cargo run -p selvedge-fuzz --example seeds`.

use std::path::Path;
use std::{fs, io};

fn main() -> io::Result<()> {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut count = 0;
    for seed in selvedge_fuzz::seeds() {
        let corpus = corpora.join(seed.target);
        fs::create_dir_all(&corpus)?;
        fs::write(corpus.join(format!("seed-{}", seed.name)), &seed.bytes)?;
        count += 1;
    }
    println!("{count} seeds written to {}", corpora.display());
    Ok(())
}

//! Assembles a module from its text: `cargo run --example assemble TEXT.wat MODULE.wasm`.

use core::error::Error;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let mut names = env::args().skip(1);
    let (Some(from), Some(to)) = (names.next(), names.next()) else {
        return Err("name the text and the module".into());
    };
    fs::write(to, wat::parse_file(from)?)?;
    Ok(())
}

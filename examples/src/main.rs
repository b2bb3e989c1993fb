//! The selvedge command.
fn main() {}

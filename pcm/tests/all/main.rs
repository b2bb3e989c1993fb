//! All tests as one program.

mod tables;

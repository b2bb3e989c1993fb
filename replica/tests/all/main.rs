//! All tests as one program.

mod props;

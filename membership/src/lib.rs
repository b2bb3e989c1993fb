//! Who is here.

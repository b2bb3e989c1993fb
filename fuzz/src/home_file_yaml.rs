//! Routine files in YAML: as people write them, and malformed ones.

use selvedge_routine::Catalogue;
use selvedge_routine::file::{Fault, FileError, Format, Home};

/// Reads `data` as a routine file in YAML, with all the checks of a reader.
///
/// For any bytes, reading ends without a panic. If `data` is a file, its written form in either
/// format is read as an equal home, and writing that again gives the same text.
///
/// # Panics
/// When that does not hold.
pub fn home_file_yaml(data: &[u8]) {
    let home = match Home::lint(Format::Yaml, data, Catalogue::new()) {
        Ok((home, lints)) => {
            let is_reported = |it: &selvedge_routine::file::Lint| !it.to_string().is_empty();
            assert!(lints.iter().all(is_reported), "a lint has a text");
            home
        }
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has a text");
            return;
        }
    };
    stays(&home);
}

/// Panics unless a home that is written in both formats and read again is the same.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub(crate) fn stays(home: &Home) {
    for format in [Format::Json, Format::Yaml] {
        let written = match home.write_as(format) {
            Ok(written) => written,
            Err(error) if is_too_large(home, &error) => continue,
            Err(error) => panic!("a home that was read is not written: {error}"),
        };
        let again = Home::read_as(format, written.as_bytes(), Catalogue::new())
            .unwrap_or_else(|error| panic!("the written form is not read: {error}\n{written}"));
        assert_eq!(&again, home, "written again it reads differently");
        assert_eq!(
            again.write_as(format).as_ref(),
            Ok(&written),
            "it is written in two ways"
        );
    }
}

/// Repetitions that are written out may be larger than a file.
pub(crate) fn is_too_large(home: &Home, error: &FileError) -> bool {
    let commands: usize = home.routines.iter().map(|it| it.routine.steps.len()).sum();
    let is_large = |it: &Fault| matches!(it, Fault::LargeFile { .. });
    commands > 200 && matches!(error, FileError::Meaning { fault, .. } if is_large(fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_file_unless_it_is_meant_to_be_bad() {
        for seed in seeds().filter(|seed| seed.target == "home_file_yaml") {
            let read = Home::read_as(Format::Yaml, &seed.bytes, Catalogue::new());
            let is_bad = seed.name.starts_with("bad-");
            assert_eq!(read.is_err(), is_bad, "{}: {read:?}", seed.name);
        }
    }
}

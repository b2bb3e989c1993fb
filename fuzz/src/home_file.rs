//! Routine files: as people write them, and malformed ones.

use selvedge_routine::file::{Home, write_routine};

use crate::home_file_yaml::is_too_large;

/// Reads `data` as a routine file.
///
/// For any bytes, reading ends without a panic. If `data` is a file:
/// - its written form is read as an equal home, and writing that again gives the same text;
/// - each of its routines, written as the paper does, is read as that routine.
///
/// # Panics
/// When one of these does not hold.
#[allow(clippy::panic, reason = "a target reports a broken promise by a panic")]
pub fn home_file(data: &[u8]) {
    let home = match Home::read(data) {
        Ok(home) => home,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error has a text");
            return;
        }
    };
    let written = match home.write() {
        Ok(written) => written,
        Err(error) if is_too_large(&home, &error) => return,
        Err(error) => panic!("a home that was read is not written: {error}"),
    };
    let again = Home::read(written.as_bytes())
        .unwrap_or_else(|error| panic!("the written form is not read: {error}\n{written}"));
    assert_eq!(again, home, "written again it reads differently");
    assert_eq!(
        again.write().as_ref(),
        Ok(&written),
        "it is written in two ways"
    );
    for it in &home.routines {
        let text = write_routine(&it.name, &it.routine, &home.catalogue)
            .unwrap_or_else(|error| panic!("{:?} is not written: {error}", it.name));
        let single = Home::read_with(text.as_bytes(), home.catalogue.clone());
        let single = single.map(|mut home| home.routines.pop().map(|it| it.routine));
        assert_eq!(
            single.as_ref().map(Option::as_ref),
            Ok(Some(&it.routine)),
            "a routine alone reads differently"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_a_file_unless_it_is_meant_to_be_bad() {
        for seed in seeds().filter(|seed| seed.target == "home_file") {
            let read = Home::read(&seed.bytes);
            assert_eq!(
                read.is_err(),
                seed.name.starts_with("bad-"),
                "{}: {read:?}",
                seed.name
            );
        }
    }
}

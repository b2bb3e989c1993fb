//! Scripts and automations of Home Assistant.

use selvedge_routine::file::home_assistant::read;
use selvedge_routine::{Catalogue, Location, Number};

use crate::home_file_yaml::stays;

/// Reads `data` as scripts or automations.
///
/// For any bytes, reading ends without a panic, and reports the parts that it does not understand.
/// If it understands all of them, each routine has a command, and the home is written and read as
/// any other.
///
/// # Panics
/// When that does not hold.
pub fn home_assistant(data: &[u8]) {
    match read(data, Catalogue::new()) {
        Ok(mut home) => {
            assert!(!home.routines.is_empty(), "there is something to do");
            for it in &home.routines {
                assert!(!it.routine.steps.is_empty(), "each does something");
            }
            // For sunrise and sunset.
            let (latitude, longitude) = (Number::from(52), Number::from(13));
            home.location = Some(Location {
                latitude,
                longitude,
            });
            stays(&home);
        }
        Err(missed) => {
            assert!(!missed.is_empty(), "a refusal has a reason");
            assert!(missed.iter().all(|it| !it.to_string().is_empty()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;

    #[test]
    fn every_seed_is_understood_unless_it_is_meant_to_be_bad() {
        for seed in seeds().filter(|seed| seed.target == "home_assistant") {
            let read = read(&seed.bytes, Catalogue::new());
            let is_bad = seed.name.starts_with("bad-");
            assert_eq!(read.is_err(), is_bad, "{}: {read:?}", seed.name);
        }
    }
}

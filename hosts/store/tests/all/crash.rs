//! Power cuts at any operation of the disk.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use selvedge_store::StoreError;

use crate::disk::Disk;
use crate::log::{begin, open, write};

/// Lives that end with a power cut, each at any operation. Returns an error if a stored number is missing, or
/// a number is present that was never stored.
fn lives(disk: &Disk, seed: u64) -> Result<(), String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |below: u64| rng.next_u64() % below;
    // The number of stored numbers, and the largest possible number.
    let (mut stored, mut most) = (None, None);
    for life in 0..8 {
        if life > 0 {
            disk.cut_power_after(draw(80));
        }
        let mut work = || -> Result<(), StoreError> {
            let (mut store, found) = open(disk.clone())?;
            if found < stored || found > most {
                return Ok(()); // The next life reports it.
            }
            let begun = found.unwrap_or_default();
            (stored, most) = (found, Some(begun));
            begin(&mut store, begun)?;
            stored = most;
            for _ in 0..draw(6) {
                let (first, last) = (
                    stored.unwrap_or_default(),
                    most.unwrap_or_default() + draw(5),
                );
                most = Some(last);
                write(&mut store, first..last)?;
                stored = most;
            }
            Ok(())
        };
        let ended = work();
        if let Err(StoreError::Damage(damage)) = &ended {
            return Err(format!("life {life}: {damage}"));
        }
        let mut chance = ChaCha8Rng::seed_from_u64(seed ^ life << 32);
        disk.crash(&mut chance);
        let (_, found) =
            open(Disk::of(&disk.bytes())).map_err(|it| format!("life {life}: {it}"))?;
        if found < stored || found > most {
            return Err(format!(
                "life {life}: {stored:?} were stored, {most:?} at most, and {found:?} are there"
            ));
        }
    }
    Ok(())
}

#[test]
fn what_was_stored_is_there_after_a_power_cut_at_any_moment() {
    for seed in 0..15 {
        let lived = lives(&Disk::default(), seed);
        assert_eq!(lived, Ok(()), "seed {seed}");
    }
}

/// The test above finds the loss of a store that answers too early.
#[test]
fn a_disk_that_does_not_synchronise_loses_what_was_stored() {
    let lost = (0..8).filter(|&seed| lives(&Disk::forgetful(), seed).is_err());
    assert!(lost.count() > 4);
}

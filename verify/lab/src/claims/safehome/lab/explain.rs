//! A search for a serial order that explains the end of a run.

use super::super::scenario::Need;

/// Returns true if the devices are as some order of all these leaves them. The state of a device is
/// the number of the routine that changed it last, from 1.
///
/// A routine that can be the last one is taken as the last: its changes are explained then, and no
/// order that has it earlier explains more. So this finds an order if one exists.
pub(super) fn explains(routines: &[&[Need]], states: &[u32]) -> bool {
    let mut is_open = vec![true; states.len()];
    let mut left: Vec<usize> = (0..routines.len()).collect();
    loop {
        let before = left.len();
        left.retain(|&number| {
            let needs = routines.get(number).copied().unwrap_or_default();
            let is_last = |need: &Need| {
                let device = need.0 as usize;
                let is_its_own = states.get(device) == Some(&(number as u32 + 1));
                is_its_own || is_open.get(device) == Some(&false)
            };
            if !needs.iter().all(is_last) {
                return true;
            }
            for need in needs {
                if let Some(open) = is_open.get_mut(need.0 as usize) {
                    *open = false;
                }
            }
            false
        });
        if left.is_empty() {
            // A device that no routine changed is as it was.
            let mut all = states.iter().zip(&is_open);
            return all.all(|(&state, &open)| !open || state == 0);
        }
        if left.len() == before {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;
    use selvedge_core::Choose;

    use super::*;

    /// Returns true if any order leaves the devices so: every order is tried.
    fn tried(routines: &[&[Need]], states: &[u32], order: &mut Vec<usize>) -> bool {
        if order.len() == routines.len() {
            let mut ends = vec![0; states.len()];
            for &number in order.iter() {
                for need in routines[number] {
                    ends[need.0 as usize] = number as u32 + 1;
                }
            }
            return ends == states;
        }
        (0..routines.len()).any(|next| {
            if order.contains(&next) {
                return false;
            }
            order.push(next);
            let is_found = tried(routines, states, order);
            order.pop();
            is_found
        })
    }

    #[test]
    fn an_end_is_explained_when_one_of_all_orders_has_it() {
        let mut counts = [0, 0];
        for seed in 0..2_000 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let routines: Vec<Vec<Need>> = (0..5)
                .map(|_| {
                    (0..4)
                        .filter(|_| rng.below(2) == 0)
                        .map(|it| (it, 1))
                        .collect()
                })
                .collect();
            let routines: Vec<&[Need]> = routines.iter().map(Vec::as_slice).collect();
            let states: Vec<u32> = (0..4)
                .map(|device| {
                    let writes = |number: &u32| {
                        let needs = routines[*number as usize - 1];
                        needs.iter().any(|it| it.0 == device)
                    };
                    let writers: Vec<u32> = (1..=5).filter(writes).collect();
                    let nth = rng.below(writers.len() as u64) as usize;
                    writers.get(nth).copied().unwrap_or_default()
                })
                .collect();
            let is_one = tried(&routines, &states, &mut Vec::new());
            assert_eq!(explains(&routines, &states), is_one, "seed {seed}");
            counts[usize::from(is_one)] += 1;
        }
        assert!(counts.iter().all(|&it| it > 100), "{counts:?}");
    }
}

//! Stored states that were damaged at random.

use core::cell::RefCell;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use selvedge_core::{Delta, Effect, Input, Member, NodeId};
use selvedge_safehome::check::operations::run_under;
use selvedge_safehome::{Command, Config, Event, Hub, Outcome, Saved, Visibility};
use selvedge_sim::histories;

use crate::save::host::Host;

thread_local! {
    static STORED: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Keeps what is stored.
fn kept(saved: Saved<u8>) -> Result<Saved<u8>, String> {
    let bytes = postcard::to_allocvec(&saved).map_err(|error| error.to_string())?;
    STORED.with_borrow_mut(|it| it.push(bytes));
    Ok(saved)
}

/// Files with bytes changed, cut or repeated. Either there is an error, or a hub that keeps its
/// invariants whatever it is told, and comes to rest.
#[test]
fn a_damaged_state_is_refused_or_does_no_harm() {
    let (mut refused, mut taken) = (0, 0);
    histories(0..300, |seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut operations = vec![0; 200];
        rng.fill_bytes(&mut operations);
        // Restarts around every step.
        operations[2] = operations[2] & !6 | 2;
        STORED.with_borrow_mut(Vec::clear);
        run_under(&operations, &[], kept).unwrap();
        let stored = STORED.with_borrow_mut(core::mem::take);
        for _ in 0..40 {
            let mut bytes = stored[rng.next_u32() as usize % stored.len()].clone();
            for _ in 0..=rng.next_u32() % 3 {
                let at = rng.next_u32() as usize % bytes.len();
                match rng.next_u32() % 4 {
                    0 => bytes[at] = bytes[at].wrapping_add(1),
                    1 => bytes[at] ^= 1 << (rng.next_u32() % 8),
                    2 => bytes[at] = rng.next_u32() as u8,
                    _ => drop(bytes.remove(at)),
                }
            }
            let Ok(saved) = postcard::from_bytes::<Saved<u8>>(&bytes) else {
                refused += 1;
                continue;
            };
            let visibilities = [
                Visibility::Eventual,
                Visibility::PartitionedStrict,
                Visibility::GlobalStrict,
                Visibility::StrongGlobalStrict,
                Visibility::Weak,
            ];
            let mut hubs = visibilities.into_iter().filter_map(|visibility| {
                let config = Config::default().with_visibility(visibility);
                Hub::restore(config, saved.clone()).ok()
            });
            match hubs.next() {
                None => refused += 1,
                Some(hub) => {
                    taken += 1;
                    go_on(Host::of(hub));
                }
            }
        }
    });
    println!("{refused} refused, {taken} taken");
    assert!(refused > 0 && taken > 0);
}

/// All commands are done, until all is over.
fn go_on(mut host: Host) {
    let mut open = host.tell(Command::Resume).unwrap();
    let down: Vec<NodeId> = (0..8)
        .map(NodeId)
        .filter(|it| !host.hub.machine().is_up(*it))
        .collect();
    for id in down {
        // Of those that it does not know it wants to hear nothing.
        for incarnation in [0, u32::MAX / 4, u32::MAX / 2, u32::MAX] {
            let delta = Delta::Refuted(Member::new(id.0, incarnation));
            open.extend(host.input(Input::Membership(delta)).unwrap_or_default());
        }
    }
    for _ in 0..3_000 {
        host.hub.machine().check().unwrap();
        let Some(event) = open.pop() else {
            let Some(due) = host.hub.deadline() else {
                break;
            };
            host.now = due;
            let (hub, rng) = (&mut host.hub, &mut host.rng);
            hub.expire(due, rng, |it| {
                let Effect::Event(event) = it;
                open.push(event);
            });
            continue;
        };
        if let Event::Issue { device, token, .. } | Event::Ask { device, token } = event {
            let outcome = Outcome::Done;
            let done = Command::Outcome {
                device,
                token,
                outcome,
            };
            // After a timeout nobody waits for it.
            open.extend(host.tell(done).unwrap_or_default());
        }
    }
    assert!(host.hub.machine().is_quiet(), "{:#?}", host.hub.machine());
}

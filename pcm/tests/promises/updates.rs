//! Any updates in any order, for the tables alone: none changes anything a second time, an update whose
//! outcome is predicted changes nothing, and the state stays within the limits.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Member, NodeId};
use selvedge_pcm::{
    Answer, Assignment, Attachment, DutyCycle, Failure, Function, Hops, Library, Limits, Returned,
    Tables, TaskId, Update, Voters,
};
use selvedge_replica::State as _;
use selvedge_sim::histories::seeds;

fn pick(rng: &mut ChaCha8Rng, of: &[u64]) -> u64 {
    of[rng.below(of.len() as u64) as usize]
}

fn member(rng: &mut ChaCha8Rng) -> Member {
    let lives = [0, 1, u64::from(u32::MAX), 1 << 31];
    Member::new(1 + rng.below(8), pick(rng, &lives) as u32)
}

fn attachment(rng: &mut ChaCha8Rng) -> Attachment {
    let ms = [0, 1, 60_000, 120_000, u64::from(u32::MAX)];
    Attachment {
        member: member(rng),
        number: pick(rng, &[0, 1, 2, u64::from(u32::MAX)]) as u32,
        gateway: NodeId(rng.below(3)),
        duty: DutyCycle {
            active_ms: pick(rng, &ms) as u32,
            busy_ms: pick(rng, &ms) as u32,
            asleep_ms: pick(rng, &ms) as u32,
        },
        libraries: (0..rng.below(3)).map(Library).collect(),
    }
}

fn returned(rng: &mut ChaCha8Rng) -> Returned {
    match rng.below(4) {
        0 => Returned::Failed(Failure::Trapped),
        len => Returned::Value((0..3 * len as u8).collect()),
    }
}

/// All that have a task, most of the time.
fn voters(rng: &mut ChaCha8Rng, assigned: Option<&Assignment>) -> Voters {
    let electors = assigned.into_iter().flat_map(|it| it.electors.iter());
    let mut ids: Vec<NodeId> = electors.map(|it| it.id).collect();
    ids.sort_unstable();
    if rng.below(8) == 0 {
        ids.push(NodeId(rng.below(8)));
    }
    ids.into_iter().collect()
}

fn update(rng: &mut ChaCha8Rng, tables: &Tables) -> Update {
    let task = TaskId {
        client: member(rng),
        number: pick(rng, &[0, 1, 2, 3, u64::MAX]),
    };
    let open = tables.open_task(task);
    let shift = rng.below(8) == 0;
    let attempt = open.map_or(1, |it| it.attempts) + u16::from(shift);
    let assigned = open.and_then(|it| it.assignment.as_ref());
    let term = assigned.map_or(0, |it| it.term) + u16::from(rng.below(8) == 0);
    match rng.below(16) {
        0..4 => Update::Attach(attachment(rng)),
        4 => Update::Purge(attachment(rng)),
        5 | 6 => Update::Cluster {
            after: tables.clustered() + rng.below(2),
        },
        7..10 => Update::Submit {
            task,
            function: Function::new(&[rng.below(6) as u8]),
        },
        10 => Update::Retry {
            task,
            after: attempt,
        },
        11 => Update::Answer {
            task,
            attempt,
            term,
            answer: returned(rng).into(),
            voters: voters(rng, assigned),
        },
        12 | 13 => {
            let electors = assigned.map(|it| it.electors.iter().copied().collect::<Vec<_>>());
            let by = match electors {
                Some(it) if !it.is_empty() => it[rng.below(it.len() as u64) as usize],
                _ => member(rng),
            };
            Update::Vote {
                task,
                attempt,
                by,
                returned: returned(rng),
            }
        }
        14 => Update::Cancel(task),
        _ => Update::Hops(Hops {
            one: NodeId(rng.below(4)),
            other: NodeId(rng.below(4)),
            hops: rng.below(256) as u8,
        }),
    }
}

fn story(seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rng = &mut rng;
    let limits = Limits::new()
        .with_followers(pick(rng, &[1, 3, 8]) as u32)
        .with_tombstones(pick(rng, &[0, 1, 8]) as u32)
        .with_unit(pick(rng, &[3, 5]) as u16)
        .with_open(pick(rng, &[1, 2, 8]) as u32)
        .with_done(pick(rng, &[1, 2, 8]) as u32)
        .with_cache(pick(rng, &[0, 1, 8]) as u32)
        .with_clients(pick(rng, &[1, 2, 8]) as u32)
        .with_attempts(pick(rng, &[1, 2]) as u16)
        .with_result(pick(rng, &[1, 6]) as u16)
        .with_gateways(pick(rng, &[1, 3]) as u16)
        .with_libraries(2)
        .with_counts_votes(rng.below(2) == 0);
    let mut tables = Tables::new(limits);
    for _ in 0..300 {
        let update = update(rng, &tables);
        let known = tables.known(&update);
        let before = tables.clone();
        let outcome = tables.apply(&update);
        if known.is_some() {
            assert_eq!(tables, before, "seed {seed}: {update:?} is {known:?}");
            assert_eq!(known, Some(outcome), "seed {seed}: {update:?}");
        }
        let once = tables.clone();
        tables.apply(&update);
        assert_eq!(tables, once, "seed {seed}: {update:?}, twice");
        let len = postcard::to_allocvec(&tables).unwrap().len() as u64;
        assert!(len <= limits.largest_state(1), "seed {seed}: {len} bytes");
        if let Update::Submit { task, .. } = update
            && let Some(Answer::Value(value)) = tables.answer(task)
        {
            assert!(value.len() <= limits.result.into());
        }
    }
}

#[test]
fn updates_change_nothing_a_second_time() {
    selvedge_sim::histories(seeds(60), story);
}

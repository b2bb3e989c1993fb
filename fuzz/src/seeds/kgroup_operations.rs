//! Scripted sites: routines, a map, and faults.

use super::Seed;

/// Scripted sites. Three bytes are settings: nodes, failures, the leader's place, the length of
/// frames; devices, clusters, routines, hosts, care or hostility; the nodes' settings. Then come
/// one or two routines: a byte for all of it, and one for each step. Then each operation has the
/// node and its number in one byte, and its arguments. See `selvedge_kgroup::check::operations`.
pub(super) fn operation_seeds() -> impl Iterator<Item = Seed> {
    let op = |node: u8, op: u8| node << 5 | op;
    let rounds = |count: u8| vec![10, count - 1];
    let pass = |count: u8| vec![13, count];
    let trigger = |node, which: u8| vec![op(node, 16), 2 | which];
    let host = |how: u8| vec![20, 0, how];
    let lose = |which: u8| vec![9, 65, which];
    let again = |which: u8| vec![8, which];
    let failed = |node, about: u8| vec![op(node, 23), about];
    let restart = |node| vec![op(node, 25), 1];
    let stop = |node| vec![op(node, 25), 0];
    let sleep = |node| vec![op(node, 28), 0];
    let wake = |node| vec![op(node, 28), 1];
    let by_hand = |like: u8| vec![29, like];
    let epoch = || vec![30, 1];
    let put = |node| vec![op(node, 18), 0];
    let put_behind = |node| vec![op(node, 18), 16];
    let get = |node| vec![op(node, 18), 8];
    let watch = |node| vec![op(node, 18), 12];
    let run = |node, which| [trigger(node, which), rounds(16)].concat();
    let courses = [
        ("runs", [run(0, 0), run(1, 1), run(2, 0)].concat()),
        (
            "both-run",
            [trigger(0, 0), trigger(1, 1), rounds(16), rounds(16)].concat(),
        ),
        (
            "hosts",
            [
                trigger(0, 0),
                vec![5; 12],
                host(1),
                host(4),
                host(5),
                pass(21),
                rounds(16),
            ]
            .concat(),
        ),
        (
            "loss",
            [
                trigger(1, 0),
                lose(0),
                vec![5],
                lose(1),
                again(0),
                pass(9),
                rounds(16),
            ]
            .concat(),
        ),
        (
            "restarts",
            [
                trigger(0, 0),
                rounds(2),
                restart(0),
                rounds(16),
                restart(1),
                rounds(16),
                stop(2),
                rounds(16),
                restart(2),
            ]
            .concat(),
        ),
        (
            "sleepers",
            [
                trigger(0, 0),
                vec![5; 6],
                sleep(0),
                failed(1, 0),
                failed(2, 0),
                rounds(16),
                run(1, 1),
                wake(0),
                rounds(16),
            ]
            .concat(),
        ),
        (
            "devices",
            [
                by_hand(0x05),
                rounds(16),
                by_hand(0x10),
                run(0, 0),
                by_hand(0x10),
            ]
            .concat(),
        ),
        (
            "epochs",
            [
                epoch(),
                run(0, 0),
                epoch(),
                put(1),
                rounds(16),
                epoch(),
                get(2),
            ]
            .concat(),
        ),
        (
            "map",
            [
                watch(2),
                put(0),
                rounds(4),
                put_behind(1),
                put_behind(2),
                rounds(8),
                get(0),
                get(1),
                rounds(8),
            ]
            .concat(),
        ),
    ];
    let settings = [
        ("plain", vec![8, 16, 0]),
        ("prompt", vec![8, 32 + 16 + 2, 0]),
        ("five", vec![4 + 1, 16 + 4 + 2, 64]),
        ("single", vec![0, 16 + 1, 0]),
        ("narrow", vec![192 + 8 + 1, 16 + 2, 3]),
        ("careless", vec![8, 64 + 16, 0]),
        ("stored", vec![8, 192 + 16, 0]),
        ("hostile", vec![8, 128 + 16, 0]),
    ];
    // Three steps under sequential locks, and three under optimistic ones; one step of each is done
    // at most once.
    let routines = [[2, 0x04, 0x80, 0x05], [32 + 2, 0x88, 0x61, 0x02]];
    settings.into_iter().flat_map(move |(setting, shape)| {
        let begin = [shape, routines.concat()].concat();
        let seed = move |(course, operations): (&str, Vec<u8>)| Seed {
            target: "kgroup_operations",
            name: format!("{setting}-{course}"),
            bytes: [&begin[..], &operations].concat(),
        };
        courses.clone().into_iter().map(seed)
    })
}

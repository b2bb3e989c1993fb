//! Scripted gateways, followers and clients: tasks, and faults.

use super::Seed;

/// Scripted sets of gateways. Six bytes are settings: the number of nodes, and the voters; the
/// nodes that lie, and the prompt hosts; the tables' limits; the gateways' times; the tables' room;
/// the nodes' settings. A seventh byte chooses the followers that lie, where any do. Then come
/// operations: a byte, of which three bits are for some of them, and the operation's arguments. See
/// `selvedge_pcm::check::operations`.
pub(super) fn operation_seeds() -> impl Iterator<Item = Seed> {
    let op = |bits: u8, op: u8| bits << 5 | op;
    let rounds = |bits: u8| vec![op(bits, 12)];
    let pass = |quarters: u8| vec![11, 5 * quarters];
    let submit = |code: u8| vec![15, 0, code];
    let needs = |libraries: u8, code: u8| vec![op(5 + libraries, 15), 0, code];
    let deliver = |which: u8| vec![0, which];
    let again = |which: u8| vec![8, which];
    let lose = |which: u8| vec![9, which];
    let empty = |seat: u8| vec![10, seat];
    let restart = |which: u8| vec![23, which, 1];
    let gateway_stops = |which: u8| vec![24, which, 0];
    let gateway_restarts = |which: u8| vec![24, which, 1];
    let tear = |stored: u8, which: u8| vec![op(2 * stored, 25), which, 0];
    let moves = |which: u8| vec![26, which];
    let sleeps = |seat: u8| vec![29, seat];
    let wakes = |seat: u8| vec![op(1, 29), seat];
    let forge = |kind: u8| vec![30, 0, 3, kind, 0, 200, 1];
    let fails = |to: u8, about: u8| vec![28, to, about];
    let runs = |code: u8| [submit(code), rounds(5)].concat();
    let courses = [
        ("runs", [runs(0), runs(1), runs(0)].concat()),
        (
            "libraries",
            [needs(1, 0), rounds(7), needs(2, 1), rounds(7)].concat(),
        ),
        (
            "cancel",
            [submit(2), vec![20, 1], vec![5], vec![19, 0, 0], rounds(5)].concat(),
        ),
        (
            "loss",
            [
                submit(1),
                deliver(0),
                lose(0),
                again(0),
                empty(3),
                empty(4),
                pass(9),
                rounds(7),
            ]
            .concat(),
        ),
        (
            "restarts",
            [
                submit(3),
                vec![5; 2],
                restart(0),
                restart(5),
                rounds(3),
                restart(1),
                runs(2),
            ]
            .concat(),
        ),
        (
            "gateways",
            [
                submit(0),
                vec![5],
                gateway_stops(0),
                fails(1, 0),
                fails(2, 0),
                rounds(7),
                gateway_restarts(0),
                runs(1),
            ]
            .concat(),
        ),
        (
            "torn",
            [
                submit(0),
                tear(0, 0),
                rounds(3),
                submit(1),
                tear(1, 1),
                rounds(7),
            ]
            .concat(),
        ),
        (
            "sleepers",
            [
                submit(2),
                sleeps(0),
                sleeps(4),
                rounds(7),
                pass(15),
                wakes(0),
                wakes(4),
                moves(1),
                rounds(7),
            ]
            .concat(),
        ),
        (
            "forged",
            [
                submit(1),
                vec![5],
                forge(6),
                forge(8),
                forge(10),
                forge(15),
                rounds(7),
            ]
            .concat(),
        ),
    ];
    let settings = [
        ("one", vec![0, 0, 0, 0, 0, 0]),
        ("plain", vec![2 + 4, 0, 0, 0, 0, 0]),
        ("dynamic", vec![2 + 8 + 16 + 64, 0, 1, 0, 1, 3]),
        ("counted", vec![2 + 8 + 32, 0, 0, 0, 0, 9]),
        ("member", vec![2 + 4 + 128, 8, 0, 0, 0, 0]),
        ("narrow", vec![2 + 8 + 16, 0, 255, 8, 63, 90]),
        ("values", vec![2 + 8, 3, 0, 0, 0, 0, 1]),
        ("liars", vec![2 + 8, 4, 0, 0, 0, 0, 2]),
        ("hostile", vec![2 + 8, 6, 0, 0, 0, 0, 2]),
    ];
    settings.into_iter().flat_map(move |(setting, begin)| {
        let seed = move |(course, operations): (&str, Vec<u8>)| Seed {
            target: "pcm_operations",
            name: format!("{setting}-{course}"),
            bytes: [&begin[..], &operations].concat(),
        };
        courses.clone().into_iter().map(seed)
    })
}

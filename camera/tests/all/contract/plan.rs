//! The random choices that are made before a history begins.

use selvedge_camera::{Command, Config};
use selvedge_core::{Choose, Span};
use selvedge_sim::histories::Choices;

/// An operation. Nodes are named by their place, messages by a number that is taken modulo
/// the number of messages under way.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Command(usize, Command),
    /// A node enters by the answers of all but one, exits, gets a false report about another
    /// node, and enters again.
    Again(usize, usize),
    Deliver(u64),
    /// Some messages from one node to another, or to any, in order.
    DeliverSome(Option<usize>, Option<usize>, u64),
    Repeat(u64),
    Lose(u64),
    LoseFrom(usize),
    Pass(Span),
    /// All messages under way arrive, and further ones, for this time.
    Settle(Span),
    Sleep(usize),
    Wake(usize),
    /// A node's membership reports on another node's latest life, or on an earlier life.
    Notify(usize, Word, usize, usize),
    Crash(usize),
    Leave(usize),
    Start(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Here,
    Suspect,
    Alive,
    Failed,
    Over,
}

#[derive(Debug)]
pub(crate) struct Plan {
    /// The largest number of lives present from the beginning of a request to its end.
    pub(crate) bound: u32,
    pub(crate) settings: Vec<Config>,
    /// The pace of clocks: units of local time, per units of true time.
    pub(crate) paces: Vec<(u64, u64)>,
    pub(crate) steps: Vec<Step>,
    /// True if all know all at the beginning, and in the end.
    pub(crate) know_all: (bool, bool),
    /// The losses among 1,000 messages when the trouble is over.
    pub(crate) loss: u64,
    pub(crate) delay: Span,
}

const LENGTHS: [u64; 4] = [10, 20, 40, 80];
const PASSES: [Span; 6] = [
    Span::millis(1),
    Span::millis(100),
    Span::millis(600),
    Span::secs(3),
    Span::secs(31),
    Span::secs(300),
];

impl Plan {
    pub(crate) fn draw(rng: &mut Choices) -> Self {
        // One node of few enters twice, by permissions that it keeps and before all have answered.
        let is_hasty = rng.below(3) == 0;
        let few: &[usize] = if is_hasty {
            &[3, 4]
        } else {
            &[2, 3, 3, 4, 5, 8]
        };
        let nodes = one_of(rng, few);
        let spare = one_of(rng, &[0, 0, 1, 2]);
        let bound = nodes as u32 + if is_hasty { 0 } else { spare };
        let are_alike = rng.below(2) == 0;
        let mut settings = vec![draw_config(bound, rng)];
        while settings.len() < nodes {
            let alike = settings[0];
            settings.push(if are_alike {
                alike
            } else {
                draw_config(bound, rng)
            });
        }
        let paces = [(1, 1), (1, 1), (1, 2), (2, 1), (10, 9)];
        let length = if is_hasty {
            rng.below(4)
        } else {
            one_of(rng, &LENGTHS)
        };
        let mut steps: Vec<Step> = (0..length).map(|_| draw_step(nodes, bound, rng)).collect();
        if is_hasty {
            let (node, others) = (rng.below(nodes as u64) as usize, nodes as u64 - 1);
            let hasty = settings[node].with_keep(true).with_eager(true);
            settings[node] = hasty.with_max_lives(bound);
            // It comes last: later operations would help a node that would otherwise wait for ever.
            let whom = (node + 1 + rng.below(others) as usize) % nodes;
            steps.push(Step::Again(node, whom));
        }
        Self {
            bound,
            settings,
            paces: (0..nodes).map(|_| one_of(rng, &paces)).collect(),
            steps,
            know_all: (is_hasty || rng.below(2) == 0, rng.below(2) == 0),
            loss: one_of(rng, &[0, 200, 400]),
            delay: one_of(rng, &[Span::millis(20), Span::millis(200), Span::secs(3)]),
        }
    }
}

pub(crate) fn one_of<T: Copy>(rng: &mut Choices, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

fn draw_config(bound: u32, rng: &mut Choices) -> Config {
    let base = match rng.below(5) {
        0 => Config::radio(bound),
        _ => Config::new(bound),
    };
    let resend = one_of(rng, &[Span::millis(100), base.resend, Span::secs(2)]);
    base.with_max_lives(bound + one_of(rng, &[0, 0, 0, 1, 2]))
        .with_resend(resend)
        .with_resend_limit(resend * one_of(rng, &[1, 4]))
        .with_copies(one_of(rng, &[1, 2, 8]))
        .with_refresh(one_of(rng, &[Span::ZERO, Span::secs(5), Span::secs(30)]))
        .with_slack(one_of(rng, &[0, 1, 64]))
        .with_keep(rng.below(2) == 0)
        .with_eager(rng.below(2) == 0)
        .with_multicast(rng.below(3) > 0)
        .with_slow_path(rng.below(8) > 0)
        .with_failures(one_of(rng, &[0, 1, 7]))
        .with_tree_limit(one_of(rng, &[1, 16, 16]))
        .with_tree_patience(one_of(rng, &[1, 8]))
}

fn draw_step(nodes: usize, bound: u32, rng: &mut Choices) -> Step {
    let node = rng.below(nodes as u64) as usize;
    let other = rng.below(nodes as u64) as usize;
    let few = 1 + rng.below(6);
    let number = rng.below(1 << 32);
    match rng.below(34) {
        0..5 => Step::Command(node, Command::Enter),
        5 | 6 => Step::Command(node, Command::Exit),
        7 => Step::Command(node, one_of(rng, &[Command::Cancel, Command::GiveBack])),
        8 => Step::Command(node, Command::SetMaxLives(bound + rng.below(3) as u32)),
        9..12 => Step::Deliver(number),
        12 => Step::DeliverSome(None, Some(node), few),
        13 => Step::DeliverSome(Some(node), None, few),
        14 => Step::DeliverSome(Some(node), Some(other), few),
        15 | 16 => Step::DeliverSome(None, None, 5 * few),
        17 => Step::Repeat(number),
        18 => Step::Lose(number),
        19 => Step::LoseFrom(node),
        20..23 => Step::Pass(one_of(rng, &PASSES)),
        23 => Step::Settle(Span::secs(few)),
        24 => Step::Sleep(node),
        25 => Step::Wake(node),
        26..29 => {
            let words = [
                Word::Here,
                Word::Here,
                Word::Suspect,
                Word::Alive,
                Word::Failed,
                Word::Over,
            ];
            let former = usize::from(rng.below(4) == 0);
            Step::Notify(node, one_of(rng, &words), other, former)
        }
        29 => Step::Crash(node),
        30 => one_of(rng, &[Step::Leave(node), Step::Start(node)]),
        31 | 32 => Step::Again(node, other),
        _ => Step::Start(node),
    }
}

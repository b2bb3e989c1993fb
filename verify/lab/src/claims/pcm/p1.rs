//! P1: the time of a function, beside Raft and Pirogue.

use selvedge_core::Span;

use super::energy::seconds;
use super::servers::raft::Rule;
use super::setting::{Case, FUNCTIONS, Figures, SHARE, SLOWER, System, UNIT, length};
use crate::claims::plot::{Plot, Reference, over, spread};
use crate::claims::verdict::{BAND, verdict_on_cut, worst};
use crate::claims::{Claim, Experiment, Judgement, Paper, Samples, Verdict};

/// The percentages by which it is faster than Raft and than Pirogue.
const PAPER: [f64; 2] = [20.0, 37.0];
/// Lengths of functions, in seconds.
const LENGTHS: [u64; 6] = [1, 3, 10, 30, 100, 300];
/// The default rule: it takes one round, and the results of servers are compared.
const RULE: Rule = Rule::Acknowledge;
const RULES: [Rule; 3] = [Rule::Acknowledge, Rule::Apply, Rule::Compare];

/// PCM, Raft and Pirogue.
fn systems(rule: Rule) -> [System; 3] {
    let unit = UNIT;
    [
        System::Pcm { unit },
        System::Raft(rule),
        System::Pirogue(rule),
    ]
}

/// The cases that the verdict is about.
fn main_cases() -> [Case; 3] {
    systems(RULE).map(Case::new)
}

/// The same with functions of another length.
fn of_lengths() -> Vec<[Case; 3]> {
    let of_length = |it: &u64| {
        let length = Span::secs(*it);
        main_cases().map(|case| Case { length, ..case })
    };
    LENGTHS.iter().map(of_length).collect()
}

/// Ways to run functions with Raft and Pirogue.
fn of_rules() -> [[Case; 3]; 3] {
    RULES.map(|rule| systems(rule).map(Case::new))
}

/// All cases once.
pub(super) fn experiments() -> Vec<Experiment> {
    let all = of_lengths().into_iter().chain(of_rules()).flatten();
    all.map(Case::experiment).collect()
}

pub(super) fn claim() -> Claim {
    Claim {
        id: "P1",
        claim: "a unit of five completes a function faster than Raft / Pirogue (4 + 1) on nodes of the same duty cycle, by",
        source: "PCM, section 5e, figure 11",
        unit: "%",
        experiments: experiments(),
        judge,
    }
}

/// The percentages by which the first of these is below the second and the third.
fn cuts(cases: &[Figures; 3], figure: fn(&Figures) -> f64) -> [f64; 2] {
    let [ours, raft, pirogue] = cases;
    [raft, pirogue].map(|it| (1.0 - figure(ours) / figure(it)) * 100.0)
}

fn figures(cases: [Case; 3], samples: &Samples) -> Option<[Figures; 3]> {
    let all: Option<Vec<Figures>> = cases.iter().map(|it| it.figures(samples)).collect();
    all?.try_into().ok()
}

pub(super) fn pair(values: [f64; 2]) -> String {
    let [raft, pirogue] = values;
    format!("{raft:.0} / {pirogue:.0}")
}

/// The figures of a claim about both others.
pub(super) struct Found {
    /// PCM, Raft and Pirogue.
    pub(super) cases: [Figures; 3],
    /// The same over the length of the function.
    by_length: Vec<[Figures; 3]>,
    /// The same over the ways in which Raft's servers could run functions.
    by_rule: Vec<[Figures; 3]>,
}

impl Found {
    pub(super) fn of(samples: &Samples) -> Option<Self> {
        let all = |cases: Vec<[Case; 3]>| -> Option<Vec<[Figures; 3]>> {
            cases.into_iter().map(|it| figures(it, samples)).collect()
        };
        Some(Self {
            cases: figures(main_cases(), samples)?,
            by_length: all(of_lengths())?,
            by_rule: all(of_rules().to_vec())?,
        })
    }

    pub(super) fn cuts(&self, figure: fn(&Figures) -> f64) -> [f64; 2] {
        cuts(&self.cases, figure)
    }

    pub(super) fn by_length(&self, figure: fn(&Figures) -> f64) -> String {
        let all: Vec<String> = self
            .by_length
            .iter()
            .map(|it| pair(cuts(it, figure)))
            .collect();
        all.join(", ")
    }

    fn by_rule(&self, figure: fn(&Figures) -> f64) -> Vec<String> {
        self.by_rule
            .iter()
            .map(|it| pair(cuts(it, figure)))
            .collect()
    }

    pub(super) fn trials(&self) -> Option<usize> {
        let all = self.by_length.iter().chain(&self.by_rule).flatten();
        all.map(|it| it.trials).min()
    }

    /// The gains over the length of the function, with the paper's.
    pub(super) fn plot(&self, title: &str, figure: fn(&Figures) -> f64, paper: [f64; 2]) -> Plot {
        let [raft, pirogue] = [0, 1].map(|at| {
            let of = |it: &[Figures; 3]| cuts(it, figure).get(at).copied().unwrap_or_default();
            self.by_length.iter().map(of).collect::<Vec<f64>>()
        });
        let lengths: Vec<String> = LENGTHS.iter().map(ToString::to_string).collect();
        let [than_raft, than_pirogue] = paper;
        over(
            title,
            ("s that the function takes at one node", &lengths),
            "%",
            [("than Raft", raft), ("than Pirogue", pirogue)],
            Paper::Figures(vec![
                Reference::everywhere("paper: Raft", than_raft),
                Reference::everywhere("paper: Pirogue", than_pirogue),
            ]),
        )
    }
}

/// The rule of both claims.
pub(super) fn verdict(ours: [f64; 2], paper: [f64; 2]) -> Verdict {
    let each = ours.iter().zip(paper);
    worst(each.map(|(ours, paper)| verdict_on_cut(*ours, paper)))
}

fn judge(samples: &Samples) -> Option<Judgement> {
    let found = Found::of(samples)?;
    let ours = found.cuts(|it| it.completion);
    let names = ["PCM", "Raft", "Pirogue"].map(ToOwned::to_owned);
    Some(Judgement {
        paper: pair(PAPER),
        ours: pair(ours),
        verdict: verdict(ours, PAPER),
        reason: reason(&found),
        trials: found.trials()?,
        plots: vec![
            spread(
                "Completion of a function",
                ("", &names),
                "s",
                [("", main_cases().map(|it| it.completions(samples)).to_vec())],
                Paper::reports("20% faster than Raft, 37% faster than Pirogue"),
            ),
            found.plot(
                "How much faster, over the length of the function",
                |it| it.completion,
                PAPER,
            ),
        ],
    })
}

fn reason(found: &Found) -> String {
    let [unit, raft, pirogue] = &found.cases;
    let alone = seconds(length(SHARE));
    let rules = found.by_rule(|it| it.completion);
    let rule = |at: usize| rules.get(at).cloned().unwrap_or_default();
    format!(
        "Nodes are active for 1 s in 10, and begin at random; {FUNCTIONS} functions a trial, each on new nodes. A function \
         that takes {alone} s at one node that is always on takes {:.1} / {:.1} / {:.1} s: the unit {:.0}% longer, which \
         is the only hint at the length of the paper's functions (less than {SLOWER:.0}%, section 5a). With functions of \
         {} s: {}. A request lies in the mailboxes of a whole unit at once; Raft's lies in the leader's until that one \
         wakes, and in the others' only then. Votes wait for an orchestrator or a leader that has to wake once more. Servers \
         run a function before they acknowledge its entry, with what it returned. Where they run what is committed \
         and nobody compares results: {}; where the leader waits for equal results then: {}. Pirogue comes out as \
         Raft: its leader needs two of three others instead of two of four, for the witness runs nothing, and reads its \
         mailbox once in a period, when both have come; so nothing makes it slower than Raft, as it is in the paper, \
         whose 37% come near two rounds. Messages for a function, with keep-alives and heartbeats: {:.0} / {:.0} / {:.0}. \
         `verify/peers/` has raft-rs behind the same mailboxes. Better from the paper's figure on, holds down to {BAND} \
         points below.",
        unit.completion,
        raft.completion,
        pirogue.completion,
        (unit.completion / alone - 1.0) * 100.0,
        LENGTHS.map(|it| it.to_string()).join(", "),
        found.by_length(|it| it.completion),
        rule(1),
        rule(2),
        unit.messages,
        raft.messages,
        pirogue.messages,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Samples;

    /// The lengths of functions are those at which the paper's bound is met.
    #[test]
    fn a_unit_is_as_much_slower_than_one_node_as_the_paper_allows() {
        for share in [1, SHARE] {
            let length = length(share);
            let [unit, ..] = main_cases();
            let case = Case {
                share,
                length,
                ..unit
            };
            let mut samples = Samples::new(1, 1, Vec::new());
            for seed in 0..30 {
                let sample = (case.experiment().run)(seed).unwrap();
                samples.add(&case.name(), seed as u32, sample);
            }
            let took = case.figures(&samples).unwrap().completion;
            let slower = (took / seconds(length) - 1.0) * 100.0;
            assert!((slower - SLOWER).abs() < 4.0, "{share}%: {slower}% slower");
        }
    }
}

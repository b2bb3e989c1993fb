//! Counts over all histories of a run.

use crate::story::Story;

#[derive(Default, Debug)]
pub(crate) struct Totals {
    pub(crate) histories: u64,
    converged: u64,
    runs: u64,
    completed: u64,
    commands: u64,
    sites: u64,
    refused_sites: u64,
    other_sites: u64,
    configurations: u64,
    begun_anew: u64,
    map_answers: u64,
    map_unanswered: u64,
    steps: u64,
    probes: u64,
    unborn: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, story: &Story) {
        let oracle = &story.world.oracle;
        let counts = &oracle.counts;
        self.histories += 1;
        self.converged += u64::from(story.end.converged);
        self.runs += counts.runs;
        self.completed += counts.completed;
        self.commands += counts.commands;
        self.sites += counts.sites;
        self.refused_sites += counts.refused_sites;
        self.other_sites += counts.other_sites;
        self.configurations += counts.configurations;
        self.begun_anew += counts.begun_anew;
        self.map_answers += oracle.maps.answered;
        self.map_unanswered += oracle.maps.unanswered;
        self.steps += story.world.steps;
        self.probes += story.end.probes;
        self.unborn += story.unborn;
    }

    /// Fails if the histories did too little to show anything.
    pub(crate) fn check(&self) {
        let ran = self.histories;
        if ran >= 20 {
            assert!(self.completed > 2 * ran && self.commands > 4 * ran);
            assert!(self.sites > 2 * ran && self.configurations > 5 * ran);
            assert!(self.map_answers > 4 * ran && self.probes > 3 * ran);
            assert!(self.converged > ran / 2 && self.other_sites > ran / 4);
        }
        if ran >= 400 {
            assert!(self.begun_anew > 0);
        }
    }
}

//! The flags of a node for the mesh's leader.

use clap::Args;
use selvedge::Election;
use selvedge_celect::Estimation;
use selvedge_core::Span;

/// The number of measurements that may be lost in a row before c is the one of the flags again.
const LOST: u64 = 5;

/// The part of a node in elections.
#[derive(Debug, Args)]
#[command(next_help_heading = "The leader of the mesh")]
pub(super) struct ElectionFlags {
    /// Number of lists from which a live node may be missing when a leader is elected
    #[arg(long, value_name = "LISTS", default_value_t = 2)]
    c: u16,
    /// Number of dead nodes that may be listed without slowing an election
    #[arg(long, value_name = "NODES", default_value_t = 1)]
    f: u16,
    /// Measure c: a node that leads asks up to 50 nodes for their lists every so many milliseconds.
    /// --c is used while nothing is measured. With --lease the measured c is the number of nodes that
    /// must acknowledge a leader. While the mesh grows, the result of the small mesh replaces a larger
    /// --c until the next one. Nodes may differ in it; those without it use --c, and measure nothing
    /// when they lead
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..))]
    measure_c: Option<u64>,
    /// Number of milliseconds for which a leader leads unless others renew it. A leader brings its
    /// own lease along, so give all nodes of a mesh the same
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..))]
    lease: Option<u64>,
}

impl ElectionFlags {
    /// The settings of elections in a mesh with this period.
    pub(super) fn settings(&self, period: Span) -> Election {
        let mut election = Election::paced(period, self.c, self.f);
        election.config.lease = self.lease.map(Span::millis);
        election.config.estimation = self.measure_c.map(|every| {
            let every = Span::millis(every);
            Estimation::new()
                .with_period(every)
                .with_valid(every * LOST)
        });
        election
    }
}

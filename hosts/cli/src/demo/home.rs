//! The demo's part about a home: a morning, with a toaster and a bathroom door that
//! fail, judged by its serial order.

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::{Span, Time};
use selvedge_safehome::Config;

use selvedge_home::{Outage, Plan, Report, Scenario, Watch, run, section, style};

/// The devices that fail, with when, in seconds.
const DOWN: [(&str, u64, u64); 2] = [("toaster", 300, 900), ("small bathroom door", 700, 760)];

/// A morning in a home with 29 routines; `None` only if this program is damaged.
#[must_use]
pub fn morning(seed: u64, watch: &mut impl Watch) -> Option<Report> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let home = Scenario::Morning.home(&mut rng).ok()?;
    let rule = Scenario::Morning.arrivals(home.routines.len());
    let arrivals = rule.draw(&home.routines, &mut rng);
    let outages = DOWN.iter().filter_map(|&(name, from, until)| {
        Some(Outage {
            device: home.catalogue.id(name)?,
            from: Time::ZERO + Span::secs(from),
            until: Time::ZERO + Span::secs(until),
        })
    });
    let plan = Plan {
        outages: outages.collect(),
        hands: Vec::new(),
        arrivals,
        config: Config::default(),
        clock: None,
        length: Span::ZERO,
        home,
    };
    run(&plan, rng, watch).ok()
}

/// Its part of the page, in front of the page's end.
#[must_use]
pub fn with_morning(page: &str, report: &Report, seed: u64) -> String {
    let part = format!(
        "<style>\n{}</style>\n<h2>A morning in a home</h2>\n{}",
        style(report),
        section(report, seed)
    );
    let (front, end) = page.split_at(page.rfind("</body>").unwrap_or(page.len()));
    format!("{front}{part}{end}")
}

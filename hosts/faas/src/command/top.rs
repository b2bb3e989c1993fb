//! `selvedge-faas top`.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use selvedge_core::{Member, NodeId, Span};
use selvedge_faas::client;
use selvedge_faas::notice::{FollowerStatus, Status};
use selvedge_faas::watch::Watch;

use super::{Failure, FindArgs};

/// A gateway that has said nothing for so long is shown as silent.
const SILENT: Duration = Duration::from_secs(3);
/// To the upper left corner, and erase all.
const HOME: &str = "\x1b[H\x1b[2J";

/// Look on: gateways, units, duty cycles and tasks, each second, until Ctrl-C
#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    find: FindArgs,
    /// Print one picture, after two seconds, and end
    #[arg(long)]
    once: bool,
    /// Show what each gateway has counted, too
    #[arg(long)]
    counters: bool,
}

type Seen = BTreeMap<NodeId, (Member, Status, Instant)>;

impl Top {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let me = client::any_id()?;
        let gateways = self.find.find(me)?;
        let watch = Watch::start(&gateways, &self.find.access.access(), me);
        let watch = watch.map_err(Failure::Process)?;
        let clears = io::stdout().is_terminal() && !self.once;
        let (begun, mut seen) = (Instant::now(), Seen::new());
        loop {
            if let Some((from, status)) = watch.wait(Span::secs(1)) {
                seen.insert(from.id, (from, status, Instant::now()));
                if self.once && begun.elapsed() < Duration::from_secs(2) {
                    continue;
                }
            }
            let mut picture = picture(&seen, gateways.ids());
            if self.counters {
                picture.push_str(&counters(&seen));
            }
            let mut out = io::stdout().lock();
            let home = if clears { HOME } else { "" };
            write!(out, "{home}{picture}").map_err(Failure::Output)?;
            out.flush().map_err(Failure::Output)?;
            if self.once {
                let is_complete = gateways.ids().all(|it| seen.contains_key(&it));
                return Ok(ExitCode::from(u8::from(!is_complete)));
            }
        }
    }
}

/// All that is known, as text.
fn picture(seen: &Seen, ids: impl Iterator<Item = NodeId>) -> String {
    let mut text = String::from(
        "gateway    role       version  received      sent    relayed  refused  write ms\n",
    );
    for id in ids {
        let line = match seen.get(&id) {
            None => format!("{:<10} has said nothing yet", id.0),
            Some((from, _, at)) if at.elapsed() > SILENT => {
                format!(
                    "{:<10} silent for {} s",
                    from.to_string(),
                    at.elapsed().as_secs()
                )
            }
            Some((from, status, _)) => gateway(*from, status),
        };
        text.push_str(&line);
        text.push('\n');
    }
    // The one that has seen most of the tables.
    if let Some((_, status, _)) = seen.values().max_by_key(|it| it.1.version) {
        text.push_str(&tables(status));
    }
    text
}

/// What each gateway has counted, with the names of the fields.
fn counters(seen: &Seen) -> String {
    let line = |it: &(Member, Status, Instant)| {
        let counters = format!("{:?}", it.1.counters).replace([':', ','], "");
        format!("{}: {counters}\n", it.0)
    };
    seen.values().map(line).collect()
}

fn gateway(from: Member, status: &Status) -> String {
    let role = match (status.manages, status.is_available) {
        (true, _) => "manager",
        (false, true) => "member",
        (false, false) => "no quorum",
    };
    let counters = &status.counters;
    let mean = counters.write_us.checked_div(counters.writes).unwrap_or(0);
    format!(
        "{:<10} {role:<10} {:>7} {:>9} {:>9} {:>10} {:>8} {:>7}.{}",
        from.to_string(),
        status.version,
        counters.received,
        counters.sent,
        counters.relayed,
        counters.refused,
        mean / 1_000,
        mean % 1_000 / 100,
    )
}

fn tables(status: &Status) -> String {
    let mut text = format!(
        "\n{} followers in {} units, {} tasks open, {} modules\n",
        status.followers, status.units, status.open, status.modules
    );
    let mut units: BTreeMap<Option<u32>, Vec<&FollowerStatus>> = BTreeMap::new();
    for follower in status.some_followers.iter() {
        units.entry(follower.unit).or_default().push(follower);
    }
    for (unit, followers) in units {
        let name = unit.map_or_else(|| "no unit".into(), |it| format!("unit {it}"));
        let followers: Vec<String> = followers.into_iter().map(show).collect();
        // A string takes all that is written.
        let _written = writeln!(text, "{name:<8} {}", followers.join("  "));
    }
    for task in status.some_tasks.iter() {
        let orchestrator = task.orchestrator.map(|it| format!("at {it}"));
        let orchestrator = orchestrator.unwrap_or_else(|| "waits for a unit".into());
        let (client, number) = (task.task.client, task.task.number);
        let _written = writeln!(
            text,
            "task {number} of {client}: attempt {}, {orchestrator}",
            task.attempts
        );
    }
    text
}

/// A follower, its gateway, and how much of its time it can be used.
fn show(it: &FollowerStatus) -> String {
    let percent = it.duty.availability() / 10_000;
    format!("{}@{} {percent}%", it.member.id, it.gateway)
}

#[cfg(test)]
mod tests {
    use selvedge_core::wire::List;
    use selvedge_faas::Counters;
    use selvedge_pcm::DutyCycle;

    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn the_picture_has_gateways_units_and_duty_cycles() {
        let follower = |id, unit| FollowerStatus {
            member: Member::new(id, 1),
            gateway: NodeId(2),
            duty: DutyCycle {
                active_ms: 1_000,
                busy_ms: 0,
                asleep_ms: 9_000,
            },
            unit,
        };
        let status = Status {
            manages: true,
            is_available: true,
            version: 7,
            gateways: List::new(),
            units: 1,
            followers: 2,
            some_followers: [follower(101, Some(1)), follower(102, None)]
                .into_iter()
                .collect(),
            open: 0,
            some_tasks: List::new(),
            counters: Counters::default(),
            modules: 0,
        };
        let from = Member::new(1, 4);
        let seen = Seen::from([(NodeId(1), (from, status, Instant::now()))]);
        let picture = picture(&seen, [NodeId(1), NodeId(2)].into_iter());
        let lines: Vec<&str> = picture.lines().collect();
        assert!(
            lines[1].starts_with("1#4        manager          7"),
            "{picture}"
        );
        assert_eq!(lines[2], "2          has said nothing yet");
        assert_eq!(lines[4], "2 followers in 1 units, 0 tasks open, 0 modules");
        assert_eq!(lines[5], "no unit  102@2 10%");
        assert_eq!(lines[6], "unit 1   101@2 10%");
    }
}

//! `selvedge-faas top`.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use selvedge_core::Span;
use selvedge_faas::client;
use selvedge_faas::view::{FollowerView, GatewayView, Phase, Role, Seen, View};
use selvedge_faas::watch::Watch;

use super::{Failure, FindArgs};

/// The time for which `--once` collects the gateways' statuses.
const ONCE: Duration = Duration::from_secs(2);
/// The escape sequence that moves to the upper left corner and erases everything.
const HOME: &str = "\x1b[H\x1b[2J";

/// Show gateways, units, duty cycles and tasks, each second, until Ctrl-C
#[derive(Debug, Args)]
pub(crate) struct Top {
    #[command(flatten)]
    find: FindArgs,
    /// Print one picture after two seconds, and exit
    #[arg(long)]
    once: bool,
    /// Show the counters of each gateway, too
    #[arg(long)]
    counters: bool,
}

impl Top {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let me = client::any_id()?;
        let gateways = self.find.find(me)?;
        let watch = Watch::start(&gateways, &self.find.access.access()?, me);
        let watch = watch.map_err(Failure::Process)?;
        let clears = io::stdout().is_terminal() && !self.once;
        let (begun, mut seen) = (Instant::now(), Seen::default());
        loop {
            if let Some((from, status)) = watch.wait(Span::secs(1)) {
                seen.see(from, status, Instant::now());
            }
            if self.once && begun.elapsed() < ONCE {
                continue;
            }
            let view = seen.view(gateways.ids(), Instant::now());
            let mut picture = picture(&view);
            if self.counters {
                picture.push_str(&counters(&view));
            }
            let mut out = io::stdout().lock();
            let home = if clears { HOME } else { "" };
            write!(out, "{home}{picture}").map_err(Failure::Output)?;
            out.flush().map_err(Failure::Output)?;
            if self.once {
                let is_complete = seen.has_all(gateways.ids());
                return Ok(ExitCode::from(u8::from(!is_complete)));
            }
        }
    }
}

/// The whole view, as text.
fn picture(view: &View) -> String {
    let mut text = String::from(
        "gateway    role       version  received      sent    relayed  refused  write ms\n",
    );
    for it in &view.gateways {
        text.push_str(&gateway(it));
        text.push('\n');
    }
    if view.gateways.iter().any(|it| it.life.is_some()) {
        text.push_str(&tables(view));
    }
    text
}

/// The counters of each gateway, with the names of the fields.
fn counters(view: &View) -> String {
    let reported = view.gateways.iter().filter(|it| it.life.is_some());
    let line = |it: &GatewayView| {
        let counters = format!("{:?}", it.counters).replace([':', ','], "");
        format!("{}: {counters}\n", name(it))
    };
    reported.map(line).collect()
}

fn name(it: &GatewayView) -> String {
    it.life
        .map_or_else(|| it.id.to_string(), |life| format!("{}#{life}", it.id))
}

fn gateway(it: &GatewayView) -> String {
    let (name, counters) = (name(it), &it.counters);
    let role = match it.role {
        Role::Unknown => return format!("{name:<10} has sent nothing yet"),
        Role::Silent => {
            let seconds = it.said_ms.unwrap_or(0) / 1_000;
            return format!("{name:<10} silent for {seconds} s");
        }
        Role::Manager => "manager",
        Role::Member if it.is_gone => "gone",
        Role::Member => "member",
        Role::NoQuorum => "no quorum",
    };
    let mean = counters.write_us.checked_div(counters.writes).unwrap_or(0);
    format!(
        "{name:<10} {role:<10} {:>7} {:>9} {:>9} {:>10} {:>8} {:>7}.{}",
        it.version,
        counters.received,
        counters.sent,
        counters.relayed,
        counters.refused,
        mean / 1_000,
        mean % 1_000 / 100,
    )
}

fn tables(view: &View) -> String {
    let mut text = format!(
        "\n{} followers in {} units, {} tasks open, {} modules\n",
        view.followers, view.units, view.open, view.modules
    );
    let mut units: BTreeMap<Option<u32>, Vec<&FollowerView>> = BTreeMap::new();
    for follower in &view.some_followers {
        units.entry(follower.unit).or_default().push(follower);
    }
    for (unit, followers) in units {
        let name = unit.map_or_else(|| "no unit".into(), |it| format!("unit {it}"));
        let followers: Vec<String> = followers.into_iter().map(show).collect();
        // Writing to a string does not fail.
        let _written = writeln!(text, "{name:<8} {}", followers.join("  "));
    }
    for task in &view.some_tasks {
        let orchestrator = task.electors.first().map(|it| format!("at {it}"));
        let orchestrator = orchestrator.unwrap_or_else(|| "waits for a unit".into());
        let _written = writeln!(
            text,
            "task {} of {}#{}: attempt {}, {orchestrator}",
            task.number, task.client, task.life, task.attempt
        );
    }
    text
}

/// A follower, its gateway, the share of its time in which it can be used, and its phase.
fn show(it: &FollowerView) -> String {
    let percent = it.duty.availability() / 10_000;
    let phase = match it.phase {
        Phase::Active => " active",
        Phase::Busy => " busy",
        Phase::Asleep => " asleep",
        Phase::Late => " late",
        Phase::Unknown => "",
    };
    format!("{}@{} {percent}%{phase}", it.id, it.gateway)
}

#[cfg(test)]
mod tests {
    use selvedge_core::NodeId;
    use selvedge_faas::Counters;
    use selvedge_pcm::DutyCycle;

    use super::*;

    #[test]
    fn the_picture_has_gateways_units_and_duty_cycles() {
        let follower = |id, unit, phase| FollowerView {
            id: NodeId(id),
            life: 1,
            gateway: NodeId(2),
            unit,
            class: None,
            duty: DutyCycle {
                active_ms: 1_000,
                busy_ms: 0,
                asleep_ms: 9_000,
            },
            phase,
            woke_ms: None,
            libraries: Vec::new(),
        };
        let gateway = |id, life, role| GatewayView {
            id: NodeId(id),
            life,
            role,
            is_gone: false,
            said_ms: Some(4_200),
            era: None,
            version: 7,
            modules: 0,
            counters: Counters::default(),
        };
        let view = View {
            manager: Some(NodeId(1)),
            era: Some(3),
            version: 7,
            units: 1,
            followers: 2,
            open: 0,
            modules: 0,
            gateways: vec![
                gateway(1, Some(4), Role::Manager),
                gateway(2, None, Role::Unknown),
                gateway(3, Some(1), Role::Silent),
            ],
            some_followers: vec![
                follower(101, Some(1), Phase::Asleep),
                follower(102, None, Phase::Unknown),
            ],
            some_tasks: Vec::new(),
            answers: Vec::new(),
        };
        let picture = picture(&view);
        let lines: Vec<&str> = picture.lines().collect();
        assert!(
            lines[1].starts_with("1#4        manager          7"),
            "{picture}"
        );
        assert_eq!(lines[2], "2          has sent nothing yet");
        assert_eq!(lines[3], "3#1        silent for 4 s");
        assert_eq!(lines[5], "2 followers in 1 units, 0 tasks open, 0 modules");
        assert_eq!(lines[6], "no unit  102@2 10%");
        assert_eq!(lines[7], "unit 1   101@2 10% asleep");
    }
}

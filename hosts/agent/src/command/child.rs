//! A program that runs while something is held.

use core::future::poll_fn;
use core::task::Poll;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use selvedge_client::Hold;
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::timeout;

use super::{Failure, output};

/// The longest time of a program to end after a SIGTERM.
const GRACE_MAX: Duration = Duration::from_secs(5);
/// The shortest time of a program to end after a SIGTERM.
const GRACE_MIN: Duration = Duration::from_millis(100);
/// The longest wait for the end of a hold. After it, the agent learns of it when the connection is closed.
const RELEASE: Duration = Duration::from_secs(10);
/// The fencing token, as `MAP:VERSION`.
const TOKEN: &str = "SELVEDGE_FENCING_TOKEN";
/// The signals that are passed on.
const PASSED: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];

/// The signals that are passed on, as they arrive.
struct Signals(Vec<(Signal, unix::Signal)>);

/// Runs a program while there is a hold, and releases it.
pub(super) async fn run(
    program: &OsString,
    arguments: &[OsString],
    hold: Hold,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(Failure::Signals)?;
    let failed = |error| Failure::Program(program.display().to_string(), error);
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    match hold.token() {
        Some(token) => command.env(TOKEN, token.to_string()),
        // Not the one of a program around this one.
        None => command.env_remove(TOKEN),
    };
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        tokio::select! {
            biased;
            () = hold.lapsed() => {
                let grace = grace(Duration::from_millis(hold.info().ttl_ms));
                end(&mut child, grace).await.map_err(failed)?;
                return Err(lost(&hold));
            }
            status = child.wait() => break status.map_err(failed)?,
            signal = signals.next() => {
                let is_of_keys = [Signal::INT, Signal::QUIT].contains(&signal);
                if !is_of_keys || !has_terminal() {
                    send(&child, signal);
                }
            }
        }
    };
    release(hold).await;
    Ok(code(status))
}

/// Keeps a hold until a signal.
pub(super) async fn stay(hold: Hold) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen().map_err(Failure::Signals)?;
    output::line("registered")?;
    tokio::select! {
        biased;
        () = hold.lapsed() => return Err(lost(&hold)),
        _ = signals.next() => {}
    }
    release(hold).await;
    Ok(ExitCode::SUCCESS)
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let ignored = ignored();
        let heeded = PASSED.into_iter().filter(|it| !ignored.contains(it));
        let signals = heeded.map(|it| {
            let kind = SignalKind::from_raw(it.as_raw());
            Ok((it, unix::signal(kind)?))
        });
        signals.collect::<io::Result<_>>().map(Self)
    }

    async fn next(&mut self) -> Signal {
        poll_fn(|cx| {
            let mut signals = self.0.iter_mut();
            let arrived = signals.find_map(|(it, signal)| {
                let arrives = signal.poll_recv(cx).is_ready();
                arrives.then_some(*it)
            });
            arrived.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

/// SIGHUP and SIGQUIT, if this process was started to ignore them, as by `nohup`: a program that it starts then
/// ignores them, too. Known on Linux only.
fn ignored() -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    let mask = mask.unwrap_or_default();
    let is_ignored = |it: &Signal| mask >> (it.as_raw() - 1) & 1 == 1;
    let kept = [Signal::HUP, Signal::QUIT];
    kept.into_iter().filter(is_ignored).collect()
}

/// The time of a program to end after a SIGTERM. A hold lapses at seven eighths of its time to live without an
/// answer: when the rest is over, another program may hold it.
fn grace(ttl: Duration) -> Duration {
    (ttl / 8).clamp(GRACE_MIN, GRACE_MAX)
}

/// Ends a program: it gets some time to end by itself.
async fn end(child: &mut Child, grace: Duration) -> io::Result<()> {
    send(child, Signal::TERM);
    match timeout(grace, child.wait()).await {
        Ok(ended) => ended.map(drop),
        Err(_) => child.kill().await,
    }
}

/// Sends a signal, unless the program has ended: its number is its own until it was waited for.
fn send(child: &Child, signal: Signal) {
    let number = child.id().and_then(|it| i32::try_from(it).ok());
    if let Some(pid) = number.and_then(Pid::from_raw) {
        // An error: it may not be sent, and then the program goes on as with any other sender.
        kill_process(pid, signal).ok();
    }
}

/// True if the terminal sends the signals of its keys to the program, too.
fn has_terminal() -> bool {
    let own = getpgrp();
    let is_own = |group: rustix::io::Result<Pid>| group.is_ok_and(|it| it == own);
    is_own(tcgetpgrp(io::stdin().as_fd()))
        || is_own(tcgetpgrp(io::stdout().as_fd()))
        || is_own(tcgetpgrp(io::stderr().as_fd()))
}

async fn release(hold: Hold) {
    // In any case it ends when the connection is closed, which follows.
    timeout(RELEASE, hold.release()).await.ok();
}

fn lost(hold: &Hold) -> Failure {
    let info = hold.info();
    Failure::Lost(format!("{} {:?}", info.kind, info.name))
}

/// The status of a program, as a shell returns it: 128 and the number of a signal that ended it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::grace;

    #[test]
    fn the_grace_is_an_eighth_of_the_time_to_live() {
        for (ttl, expected) in [
            (0, 100),
            (500, 100),
            (1_000, 125),
            (10_000, 1_250),
            (40_000, 5_000),
            (86_400_000, 5_000),
        ] {
            let ttl = Duration::from_millis(ttl);
            assert_eq!(grace(ttl), Duration::from_millis(expected), "{ttl:?}");
        }
    }
}

//! A program that runs while something is held.

use std::ffi::OsString;
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

/// The time of a program to end after a SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// The longest wait for the end of a hold. After it, the agent learns of it when the connection is closed.
const RELEASE: Duration = Duration::from_secs(10);
/// The fencing token, as `MAP:VERSION`.
const TOKEN: &str = "SELVEDGE_TOKEN";

/// The signals that are passed on.
struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

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
                end(&mut child).await.map_err(failed)?;
                return Err(lost(&hold));
            }
            status = child.wait() => break status.map_err(failed)?,
            signal = signals.next() => {
                if signal != Signal::INT || !has_terminal() {
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
        Ok(Self {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::INT,
            _ = self.terminate.recv() => Signal::TERM,
        }
    }
}

/// Ends a program: it gets some time to end by itself.
async fn end(child: &mut Child) -> io::Result<()> {
    send(child, Signal::TERM);
    match timeout(GRACE, child.wait()).await {
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

/// True if the terminal sends its Ctrl-C to the program, too.
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

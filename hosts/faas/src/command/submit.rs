//! `selvedge-faas submit`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

use clap::Args;
use selvedge_core::{Member, NodeId, Span};
use selvedge_faas::client::{self, Client, Notified, Options};
use selvedge_faas::{Argument, Call, Limits, Module, Stub, text_of};
use selvedge_pcm::client::Config;
use selvedge_pcm::{Answer, Function};

use super::interrupts::Interrupts;
use super::{Failure, FindArgs};

/// The interval at which Ctrl-C is checked.
const LOOK: Span = Span::millis(50);
/// The time without an answer from a gateway after which a line reports it.
const QUIET: Span = Span::secs(5);

/// Run a function, and print its result
///
/// It waits as long as a gateway answers, also for followers.
///
/// Exit status: 0 with a value; 1 if no gateway answers (--timeout) or another error occurs; 2 for
/// a wrong call; 3 if the function failed; 4 if its unit did not agree; 5 if no unit answered; 6 if
/// the gateways refuse it; 130 if it was cancelled.
#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Module in WebAssembly, which gateways store
    #[arg(value_name = "FILE")]
    module: Option<PathBuf>,
    /// Export of the module to call
    #[arg(long, value_name = "EXPORT", requires = "module")]
    call: Option<String>,
    /// Argument of the call, may be repeated: 7, 7i64, 1.5, 1.5f32, hex:00ff, text:abc
    #[arg(
        long = "arg",
        value_name = "ARGUMENT",
        requires = "call",
        allow_hyphen_values = true
    )]
    arguments: Vec<Argument>,
    /// Import of the module that the host does not have, may be repeated: MODULE.NAME, a stub that
    /// fails when it is called, or MODULE.NAME=0, a stub that does nothing and returns zero
    #[arg(long = "stub", value_name = "MODULE.NAME[=0]", requires = "call")]
    stubs: Vec<Stub>,
    /// Code that is not a call, for followers with another executor
    #[arg(long, default_value = "", conflicts_with = "call")]
    code: String,
    #[command(flatten)]
    find: FindArgs,
    /// Seconds without a message from any gateway after which it gives up
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    timeout: u32,
    /// Id of this client, for a long-lived client; unique at any time
    #[arg(long)]
    id: Option<u64>,
}

impl Submit {
    pub(crate) fn run(self) -> Result<ExitCode, Failure> {
        let interrupts = Interrupts::by_ctrl_c()?;
        let id = match self.id {
            Some(id) => NodeId(id),
            None => client::any_id()?,
        };
        let (function, module) = self.function()?;
        let client = Client::start(Options {
            id,
            gateways: self.find.find(id)?,
            access: self.find.access.access()?,
            config: Config::new(),
        })?;
        let mut is_put = module.is_none();
        match module {
            Some(module) => client.put(module),
            None => client.submit(0, function.clone()),
        }
        let (mut cancels, mut is_quiet) = (false, false);
        loop {
            let pressed = interrupts.count_so_far();
            if pressed > 0 && !is_put {
                return Ok(ExitCode::from(130)); // Nothing is submitted yet.
            }
            if pressed > 0 && !cancels {
                cancels = true;
                client.cancel(0);
                eprintln!("cancelling; Ctrl-C again to exit at once");
            }
            if pressed > 1 {
                return Ok(ExitCode::from(130));
            }
            let silence = client.silence();
            if silence >= Span::secs(self.timeout.into()) {
                return Err(Failure::Silent(self.timeout));
            }
            if silence >= QUIET && !is_quiet {
                let seconds = self.timeout;
                eprintln!(
                    "no gateway has answered for 5 s; giving up after {seconds} s (--timeout)"
                );
            }
            is_quiet = silence >= QUIET;
            match client.wait(LOOK) {
                None => {}
                Some(Notified::Kept { by, .. }) => {
                    eprintln!("the module is on the disks of {by} gateways");
                    is_put = true;
                    client.submit(0, function.clone());
                }
                Some(notified) => return end(notified),
            }
        }
    }
}

impl Submit {
    /// The function to run, and the module that it needs.
    fn function(&self) -> Result<(Function, Option<Vec<u8>>), Failure> {
        let code = Function::new(self.code.as_bytes());
        let Some(path) = self.module.clone() else {
            return Ok((code, None));
        };
        let module = match fs::read(&path) {
            Ok(module) => module,
            Err(source) => return Err(Failure::Read { path, source }),
        };
        let Some(export) = &self.call else {
            let libraries = [selvedge_faas::library(&module)].into_iter().collect();
            return Ok((Function { libraries, ..code }, Some(module)));
        };
        // A module that no follower could run is not sent.
        let compiled = Module::compile(&module, &Limits::new());
        let compiled = compiled.map_err(|why| Failure::Module { path, why })?;
        let call = Call::new(compiled.id(), export, self.arguments.iter().cloned())?;
        let call = call.with_stubs(self.stubs.iter().cloned())?;
        compiled.check(&call)?;
        Ok((call.to_function()?, Some(module)))
    }
}

fn end(notified: Notified) -> Result<ExitCode, Failure> {
    let (line, status) = match notified {
        Notified::Answered {
            answer,
            voters,
            unit,
            ..
        } => {
            if let Some((attempt, electors)) = unit {
                say_unit(attempt, &electors);
            }
            if !voters.is_empty() {
                eprintln!("voted for it: followers {}", list(voters));
            }
            match answer {
                Answer::Value(value) => {
                    writeln!(io::stdout(), "{}", text_of(&value)).map_err(Failure::Output)?;
                    return Ok(ExitCode::SUCCESS);
                }
                Answer::Failed(why) => (format!("the function failed: {why}"), 3),
                Answer::NoMajority => ("its unit did not agree on a value".into(), 4),
                Answer::Unanswered => ("no unit answered in time: submit it again".into(), 5),
                Answer::Cancelled => ("cancelled".into(), 130),
            }
        }
        Notified::Refused { why, .. } => (why.to_string(), 6),
        Notified::Rejected { why, .. } => (why.to_string(), 1),
        Notified::NotKept { why: Some(why), .. } => (why.to_string(), 6),
        Notified::NotKept { why: None, .. } => {
            let line = "no majority of gateways keeps the module: check that they run";
            (line.into(), 1)
        }
        // The loop waits for it before it submits.
        Notified::Kept { .. } => return Ok(ExitCode::FAILURE),
    };
    eprintln!("selvedge-faas: {line}");
    Ok(ExitCode::from(status))
}

fn say_unit(attempt: u16, electors: &[Member]) {
    let all = list(electors.iter().map(|it| it.id));
    eprintln!("attempt {attempt}, at followers {all} (the first one counted the votes)");
}

fn list(ids: impl IntoIterator<Item = NodeId>) -> String {
    let all: Vec<String> = ids.into_iter().map(|it| it.to_string()).collect();
    all.join(", ")
}

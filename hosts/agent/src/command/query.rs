//! Questions to all members, and a program that answers them.

use std::ffi::OsString;
use std::io;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use selvedge_client::{Agent, MeshEvent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Ask, Failure, output};

/// The most bytes of an output that are read: more than an answer may have, so that the agent refuses a longer one.
const OUTPUT_MAX: u64 = 4_096;

#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The name of what is asked
    name: String,
    /// The content of the question
    #[arg(default_value = "")]
    value: String,
    /// The longest wait for answers, up to 1min
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    wait: Duration,
    /// Print each answer as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The name of what is asked
    name: String,
    /// The program. It has the question on its standard input, and its standard output is the answer, of 512 bytes at
    /// most. With a status that is not 0, or after the time of the question, there is no answer. Questions are
    /// answered one after another, until the command is interrupted
    #[arg(last = true, required = true, value_name = "CMD")]
    program: Vec<OsString>,
}

impl Ask for Query {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let answers = agent.query(&self.name, self.value, self.wait).await?;
        if self.json {
            answers.answers.iter().try_for_each(output::json)?;
        } else {
            let rows = answers.answers.iter();
            let rows = rows.map(|it| [it.from.to_string(), output::shown(&it.value)]);
            output::table(["ID", "ANSWER"], rows)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Answer {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let mut monitor = agent.monitor().await?;
        output::line("ready")?;
        loop {
            let MeshEvent::Question {
                question,
                name,
                left_ms,
                value,
                ..
            } = monitor.next().await?
            else {
                continue;
            };
            if name != self.name {
                continue;
            }
            let left = Duration::from_millis(left_ms);
            let run = timeout(left, run(&self.program, &value.0)).await;
            match run {
                Ok(Ok(Some(answer))) => {
                    if let Err(error) = agent.answer(&question, answer).await {
                        Failure::from(error).report();
                    }
                }
                // It has reported why, or was too slow.
                Ok(Ok(None)) | Err(_) => {}
                Ok(Err(error)) => return Err(error),
            }
        }
    }
}

/// Runs the program, and returns its output, if it succeeded.
async fn run(program: &[OsString], question: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
    // The parser requires a program.
    let (program, arguments) = program.split_first().unzip();
    let (program, arguments) = (
        program.cloned().unwrap_or_default(),
        arguments.unwrap_or_default(),
    );
    let failed = |error: io::Error| Failure::Program(program.display().to_string(), error);
    let mut command = Command::new(&program);
    command.args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (input, read) = (child.stdin.take(), child.stdout.take());
    let write = async {
        if let Some(mut input) = input {
            // A program may not read its question.
            input.write_all(question).await.ok();
        }
    };
    let mut answer = Vec::new();
    let read = async {
        match read {
            Some(read) => read
                .take(OUTPUT_MAX)
                .read_to_end(&mut answer)
                .await
                .map(drop),
            None => Ok(()),
        }
    };
    let ((), read) = tokio::join!(write, read);
    read.map_err(failed)?;
    let status = child.wait().await.map_err(failed)?;
    Ok(status.success().then_some(answer))
}

//! Questions to all members, and a program that answers them.

use std::ffi::OsString;
use std::io;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use selvedge_client::{Agent, Events, MeshEvent, Question};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::{Ask, Failure, output};

/// The most bytes of an output that are read: one more than an answer may have, so that the agent refuses it.
const OUTPUT_MAX: u64 = 513;
/// The questions that wait while the program runs.
const WAITING: usize = 16;

#[derive(Debug, Args)]
pub(crate) struct Query {
    /// The name of the question
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
    /// The name of the questions
    name: String,
    /// The program. It has the question on its standard input, and its standard output is the answer, of 512 bytes at
    /// most. A status that is not 0 means no answer, and so does the end of the question's time. Questions are
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

/// A question, and the end of its time.
type Waiting = (Question, Instant);

impl Ask for Answer {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let monitor = agent.monitor().await?;
        output::line("ready")?;
        let (sender, waiting) = mpsc::channel(WAITING);
        let answers = answer_all(agent, &self.program, waiting);
        tokio::pin!(answers);
        tokio::select! {
            // Questions that came before are answered.
            ended = read_all(monitor, &self.name, sender) => answers.await.and(ended),
            ended = &mut answers => ended,
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

/// Reads questions with this name, also while the program runs: their times pass meanwhile.
async fn read_all(
    mut monitor: Events<MeshEvent>,
    name: &str,
    questions: mpsc::Sender<Waiting>,
) -> Result<(), Failure> {
    loop {
        if let MeshEvent::Question(question) = monitor.next().await?
            && question.name == name
        {
            let end = end_of(&question);
            // A program that is too slow for so many leaves the last ones without an answer.
            if questions.try_send((question, end)).is_err() {
                eprintln!(
                    "selvedge-agent: a question has no answer: {WAITING} wait for the program"
                );
            }
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn end_of(question: &Question) -> Instant {
    Instant::now() + Duration::from_millis(question.left_ms)
}

async fn answer_all(
    agent: &Agent,
    program: &[OsString],
    mut waiting: mpsc::Receiver<Waiting>,
) -> Result<(), Failure> {
    while let Some((question, end)) = waiting.recv().await {
        // It is too late, or has no output after a failure that it reported.
        let run = timeout_at(end, run(program, &question.value.0)).await;
        let Some(answer) = run.unwrap_or(Ok(None))? else {
            continue;
        };
        if let Err(error) = agent.answer(&question.question, answer).await {
            Failure::from(error).report();
        }
    }
    Ok(())
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
    if answer.len() as u64 == OUTPUT_MAX {
        return Ok(Some(answer)); // It may write without an end.
    }
    let status = child.wait().await.map_err(failed)?;
    Ok(status.success().then_some(answer))
}

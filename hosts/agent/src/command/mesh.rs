//! Commands about the mesh.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use selvedge_client::{Agent, Leader, Member, MeshEvent, Part, PartOutcome};

use super::{Ask, Failure, output};

#[derive(Debug, Args)]
pub(crate) struct Members {
    /// Print each member as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Print it as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Monitor {
    /// Print each report as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Leave {}

#[derive(Debug, Args)]
pub(crate) struct Reload {
    /// Print the outcome as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Confirm {
    /// The member's number
    id: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Event {
    /// The name of the message
    name: String,
    /// Its content
    #[arg(default_value = "")]
    value: String,
}

#[derive(Debug, Args)]
pub(crate) struct Tags {
    /// All tags
    #[arg(value_name = "NAME=VALUE", value_parser = tag, required = true)]
    tags: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub(crate) struct Nodes {
    #[command(subcommand)]
    change: NodesChange,
}

#[derive(Debug, Subcommand)]
enum NodesChange {
    /// Add a node: it may hold maps
    Add {
        /// The node's number
        id: u64,
    },
    /// Remove a node: others hold its part
    Remove {
        /// The node's number
        id: u64,
    },
}

fn tag(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Ask for Members {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let members = agent.members().await?;
        if self.json {
            members.iter().try_for_each(output::json)?;
        } else {
            let rows = members.iter().map(row);
            output::table(
                [
                    "ID",
                    "INCARNATION",
                    "STATUS",
                    "ADDRESS",
                    "ROUND TRIP",
                    "TAGS",
                ],
                rows,
            )?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Info {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let info = agent.info().await?;
        if self.json {
            output::json(&info)?;
            return Ok(ExitCode::SUCCESS);
        }
        let nodes: Vec<_> = info.nodes.iter().map(u64::to_string).collect();
        let rows = [
            ["id".to_owned(), info.id.to_string()],
            ["incarnation".to_owned(), info.incarnation.to_string()],
            ["address".to_owned(), info.address.unwrap_or_default()],
            ["version".to_owned(), info.version],
            ["in the mesh".to_owned(), info.is_in.to_string()],
            ["leader".to_owned(), info.is_leader.to_string()],
            [
                "generation".to_owned(),
                info.generation
                    .map_or_else(String::new, |it| it.to_string()),
            ],
            ["nodes of maps".to_owned(), nodes.join(" ")],
        ];
        output::table(["NAME", "VALUE"], rows)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Monitor {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let mut events = agent.monitor().await?;
        loop {
            let event = events.next().await?;
            match self.json {
                true => output::json(&event)?,
                false => output::line(&text(&event))?,
            }
        }
    }
}

impl Ask for Leave {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        agent.leave().await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Reload {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let reloaded = agent.reload().await?;
        if self.json {
            output::json(&reloaded)?;
        } else {
            for part in &reloaded.parts {
                output::line(&part.detail)?;
            }
            if !reloaded.at_next_start.is_empty() {
                let names = reloaded.at_next_start.join(", ");
                output::line(&format!("at the next start: {names}"))?;
            }
        }
        let failed = |it: &Part| it.outcome == PartOutcome::Failed;
        Ok(match reloaded.parts.iter().any(failed) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        })
    }
}

impl Ask for Confirm {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        agent.confirm(self.id).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Event {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        agent.send(&self.name, self.value).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Tags {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        let tags = self.tags.into_iter().collect::<BTreeMap<_, _>>();
        agent.set_tags(&tags).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Ask for Nodes {
    async fn ask(self, agent: &Agent) -> Result<ExitCode, Failure> {
        match self.change {
            NodesChange::Add { id } => agent.add_node(id).await?,
            NodesChange::Remove { id } => agent.remove_node(id).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn row(member: &Member) -> [String; 6] {
    let tags: Vec<_> = member
        .tags
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    [
        member.id.to_string(),
        member.incarnation.to_string(),
        member.status.to_string(),
        member.address.clone().unwrap_or_default(),
        member.round_trip_us.map(millis).unwrap_or_default(),
        tags.join(" "),
    ]
}

fn millis(micros: u64) -> String {
    format!("{:.1} ms", micros as f64 / 1_000.0)
}

/// An event for people.
fn text(event: &MeshEvent) -> String {
    match event {
        MeshEvent::Member(member) => format!("member {}", row(member).join(" ")),
        MeshEvent::Leader(leader) => leader.map_or_else(
            || "no leader".to_owned(),
            |Leader { id, incarnation }| format!("leader {id} {incarnation}"),
        ),
        MeshEvent::Message { name, value, .. } => {
            format!("message {name} {}", output::shown(value))
        }
        MeshEvent::Question(it) => {
            format!("question {} {}", it.name, output::shown(&it.value))
        }
        MeshEvent::Missed(missed) => format!("{missed} reports are missing here"),
        _ => "an event of a later version".to_owned(),
    }
}

//! The commands that are typed into a node, and their answers.

use std::error::Error;
use std::time::Duration;

use selvedge_udp::selvedge::groups::GroupId;
use selvedge_udp::selvedge::groups::store::Stored;
use selvedge_udp::selvedge::kgroup::{ConfigError, Site, TriggerId};
use selvedge_udp::{Handle, NodeId};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::Held;
use crate::site::{DOORBELL, edited, routine_of, shown};

/// The longest wait for an answer: without a quorum a request waits for as long as it has to.
const PATIENCE: Duration = Duration::from_secs(10);

const HELP: &str = "put MAP KEY VALUE | get MAP KEY | ring ID | add LIGHT | add LIGHT asleep | set LIGHT VALUE | \
                    move LIGHT METRES | remove LIGHT | switch LIGHT ID | wake LIGHT | node+ ID | node- ID | site | \
                    holds | group doorbell | group MAP | anew MAP | spare yes | spare no | members | leave";

type Answer = Result<String, selvedge_udp::Error>;

/// Answers commands, until one of them is to leave or the input ends.
pub(crate) async fn serve(
    node: &Handle,
    held: &Held,
    mut commands: UnboundedReceiver<String>,
) -> Result<(), Box<dyn Error>> {
    node.joined().await?;
    println!("joined");
    while let Some(command) = commands.recv().await {
        if command == "leave" {
            break;
        }
        let (node, held) = (node.clone(), held.clone());
        tokio::spawn(async move {
            let answer = match timeout(PATIENCE, answer(&node, &held, &command)).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(why)) => why.to_string(),
                Err(_elapsed) => "no answer".to_owned(),
            };
            println!("{command}: {answer}");
        });
    }
    node.leave().await?;
    Ok(())
}

async fn answer(node: &Handle, held: &Held, command: &str) -> Answer {
    let words: Vec<&str> = command.splitn(4, ' ').collect();
    Ok(match words[..] {
        ["put", map, key, value] => put(node, map, key, value).await?,
        ["get", map, key] => get(node, map, key).await?,
        // An id that was used before starts nothing: a caller that got no answer asks again with
        // the same id.
        ["ring", id] => match id.parse() {
            Ok(id) => trigger(node, Site::routine(DOORBELL), id).await?,
            Err(_) => "give a number, another one for each ring".to_owned(),
        },
        [
            edit @ ("add" | "set" | "move" | "remove" | "node+" | "node-"),
            id,
            ref rest @ ..,
        ] => match id.parse() {
            Ok(id) => change(node, |site| edited(site, edit, NodeId(id), rest)).await?,
            Err(_) => "give the number of a light, from 104, or of a node, up to 100".to_owned(),
        },
        ["switch", light, id] => match (light.parse().map(NodeId), id.parse()) {
            (Ok(light), Ok(id)) => switch(node, light, id).await?,
            _ => "give the number of a light, and a number, another one for each run".to_owned(),
        },
        ["wake", light] => match light.parse() {
            Ok(light) => {
                node.reported(NodeId(light), None).await?;
                "it gets a command that waits".to_owned()
            }
            Err(_) => "give the number of a light".to_owned(),
        },
        ["spare", is_spared @ ("yes" | "no")] => {
            node.set_spared(is_spared == "yes").await?;
            "from the next epoch on".to_owned()
        }
        ["holds"] => held.list(),
        ["group", name] => group(node, name).0.to_string(),
        ["anew", name] => {
            node.begin_anew(group(node, name)).await?;
            "it begins".to_owned()
        }
        ["site"] => shown(node.site().as_deref()),
        ["members"] => members(node),
        _ => HELP.to_owned(),
    })
}

async fn put(node: &Handle, map: &str, key: &str, value: &str) -> Answer {
    Ok(match node.map(map).put(key, value.as_bytes()).await? {
        Stored::Done { version } => format!("version {version}"),
        refused @ (Stored::Mismatch { .. }
        | Stored::Otherwise { .. }
        | Stored::Begun { .. }
        | Stored::NoSession
        | Stored::Full
        | Stored::Over) => format!("{refused:?}"),
    })
}

async fn get(node: &Handle, map: &str, key: &str) -> Answer {
    Ok(match node.map(map).get(key).await? {
        Some(entry) => {
            let value = entry.value.to_vec();
            let value = String::from_utf8_lossy(&value);
            format!("version {}, {value}", entry.version)
        }
        None => "no entry".to_owned(),
    })
}

async fn trigger(node: &Handle, routine: GroupId, id: u64) -> Answer {
    node.trigger(routine, TriggerId(id)).await?;
    Ok("triggered".to_owned())
}

/// Triggers the routine of a light.
async fn switch(node: &Handle, light: NodeId, id: u64) -> Answer {
    let site = node.site();
    let routine = site.as_ref().and_then(|it| routine_of(it, light));
    match routine {
        Some(routine) => trigger(node, Site::routine(routine), id).await,
        None => Ok("there is no such light: add it first".to_owned()),
    }
}

/// Changes the present site, unless it is so already.
async fn change(node: &Handle, edit: impl FnOnce(Site) -> Result<Site, ConfigError>) -> Answer {
    let Some(present) = node.site() else {
        return Ok("the site is not known yet".to_owned());
    };
    match edit(Site::clone(&present)) {
        Ok(next) if next == *present => {}
        Ok(next) => {
            node.change_site(next).await?;
        }
        Err(why) => return Ok(why.to_string()),
    }
    Ok(shown(node.site().as_deref()))
}

/// The group of the doorbell, or of a map.
fn group(node: &Handle, name: &str) -> GroupId {
    match name {
        "doorbell" => Site::routine(DOORBELL),
        map => node.map(map).group(),
    }
}

fn members(node: &Handle) -> String {
    let members = node.members();
    let shown = members.iter();
    let shown = shown.map(|it| format!("{} {:?}", it.member.id, it.status));
    shown.collect::<Vec<_>>().join(", ")
}

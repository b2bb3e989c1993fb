//! Members, messages, and agents that join and leave.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use std::{fs, process};

use selvedge_client::{Kind, MeshEvent, Status};
use selvedge_seal::{
    KeyName, Readers, add_key, create_key_file, read_key_file, remove_key, use_key,
};

use super::{Mesh, soon, until};

#[tokio::test]
async fn an_agent_that_joins_later_holds_maps_and_one_that_is_removed_does_not() {
    let mut mesh = Mesh::start(3).await;
    soon(mesh.client(0).map("doors").put("front", "open"))
        .await
        .unwrap();
    // Two at once.
    let (fourth, fifth) = tokio::join!(mesh.run(4, &["--tag", "floor=2"]), mesh.run(5, &[]));
    mesh.agents.extend([fourth, fifth]);
    mesh.meet(5).await;
    let nodes = |it: &(u16, String)| it.1.contains("\"nodes\":[1,2,3,4,5]");
    for at in 0..5 {
        until(async || nodes(&mesh.curl(at, &[], "/v1/info"))).await;
    }
    let members = mesh.client(0).members().await.unwrap();
    let fourth = members.iter().find(|it| it.id == 4).unwrap();
    assert_eq!(fourth.tags["floor"], "2");
    let front = soon(mesh.client(3).map("doors").get("front")).await;
    assert_eq!(front.unwrap().unwrap().0, b"open");
    mesh.kill(2).await;
    soon(mesh.client(3).map("doors").put("front", "shut"))
        .await
        .unwrap();
    let third = || async { mesh.client(0).members().await.unwrap() };
    until(async || {
        let members = third().await;
        members
            .iter()
            .any(|it| it.id == 3 && it.status == Status::Failed)
    })
    .await;
    soon(mesh.client(0).remove_node(3)).await.unwrap();
    let (_, info) = mesh.curl(1, &[], "/v1/info");
    assert!(info.contains("\"nodes\":[1,2,4,5]"), "{info}");
    // It stays away though it is here, until it is added.
    soon(mesh.client(0).remove_node(5)).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let (_, info) = mesh.curl(1, &[], "/v1/info");
    assert!(info.contains("\"nodes\":[1,2,4]"), "{info}");
    let (status, answer) = mesh.curl(1, &["-X", "POST"], "/v1/nodes/5/add");
    assert_eq!(status, 200, "{answer}");
    let (_, info) = mesh.curl(1, &[], "/v1/info");
    assert!(info.contains("\"nodes\":[1,2,4,5]"), "{info}");
    soon(mesh.client(1).confirm(3)).await.unwrap();
    let refused = mesh.client(1).confirm(1).await.unwrap_err();
    assert_eq!(refused.kind(), Some(Kind::Mismatch));
    let front = soon(mesh.client(1).map("doors").get("front")).await;
    assert_eq!(front.unwrap().unwrap().0, b"shut");
}

#[tokio::test]
async fn monitors_report_messages_tags_and_members_that_leave() {
    let mut mesh = Mesh::start(3).await;
    let mut monitor = mesh.client(1).monitor().await.unwrap();
    mesh.client(0).send("alarm", "fire").await.unwrap();
    let tags = BTreeMap::from([("floor".to_owned(), "3".to_owned())]);
    mesh.client(0).set_tags(&tags).await.unwrap();
    mesh.client(2).leave().await.unwrap();
    let ended = soon(mesh.agents[2].process.wait()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let (mut message, mut tagged, mut left) = (false, false, false);
    while !(message && tagged && left) {
        match soon(monitor.next()).await.unwrap() {
            MeshEvent::Message { name, from, value } => {
                assert_eq!((&*name, from, value.as_text()), ("alarm", 1, Some("fire")));
                message = true;
            }
            MeshEvent::Member(it) if it.id == 1 => {
                tagged |= it.tags.get("floor").is_some_and(|it| it == "3");
            }
            MeshEvent::Member(it) => left |= it.id == 3 && it.status == Status::Left,
            _ => {}
        }
    }
}

/// The program at the third member never answers.
#[tokio::test]
async fn a_query_gets_one_answer_of_each_member_with_a_program() {
    let mesh = Mesh::start(3).await;
    mesh.meet(3).await;
    let mut monitors = Vec::new();
    for at in 0..3 {
        monitors.push(mesh.client(at).monitor().await.unwrap());
    }
    let asker = mesh.client(0);
    let asks = asker.query("who", "now", Duration::from_secs(4));
    let answer = async {
        for (at, monitor) in monitors.iter_mut().enumerate() {
            let question = loop {
                if let MeshEvent::Question(it) = soon(monitor.next()).await.unwrap() {
                    let found = (&*it.name, it.from, it.value.as_text());
                    assert_eq!(found, ("who", 1, Some("now")));
                    break it.question;
                }
            };
            if at < 2 {
                let client = mesh.client(at);
                client.answer(&question, format!("{at}")).await.unwrap();
                let again = client.answer(&question, "again").await.unwrap_err();
                assert_eq!(again.kind(), Some(Kind::Mismatch));
            }
        }
    };
    let (answers, ()) = tokio::join!(asks, answer);
    let answers = answers.unwrap();
    assert_eq!(answers.asked.len(), 3);
    let answers = answers
        .answers
        .iter()
        .map(|it| (it.from, it.value.as_text().unwrap().to_owned()));
    let expected = [(1, "0".to_owned()), (2, "1".to_owned())];
    assert_eq!(
        answers.collect::<BTreeMap<_, _>>(),
        BTreeMap::from(expected)
    );
}

/// Each round is over at both agents, as their tags show, before the next one begins.
#[tokio::test]
async fn agents_read_their_keys_and_tags_again_at_a_signal() {
    let mut mesh = Mesh::start(0).await;
    let file = |name: &str| mesh.dir.join(name).to_str().unwrap().to_owned();
    let (config, key) = (file("agent.toml"), file("mesh.key"));
    create_key_file(Path::new(&key)).unwrap();
    let key = Path::new(&key);
    let names = || -> Vec<KeyName> { read_key_file(key).unwrap().names().collect() };
    let tag = |round: &str| fs::write(&config, format!("[tags]\nround = {round:?}\n")).unwrap();
    tag("0");
    let flags = [
        "--founders",
        "1",
        "--failures",
        "0",
        "--config",
        &config,
        "--key",
        key.to_str().unwrap(),
    ];
    mesh.add(1, &flags).await;
    mesh.add(2, &flags).await;
    mesh.meet(2).await;
    for round in ["1", "2", "3"] {
        let present = names();
        match round {
            "1" => drop(add_key(key, Readers::Owner).unwrap()),
            "2" => use_key(key, Readers::Owner, present[1]).unwrap(),
            _ => remove_key(key, Readers::Owner, present[1]).unwrap(),
        }
        tag(round);
        for agent in &mesh.agents {
            let id = agent.process.id().unwrap().to_string();
            let sent = process::Command::new("kill").args(["-HUP", &id]).status();
            assert!(sent.unwrap().success());
        }
        until(async || {
            let members = mesh.client(0).members().await.unwrap();
            let others = mesh.client(1).members().await.unwrap();
            let mut all = members.iter().chain(&others);
            all.all(|it| it.status == Status::Alive && it.tags["round"] == round)
        })
        .await;
    }
    assert_eq!(names().len(), 1);
    mesh.add(3, &flags).await;
    mesh.meet(3).await;
}

/// All agents are killed at once, and start again from their folders.
#[tokio::test]
async fn maps_outlive_a_loss_of_power() {
    let mut mesh = Mesh::start(3).await;
    let doors = mesh.client(0).map("doors");
    let version = soon(doors.put("front", "open")).await.unwrap();
    for at in 0..3 {
        mesh.kill(at).await;
    }
    for at in 0..3 {
        let again = mesh.run(at as u64 + 1, &[]).await;
        mesh.agents[at] = again;
    }
    let front = soon(mesh.client(2).map("doors").get("front")).await;
    assert_eq!(front.unwrap(), Some((b"open".to_vec(), version)));
}

/// A lock of theirs would be another one.
#[tokio::test]
async fn agents_with_other_founders_refuse_requests_to_maps() {
    let mut mesh = Mesh::start(3).await;
    let stranger = mesh.run(4, &["--founders", "4", "--failures", "0"]).await;
    mesh.agents.push(stranger);
    mesh.meet(4).await;
    until(async || {
        let (status, why) = mesh.curl(3, &["-X", "POST"], "/v1/locks/door");
        status == 503 && why.contains("other founders")
    })
    .await;
    let taken = soon(mesh.client(0).lock("door", super::LONG)).await;
    assert!(taken.unwrap().is_held());
    let (_, info) = mesh.curl(0, &[], "/v1/info");
    assert!(info.contains("\"nodes\":[1,2,3]"), "{info}");
}

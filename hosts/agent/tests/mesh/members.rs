//! Members, messages, and agents that join and leave.

use std::collections::BTreeMap;

use selvedge_client::{Kind, MeshEvent, Status};

use super::{Mesh, soon, until};

#[tokio::test]
async fn an_agent_that_joins_later_holds_maps_and_one_that_is_removed_does_not() {
    let mut mesh = Mesh::start(3).await;
    soon(mesh.client(0).map("doors").put("front", "open"))
        .await
        .unwrap();
    mesh.add(4, &["--tag", "floor=2"]).await;
    mesh.meet(4).await;
    let nodes = |it: &(u16, String)| it.1.contains("\"nodes\":[1,2,3,4]");
    for at in 0..4 {
        until(async || nodes(&mesh.curl(at, &[], "/v1/info"))).await;
    }
    let members = mesh.client(0).members().await.unwrap();
    let fourth = members.iter().find(|it| it.id == 4).unwrap();
    assert_eq!(fourth.tags["floor"], "2");
    let front = soon(mesh.client(3).map("doors").get("front")).await;
    assert_eq!(front.unwrap().unwrap().0, b"open");
    // With a founder dead, the fourth one is needed.
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
    assert!(info.contains("\"nodes\":[1,2,4]"), "{info}");
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
                assert_eq!(
                    (&*name, from, value.as_text()),
                    ("alarm", Some(1), Some("fire"))
                );
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

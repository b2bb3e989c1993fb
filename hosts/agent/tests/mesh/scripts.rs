//! Programs in other languages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{LONG, Mesh, soon, until};

const AGENT: &str = env!("CARGO_BIN_EXE_selvedge-agent");

fn example(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    folder.join(name)
}

/// A program that uses an agent of the mesh.
fn program(
    mesh: &Mesh,
    at: usize,
    program: impl AsRef<std::ffi::OsStr>,
) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command
        .env("SELVEDGE_AGENT", format!("http://{}", mesh.agents[at].http))
        .env("SELVEDGE_AGENT_PROGRAM", AGENT)
        .kill_on_drop(true);
    command
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_job_runs_once_for_each_occurrence() {
    let mesh = Mesh::start(3).await;
    let ran = mesh.dir.join("ran");
    let job = format!("echo done >> {}", ran.display());
    for (nth, occurrence) in ["2026-11-30T02", "2026-11-30T03", "2026-11-30T03"]
        .iter()
        .enumerate()
    {
        let on = |at: usize| {
            let mut once = program(&mesh, at, example("once.sh"));
            once.args(["backup", occurrence, "sh", "-c", &job]);
            async move { soon(once.status()).await.unwrap() }
        };
        let (a, b, c) = tokio::join!(on(0), on(1), on(2));
        assert!(a.success() && b.success() && c.success(), "{a} {b} {c}");
        assert_eq!(lines(&ran), (nth + 1).min(2));
    }
}

#[tokio::test]
async fn the_leader_has_the_address_and_takes_it_off() {
    let mesh = Mesh::start(3).await;
    let calls = mesh.dir.join("calls");
    let ip = mesh.dir.join("ip");
    let text = format!("#!/bin/sh\necho \"$2\" >> {}\n", calls.display());
    fs::write(&ip, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&ip, mode).unwrap();
    let mut leader = program(&mesh, 0, AGENT)
        .args(["elect", "gateway", "--ttl", "5s", "--"])
        .arg(example("floating-address.sh"))
        .args(["192.0.2.100/24", "eth0"])
        .env("IP", &ip)
        .spawn()
        .unwrap();
    until(async || lines(&calls) == 1).await;
    // Another program waits for its turn.
    let next = soon(mesh.client(1).campaign("gateway", "two", LONG));
    let stops = async {
        let id = leader.id().unwrap().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        soon(leader.wait()).await.unwrap()
    };
    let (next, _ended) = tokio::join!(next, stops);
    assert!(next.unwrap().is_held());
    let calls = fs::read_to_string(&calls).unwrap();
    assert_eq!(calls, "add\ndel\n");
}

#[tokio::test]
async fn a_configuration_is_rolled_out_to_a_file() {
    let mesh = Mesh::start(3).await;
    let (file, reloads) = (mesh.dir.join("nginx.conf"), mesh.dir.join("reloads"));
    let reload = format!("echo reload >> {}", reloads.display());
    let settings = mesh.client(0).map("settings");
    soon(settings.put("nginx.conf", "one")).await.unwrap();
    let _rollout = program(&mesh, 1, "python3")
        .arg(example("rollout.py"))
        .args([
            &format!("http://{}", mesh.agents[1].http),
            "settings",
            "nginx.conf",
        ])
        .arg(&file)
        .args(["sh", "-c", &reload])
        .spawn()
        .unwrap();
    until(async || lines(&reloads) == 1).await;
    assert_eq!(fs::read(&file).unwrap(), b"one");
    soon(settings.put("nginx.conf", &[0xff, 1][..]))
        .await
        .unwrap();
    until(async || lines(&reloads) == 2).await;
    assert_eq!(fs::read(&file).unwrap(), [0xff, 1]);
}

/// Python without any package does each recipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_in_python_does_each_recipe() {
    let mesh = Mesh::start(3).await;
    let script = example("recipes.py");
    let agents = [0, 1].map(|at| format!("http://{}", mesh.agents[at].http));
    let output = Command::new("python3")
        .arg(script)
        .args(agents)
        .output()
        .expect("python3");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.ends_with("all recipes are done\n"), "{text}");
}

//! Programs in other languages.

use std::path::Path;
use std::process::Command;

use super::Mesh;

/// Python without any package does each recipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_in_python_does_each_recipe() {
    let mesh = Mesh::start(3).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/recipes.py");
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

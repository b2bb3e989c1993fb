//! Compares the public API of each published package with the file `<package>.txt` beside this
//! program. Needs a nightly toolchain, because only its rustdoc writes JSON.
//!
//! ```sh
//! cd verify/api
//! cargo run             # prints differences; fails if there are any
//! cargo run -- --write  # the files follow the code
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

fn main() -> ExitCode {
    let write = env::args().any(|argument| argument == "--write");
    match run(write) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!(
                "the public API is not what the files say: look through the lines above, write a \
                 line into CHANGELOG.md, and run `cargo run -- --write` in verify/api/"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Compares the files with the code, or writes them; returns true if they are equal now.
fn run(write: bool) -> Result<bool, Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root =
        (here.parent().and_then(Path::parent)).ok_or("verify/api/ has no folder around it")?;
    let mut same = true;
    for (package, features) in published(root)? {
        let found = api_of(root, &package, &features)?;
        let file = here.join(format!("{package}.txt"));
        if write {
            fs::write(&file, found)?;
            continue;
        }
        let kept =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        same &= is_same(&package, &kept, &found);
    }
    Ok(same)
}

/// The packages that can be published, from the manifests in `root` and in `hosts`, each with its
/// features.
fn published(root: &Path) -> Result<BTreeMap<String, String>, Box<dyn Error>> {
    let mut packages = BTreeMap::new();
    for folder in [root, &root.join("hosts")] {
        for entry in fs::read_dir(folder)? {
            let manifest = entry?.path().join("Cargo.toml");
            let Ok(text) = fs::read_to_string(&manifest) else {
                continue;
            };
            let is_package = text.lines().any(|line| line == "[package]");
            if !is_package || text.lines().any(|line| line == "publish = false") {
                continue;
            }
            let name = text.lines().find_map(|line| {
                let name = line.strip_prefix("name = \"")?;
                name.strip_suffix('"')
            });
            let name = name.ok_or_else(|| format!("{} names no package", manifest.display()))?;
            packages.insert(name.to_owned(), features(&text));
        }
    }
    Ok(packages)
}

/// The features of a manifest, separated by commas. `check` is left out: models change with the checks
/// that they are for, and no application builds on them.
fn features(manifest: &str) -> String {
    let lines = manifest.lines().skip_while(|line| *line != "[features]");
    let table = lines.skip(1).take_while(|line| !line.starts_with('['));
    let names = table.filter_map(|line| line.split_once(" = ").map(|(name, _)| name));
    let public = names.filter(|name| !name.starts_with('#') && *name != "check");
    public.collect::<Vec<_>>().join(",")
}

/// Returns one line for each public item, with these features. Blanket and automatic implementations are
/// left out: they follow from the rest.
fn api_of(root: &Path, package: &str, features: &str) -> Result<String, Box<dyn Error>> {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("verify/target"), PathBuf::from);
    let status = Command::new("cargo")
        .args([
            "+nightly",
            "rustdoc",
            "--quiet",
            "--lib",
            "--no-default-features",
        ])
        .args(["--features", features, "-p", package, "--target-dir"])
        .arg(&target)
        .args(["--", "-Zunstable-options", "--output-format", "json"])
        .args(["--cap-lints", "allow"])
        // Under `cargo run` cargo itself is named by this variable, and it is not nightly's.
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env_remove("RUSTDOC")
        .env_remove("RUSTUP_TOOLCHAIN")
        .current_dir(root)
        .status()?;
    if !status.success() {
        return Err(format!("cargo +nightly rustdoc -p {package} failed: {status}").into());
    }
    let library = package.replace('-', "_");
    let json = target.join("doc").join(format!("{library}.json"));
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(api.to_string())
}

/// Prints the lines that only one of the two has.
fn is_same(package: &str, kept: &str, found: &str) -> bool {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let [kept, found] = [lines(kept), lines(found)];
    for line in kept.difference(&found) {
        println!("{package}: - {line}");
    }
    for line in found.difference(&kept) {
        println!("{package}: + {line}");
    }
    kept == found
}

# Steps that build and run no test. Read by `.ci/run`.
# shellcheck shell=bash

# The program in README builds in a crate of its own, with the dependencies beside it.
embed() {
    local crate=$target/embed section
    mkdir -p "$crate/src"
    section=$(sed -n '/^## A lock and a leader/,/^## Try it/p' README.md)
    block() {
        sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}" <<<"$section"
    }
    block rust >"$crate/src/main.rs"
    cp Cargo.lock "$crate"
    {
        printf '[package]\nname = "embed"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n\n'
        block toml | sed "s#\"\.\./selvedge/#\"$PWD/#"
    } >"$crate/Cargo.toml"
    grep -q '^selvedge-udp = ' "$crate/Cargo.toml"
    CARGO_TARGET_DIR=$target cargo check --quiet --manifest-path "$crate/Cargo.toml"
}

# The crate outside of this workspace that the book's chapter on fuzzing describes: its files are the
# blocks below a line that ends with their path. Its property tests pass, its target builds, and a test
# fails for the lock with the planted defect.
outside() {
    local crate=$target/outside/my-lock log=$target/outside.log manifest
    rm -rf "$crate"
    mkdir -p "$crate"/{src,tests,fuzz/fuzz_targets}
    awk -v root="$target/outside" '
        /^```/ { out = path ? root "/" path : ""; path = ""; next }
        out { print > out }
        match($0, /`[^` ]+\.(rs|toml)`:$/) { path = substr($0, RSTART + 1, RLENGTH - 3) }
    ' docs/src/fuzzing.md
    sed -e '/^\/\/\/ The list that breaks/,$d' -e '/^use chacha20/d' -e 's/pub(crate)/pub/' \
        sim/examples/own_operations.rs >"$crate/src/lib.rs"
    printf '\n[workspace]\n' >>"$crate/Cargo.toml"
    for manifest in "$crate"/{,fuzz/}Cargo.toml; do
        sed -i -E "s#\"(\.\./)+selvedge/#\"$PWD/#" "$manifest"
        cp Cargo.lock "$(dirname "$manifest")"
    done
    (
        cd "$crate"
        export CARGO_TARGET_DIR=$target
        cargo check --quiet --manifest-path fuzz/Cargo.toml
        cargo test --quiet
        sed -i 's/, true)/, false)/' tests/weights.rs
        if PROPTEST_CASES=4096 cargo test --quiet --test weights >"$log" 2>&1 || ! grep 'are inside together' "$log" >/dev/null; then
            cat "$log"
            echo "tests/weights.rs does not find the planted defect"
            return 1
        fi
    )
}

# The packages for the registry can be packed, and have each file that their sources include.
package() {
    local manifest file include unpacked=$target/unpacked bad=0
    local -a packages=()
    for manifest in $(git grep -L '^publish = false' -- '*/Cargo.toml'); do
        ! grep -q '^\[package\]' "$manifest" ||
            packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)")
    done
    rm -rf "$target/package" "$unpacked"
    mkdir -p "$unpacked"
    cargo package --locked --quiet --no-verify --allow-dirty "${packages[@]}" 2>&1 | sed '/^warning: ignoring test/d'
    for file in "$target"/package/*.crate; do
        tar -xzf "$file" -C "$unpacked"
    done
    while IFS=: read -r file include; do
        if [[ ! -e $(dirname "$file")/$include ]]; then
            echo "$file: $include is not packed: add it to \`include\` in Cargo.toml"
            bad=1
        fi
    done < <(grep -roE 'include_str!\("[^"]+' "$unpacked" --include='*.rs' | sed 's/include_str!("//')
    for file in "$unpacked"/*/README.md; do
        if ! grep -q '^```rust$' "$file"; then
            echo "$file has no example"
            bad=1
        fi
    done
    return "$bad"
}

features_of() {
    sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z][a-z0-9_-]*\) *=.*/\1/p' "$1" | grep -vx default
}

# Each library with no feature, and with each of its features alone. A package waits for the packages
# that it needs, so two run at once, each with a target folder of its own.
features() {
    local manifest package feature
    local -a pairs=()
    for manifest in $(git ls-files '*/Cargo.toml'); do
        # Packages in workspaces of their own have steps of their own.
        [[ $manifest == fuzz/* || $manifest == */flash/* || $manifest == hosts/Cargo.toml ||
            $manifest == hosts/faas/* || $manifest == hosts/hub/* || $manifest == hosts/http/* ||
            $manifest == hosts/mqtt/* ]] && continue
        grep -q '^\[features\]' "$manifest" || continue
        package=$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -n 1)
        for feature in '' $(features_of "$manifest"); do
            pairs+=("$package:$feature")
        done
    done
    local half=$((${#pairs[@]} / 2))
    lint_each "${pairs[@]:0:half}" &
    local first=$!
    CARGO_TARGET_DIR=$target/features lint_each "${pairs[@]:half}" || {
        wait "$first"
        return 1
    }
    wait "$first"
}

# Pairs of a package and one of its features, or none.
lint_each() {
    local pair
    for pair in "$@"; do
        echo "$pair"
        cargo clippy --quiet -p "${pair%%:*}" --no-default-features --features "${pair#*:}" -- -D warnings || return
    done
}

# The benches still build; nothing is measured.
benches() {
    (
        cd verify/benches
        export CARGO_TARGET_DIR=$target
        cargo fmt --check
        cargo clippy --locked --quiet --all-targets -- -D warnings
    )
}

# The public API is equal to the files in verify/api.
api() {
    if ! has_nightly; then
        echo "skipped: no nightly toolchain"
        return
    fi
    (
        cd verify/api
        export CARGO_TARGET_DIR=$target/api
        cargo fmt --check
        cargo clippy --locked --quiet -- -D warnings
        cargo run --locked --quiet
    )
}

# The oldest compiler that the manifests promise. Clippy's lint `incompatible_msrv` looks for newer items
# of the standard library alone, not for newer rules of the language.
oldest() {
    local version toolchain
    version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    installed() { { rustup toolchain list 2>/dev/null || true; } | sed -n "s/^\($version[.-][^ ]*\).*/\1/p" | head -n 1; }
    toolchain=$(installed)
    if [[ -z $toolchain ]] && rustup toolchain install "$version" --profile minimal --no-self-update; then
        toolchain=$(installed)
    fi
    if [[ -z $toolchain ]]; then
        echo "skipped: no toolchain $version"
        return
    fi
    cargo "+$toolchain" check --locked --workspace --all-features --target-dir "$target/oldest"
}

# The lower bounds of the manifests are true: everything builds with the lowest version of each
# package that a manifest names. In a copy, since the lock files stay unchanged.
minimal() {
    if ! has_nightly; then
        echo "skipped: no nightly toolchain"
        return
    fi
    local copy=$target/minimal/source workspace
    rm -rf "$copy"
    mkdir -p "$copy"
    git ls-files -z -- ':!*Cargo.lock' ':!*/corpus/*' | tar -c --null -T - | tar -x -C "$copy"
    for workspace in . hosts; do
        (
            cd "$copy/$workspace"
            export CARGO_TARGET_DIR=$target/minimal
            cargo +nightly -Z direct-minimal-versions generate-lockfile --quiet
            cargo +nightly check --quiet --workspace --all-features
        )
    done
}

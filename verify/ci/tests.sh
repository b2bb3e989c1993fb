# Steps that run tests and programs. Read by `.ci/run`.
# shellcheck shell=bash

readonly test_command='cargo test --workspace'

run_tests() {
    if ! grep -qxF "$test_command" README.md; then
        echo "README.md does not have the line: $test_command"
        return 1
    fi
    $test_command
}

# Nodes of a building, as processes that are killed. All of the workspace, as in the tests: then little is
# left to build.
processes() {
    cargo build --locked --quiet --workspace --example building_node
    local -a run=(python3 -B verify/processes/run.py --program "$target/debug/examples/building_node")
    timeout 600 "${run[@]}"
    timeout 300 "${run[@]}" --forget
}

# Differences between builds: traces of the simulator, which are compared with fixed digests in
# debug and here, and the driver, which checks machines in debug builds only.
release() {
    # Few commands, since each builds shared packages with features of its own.
    cargo test --release -p selvedge-sim -p selvedge-core --test all -- network:: driver::
    cargo test --release -p selvedge-membership -p selvedge-camera -p selvedge-celect \
        -p selvedge-replica -p selvedge-pcm --test allocation
}

# A program without std links and runs, so none of its dependencies needs std.
no_std() {
    (
        cd verify/no_std
        export CARGO_TARGET_DIR=$target/no_std
        cargo fmt --all --check
        cargo clippy --locked --release --quiet -- -D warnings
        cargo run --locked --release
    )
}

# The flash of each protocol on a device is within its budget.
flash() {
    (
        export CARGO_TARGET_DIR=$target/flash
        verify/no_std/flash/measure
    )
}

# Every order in which threads can meet at core's shared handle and gate.
threads() {
    (
        cd verify/loom
        export CARGO_TARGET_DIR=$target/loom
        cargo fmt --check
        export RUSTFLAGS='--cfg loom'
        cargo clippy --locked --release --quiet --all-targets -- -D warnings
        cargo test --locked --release
    )
}

# The comparisons with other implementations still build and run.
peers() {
    (
        cd verify/peers
        export CARGO_TARGET_DIR=$target
        cargo fmt --check
        cargo clippy --locked --quiet -- -D warnings
        cargo run --locked -- --nodes 49 --periods 20 --failures 1
        cargo run --locked -- elections --nodes 5 --trials 5
        cargo run --locked -- replication --updates 200 --warm-up 50 --runs 1
        cargo run --locked -- functions --functions 100
    )
}

# Functions over MQTT, and a home of real devices, in processes that are killed. An installed
# mosquitto and Chromium are used, too.
hosts() {
    (
        cd hosts
        # Its profile is the profile of the other tests, so some packages are built already.
        export CARGO_TARGET_DIR=$target
        if command -v chromium >/dev/null; then
            export SELVEDGE_CHROMIUM_REQUIRED=1
        fi
        if [[ -x /usr/sbin/mosquitto ]]; then
            export SELVEDGE_MOSQUITTO_REQUIRED=1
        fi
        cargo fmt --all --check
        cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
        cargo clippy --locked --quiet -p selvedge-hosts-fuzz --features libfuzzer -- -D warnings
        local package features
        for package in faas hub http; do
            cargo clippy --locked --quiet -p "selvedge-$package" --no-default-features -- -D warnings
        done
        for features in '' broker tls; do
            cargo clippy --locked --quiet -p selvedge-mqtt --no-default-features --features "$features" -- -D warnings
        done
        RUSTDOCFLAGS='-D warnings' cargo doc --locked --quiet --workspace --no-deps
        cargo test --locked --workspace
    )
}

# The tools that the steps need, and how they are installed. Read by `.ci/run`.
# shellcheck shell=bash

tools() {
    command -v cargo >/dev/null || {
        echo "cargo is missing: install Rust 1.88 or later" >&2
        return 1
    }
    if ! cargo fmt --version >/dev/null 2>&1 || ! cargo clippy --version >/dev/null 2>&1; then
        rustup component add rustfmt clippy
    fi
    # The runtime of libFuzzer is written in C++.
    if ! command -v c++ >/dev/null; then
        apt-get update -qq && apt-get install -y -qq g++
    fi
    # The measure of prose.
    if ! command -v python3 >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3
    fi
    # The tests of the page that `selvedge-faas` serves open it in a browser.
    if ! command -v chromium >/dev/null; then
        { apt-get update -qq && apt-get install -y -qq chromium; } || echo "without Chromium"
    fi
    # The tests of hosts over MQTT use a broker of another project.
    if ! command -v mosquitto >/dev/null && [[ ! -x /usr/sbin/mosquitto ]]; then
        { apt-get update -qq && apt-get install -y -qq mosquitto; } || echo "without mosquitto"
    fi
    cargo --version && rustc --version
}

# Unoptimised: building a tool takes longer than running it once.
install_tool() {
    CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=false \
        cargo install "$@" --debug --locked --quiet --root "$target/tools"
}

has_nightly() {
    { rustup toolchain list 2>/dev/null || true; } | grep '^nightly' >/dev/null
}

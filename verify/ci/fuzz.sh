# A short search with each fuzz target. Read by `.ci/run`.
# shellcheck shell=bash

# A short search with every target; the replay of the corpora is part of the tests.
fuzz() {
    if ! has_nightly; then
        echo "skipped: no nightly toolchain"
        return
    fi
    export PATH=$target/tools/bin:$PATH
    if ! command -v cargo-fuzz >/dev/null &&
        ! install_tool cargo-fuzz --version '^0.13'; then
        echo "skipped: cargo-fuzz cannot be installed here"
        return
    fi
    unset CUSTOM_LIBFUZZER_PATH
    # Optimising them takes more time than it gains in a few seconds.
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off
    search . fuzz
    # Hosts are large to build, and wait more than they compute.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 search hosts fuzz/hosts
    (planted)
}

# The target in the crate of step `outside` finds the planted defect.
planted() {
    local log=$target/planted.log
    cd "$target/outside/my-lock"
    sed -i 's/, true)/, false)/' fuzz/fuzz_targets/operations.rs
    if cargo +nightly fuzz run operations --sanitizer none --no-trace-compares --target-dir "$target/fuzz" -- \
        -runs=1000000 >"$log" 2>&1 || ! grep -a 'are inside together' "$log"; then
        cat "$log"
        return 1
    fi
}

# A short search with each target of a folder, which belongs to a workspace, two at a time: each one is
# a single thread.
search() {
    local workspace=$1 folder=$PWD/$2 found=$target/fuzz-found/$2 failed=0 name
    # Without a sanitizer: the crates forbid unsafe code, and it is twice as fast. Recording
    # comparisons would take half of the time, and finds no more here.
    local -a how=(--fuzz-dir "$folder" --features libfuzzer --sanitizer none --no-trace-compares
        --target-dir "$target/fuzz")
    (cd "$workspace" && cargo +nightly fuzz build "${how[@]}")
    one() {
        mkdir -p "$found/$1"
        cd "$workspace"
        cargo +nightly fuzz run "${how[@]}" "$1" "$found/$1" "$folder/corpus/$1" -- \
            -max_total_time="$fuzz_seconds" -verbosity=0 -print_final_stats=1 2>&1 | grep -v '# Uses:'
    }
    local -a names=() running=()
    for name in "$folder"/fuzz_targets/*.rs; do
        names+=("$(basename "$name" .rs)")
    done
    for name in "${names[@]}"; do
        (one "$name") &
        running+=($!)
        if ((${#running[@]} == 2)); then
            wait "${running[0]}" || failed=1
            running=("${running[@]:1}")
        fi
    done
    for name in "${running[@]}"; do
        wait "$name" || failed=1
    done
    return "$failed"
}

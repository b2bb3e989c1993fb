# The demo with ten seeds. Read by `.ci/run`.
# shellcheck shell=bash

# The demo with ten seeds, two at a time: five of them on the machine as it is, and five beside a
# process that keeps one core busy. What depends on the machine's speed says so, and is no failure
# where the machine was late.
demo() {
    local -a first=(1 2 3 12 22) second=(26 89 144 987 3459)
    cargo build --release --quiet -p selvedge-cli
    mkdir -p "$target/demo"
    demo_each "${first[@]}" || return
    timeout 200 sh -c 'while :; do :; done' &
    local busy=$! failed=0
    echo 'beside a busy core:'
    demo_each "${second[@]}" || failed=1
    kill "$busy" 2>/dev/null || true
    wait "$busy" || true
    return "$failed"
}

demo_each() {
    local seed failed=0
    local -a running=()
    for seed in "$@"; do
        demo_one "$seed" &
        running+=($!)
        if ((${#running[@]} == 2)); then
            wait "${running[0]}" || failed=1
            running=("${running[@]:1}")
        fi
    done
    for seed in "${running[@]}"; do
        wait "$seed" || failed=1
    done
    return "$failed"
}

demo_one() {
    local seed=$1 start=$SECONDS told=$target/demo/$1.txt outcome=held
    if ! timeout 180 "$target/release/selvedge" demo --seed "$seed" --out "$target/demo/$seed.html" >"$told" 2>&1; then
        printf 'seed %s: FAILED after %d s\n' "$seed" $((SECONDS - start))
        cat "$told"
        return 1
    fi
    if grep 'not judged$' "$told"; then
        outcome='held, as far as the machine was fast enough'
    fi
    printf 'seed %s: %s, %d s\n' "$seed" "$outcome" $((SECONDS - start))
}

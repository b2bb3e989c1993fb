# The demos with ten seeds. Read by `.ci/run`.
# shellcheck shell=bash

# All demos with ten seeds, two at a time: five of them on the idle machine, and five beside a
# process that keeps one core busy. Results that depend on the machine's speed are marked, and are
# no failure where the machine was late.
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

# The mesh, the building and the ledger with one seed, beside each other.
demo_one() {
    local seed=$1 story failed=0
    local -a running=()
    for story in mesh building ledger; do
        demo_story "$seed" "$story" &
        running+=($!)
    done
    for story in "${running[@]}"; do
        wait "$story" || failed=1
    done
    return "$failed"
}

demo_story() {
    local seed=$1 story=$2 start=$SECONDS outcome=held
    local told=$target/demo/$seed-$story.txt
    local -a call=(demo)
    case $story in
    mesh) call+=(--out "$target/demo/$seed-mesh.html") ;;
    building) call+=(building --out "$target/demo/$seed-building.html") ;;
    ledger) call+=(ledger) ;;
    esac
    if ! timeout 180 "$target/release/selvedge" "${call[@]}" --seed "$seed" >"$told" 2>&1; then
        printf 'seed %s, %s: FAILED after %d s\n' "$seed" "$story" $((SECONDS - start))
        cat "$told"
        return 1
    fi
    if grep 'not judged$' "$told"; then
        outcome='held, as far as the machine was fast enough'
    fi
    printf 'seed %s, %s: %s, %d s\n' "$seed" "$story" "$outcome" $((SECONDS - start))
}

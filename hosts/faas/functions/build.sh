#!/bin/sh
# Compiles the functions here, into this folder or another one:
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/faas/functions/build.sh [FOLDER]
#
# It needs what fetch.sh gets, and node. The same sources give the same bytes.
set -eu
: "${SELVEDGE_PARTS:?name the folder that fetch.sh has filled}"
to=$(cd "${1:-$(dirname "$0")}" && pwd)
cd "$(dirname "$0")"
for name in image network samples sha256; do
    # stub: memory is taken and never given back, for a call is soon over. Without abort, for which
    # there is no import, a failed check is `unreachable`.
    "$SELVEDGE_PARTS/faas/node_modules/.bin/asc" "$name.ts" --outFile "$to/$name.wasm" \
        --runtime stub --use abort= -O3 --converge
done

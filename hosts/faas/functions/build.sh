#!/bin/sh
# Compiles the functions here, into this folder or another one:
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/faas/functions/build.sh [FOLDER]
#
# It needs the compiler that fetch.sh gets, and node. The same sources give the same bytes.
set -eu
: "${SELVEDGE_PARTS:?name the folder that fetch.sh has filled}"
to=$(cd "${1:-$(dirname "$0")}" && pwd)
cd "$(dirname "$0")"
for name in image network samples sha256; do
    # stub: memory is allocated and never freed, because a call is short. Without abort, which would
    # be an import, a failed check is `unreachable`.
    "$SELVEDGE_PARTS/faas/node_modules/.bin/asc" "$name.ts" --outFile "$to/$name.wasm" \
        --runtime stub --use abort= -O3 --converge
done

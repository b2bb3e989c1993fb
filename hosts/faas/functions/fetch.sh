#!/bin/sh
# Gets foreign parts: the compiler of AssemblyScript, and modules of other authors.
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/faas/functions/fetch.sh
#
# SELVEDGE_PARTS names the folder; tests look there by the same variable. Existing files stay.
# It needs npm. The fetched files are not changed; a module with exports that take pointers gets a second name,
# under which it is merged with NAME.wat of this folder.
set -eu
: "${SELVEDGE_PARTS:?name the folder for fetched files}"
mkdir -p "$SELVEDGE_PARTS/faas"
here=$(cd "$(dirname "$0")" && pwd)
cd "$SELVEDGE_PARTS/faas"
[ -f package.json ] || echo '{"private": true}' > package.json
npm install --save-exact --no-audit --no-fund \
    assemblyscript@0.28.20 xxhash-wasm@1.1.0 @jsquash/resize@2.1.1 \
    kissfft-wasm@1.1.2 @jitsi/rnnoise-wasm@0.2.1

# Binaryen comes with the compiler.
merge() {
    node_modules/.bin/wasm-as --enable-bulk-memory "$here/$1.wat" -o "$1-call.wasm"
    # Both import from each other: the compiled library calls its imports `a`.
    node_modules/.bin/wasm-merge --enable-bulk-memory "$2" "$1" "$1-call.wasm" a -o "$1.wasm"
}
merge kissfft node_modules/kissfft-wasm/lib/kissfft.wasm
merge rnnoise node_modules/@jitsi/rnnoise-wasm/dist/rnnoise.wasm

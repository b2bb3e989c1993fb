#!/bin/sh
# Gets what is not ours: the compiler of AssemblyScript, and modules that nobody here wrote.
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/faas/functions/fetch.sh
#
# SELVEDGE_PARTS names the folder; tests look there by the same variable. What is there already stays.
# It needs npm.
set -eu
: "${SELVEDGE_PARTS:?name the folder for what is fetched}"
mkdir -p "$SELVEDGE_PARTS/faas"
cd "$SELVEDGE_PARTS/faas"
[ -f package.json ] || echo '{"private": true}' > package.json
npm install --save-exact --no-audit --no-fund \
    assemblyscript@0.28.20 xxhash-wasm@1.1.0 @jsquash/resize@2.1.1

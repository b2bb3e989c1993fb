#!/bin/sh
# Fetches third-party programs: a simulator of Kasa plugs, and matter.js with a client of MQTT for the bridge.
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/hub/parts/fetch.sh
#
# SELVEDGE_PARTS names the folder; tests look there by the same variable. Installed parts stay.
# It needs npm.
set -eu
: "${SELVEDGE_PARTS:?name the folder for what is fetched}"
mkdir -p "$SELVEDGE_PARTS/hub"
cd "$SELVEDGE_PARTS/hub"
[ -f package.json ] || echo '{"private": true}' > package.json
npm install --save-exact --no-audit --no-fund tplink-smarthome-simulator@5.0.1 \
    @matter/main@0.17.9 @matter/nodejs@0.17.9 mqtt@5.16.0

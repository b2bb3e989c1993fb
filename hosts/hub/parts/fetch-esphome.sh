#!/bin/sh
# Fetches a third-party program: a switch with the firmware of ESPHome, built for this machine.
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/hub/parts/fetch-esphome.sh
#
# SELVEDGE_PARTS names the folder; tests look there by the same variable. Installed parts stay.
# It needs Python 3 with venv, and g++ with C++20. ESPHome writes the sources, and then fails to get its build
# tool where that is not available; so g++ builds them here.
set -eu
: "${SELVEDGE_PARTS:?name the folder for what is fetched}"
dir=$SELVEDGE_PARTS/hub/esphome
[ -x "$dir/relay" ] && exit 0
mkdir -p "$dir/objects"
cd "$dir"
[ -x venv/bin/esphome ] || { python3 -m venv venv && venv/bin/pip install --quiet esphome==2026.6.5; }
cat > relay.yaml <<'YAML'
esphome:
  name: relay
host:
api:
logger:
  level: WARN
switch:
  - platform: template
    name: Relay
    optimistic: true
YAML
venv/bin/esphome compile relay.yaml >compile.log 2>&1 || true
sources=.esphome/build/relay/src
[ -d "$sources" ] || { tail -n 5 compile.log >&2; exit 1; }
cd "$sources"
find * -name '*.cpp' | while read -r file; do
    g++ -O1 -std=gnu++20 -fno-exceptions -DUSE_HOST -include esphome/core/defines.h -I. \
        -c "$file" -o "$dir/objects/$(echo "$file" | tr / _).o"
done
g++ "$dir"/objects/*.o -o "$dir/relay" -lpthread

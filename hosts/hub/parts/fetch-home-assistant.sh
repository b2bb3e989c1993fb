#!/bin/sh
# Fetches a third-party program: Home Assistant, which `examples/compare` compares with this hub, and which
# presses the buttons that it discovered in the tests.
#
#   SELVEDGE_PARTS=~/.cache/selvedge hosts/hub/parts/fetch-home-assistant.sh
#
# SELVEDGE_PARTS names the folder. It takes some minutes and 700 MB, so it is not in fetch.sh.
# It needs uv and Python 3.11, for which 2024.3.3 is the newest version.
set -eu
: "${SELVEDGE_PARTS:?name the folder for what is fetched}"
mkdir -p "$SELVEDGE_PARTS/hub"
cd "$SELVEDGE_PARTS/hub"
[ -x home-assistant/bin/python ] || uv venv --python 3.11 home-assistant
install() {
    uv pip install --python home-assistant/bin/python "$@" 'josepy<2'
}
install homeassistant==2024.3.3
# The manifests of the integrations in use name their requirements, and those name theirs.
home-assistant/bin/python - > home-assistant/requirements.txt <<'END'
import json
from pathlib import Path

import homeassistant

parts = Path(homeassistant.__file__).parent / "components"
todo = ["analytics", "backup", "button", "cloud", "dhcp", "file_upload", "frontend", "hardware", "mqtt", "onboarding",
        "recorder", "script", "stream", "switch", "tplink"]
seen, found = set(), set()
while todo:
    part = todo.pop()
    if part not in seen:
        seen.add(part)
        manifest = json.loads((parts / part / "manifest.json").read_text())
        found.update(manifest.get("requirements", []))
        todo.extend(manifest.get("dependencies", []))
print("\n".join(sorted(found)))
END
constraints=$(home-assistant/bin/python -c 'import homeassistant; print(homeassistant.__path__[0])')
install -r home-assistant/requirements.txt -c "$constraints/package_constraints.txt"
home-assistant/bin/hass --version

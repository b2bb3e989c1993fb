"""Writes an entry of a map to a file whenever it changes, and has a program reload:

    python3 rollout.py http://127.0.0.1:7780 settings nginx.conf /etc/nginx/nginx.conf systemctl reload nginx

A new content is at all hosts in a moment: selvedge-agent map put settings nginx.conf < nginx.conf
"""

import base64
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


def changes(address, name, key):
    """The present entry and each later one; `None` when it is removed."""
    query = urllib.parse.urlencode({"prefix": key, "wait": "60s"})
    url = f"{address}/v1/maps/{urllib.parse.quote(name)}/watch?{query}"
    # Without a line for this long, the agent is gone: it sends one each 5 s.
    with urllib.request.urlopen(url, timeout=30) as stream:
        for line in stream:
            if not line.startswith(b"data:"):
                continue
            for change in json.loads(line[5:]).get("changes", []):
                if change["key"] == key:
                    yield change["entry"]


def content(entry):
    if "value_base64" in entry:
        return base64.b64decode(entry["value_base64"])
    return entry["value"].encode()


def write(path, data):
    """Replaces the file at once: a reader sees the old content or the new one."""
    with open(f"{path}.new", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)


def main(address, name, key, path, *reload):
    present = None
    while True:
        try:
            for entry in changes(address, name, key):
                if entry is None or content(entry) == present:
                    continue
                present = content(entry)
                write(path, present)
                subprocess.run(reload, check=False)
        except (urllib.error.URLError, OSError) as error:
            print(f"the agent at {address}: {error}; again in 1 s", file=sys.stderr)
        time.sleep(1)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Each recipe through two agents of a mesh, with the standard library alone:

    python3 recipes.py http://127.0.0.1:7780 http://127.0.0.1:7781
"""

import json
import secrets
import sys
import threading
import urllib.error
import urllib.request


class Agent:
    def __init__(self, address):
        self.address = address

    def call(self, method, path, body=None):
        """The answer: JSON as a value, else bytes. `None` where there is no such entry."""
        request = urllib.request.Request(self.address + path, body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                content = answer.read()
                is_json = answer.headers["content-type"] == "application/json"
                return json.loads(content) if is_json else content
        except urllib.error.HTTPError as refused:
            why = json.load(refused)
            if why["kind"] == "not_found":
                return None
            raise RuntimeError(f"{method} {path}: {why}") from None

    def release(self, hold):
        self.call("DELETE", f"/v1/holds/{hold['hold']}")


def main(one, other):
    # Names of this run: counters, queues and barriers keep what former runs left.
    run = secrets.token_hex(4)

    # A lock, by requests that extend it.
    lock = one.call("POST", "/v1/locks/printer?ttl=10s&wait=60s")
    extended = one.call("PUT", f"/v1/holds/{lock['hold']}")
    assert extended["is_held"]
    one.release(lock)
    later = other.call("POST", "/v1/locks/printer?ttl=10s&wait=60s")
    assert later["token"]["version"] > lock["token"]["version"]
    other.release(later)
    print("lock", lock["token"], later["token"])

    # A lock that is shared, and one of two names.
    shared = [it.call("POST", "/v1/locks/plan?shared=true&wait=60s") for it in (one, other)]
    line = one.call("GET", "/v1/locks/plan")
    assert [it["has_it"] for it in line] == [True, True]
    for agent, hold in zip((one, other), shared):
        agent.release(hold)
    both = one.call("POST", "/v1/locks?wait=60s", b'{"names": ["plan", "printer"]}')
    one.release(both)
    print("locks", both["name"])

    # An election with a value.
    leads = one.call("POST", "/v1/elections/heating?ttl=10s&wait=60s", b"192.0.2.1:80")
    leader = other.call("GET", "/v1/elections/heating")
    assert leader["value"] == "192.0.2.1:80" and leader["token"] == leads["token"]
    one.release(leads)
    print("election", leader)

    # Two permits.
    permits = [it.call("POST", "/v1/semaphores/disks?permits=2&wait=60s") for it in (one, other)]
    try:
        one.call("POST", "/v1/semaphores/disks?permits=2&wait=500ms")
        raise SystemExit("a third permit")
    except RuntimeError as refused:
        assert "timeout" in str(refused)
    one.release(permits[0])
    other.release(permits[1])
    print("semaphore", [it["name"] for it in permits])

    # A registry.
    listed = one.call("POST", "/v1/services/web?instance=7", b"192.0.2.7:80")
    found = other.call("GET", "/v1/services/web")
    assert found == [{"instance": 7, "address": "192.0.2.7:80"}]
    one.release(listed)
    print("service", found)

    # A queue: an item is taken once, and the one of the smallest priority first.
    one.call("POST", f"/v1/queues/{run}", b"2")
    one.call("POST", f"/v1/queues/{run}?priority=1", b"1")
    taken = [it.call("DELETE", f"/v1/queues/{run}?wait=60s") for it in (other, one)]
    assert taken == [b"1", b"2"]
    print("queue", taken)

    # A counter.
    one.call("POST", f"/v1/counters/{run}?add=2")
    total = other.call("POST", f"/v1/counters/{run}?add=3")["value"]
    assert total == 5
    print("counter", total)

    # A barrier for two.
    arrived = []
    enter = lambda it: arrived.append((it, it.call("POST", f"/v1/barriers/{run}?number=2&wait=60s")))
    threads = [threading.Thread(target=enter, args=(it,)) for it in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threads = [threading.Thread(target=it.release, args=(hold,)) for it, hold in arrived]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(arrived) == 2
    print("barrier", len(arrived))

    # A map: compare and set, a transaction, a session that owns an entry, a watch.
    version = one.call("PUT", f"/v1/maps/settings/entries/{run}/target?version=0", b"21")["version"]
    other.call("PUT", f"/v1/maps/settings/entries/{run}/target?version={version}", b"20")
    transaction = {
        "when": [{"key": f"{run}/mode", "version": 0}],
        "then": [{"put": {"key": f"{run}/mode", "value": "night"}}, {"remove": {"key": f"{run}/target"}}],
    }
    one.call("POST", "/v1/maps/settings/transaction", json.dumps(transaction).encode())
    assert other.call("GET", f"/v1/maps/settings/entries/{run}/target") is None
    session = one.call("POST", "/v1/maps/settings/sessions?ttl=10s")
    one.call("PUT", f"/v1/maps/settings/entries/{run}/guest?session={session['session']}", b"here")
    watch = urllib.request.urlopen(other.address + f"/v1/maps/settings/watch?prefix={run}/guest", timeout=60)
    assert next_event(watch)[0]["entry"]["value"] == "here"
    one.release(session)
    assert next_event(watch)[0]["entry"] is None
    print("map", other.call("GET", "/v1/maps/settings/entries")["entries"])

    print("all recipes are done")


def next_event(stream):
    """The changes of the next server-sent event."""
    for line in stream:
        if line.startswith(b"data:"):
            return json.loads(line[5:])["changes"]
    raise SystemExit("the agent has closed the watch")


if __name__ == "__main__":
    main(Agent(sys.argv[1]), Agent(sys.argv[2]))

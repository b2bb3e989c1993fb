"""Clients of the agents. Each writes down what it asked for and what it was answered; judge.py compares that."""

import http.client
import json
import random
import threading
import time

# Seconds that an agent waits for the mesh, and more than that for a client: an agent may be stopped meanwhile.
WAIT, ANSWER = 8, 25
TTL = 3
# Outcomes of a request: done, certainly not done, and unknown.
DONE, REFUSED, UNKNOWN = "done", "refused", "unknown"
# Kinds of refusals by which nothing was changed, nor will be.
CERTAIN = {"mismatch", "not_found", "bad_request", "no_path", "forbidden", "full", "too_large"}


class Answer:
    def __init__(self, outcome, body=b"", headers=None, kind=""):
        self.outcome, self.body, self.headers, self.kind = outcome, body, headers, kind

    @property
    def is_done(self):
        return self.outcome == DONE

    def json(self):
        return json.loads(self.body)


class Caller:
    """Connections to one agent at a time, which stay open."""

    def __init__(self, agents, rng):
        self.agents, self.rng = agents, rng
        self.agent = rng.choice(agents)
        self.connection = None

    def move(self):
        """Goes on with any agent."""
        self.close()
        self.agent = self.rng.choice(self.agents)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def connect(self):
        connection = http.client.HTTPConnection(self.agent.host, self.agent.HTTP, timeout=ANSWER)
        connection.connect()
        return connection

    def call(self, method, path, body=None):
        if self.connection is None:
            try:
                self.connection = self.connect()
            except OSError:
                return Answer(REFUSED, kind="no connection")
        try:
            self.connection.request(method, path, body)
            response = self.connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return Answer(UNKNOWN, kind="no answer")
        if response.status == 200:
            return Answer(DONE, content, response.headers)
        try:
            kind = json.loads(content)["kind"]
        except (ValueError, KeyError):
            kind = f"status {response.status}"
        return Answer(REFUSED if kind in CERTAIN else UNKNOWN, content, response.headers, kind)

    def stream(self, method, path, body=None):
        """A connection with a stream of events, and its response; `None` if there is none."""
        connection = None
        try:
            connection = self.connect()
            connection.request(method, path, body, {"Accept": "text/event-stream"})
            response = connection.getresponse()
            if response.status == 200:
                return connection, response
            response.read()
        except (OSError, http.client.HTTPException):
            pass
        if connection is not None:
            connection.close()
        return None


def next_event(response, is_over=lambda: False):
    """The name and the value of the next event; `None` at the end of the stream, or when `is_over` is true. An agent
    sends a comment at least each 5 s."""
    name = None
    try:
        for line in response:
            if is_over():
                return None
            if line.startswith(b"event:"):
                name = line[6:].strip().decode()
            elif line.startswith(b"data:"):
                return name, json.loads(line[5:])
    except (OSError, ValueError, http.client.HTTPException, AttributeError):
        pass
    return None


class Client(threading.Thread):
    """Does one operation after another until it is stopped. `records` has a dict for each."""

    def __init__(self, load, nth):
        super().__init__(daemon=True)
        self.load, self.nth = load, nth
        self.rng = load.new_rng()
        self.caller = Caller(load.mesh.agents, self.rng)
        self.records = []
        self.count = 0

    def run(self):
        try:
            while not self.load.is_over.is_set():
                if not self.step():
                    self.caller.move()
                    time.sleep(0.1)
                elif self.rng.randrange(50) == 0:
                    self.caller.move()
                time.sleep(self.rng.uniform(0, self.load.pause))
        except Exception as problem:  # pylint: disable=broad-except
            self.load.checks.that("clients understand all answers", False, f"{type(self).__name__}: {problem!r}")
            raise
        finally:
            self.caller.close()

    def unique(self):
        self.count += 1
        return f"{type(self).__name__}-{self.nth}-{self.count}"

    def note(self, kind, name, begins, answer, **more):
        record = {"kind": kind, "name": name, "begins": begins, "ends": time.monotonic(),
                  "outcome": answer.outcome, "why": answer.kind, **more}
        self.records.append(record)
        return record


class Holder(Client):
    """Takes a lock, a permit or the place of a leader, relies on it for a while, and releases it.

    It relies on it from an answer that has `is_held` until `alive_for_ms` after the request for that answer was
    sent, and not after it has sent the release."""

    KIND, NAMES, LIMIT = "locks", 4, 1
    ASKS = ""

    def path(self, name):
        return f"/v1/{self.KIND}/{name}?ttl={TTL}s&wait={WAIT}s{self.ASKS}"

    def step(self):
        name = f"{self.KIND}-{self.rng.randrange(self.NAMES)}"
        value = self.unique().encode() if self.KIND == "elections" else None
        begins = time.monotonic()
        stream = None
        if self.rng.randrange(3):
            answer = self.caller.call("POST", self.path(name), value)
            hold = answer.json() if answer.is_done else None
        else:
            stream = self.caller.stream("POST", self.path(name), value)
            event = next_event(stream[1]) if stream else None
            hold = event[1] if event and event[0] == "held" else None
            answer = Answer(DONE if hold else UNKNOWN)
        record = self.note("hold", name, begins, answer, limit=self.LIMIT, token=None, spans=[],
                           value=value and value.decode(), released=None)
        if hold:
            if hold["token"]:
                record["token"] = (hold["token"]["map"], hold["token"]["version"])
            self.rely(hold["hold"], record)
            record["gives_up"] = time.monotonic()
            if stream is None:
                released = self.caller.call("DELETE", f"/v1/holds/{hold['hold']}?wait={WAIT}s")
                record["released"] = time.monotonic() if released.is_done else None
        if stream:
            stream[0].close()
        return hold is not None

    def rely(self, hold, record):
        until = time.monotonic() + self.rng.expovariate(1 / 0.3)
        if self.rng.randrange(20) == 0:
            until += self.rng.uniform(0, 2 * TTL)
        while True:
            asks = time.monotonic()
            # A view extends nothing, and some holders forget to extend.
            method = self.rng.choice(["PUT", "PUT", "PUT", "GET"])
            answer = self.caller.call(method, f"/v1/holds/{hold}")
            now = time.monotonic()
            if not answer.is_done:
                return
            view = answer.json()
            relies_until = asks + view["alive_for_ms"] / 1000
            if view["is_held"] and self.load.broken == "late":
                relies_until += 2 * TTL
            if view["is_held"] and relies_until > now:
                record["spans"].append((now, relies_until))
            if self.load.broken == "late":
                # It sleeps until then, and releases late.
                time.sleep(max(relies_until - now, 0))
                return
            if now >= until or self.load.is_over.is_set():
                return
            time.sleep(min(self.rng.uniform(0, TTL / 3), max(until - now, 0)))


class Candidate(Holder):
    KIND, NAMES = "elections", 2


class PermitHolder(Holder):
    KIND, NAMES, LIMIT, ASKS = "semaphores", 1, 2, "&permits=2"


class Observer(Client):
    """Asks for leaders."""

    def step(self):
        name = f"elections-{self.rng.randrange(Candidate.NAMES)}"
        begins = time.monotonic()
        answer = self.caller.call("GET", f"/v1/elections/{name}?wait={WAIT}s")
        leader = answer.json() if answer.is_done else None
        self.note("leader", name, begins, answer, value=leader and leader["value"],
                  token=leader and (leader["token"]["map"], leader["token"]["version"]))
        return answer.is_done


class Adder(Client):
    """Adds to counters, and reads them."""

    def step(self):
        name = f"counter-{self.rng.randrange(2)}"
        begins = time.monotonic()
        if self.rng.randrange(4) == 0:
            answer = self.caller.call("GET", f"/v1/counters/{name}?wait={WAIT}s")
            add = 0
        else:
            add = self.rng.randint(1, 3)
            path = f"/v1/counters/{name}?add={add}&wait={WAIT}s"
            answer = self.caller.call("POST", path)
            if self.load.broken == "twice" and answer.is_done and self.rng.randrange(100) == 0:
                # As if the agent had added it twice.
                answer = self.caller.call("POST", path)
        self.note("add", name, begins, answer, add=add, sum=answer.json()["value"] if answer.is_done else None)
        return answer.is_done


class Writer(Client):
    """Reads entries, and changes those of the version that it has read."""

    def step(self):
        key = f"entry-{self.rng.randrange(6)}"
        path = f"/v1/maps/{self.load.map}/entries/{key}"
        begins = time.monotonic()
        answer = self.caller.call("GET", f"{path}?wait={WAIT}s")
        version, value = 0, None
        if answer.is_done:
            version, value = int(answer.headers["selvedge-version"]), answer.body.decode()
        elif answer.kind != "not_found":
            self.note("read", key, begins, answer, version=None, value=None)
            return False
        answer.outcome = DONE
        self.note("read", key, begins, answer, version=version, value=value)
        if self.rng.randrange(3) == 0:
            return True
        own, begins = self.unique(), time.monotonic()
        condition = "" if self.load.broken == "blind" else f"version={version}&"
        answer = self.caller.call("PUT", f"{path}?{condition}wait={WAIT}s", own.encode())
        self.note("write", key, begins, answer, version=answer.json()["version"] if answer.is_done else None,
                  value=own, over=version)
        return answer.outcome != UNKNOWN


class Pusher(Client):
    def step(self):
        item, begins = self.unique(), time.monotonic()
        answer = self.caller.call("POST", f"/v1/queues/queue?wait={WAIT}s", item.encode())
        self.note("push", item, begins, answer, version=answer.json()["version"] if answer.is_done else None)
        # Not more than is taken.
        time.sleep(self.load.pause)
        return answer.is_done


class Popper(Client):
    def step(self):
        begins = time.monotonic()
        answer = self.caller.call("DELETE", "/v1/queues/queue?wait=1s")
        item = answer.body.decode() if answer.is_done else None
        if b"has no item" in answer.body:
            answer.outcome = REFUSED
        if self.load.broken == "lose" and self.rng.randrange(10) == 0:
            return True
        self.note("pop", item, begins, answer)
        return answer.is_done


class Watcher(Client):
    """Watches all entries of the map, and goes on with another agent where a stream ends."""

    def __init__(self, load, nth):
        super().__init__(load, nth)
        self.since = 0

    def step(self):
        stream = self.caller.stream("GET", f"/v1/maps/{self.load.map}/watch?since={self.since}&wait={WAIT}s")
        if stream is None:
            return False
        connection, response = stream
        ends = time.monotonic() + self.rng.uniform(1, 60)
        while time.monotonic() < ends and not self.load.is_over.is_set():
            event = next_event(response, self.load.is_over.is_set)
            if event is None:
                break
            name, value = event
            if self.load.broken == "skip" and self.rng.randrange(100) == 0:
                value = value | {"changes": []}
            self.records.append({"kind": name, "at": time.monotonic(), "since": self.since, **value})
            self.since = value["version"] if name == "changed" else 0
        connection.close()
        return False


class Load:
    """All clients, and their records."""

    NUMBERS = {Holder: 12, Candidate: 4, PermitHolder: 4, Observer: 2, Adder: 4, Writer: 6, Pusher: 2, Popper: 3,
               Watcher: 3}

    def __init__(self, mesh, checks, rng, pause, broken):
        self.mesh, self.checks, self.rng = mesh, checks, rng
        self.pause, self.broken = pause, broken
        self.map = "entries"
        self.is_over = threading.Event()
        self.clients = [kind(self, it) for kind, number in self.NUMBERS.items() for it in range(number)]

    def new_rng(self):
        return random.Random(self.rng.randrange(2**32))

    def start(self):
        for client in self.clients:
            client.start()

    def stop(self):
        """Ends all clients. Those that wait for an answer get one, or have none in time."""
        self.is_over.set()
        for client in self.clients:
            client.join(2 * ANSWER)
            self.checks.that("all clients end", not client.is_alive(), f"{type(client).__name__} {client.nth}")

    def records(self, *kinds):
        """The records of these kinds, by their begin."""
        found = [it for client in self.clients if not isinstance(client, Watcher) for it in client.records
                 if it["kind"] in kinds]
        return sorted(found, key=lambda it: it["begins"])

    def watched(self):
        return [it.records for it in self.clients if isinstance(it, Watcher)]

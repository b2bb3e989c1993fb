"""Clients of the maps, of the doorbell and of the site, with the checks of each answer."""

import random
import threading
import time

# A node gives up after 10 s.
ANSWER = 12
CLIENTS = 4


class Checks:
    """The number of times that each check was made, and its failures."""

    def __init__(self):
        self.made = {}
        self.lock = threading.Lock()

    def that(self, name, holds, found):
        with self.lock:
            times, failed = self.made.setdefault(name, [0, []])
            self.made[name][0] = times + 1
            if not holds:
                failed.append(found)
        if not holds and len(failed) <= 5:
            print(f"FAILED: {name}: {found}", flush=True)

    def failures(self, name=None):
        made = self.made.values() if name is None else [self.made.get(name, [0, []])]
        return [it for _, failed in made for it in failed]

    def show(self):
        width = max(len(it) for it in self.made)
        print(f"{'check':{width}}   times  failed")
        for name, (times, failed) in self.made.items():
            print(f"{name:{width}}  {times:6}  {len(failed):6}")


class Key:
    """An entry that one client changes to rising numbers, each after the answer to the one before."""

    def __init__(self, map_name, name):
        self.map, self.name = map_name, name
        # The value and version of the last confirmed change.
        self.confirmed = (0, 0)
        # The value of the last change that was asked for.
        self.asked = 0

    def parse(self, answer):
        """The value and the version in the answer to a read, (0, 0) for none."""
        if answer == "no entry":
            return 0, 0
        version, value = answer.removeprefix("version ").split(", ")
        return int(value), int(version)


class Maps:
    """Clients that change entries of maps. A change without an answer may be made at any later time, so
    the client goes on with another entry."""

    KEPT = "a confirmed change is there"
    READ = "a read returns the last confirmed change, or one that is under way"

    def __init__(self, building, checks, patience, seed):
        self.building, self.checks, self.patience, self.seed = building, checks, patience, seed
        self.keys = []
        self.versions = []
        self.confirmed = 0
        self.longest = 0.0
        self.lock = threading.Lock()
        self.threads, self.ends = [], threading.Event()

    def begin(self, names):
        """Starts clients of these maps, if none run."""
        if self.threads:
            return
        self.ends.clear()
        for number in range(CLIENTS):
            # The moments of threads differ from run to run, so each has its own chance.
            rng = random.Random(f"{self.seed} {number} {len(self.keys)}")
            thread = threading.Thread(target=self.client, args=(rng, names[number % len(names)]), daemon=True)
            thread.start()
            self.threads.append(thread)

    def end(self):
        """Stops all clients."""
        self.ends.set()
        for thread in self.threads:
            thread.join()
        self.threads = []

    def client(self, rng, name):
        key = self.new_key(name)
        while not self.ends.is_set():
            up = self.building.up()
            if not up:
                time.sleep(0.01)
            elif rng.randrange(4) == 0:
                self.read(key, rng.choice(up))
            elif not self.change(key, rng.choice(up)):
                key = self.new_key(name)

    def new_key(self, name):
        with self.lock:
            key = Key(name, f"entry-{len(self.keys)}")
            self.keys.append(key)
        return key

    def change(self, key, node):
        """Changes the entry. Returns true if that is confirmed."""
        key.asked += 1
        answer = node.ask(f"put {key.map} {key.name} {key.asked}").wait(ANSWER)
        if not (answer or "").startswith("version "):
            return False
        version = int(answer.removeprefix("version "))
        key.confirmed = (key.asked, version)
        with self.lock:
            self.confirmed += 1
            self.versions.append((key.map, version))
        return True

    def read(self, key, node, kept=None):
        """Reads the entry, and returns true if there is an answer."""
        return self.judge(key, key.confirmed, node.ask(f"get {key.map} {key.name}").wait(ANSWER), node, kept)

    def judge(self, key, confirmed, answer, node, kept=None):
        if not answer or not (answer == "no entry" or answer.startswith("version ")):
            return False
        value, version = key.parse(answer)
        is_right = (value, version) == confirmed or confirmed[0] < value <= key.asked and version > confirmed[1]
        self.checks.that(kept or self.READ, is_right,
                         f"{key.map} {key.name} at node {node.id}: {answer}; confirmed: {confirmed}, asked: {key.asked}")
        return True

    def look(self, names, seconds):
        """Reads entries at all nodes, where some maps may not answer."""
        keys = [next(it for it in reversed(self.keys) if it.map == name) for name in names]
        asked = [(key, node, key.confirmed, node.ask(f"get {key.map} {key.name}"))
                 for key in keys for node in self.building.up()]
        time.sleep(seconds)
        for key, node, confirmed, question in asked:
            self.judge(key, confirmed, question.answer, node)

    def read_all(self):
        """Reads all entries, each at any node, until there is an answer."""
        def read(keys, rng):
            for key in keys:
                begins = time.monotonic()
                while not (is_answered := self.read(key, rng.choice(self.building.up()), self.KEPT)):
                    if time.monotonic() > begins + self.patience:
                        break
                self.longest = max(self.longest, time.monotonic() - begins)
                self.checks.that("a map answers while a quorum is up", is_answered, f"{key.map} {key.name}")

        shares = [(self.keys[it::CLIENTS], random.Random(f"{self.seed} {it}")) for it in range(CLIENTS)]
        threads = [threading.Thread(target=read, args=it) for it in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def use(self, name):
        """Changes an entry of a map that no node asked for before."""
        rng = random.Random(f"{self.seed} {name}")
        end = time.monotonic() + self.patience
        while not (is_changed := self.change(self.new_key(name), rng.choice(self.building.up()))):
            if time.monotonic() > end:
                break
        self.checks.that("a map that was never used can be used", is_changed, name)

    def compare_versions(self):
        """Each change of a map has a version of its own."""
        self.checks.that("each confirmed change of a map has a version of its own",
                         len(set(self.versions)) == len(self.versions), "two changes share one")


class Bell:
    """A client that rings the doorbell, each time under another id. It rings again only after the run
    before has reached the lamp, so each id leads to one run."""

    def __init__(self, building, checks, patience, rng):
        self.building, self.checks, self.patience, self.rng = building, checks, patience, rng
        self.ids = 0
        self.asked = None

    def ring(self):
        """Rings, and does not wait: under a new id if the last run has reached the lamp, and under the last id
        if no node has answered."""
        is_new = self.runs() >= self.ids
        up = self.building.up()
        if up and (is_new or self.asked.ended.is_set() and self.asked.answer != "triggered"):
            self.ids += is_new
            self.asked = self.rng.choice(up).ask(f"ring {self.ids}")

    def settle(self):
        """Asks for the last run again under its id, until it is triggered and has reached the lamp."""
        self.ring()
        end = time.monotonic() + self.patience
        while self.asked.wait(ANSWER) != "triggered" and time.monotonic() < end:
            self.asked = self.rng.choice(self.building.up()).ask(f"ring {self.ids}")
        self.checks.that("a run is triggered", self.asked.answer == "triggered", f"id {self.ids}")
        while self.runs() < self.ids and time.monotonic() < end:
            time.sleep(0.05)
        self.checks.that("a run that was triggered reaches the lamp", self.runs() >= self.ids,
                         f"{self.ids} ids, {self.runs()} runs")

    def ask_again(self):
        """Asks for the last runs again."""
        for identity in range(max(1, self.ids - 9), self.ids + 1):
            self.rng.choice(self.building.up()).ask(f"ring {identity}").wait(ANSWER)

    def runs(self):
        """The number of runs that reached the lamp, or are over: a node that is late does not switch it on."""
        with self.building.lock:
            return max([0, *self.building.commands["lamp"], *self.building.reports])

    def count(self):
        """Compares the commands to devices with the ids."""
        self.checks.that("an id starts one run", self.runs() == self.ids, f"{self.ids} ids, {self.runs()} runs")
        for number, times in sorted(self.building.commands["bell"].items()):
            self.checks.that("the bell rings at most once in a run", times == 1, f"command {number}: {times} times")


class Lights:
    """A client that adds lights to the building, one after another, each with a routine of its own."""

    FIRST = 103

    def __init__(self, building, checks, patience, rng):
        self.building, self.checks, self.patience, self.rng = building, checks, patience, rng
        self.light = self.FIRST - 1
        self.asked = None

    def add(self):
        """Adds the next light, and does not wait."""
        self.light += 1
        self.asked = None
        self.ask()

    def ask(self):
        """Asks another node for the light if none has answered that it is there."""
        up = self.building.up()
        if up and (self.asked is None or self.asked.ended.is_set() and not self.is_added()):
            self.asked = self.rng.choice(up).ask(f"add {self.light}")

    def is_added(self):
        return str(self.light) in (self.asked.answer or "").partition("devices")[2]

    def settle(self):
        """Waits until the light is there, at all nodes, and can be switched on."""
        end = time.monotonic() + self.patience
        while not self.is_added() and time.monotonic() < end:
            self.asked.wait(ANSWER)
            self.ask()
        self.checks.that("a light is added while nodes are killed", self.is_added(), f"{self.light}: {self.asked.answer}")
        self.compare()
        answer = None
        while answer != "triggered" and time.monotonic() < end:
            answer = self.rng.choice(self.building.up()).ask(f"switch {self.light} {self.light}").wait(ANSWER)
        while not self.is_on() and time.monotonic() < end:
            time.sleep(0.05)
        self.checks.that("an added light is switched on by its routine", self.is_on(), f"{self.light}: {answer}")

    def is_on(self):
        with self.building.lock:
            return bool(self.building.commands.get(f"light {self.light}"))

    def compare(self):
        """All nodes list one site of one generation, with all lights."""
        end = time.monotonic() + self.patience
        devices = [101, 102, *range(self.FIRST, self.light + 1)]
        expected = f"generation {len(devices) - 2}, devices {devices}"
        while True:
            asked = [(it.id, it.ask("site")) for it in self.building.up()]
            listed = {node: question.wait(ANSWER) for node, question in asked}
            is_one = len(listed) == len(self.building.nodes) and set(listed.values()) == {expected}
            if is_one or time.monotonic() > end:
                break
            time.sleep(0.2)
        self.checks.that("all nodes list the decided site", is_one, f"{expected}: {listed}")

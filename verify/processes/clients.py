"""Clients of the maps and of the doorbell, with the checks of each answer."""

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
        self.rng = random.Random(seed)
        self.keys = []
        # The number of entries that ever had a name: those of a map that begins anew leave `keys`.
        self.named = 0
        # The confirmed changes: map, beginning of the map, version.
        self.versions = []
        self.beginnings = {}
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
            rng = random.Random(f"{self.seed} {number} {self.named}")
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
            key = Key(name, f"entry-{self.named}")
            self.named += 1
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
            self.versions.append((key.map, self.beginnings.get(key.map, 0), version))
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

    def have_no_answer(self, names, seconds):
        """Asks maps that have lost their memory."""
        asked = [(node, name, node.ask(f"get {name} any")) for node in self.building.up() for name in names]
        time.sleep(seconds)
        for node, name, question in asked:
            # A node without its folder may meet another one before a node that knows the present site.
            is_refused = "the present site does not have node" in (question.answer or "")
            self.checks.that("a map without a quorum gives no answer",
                             is_refused or question.answer in (None, "no answer"),
                             f"node {node.id}, {name}: {question.answer}")

    def read_all(self, names=None):
        """Reads all entries, or those of these maps, each at any node, until there is an answer."""
        all_keys = [it for it in self.keys if names is None or it.map in names]

        def read(keys, rng):
            for key in keys:
                begins = time.monotonic()
                while not (is_answered := self.read(key, rng.choice(self.building.up()), self.KEPT)):
                    if time.monotonic() > begins + self.patience:
                        break
                self.longest = max(self.longest, time.monotonic() - begins)
                self.checks.that("a map answers while a quorum is up", is_answered, f"{key.map} {key.name}")

        shares = [(all_keys[it::CLIENTS], random.Random(f"{self.seed} {it}")) for it in range(CLIENTS)]
        threads = [threading.Thread(target=read, args=it) for it in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def use(self, name):
        """Changes an entry of a map that is empty."""
        rng = random.Random(f"{self.seed} {name}")
        end = time.monotonic() + self.patience
        while not (is_changed := self.change(self.new_key(name), rng.choice(self.building.up()))):
            if time.monotonic() > end:
                break
        self.checks.that("an empty map can be used", is_changed, name)

    def have_entries(self):
        """Gives each map a confirmed entry that has none."""
        for name in sorted({it.map for it in self.keys}):
            if not self.confirmed_keys(name):
                self.use(name)

    def begin_anew(self, name):
        """Has a map begin again that lost its memory. It is empty then, or as it was."""
        end = time.monotonic() + self.patience
        lost = self.confirmed_keys(name)
        answer = found = None
        while found is None and time.monotonic() < end:
            node = self.rng.choice(self.building.up())
            answer = node.ask(f"anew {name}").wait(ANSWER)
            found = self.found(lost, node)
        self.checks.that("a map that lost its memory answers again after the command", found is not None, f"{name}: {answer}")
        is_empty, is_kept = (set(found or []) == {state} for state in ("no entry", "kept"))
        self.checks.that("a map that begins anew is empty, or as it was", is_empty or is_kept, f"{name}: {found}")
        with self.lock:
            self.keys = [it for it in self.keys if it.map != name]
            self.beginnings[name] = self.beginnings.get(name, 0) + 1
        self.use(name)

    def confirmed_keys(self, name):
        return [it for it in self.keys if it.map == name and it.confirmed[0] > 0]

    def found(self, keys, node):
        """The answers to reads of these entries, `None` if one has no answer."""
        questions = [(it, node.ask(f"get {it.map} {it.name}")) for it in keys]
        answers = [(key, it.wait(ANSWER) or "no answer") for key, it in questions]
        if any(it != "no entry" and not it.startswith("version ") for _, it in answers):
            return None
        return ["kept" if key.parse(it) == key.confirmed else it for key, it in answers]

    def compare_versions(self):
        """Each change of a map has a version of its own."""
        self.checks.that("each confirmed change of a map has a version of its own",
                         len(set(self.versions)) == len(self.versions), "two changes share one")


class Bell:
    """A client that rings the doorbell, each time under another id. It rings again only after the run
    before has reached the lamp, so each id leads to one run.

    A doorbell that begins anew has forgotten all ids, and numbers its runs from the number of its beginning, in
    the upper half. So has the lamp, at another time."""

    HALF = 1 << 32
    # The id of its group.
    GROUP = "1"

    def __init__(self, building, checks, patience, rng):
        self.building, self.checks, self.patience, self.rng = building, checks, patience, rng
        self.ids = 0
        self.asked = None
        # The ids that were used before the present beginning, and its number.
        self.former, self.beginning = 0, 0

    def ring(self, nodes=None):
        """Rings at one of the nodes, and does not wait: under a new id if the last run has reached the lamp, and
        under the last id if no node has answered."""
        is_new = self.runs() >= self.ids - self.former
        up = nodes or self.building.up()
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
        expected = self.ids - self.former
        while self.runs() < expected and time.monotonic() < end:
            time.sleep(0.05)
        self.checks.that("a run that was triggered reaches the lamp", self.runs() >= expected,
                         f"{expected} ids, {self.runs()} runs")

    def ask_again(self):
        """Asks for the last runs again."""
        for identity in range(max(self.former + 1, self.ids - 9), self.ids + 1):
            self.rng.choice(self.building.up()).ask(f"ring {identity}").wait(ANSWER)

    def lose(self, nodes):
        """Rings at one of the nodes, which are killed, as all memory of the doorbell is lost."""
        self.count()
        self.building.begun.discard(self.GROUP)
        self.ring(nodes)
        with self.building.lock:
            last = max([0, *self.building.reports])
        self.former, self.beginning = self.ids, last // self.HALF + 1

    def begins_anew(self):
        """Waits until the doorbell has begun anew by itself, and lets it run."""
        end = time.monotonic() + self.patience
        while self.GROUP not in self.building.begun and time.monotonic() < end:
            time.sleep(0.05)
        self.checks.that("a routine that lost its memory begins anew by itself", self.GROUP in self.building.begun, "no node")
        before = self.lamps()
        self.settle()
        while self.lamps() == before and time.monotonic() < end:
            # A node that was late did not switch the lamp on.
            self.settle()
        self.checks.that("its devices get its commands", self.lamps() > before, f"{before} commands, {self.lamps()}")

    def lamps(self):
        with self.building.lock:
            return len(self.building.of("lamp"))

    def runs(self):
        """The number of runs of the present beginning that reached the lamp, or are over: a node that is late does
        not switch it on."""
        with self.building.lock:
            lamp = self.building.of("lamp") if self.beginning == 0 else []
            reports = [it for it in self.building.reports if it // self.HALF >= self.beginning]
            return max([0, *(it % self.HALF for it in [*lamp, *reports])])

    def count(self):
        """Compares the runs with the ids."""
        ids = self.ids - self.former
        self.checks.that("an id starts one run", self.runs() == ids, f"{ids} ids, {self.runs()} runs")

    def count_rings(self):
        """Compares the commands to the bell with the ids."""
        rings = sorted(self.building.of("bell").items())
        for number, (_, times) in rings:
            self.checks.that("the bell rings at most once in a run", times == 1, f"command {number}: {times} times")
        self.checks.that("the bell rings at most once for an id", len(rings) <= self.ids, f"{len(rings)}, {self.ids} ids")

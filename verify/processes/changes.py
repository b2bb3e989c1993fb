"""A client of the building's site, with the checks of each change."""

import time

from clients import ANSWER

# The devices that the doorbell needs.
FIRST = [101, 102]


class Site:
    """A client that changes the site, one change after another: lights, each with a routine of its own, and
    nodes."""

    def __init__(self, building, checks, patience, rng):
        self.building, self.checks, self.patience, self.rng = building, checks, patience, rng
        self.generation = 0
        self.nodes = [it.id for it in building.nodes]
        # In the order in which they came.
        self.lights = []
        self.next_light = 103
        # The times that each light was switched on before it was removed.
        self.removed = {}
        self.ids = 0
        self.command, self.asked = None, None

    def add(self):
        """Adds a light, and does not wait."""
        self.change(f"add {self.new_light()}")

    def remove(self):
        """Removes a light, and does not wait."""
        light = self.lights.pop(0)
        self.removed[light] = None
        self.change(f"remove {light}")

    def enter(self, node):
        """Adds a node, and does not wait."""
        self.nodes.append(node.id)
        self.change(f"node+ {node.id}")

    def exit(self, node):
        """Removes a node, and does not wait."""
        self.nodes.remove(node.id)
        self.change(f"node- {node.id}")

    def file(self):
        """The options of a later site with one more light. Routines have their numbers in it as long as no light
        was removed."""
        self.generation += 4
        self.new_light()
        lights = ",".join(str(it) for it in self.lights)
        return "--generation", self.generation, "--lights", lights

    def new_light(self):
        self.lights.append(self.next_light)
        self.next_light += 1
        return self.lights[-1]

    def change(self, command):
        self.generation += 1
        self.command, self.asked = command, None
        self.ask()

    def ask(self):
        """Asks another node for the change if none has answered that it is made."""
        up = self.building.up()
        if up and (self.asked is None or self.asked.ended.is_set() and not self.is_made()):
            self.asked = self.rng.choice(up).ask(self.command)
            for light in self.removed:
                # Its routine may run until it is gone.
                self.switch(light, self.rng.choice(up))

    def is_made(self):
        return self.asked.answer == self.expected()

    def expected(self):
        return f"generation {self.generation}, nodes {sorted(self.nodes)}, devices {FIRST + sorted(self.lights)}"

    def settle(self):
        """Waits until the change is made, all nodes list it, and all lights can be switched on."""
        end = time.monotonic() + self.patience
        while not self.is_made() and time.monotonic() < end:
            self.asked.wait(ANSWER)
            self.ask()
        self.checks.that("a change of the site is decided", self.is_made(), f"{self.command}: {self.asked.answer}")
        self.compare()

    def compare(self):
        """All nodes list one site of one generation, and only its lights can be switched on."""
        end = time.monotonic() + self.patience
        while True:
            asked = [(it.id, it.ask("site")) for it in self.building.up()]
            listed = {node: question.wait(ANSWER) for node, question in asked}
            is_one = len(listed) == len(self.building.nodes) and set(listed.values()) == {self.expected()}
            if is_one or time.monotonic() > end:
                break
            time.sleep(0.2)
        self.checks.that("all nodes list the decided site", is_one, f"{self.expected()}: {listed}")
        for light in self.lights:
            self.use(light, end)
        for light in self.removed:
            self.refuse(light)

    def use(self, light, end):
        """Waits until a light is switched on by a run of its routine."""
        before, answer = self.times(light), None
        while self.times(light) == before and time.monotonic() < end:
            answer = self.switch(light).wait(ANSWER)
            until = time.monotonic() + (ANSWER if answer == "triggered" else 0)
            # A run whose leader is killed may end without the light.
            while self.times(light) == before and time.monotonic() < until:
                time.sleep(0.05)
        self.checks.that("a light is switched on by its routine", self.times(light) > before, f"{light}: {answer}")

    def refuse(self, light):
        """Asks all nodes to switch a light on that is removed. A command from before may be under way when it is
        asked for the first time."""
        asked = [(it.id, self.switch(light, it)) for it in self.building.up()]
        answers = {node: question.wait(ANSWER) for node, question in asked}
        is_refused = all(it and it.startswith("there is no such light") for it in answers.values())
        self.checks.that("no node has the routine of a removed light", is_refused, f"{light}: {answers}")
        times = self.times(light)
        before = self.removed[light]
        self.removed[light] = times
        if before is not None:
            self.checks.that("a removed light gets no command", times == before, f"{light}: {times}, before {before}")

    def switch(self, light, node=None):
        """Asks a node to switch a light on, under a new id."""
        self.ids += 1
        node = node or self.rng.choice(self.building.up())
        return node.ask(f"switch {light} {self.ids}")

    def times(self, light):
        with self.building.lock:
            return len(self.building.commands.get(f"light {light}", {}))

"""A client of the building's site, with the checks of each change."""

import itertools
import time

from clients import ANSWER


class Light:
    """A light with a routine of its own, by which it is switched to its value."""

    def __init__(self, number, is_asleep=False):
        self.number, self.is_asleep = number, is_asleep
        self.name = f"light {number}"
        # The values to which its routine has switched it, the present one last. No two are alike.
        self.values = ["on"]
        self.metres = 0
        # The number of its commands when it was last found to be removed.
        self.before = None

    def listed(self):
        return f"{self.number}: {self.values[-1]} at {self.metres} m" + (", asleep" if self.is_asleep else "")


class Site:
    """A client that changes the site, one change after another: lights, each with a routine of its own, and
    nodes."""

    def __init__(self, building, checks, patience, rng):
        self.building, self.checks, self.patience, self.rng = building, checks, patience, rng
        self.generation = 0
        self.nodes = [it.id for it in building.nodes]
        # In the order in which they came.
        self.lights, self.removed = [], []
        self.next_light = 104
        self.edits = itertools.cycle([self.set, self.move])
        self.ids = 0
        self.command, self.asked = None, None

    def add(self):
        """Adds a light, and does not wait."""
        self.change(f"add {self.new_light().number}")

    def add_asleep(self):
        """Adds a light that sleeps, and does not wait."""
        light = self.new_light(is_asleep=True)
        self.building.asleep.add(light.name)
        self.change(f"add {light.number} asleep")

    def remove(self):
        """Removes a light, and does not wait."""
        light = self.lights.pop(0)
        self.removed.append(light)
        self.change(f"remove {light.number}")

    def edit(self):
        """Changes the routine of a light, or its place, and does not wait."""
        next(self.edits)()

    def set(self):
        for light in self.lights:
            # A run that is under way ends by the definition with which it began.
            self.switch(light)
        light = self.rng.choice(self.lights)
        light.values.append(f"level-{len(light.values)}")
        self.change(f"set {light.number} {light.values[-1]}")

    def move(self):
        light = self.rng.choice(self.lights)
        light.metres += 1
        self.change(f"move {light.number} {light.metres}")

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
        was removed, and the site is as it was if no light was changed."""
        self.generation += 4
        self.new_light()
        lights = ",".join(str(it.number) for it in self.lights)
        return "--generation", self.generation, "--lights", lights

    def new_light(self, is_asleep=False):
        self.lights.append(Light(self.next_light, is_asleep))
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
        lights = "; ".join(it.listed() for it in sorted(self.lights, key=lambda it: it.number))
        return f"generation {self.generation}, nodes {sorted(self.nodes)}, lights {lights}"

    def settle(self):
        """Waits until the last change is made, all nodes list it, and all lights can be switched on."""
        end = time.monotonic() + self.patience
        if self.command:
            while (self.asked is None or not self.is_made()) and time.monotonic() < end:
                if self.asked:
                    self.asked.wait(ANSWER)
                self.ask()
            self.checks.that("a change of the site is decided", self.is_made(), f"{self.command}: {self.asked.answer}")
            self.command = None
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
        """Waits until a light is switched by a run of its present routine."""
        before, answer = self.times(light), None
        while self.times(light) == before and time.monotonic() < end:
            answer = self.switch(light).wait(ANSWER)
            if light.is_asleep:
                # A command that does not wait has time to arrive.
                time.sleep(0.2)
            until = time.monotonic() + (ANSWER if answer == "triggered" else 0)
            # A run whose leader is killed may end without the light.
            while self.times(light) == before and time.monotonic() < until:
                if light.is_asleep:
                    self.wake(light)
                time.sleep(0.05)
        self.checks.that("a light is switched by its routine", self.times(light) > before, f"{light.listed()}: {answer}")
        values = self.building.values(light.name)
        order = [light.values.index(it) for it in values]
        self.checks.that("no run of a routine from before a change follows one from after it", order == sorted(order),
                         f"{light.listed()}: {values}")
        if light.is_asleep:
            unasked = self.building.unasked
            self.checks.that("a light that sleeps is not asked, and gets one command each time it wakes", not unasked,
                             unasked)

    def wake(self, light):
        """A light that sleeps reports to all nodes. One of them takes the report, and gives it a command."""
        asked = []
        for node in self.building.up():
            node.report(light.name, 1)
            asked.append((node, node.ask(f"wake {light.number}")))
        for node, question in asked:
            if question.wait(ANSWER) != "it gets a command that waits":
                node.report(light.name, -1)

    def refuse(self, light):
        """Asks all nodes to switch a light on that is removed. A command from before may be under way when it is
        asked for the first time."""
        asked = [(it.id, self.switch(light, it)) for it in self.building.up()]
        answers = {node: question.wait(ANSWER) for node, question in asked}
        is_refused = all(it and it.startswith("there is no such light") for it in answers.values())
        self.checks.that("no node has the routine of a removed light", is_refused, f"{light.number}: {answers}")
        times = len(self.building.values(light.name))
        before, light.before = light.before, times
        if before is not None:
            self.checks.that("a removed light gets no command", times == before,
                             f"{light.number}: {times}, before {before}")

    def switch(self, light, node=None):
        """Asks a node to switch a light, under a new id."""
        self.ids += 1
        node = node or self.rng.choice(self.building.up())
        return node.ask(f"switch {light.number} {self.ids}")

    def times(self, light):
        """The number of commands by which its present routine has switched a light."""
        return self.building.values(light.name).count(light.values[-1])

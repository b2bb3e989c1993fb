"""The shares of the nodes in the groups: of nodes on batteries, and of nodes that are spared."""

import time

REGISTRY = "3"


class Shares:
    """The groups in which the nodes are."""

    def __init__(self, building, checks, patience):
        self.building, self.checks, self.patience = building, checks, patience
        # The numbers of groups in which a node was, each time that they were counted.
        self.mains, self.batteries = [], []

    def count(self):
        """Counts the groups in which each node is."""
        for node, groups in self.building.holdings(self.patience).items():
            counts = self.batteries if node.has_battery() else self.mains
            counts.append(len(groups - {REGISTRY}))

    def compare(self):
        """A node on a battery has a quarter of the weight, and about that share of the groups."""
        mains, batteries = (sum(it) / len(it) for it in (self.mains, self.batteries))
        self.checks.that("nodes on batteries are in fewer groups", batteries < 0.6 * mains,
                         f"{batteries:.1f} groups, others {mains:.1f}")

    def leave_groups(self, name, node, kept=frozenset()):
        """Waits until a node is in none but these groups."""
        self.wait(name, node, lambda groups: groups is not None and groups <= kept)

    def enter_groups(self, name, node):
        """Waits until a node is in a group."""
        self.wait(name, node, lambda groups: groups is not None and groups > {REGISTRY})

    def wait(self, name, node, is_so):
        end = time.monotonic() + self.patience
        while not (holds := is_so(groups := node.groups(self.patience))) and time.monotonic() < end:
            time.sleep(0.2)
        self.checks.that(name, holds, f"node {node.id}: {groups}")

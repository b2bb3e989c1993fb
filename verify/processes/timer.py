"""The timer of the building, which sounds the chime at an interval."""

import math
import time

from clients import Bell

# In seconds, as in `hosts/udp/examples/building_node/site.rs`.
INTERVAL = 2


class Timer:
    """The runs of the timer's routine, and its commands to the chime."""

    def __init__(self, building, checks, patience):
        self.building, self.checks, self.patience = building, checks, patience

    def chimes(self):
        return len(self.building.values("chime"))

    def settle(self, before):
        """Waits until the chime has sounded more often."""
        end = time.monotonic() + self.patience
        while self.chimes() <= before and time.monotonic() < end:
            time.sleep(0.05)
        self.checks.that("the timer goes on", self.chimes() > before, f"{before} chimes")

    def count(self):
        """Compares the runs with the intervals that have come: from any run to a later one no more runs began than
        intervals. One run may begin late, as the decision that its interval has come may be held up."""
        most = {}
        for run, moment in sorted(self.building.timed.items()):
            intervals = math.floor(moment / INTERVAL) - run
            highest = most[run // Bell.HALF] = max(most.get(run // Bell.HALF, intervals), intervals)
            self.checks.that("an interval starts one run at most", highest - intervals <= 1,
                             f"run {run}: {highest - intervals} runs more than intervals")

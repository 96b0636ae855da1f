"""A published worked example of rates: one server, eight workers, three switches, and three schemes.

Workers 0 to 3 are on switch S1, 4 and 5 on S2, 6 and 7 on S3, beside the server. Links carry 3, the server takes in 9,
and each switch adds up to 9 (Gb/s). Published for the slowest worker are 1 without aggregation (Geryon), 2.43 with ATP
and 3 with GRID.

Which links there are and how flows go is our reconstruction from these numbers, under which all three come out:

- The switches form a triangle. Without aggregation worker 3 goes through S2 and the others of S1 straight to S3, so
  that each link into S3 has three flows. The bound does not depend on that: six workers cross to S3 over links of 6.
- ATP's flows keep to their shortest paths. S1 adds 9/4 = 2.25 of each of its four workers, and one stream of that
  leaves on the link of 3. What is left of it, 0.75, the four share: 2.25 + 0.1875 = 2.4375. The published number and
  its sum, 2.25 + 0.18, are cut off after two digits. ATP's second level, at S3, is left out.
- GRID sends worker 3's fragments to be added at S2, so that each switch adds 9 at most: 3, the workers' own links.

References
----------
GRID (ToN 2023), section 3.1 and figure 1.
"""

from __future__ import annotations

from switch_model.rate_allocation import Aggregator, Allocation, Way, allocate

LINK, SERVER, SWITCH = 3.0, 9.0, 9.0
HOME = ("S1", "S1", "S1", "S1", "S2", "S2", "S3", "S3")
INTAKE = "S3-server"
LINKS = {f"worker{w}": LINK for w in range(len(HOME))} | {
    "S1-S2": LINK,
    "S1-S3": LINK,
    "S2-S3": LINK,
    INTAKE: SERVER,
}
ONWARD = {"S1": ("S1-S3", INTAKE), "S2": ("S2-S3", INTAKE), "S3": (INTAKE,)}
AROUND = ("S1-S2", *ONWARD["S2"])
AGGREGATORS = {switch: Aggregator(SWITCH, links) for switch, links in ONWARD.items()}


def unaggregated(split: bool = False) -> Allocation:
    """Send straight to the server: on one path for each flow as Geryon has it, or divided over both."""
    ways = []
    for worker, home in enumerate(HOME):
        paths = [ONWARD[home], AROUND] if home == "S1" else [ONWARD[home]]
        if not split:
            paths = [AROUND] if worker == 3 else [ONWARD[home]]
        ways.append([Way((f"worker{worker}", *path)) for path in paths])
    return allocate(LINKS, {}, ways)


def atp() -> Allocation:
    """Add at the worker's own switch while that has capacity, and send the rest on the same path."""
    ways = [
        [Way((f"worker{worker}",), home), Way((f"worker{worker}", *ONWARD[home]))] for worker, home in enumerate(HOME)
    ]
    return allocate(LINKS, AGGREGATORS, ways)


def grid() -> Allocation:
    """Add at one switch for each worker, its own or, for worker 3, S2."""
    ways = [
        [Way((f"worker{worker}", "S1-S2"), "S2") if worker == 3 else Way((f"worker{worker}",), home)]
        for worker, home in enumerate(HOME)
    ]
    return allocate(LINKS, AGGREGATORS, ways)

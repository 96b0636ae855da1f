"""What several hashes of routes take over one: ``python -m benchmarks.scale.hashes [--only TEXT] [--times N]``.

Each row is a work of :mod:`benchmarks.scale.works`, or one on a small fat tree: the least processor time of a whole
prediction with loaded kernels (network, schedule, routes, plan and simulation), with one hash and with all in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence

from commsim.prediction.build import prepare
from commsim.prediction.plans.draws import HASHES
from commsim.report.terminal import print_table

from .works import SERIES, SIZE, Series, small_fat_tree

FAT_TREE = {
    f"{name}, small fat tree, ecmp": Series(f"{name}_all_reduce", small_fat_tree, "ecmp", (128,), 16)
    for name in ("halving_doubling", "double_tree")
}
# Works in which the hash matters, and their ranks.
WORKS = {
    "halving_doubling, rails, ecmp": 1024,
    "halving_doubling, small fat tree, ecmp": 128,
    "double_tree, small fat tree, ecmp": 128,
    "ring, scattered on a fat tree, random rates, ecmp": 256,
    "ring, rails, ecmp": 1024,
    "hierarchical, rails, ecmp": 1024,
    "all-to-all, fat tree, ecmp": 256,
    "unequal all-to-all, fat tree, ecmp": 64,
    "byteps, fat tree, ecmp": 128,
}
HEADER = ["work", "ranks", "method", "hashes that differ", "one(s)", f"{HASHES}(s)", "ratio"]


def rows(only: str, times: int) -> Iterator[list[str]]:
    """Measure works whose name has a text in it; yield the rows of the table."""
    for name, n in WORKS.items():
        if only not in name:
            continue
        series = (SERIES | FAT_TREE)[name]
        for few in (series.few, n):
            for hashes in (1, HASHES):
                seconds(series, few, hashes)
        found = {1: [float("inf")], HASHES: [float("inf")]}
        method, differ = "", 0
        for _ in range(times):
            for hashes, least in found.items():
                took, method, differ = seconds(series, n, hashes)
                least.append(took)
        one, every = min(found[1]), min(found[HASHES])
        yield [name, str(n), method, str(differ), f"{one:.3g}", f"{every:.3g}", f"{every / one:.2f}"]


def seconds(series: Series, n: int, hashes: int) -> tuple[float, str, int]:
    """Predict once; return the processor time, the method, and the number of hashes where they differ, else 0."""
    begin = time.process_time()
    placement = "random" if series.scattered else "packed"
    ready = prepare(
        series.build_schedule(n), series.build_network(n), n_ranks=n, placement=placement, routing=series.routing
    )
    result = ready.predict(SIZE, start_jitter=series.jitter, hashes=hashes)
    return time.process_time() - begin, result.method, 0 if result.hashes is None else result.hashes.n


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale.hashes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="works whose name has this in it")
    parser.add_argument("--times", type=int, default=3, metavar="N", help="predictions of each kind")
    args = parser.parse_args(argv)
    print_table(HEADER, list(rows(args.only, args.times)), f"Cost of {HASHES} hashes over one")
    return 0


if __name__ == "__main__":
    main()

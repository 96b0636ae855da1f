"""Seeded mutations of an area, and which of them no test notices.

python -m benchmarks.mutants [AREA ...] [--times 13] [--seed 1] [--seconds 1800] [--json FILE]

Each mutation is made in a copy of the tree. First the tests that mention the changed file run, then those of the area,
and then those of both that are marked ``slow``, as far as ``--seconds`` go, until one fails. Compiled kernels are
copied too, so that only changed ones are compiled. It ends with 1 if a mutation survived: then a test is missing, or
the change has no effect.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.results_file import write_results
from commsim.report.terminal import print_table

from .trials import AREAS, copied_tree, drawn, tried


def main(argv: Sequence[str] | None = None) -> int:
    """Try mutations, and print a table; 1 if any survived."""
    parser = argparse.ArgumentParser(prog="benchmarks.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"any of {', '.join(AREAS)} (all)")
    parser.add_argument("--times", type=int, default=13, metavar="N", help="mutations of each area (13)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the draw (1)")
    help_of_seconds = "processor time of a run of tests, at most (1800)"
    parser.add_argument("--seconds", type=float, default=1800.0, metavar="S", help=help_of_seconds)
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    if unknown := set(args.areas) - set(AREAS):
        parser.error(f"unknown area {min(unknown)!r}; known: {', '.join(AREAS)}")
    trials = []
    with copied_tree() as folder:
        for name in args.areas or AREAS:
            for mutation in drawn(AREAS[name], args.times, f"{args.seed} {name}"):
                trials.append(tried(folder, name, mutation, args.seconds))
                one = trials[-1]
                print(f"{one.outcome}: {one.mutation}  {one.by}", flush=True)
    count = Counter((one.area, one.outcome) for one in trials)
    outcomes = ("killed", "too long", "survived")
    print_table(["area", *outcomes], [[name, *(str(count[name, what]) for what in outcomes)]
                                      for name in args.areas or AREAS])  # fmt: skip
    if args.json:
        write_results(args.json, {"times": args.times, "seed": args.seed}, map(asdict, trials))
    return 1 if any(one.outcome == "survived" for one in trials) else 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m benchmarks.volumes``: as many seeded attacks of each kind as are asked for, and a table of what came of it.

python -m benchmarks.volumes --seed 7 --lines 20000 --files 500000 --packets 1000000 --requests 20000 --kills 300

An attack is made by its number and the seed alone: ``--lines 1 --from 4711`` makes one again. What counts as a defect: a
traceback, no end and no word of progress for 20 s, a number that cannot be (not finite, a negative time), a file or a
process that is left, a sum that is wrong, and more than 500 MB.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from commsim.report.terminal import print_table

from . import lines
from .trials import Defect, in_processes, watched

AREAS: dict[str, Callable[[int, range], Iterable[Defect]]] = {}


def attack_lines(seed: int, numbers: range) -> Iterable[Defect]:
    """Command lines; what took long or much in a process of many is tried again in one of its own."""
    lines.load()
    for found in in_processes("lines", numbers, lambda number: watched(functools.partial(lines.trial, seed, number))):
        text, problem = lines.text_of(seed, found.number), found.problem
        if problem.startswith(("takes", "no end", "the process")):
            problem = lines.alone(text)
        if problem:
            yield Defect("lines", found.number, problem, text)


AREAS["lines"] = attack_lines


def main(argv: Sequence[str] | None = None) -> int:
    """Attack, and print a table; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="benchmarks.volumes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of all attacks (1)")
    parser.add_argument("--from", type=int, default=0, metavar="N", dest="first", help="number of the first attack (0)")
    parser.add_argument("--json", metavar="FILE", help="write a line of JSON for each defect as it is found")
    for area, attack in AREAS.items():
        what = (attack.__doc__ or "").split(";")[0].split(".")[0]
        parser.add_argument(f"--{area}", type=int, default=0, metavar="N", help=what)
    asked = parser.parse_args(argv)
    rows, n_defects = [], 0
    for area, attack in AREAS.items():
        if not (n := getattr(asked, area)):
            continue
        began, before, found = time.monotonic(), _cpu_s(), 0
        for defect in attack(asked.seed, range(asked.first, asked.first + n)):
            found += 1
            print(f"{area} {defect.number}: {defect.what}\n  {defect.problem}", flush=True)
            if asked.json:
                with Path(asked.json).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"seed": asked.seed, **asdict(defect)}) + "\n")
        rows.append([area, f"{n:,}", str(found), f"{_cpu_s() - before:.0f}", f"{time.monotonic() - began:.0f}"])
        n_defects += found
    print_table(["attacks", "number", "defects", "cpu s", "s"], rows, f"seed {asked.seed}, from {asked.first}")
    return 1 if n_defects else 0


def _cpu_s() -> float:
    """Processor time of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


if __name__ == "__main__":
    sys.exit(main())

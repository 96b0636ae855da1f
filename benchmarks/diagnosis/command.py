"""How often the cause of a slow collective is found.

python -m benchmarks.diagnosis --data DIR [--draws N] [--seed N] [--noise SD] [--errors PART]

DIR has ``diagnosis`` (cases: index.csv and a CSV each), ``measured`` and ``measured2`` (healthy tables).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.diagnosis.cases import answers, summary
from benchmarks.diagnosis.draws import NOISE, Drawn, draw
from benchmarks.diagnosis.healthy import healthy_causes
from commsim.core.errors import InputError
from commsim.diagnosis.causes.labels import HEALTHY
from commsim.report.terminal import print_table

HALF = "half"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="benchmarks.diagnosis", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", required=True, metavar="DIR", help="folder with diagnosis, measured and measured2")
    parser.add_argument("--draws", type=int, default=200, metavar="N", help="faults drawn from the model")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the draws")
    parser.add_argument("--noise", type=float, default=NOISE, metavar="SD", help="noise of each drawn time")
    parser.add_argument("--errors", type=float, default=1.0, metavar="PART", help="part of the model's errors believed")
    flags = parser.parse_args(argv)
    data = Path(flags.data)
    try:
        cases = answers(data / "diagnosis")
        lines = [
            [one.id, one.label, str(one.rank) if one.rank < 99 else "-",
             "; ".join(f"{label} {value:.0%}" for label, value in one.causes[:3])]
            for one in cases
        ]  # fmt: skip
        print_table(["case", "established", "place", "first three"], lines, "public cases")
        for line in summary(cases):
            print(f"# {line}")
        _print_healthy(data)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if flags.draws > 0:
        how = {"seed": flags.seed, "noise": flags.noise, "part": flags.errors}
        what = f"faults with {flags.noise:.0%} of noise, drawn by their likelihood beforehand"
        _print_drawn(what, draw(flags.draws, **how))
        _print_drawn("half of the NICs with the same noise", draw(flags.draws, only=HALF, **how))
    return 0


def _print_healthy(data: Path) -> None:
    firsts = {name: causes[0] for name, causes in healthy_causes(data) if causes}
    others = {name: one for name, one in firsts.items() if one.label != HEALTHY}
    for name, one in others.items():
        print(f"# healthy, and another cause first: {name}: {one.label} ({one.likelihood:.0%})")
    share = len(others) / max(1, len(firsts))
    print(f"# healthy tables with another cause first: {len(others)} of {len(firsts)} ({share:.1%}; asked 10 %)")
    print(f"# by cause: {dict(Counter(one.label for one in others.values()))}")


def _print_drawn(what: str, found: Drawn) -> None:
    top, three, named = (n / found.n for n in (found.first, found.third, found.named))
    print(f"# {found.n} {what}: top-1 {top:.0%} (asked 85 %), top-3 {three:.0%}; stated {found.stated / found.n:.0%}")
    print(
        f"# a reader who knows how they are drawn: {found.bound / found.n:.0%} (expects {found.expected / found.n:.0%})"
    )
    print(f"# in the set that nothing distinguishes (of {found.n_named / found.n:.1f} causes): {named:.0%}")
    print(f"# first, or named beside a first cause of the same times: {found.alike / found.n:.0%}")
    apart = max(1, found.apart)
    print(f"# without a twin of another cause: {found.apart}, top-1 {found.first_apart / apart:.0%}")
    for (true, first), n in found.confused.most_common(6):
        print(f"# {n} times {true} was taken for {first}")

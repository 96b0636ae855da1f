"""How processor time and memory grow with the number of ranks, and whether that is within the limits.

python -m benchmarks.scale [--only TEXT] [--quick] [--limit-s N] [--json FILE] [--write FILE]

Every row is a process of its own. ``cpu_s`` is building the network and the schedule, routing, planning and simulating
with kernels loaded; ``import_s`` is what comes before: imports, loading kernels, and the same work at a small size.
``rss_MB`` is the largest resident size of all of the process, ``base_MB`` what it was before the work.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.processes import machine_kind, run
from commsim.core.errors import BackendError, CommsimError, InputError
from commsim.core.files.whole_files import write_json
from commsim.report.terminal import print_table

from .page import COLUMNS, cells, growth_line, write_page
from .works import SERIES, Series

Row = dict[str, Any]
# Bytes that a row can allocate: what wants more is an error, and does not take the machine down.
MEMORY = 8e9
# Of memory above the base: less is not fitted.
LEAST_MB = 10.0


def rows(names: Sequence[str], quick: bool, limit: float) -> Iterator[Row]:
    """Measure every number of ranks of these series; what fails is a row with its error."""
    for name, n in [(one, n) for one in names for n in sizes(SERIES[one], quick)]:
        series = SERIES[name]
        begin: Row = {
            "work": name,
            "collective": series.collective,
            "ranks": n,
            "topology": series.network(n),
            "routing": series.routing,
            "engine": "flow",
        }
        try:
            said = dict(run([sys.executable, "-m", "benchmarks.scale.row", name, str(n)], limit, MEMORY).said)
        except BackendError as error:
            said = {"error": str(error)}
        yield begin | judged(said, series, n)


def sizes(series: Series, quick: bool) -> tuple[int, ...]:
    """Numbers of ranks to measure."""
    return (series.few, 2 * series.few) if quick else series.ranks


def judged(said: Row, series: Series, n: int) -> Row:
    """Set the limits beside what was measured; `met` is None where there are none."""
    if n not in series.limits:
        return said | {"limit_s": None, "limit_MB": None, "met": None}
    seconds, mb = series.limits[n]
    met = "error" not in said and said["cpu_s"] <= seconds and (mb is None or said["rss_MB"] <= mb)
    return said | {"limit_s": seconds, "limit_MB": mb, "met": met}


def growth(found: Sequence[Row]) -> list[Row]:
    """Fit an exponent to each series: cpu ~ ranks^a, by least squares of the logarithms; and so for memory.

    Memory is what is above the base, where that is enough to say something.
    """
    out = []
    for name in dict.fromkeys(row["work"] for row in found):
        good = [row for row in found if row["work"] == name and "error" not in row]
        if len(good) > 1:
            more = [(row["ranks"], row["rss_MB"] - row["base_MB"]) for row in good]
            more = [(ranks, mb) for ranks, mb in more if mb > LEAST_MB]
            cpu = exponent([(row["ranks"], row["cpu_s"]) for row in good])
            ranks = [row["ranks"] for row in good]
            out.append({"work": name, "ranks": [min(ranks), max(ranks)], "cpu": cpu, "memory": exponent(more)})
    return out


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Slope of log y over log x, or None where fewer than two y are positive."""
    logs = [(math.log(x), math.log(y)) for x, y in points if y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    return float(sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread)


def chosen(only: Sequence[str] | None) -> list[str]:
    """Names of the series that contain one of the texts.

    Raises
    ------
    InputError
        If a text is in none.
    """
    for text in only or []:
        if not any(text in name for name in SERIES):
            raise InputError(f"no series has {text!r} in its name; known: {'; '.join(SERIES)}")
    return [name for name in SERIES if only is None or any(text in name for text in only)]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and the exponents; 1 if a limit is not met."""
    text = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(prog="benchmarks.scale", description=text[0], epilog=" ".join(text[4:]))
    parser.add_argument("--only", action="append", metavar="TEXT", help="series whose name has this in it; repeatable")
    parser.add_argument("--quick", action="store_true", help="few ranks, without limits")
    parser.add_argument(
        "--limit-s", type=float, default=300.0, metavar="N", help="seconds after which a row ends (300)"
    )
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--write", metavar="FILE", help="also write the page; works that --only leaves out stay in it")
    args = parser.parse_args(argv)
    try:
        if not args.limit_s > 0:
            raise InputError(f"--limit-s must be positive, got {args.limit_s}")
        found = []
        for row in rows(chosen(args.only), args.quick, args.limit_s):
            found.append(row)
            print("# " + "  ".join(cells(row)), file=sys.stderr, flush=True)  # the table comes at the end
        exponents = growth(found)
        print_table(list(COLUMNS), [cells(row) for row in found], "1 GiB, one core, processor seconds")
        for line in exponents:
            print(f"# {growth_line(line)}")
        if args.json:
            config = {"machine": machine_kind(), "quick": args.quick}
            write_json(args.json, {"schema": 1, "config": config, "rows": found, "growth": exponents})
        if args.write:
            write_page(args.write, found, exponents, list(SERIES))
    except CommsimError as error:
        print(f"benchmarks.scale: error: {error}", file=sys.stderr)
        return 2
    return int(any(row["met"] is False for row in found))

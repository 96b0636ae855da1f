"""Intervals and errors of NCCL's and RCCL's predictions, from operators left out: writes ``commsim/nccl/*.toml``.

python -m benchmarks.nccl_tables.intervals --data DIR [--data DIR] [--check]

Kinds of machines (:mod:`commsim.nccl.intervals`) and three ranges of sizes have an interval each: of healthy tables
that nothing was fitted on, measured over predicted time, the 10th and the 90th percentile, each operator with the
same weight. The two are moved apart (or together) around their middle by the factor with which, of operators that are
left out one after another, nearest to 80 % of the rows lie inside, and no end is beyond the prediction. A class with
fewer than three operators or four tables takes the interval of all sizes of its kind, and a kind with as few has none.
RCCL's constants were chosen on most of its tables, so that these count there. A cloud is the only operator of its
transport: who is new there has another of its machines, so that each table of a cloud's transport counts as an
operator.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.nccl_tables import amd
from benchmarks.nccl_tables.asked import Asked, has_questions, operator_of, predicted_rows, read_asked
from benchmarks.nccl_tables.error_shape import Score, classes_of, likeness_of, written_errors
from benchmarks.nccl_tables.fit import HOPS_OF, TABLES, Without, asked_tables, has_hops_only
from benchmarks.nccl_tables.machines import Table, read_tables
from benchmarks.nccl_tables.peaks import read_peaks
from benchmarks.nccl_tables.rows import usable
from collectives.nccl.call import ALLOWED
from commsim.nccl.error_model import PATH as ERRORS
from commsim.nccl.gpu_costs import GpuCosts, costs
from commsim.nccl.intervals import CLOUD, EVERY, PATH, RCCL, SIZES, Intervals, kind_of, size_class
from commsim.nccl.prediction import predict
from commsim.prediction.build import prepare
from commsim.report.terminal import print_table

# Any algorithm that sends over the network itself; exchanges have none.
ANY = "ring"
STATED, LOW, HIGH = 0.8, 0.1, 0.9
LEAST_OPERATORS, LEAST_TABLES = 3, 4
# Factors that are tried, of the distance of the percentiles.
STRETCHES = np.geomspace(0.3, 4.0, 60)
# Tables that hops of networks were fitted on: with all of them at hand they are fitted again without each operator.
HOPS = {name for section in HOPS_OF for name in TABLES[section]}
HEAD = """\
# Measured over predicted time between which about 80 % of the rows of an operator lie that nothing is known of, by
# kind of machines and size (small: below 64 KiB, middle: below 16 MiB, large). Written from healthy public tables that
# nothing was fitted on by `python -m benchmarks.nccl_tables.intervals`; a kind that is not here has no interval.
# `every_kind`, of all kinds together, is for floors of machines without tables, and no prediction's interval.
"""


def scores_of_tables(tables: Iterable[Table], known: GpuCosts, without: Without | None = None) -> list[Score]:
    """Score healthy tables that nothing was fitted on, or only hops, which are then those of other operators."""
    found = []
    for t in tables:
        hops_only = without is not None and has_hops_only(t.id)
        if not t.healthy or (t.is_fitted(known) and not hops_only) or t.site is None or usable(t, known):
            continue
        kind = kind_of(t.site.setting.n_ranks, t.site.setting.n_nodes, t.site.network, ANY * (t.operation in ALLOWED))
        there = known if without is None else without.of(operator_of(t.id))
        for size, time in t.rows:
            if size >= t.trusted_from:
                ours = t.shown(predict(t.site, t.operation, size, t.algorithm, t.protocol, there).seconds)
                found.append(Score(
                    operator_of(t.id), t.id, kind, size_class(size), float(np.log(time / ours)), size,
                    t.site.setting.n_nodes,
                ))  # fmt: skip
    return found


def scores_of_amd(folder: Path) -> list[Score]:
    """Score RCCL's tables."""
    return [
        Score(operator_of(t.name), t.name, RCCL, size_class(size), float(-np.log1p(error)), size, -(-t.n_ranks // 8))
        for t in amd.read(folder) for (size, _), error in zip(t.rows, amd.errors(t), strict=True)
    ]  # fmt: skip


def scores_of_asked(tables: Sequence[Asked]) -> list[Score]:
    """Score tables that say their question: RCCL's, and largest rates."""
    kept = [t for t in tables if t.healthy == "yes" and t.collective]
    kinds, machines = {t.id: kind_of_asked(t) for t in kept}, {t.id: t.n_nodes for t in kept}
    return [
        Score(row["operator"], row["table"], kinds[row["table"]], size_class(row["bytes"]),
              float(np.log(row["measured"] / row["predicted"])), row["bytes"], machines[row["table"]])
        for row in predicted_rows(kept)[0]
    ]  # fmt: skip


def kind_of_asked(table: Asked) -> str:
    """Return the kind of machines of a question."""
    if table.collective.startswith("rccl"):
        return RCCL
    site = prepare(table.collective, table.topology, n_ranks=table.n_ranks).launch.known_site  # type: ignore[attr-defined]
    return "" if site is None else kind_of(site.setting.n_ranks, site.setting.n_nodes, site.network, ANY)


def all_scores(folders: Iterable[Path]) -> list[Score]:
    """Score all tables of some folders, of both forms."""
    known, found, tables = costs(), [], []
    for folder in folders:
        if has_questions(folder):
            tables += asked_tables(folder)
            rccl = [table for table in read_asked(folder) if table.collective.startswith("rccl")]
            found += scores_of_asked([*rccl, *read_peaks(folder)])
        else:
            tables += read_tables(folder)
            found += scores_of_amd(folder)
    without = Without(tables, known) if {table.id for table in tables} >= HOPS else None
    return [score for score in [*found, *scores_of_tables(tables, known, without)] if score.kind]


def of_kind(scores: Iterable[Score], kind: str) -> list[Score]:
    """Return the rows of a kind of machines; each table of a cloud's transport counts as an operator."""
    own = (score for score in scores if score.kind == kind)
    return [score._replace(operator=score.table) if kind == CLOUD else score for score in own]


def interval(scores: Sequence[Score], stretch: float) -> tuple[float, float]:
    """Return the percentiles of some rows, each operator with the same weight, moved apart around their middle."""
    low, high = percentiles(scores)
    middle, half = (low + high) / 2, stretch * (high - low) / 2
    return float(np.exp(min(0.0, middle - half))), float(np.exp(max(0.0, middle + half)))


def percentiles(scores: Sequence[Score]) -> tuple[float, float]:
    """Return the logarithms between which 80 % of some rows lie, each operator with the same weight."""
    logs = np.array([score.log for score in scores])
    weights = weights_of(scores)
    order = np.argsort(logs)
    share = np.cumsum(weights[order]) / weights.sum()
    low, high = (float(logs[order][np.searchsorted(share, q)]) for q in (LOW, HIGH))
    return low, high


def weights_of(scores: Sequence[Score]) -> np.ndarray:
    """Return the weight of each row, with which all operators have the same one, float64[n]."""
    n_rows = Counter(score.operator for score in scores)
    return np.array([1 / n_rows[score.operator] for score in scores])


def inside(scores: Sequence[Score], stretch: float) -> np.ndarray:
    """Return which rows lie in the interval of the other operators, bool[n]."""
    return _needed(scores) <= stretch


def _needed(scores: Sequence[Score]) -> np.ndarray:
    """Return by which factor the other operators' interval must be stretched to have each row, float64[n]."""
    found = np.zeros(len(scores))
    names = np.array([score.operator for score in scores])
    logs = np.array([score.log for score in scores])
    for name in set(names.tolist()):
        low, high = percentiles([s for s in scores if s.operator != name])
        own = names == name
        half = max((high - low) / 2, np.finfo(float).tiny)
        found[own] = np.abs(logs[own] - (low + high) / 2) / half
    return found


def calibrated(scores: Sequence[Score]) -> tuple[tuple[float, float], float]:
    """Return the interval of some rows, and the share of rows of operators left out that lie in theirs."""
    needed = _needed(scores)
    shares = [float((needed <= stretch).mean()) for stretch in STRETCHES]
    best = int(np.argmin(np.abs(np.array(shares) - STATED)))
    return interval(scores, float(STRETCHES[best])), shares[best]


def of_every_kind(scores: Sequence[Score]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return intervals of all kinds together, for machines whose kind has none."""
    by_size = {size: [score for score in scores if score.size == size] for _, size in SIZES}
    return {(EVERY, size): calibrated(own or scores)[0] for size, own in by_size.items()}


def is_enough(scores: Sequence[Score], least: int = LEAST_OPERATORS) -> bool:
    """Whether an interval can be left to some rows: where one operator is left out, several are left."""
    return len({s.operator for s in scores}) >= least and len({s.table for s in scores}) >= LEAST_TABLES


def made(
    scores: Sequence[Score], least: int = LEAST_OPERATORS
) -> tuple[dict[tuple[str, str], tuple[float, float]], list[list[str]]]:
    """Return the intervals of all classes of as many operators or more, and the lines of a table about them."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    lines = []
    for kind in dict.fromkeys(score.kind for score in scores):
        every = of_kind(scores, kind)
        for _, size in SIZES:
            own = [score for score in every if score.size == size]
            of = own if is_enough(own, least) else every
            counts = [kind, size, str(len({s.operator for s in own})), str(len({s.table for s in own})), str(len(own))]
            if not is_enough(of, least):
                lines.append([*counts, "no interval", "-"])
                continue
            found[kind, size], share = calibrated(of)
            low, high = found[kind, size]
            lines.append(
                [*counts, f"{low:.3f} to {high:.3f}", f"{share:.0%}" + (" (all sizes)" if of is every else "")]
            )
    return found, lines


def coverage(scores: Sequence[Score]) -> dict[str, tuple[int, int]]:
    """Return by kind how many rows lie in the interval that all other operators give, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for kind in dict.fromkeys(score.kind for score in scores):
        every = of_kind(scores, kind)
        for operator in {score.operator for score in every}:
            others, _ = made([score for score in every if score.operator != operator], LEAST_OPERATORS - 1)
            for score in every:
                if score.operator == operator and (kind, score.size) in others:
                    low, high = np.log(others[kind, score.size])
                    some, n = found.get(kind, (0, 0))
                    found[kind] = some + bool(low <= score.log <= high), n + 1
    return found


def written(intervals: Intervals) -> str:
    """Return the text of the file."""
    parts = []
    for kind in dict.fromkeys(kind for kind, _ in intervals):
        own = [(size, pair) for (of, size), pair in intervals.items() if of == kind]
        parts.append(f"[{kind}]\n" + "".join(f"{size} = [{low:.3f}, {high:.3f}]\n" for size, (low, high) in own))
    return "\n".join([HEAD, *parts])


def main(argv: Sequence[str] | None = None) -> int:
    """Write the intervals and print their coverage."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.nccl_tables.intervals", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--data", required=True, action="append", metavar="DIR", help="folder of tables; repeatable")
    parser.add_argument("--check", action="store_true", help="only print; write nothing")
    flags = parser.parse_args(argv)
    scores = all_scores(map(Path, flags.data))
    intervals, lines = made(scores)
    print_table(["kind", "size", "operators", "tables", "rows", "interval", "left out: inside"], lines)
    found = coverage(scores)
    total = [sum(part) for part in zip(*found.values(), strict=True)]
    print_table(["kind", "rows", "inside"], [[k, str(n), f"{some / n:.0%}"] for k, (some, n) in found.items()],
                "operators left out of everything, the factor too")  # fmt: skip
    print(f"# inside: {total[0]} of {total[1]} rows ({total[0] / total[1]:.0%}), operators left out")

    classes, likeness = classes_of(scores), likeness_of(scores)
    print(f"# errors: {len(classes)} classes; near sizes are alike within {likeness.octaves:g} octaves")
    if not flags.check:
        PATH.write_text(written({**intervals, **of_every_kind(scores)}), encoding="utf-8")
        ERRORS.write_text(written_errors(classes, likeness), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Tables of what questions beside a prediction return: a ranking, an advice, a comparison, a lower bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from commsim.core.operations import meaning_of_size
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_size, microseconds
from commsim.formats.log_health import unhealthy
from commsim.prediction.bounds.limited_by import short_limit
from commsim.ranking.contenders import launch_in_title, skipped
from commsim.ranking.rank_algorithms import times_best
from commsim.ranking.synthesis.bound import SIZES
from commsim.report.answer import Part, Table, comments, remarks
from commsim.report.hash_columns import COST, with_spread
from commsim.report.table_of_run import rate_cell
from commsim.report.titles import costs_in_title, hashes_in_title, least_in_title, software_costs

if TYPE_CHECKING:
    from commsim.core.result import Result
    from commsim.formats.measurement import Measurement
    from commsim.ranking.advice.advise import Advice
    from commsim.ranking.rank_algorithms import Ranking
    from commsim.ranking.synthesis.bound import LowerBound
    from commsim.ranking.synthesis.over_bound import OverBound, Ratio
    from commsim.ranking.synthesis.synthesize import Synthesis
    from commsim.real.comparison.comparison import Comparison
    from commsim.real.comparison.pairs import Pair, Summary

RANKING = ["size(B)", "rank", "algorithm", "time(us)", "algbw(GB/s)", "busbw(GB/s)", "times_best"]
LEAST_OF_RANKING = ["rank", "times_best", "algbw(GB/s)"]
ADVICE = ["rank", "collective", "way", "exact", "time(us)", "times_best", "MB/worker", "wire(B)", "max_link(B)",
          "limited_by"]  # fmt: skip
LEAST_OF_ADVICE = ["wire(B)", "max_link(B)", "rank", "way", "whole(us)", "limited_by", "exact", "fastest(us)"]
COMPARISON = ["operation", "size(B)", "measured(us)", "least(us)", "most(us)", "predicted(us)", "error", "busbw(GB/s)",
              "predicted(GB/s)", ""]  # fmt: skip
# What stands behind the prediction where it has an interval.
OF_INTERVAL = ["low(us)", "high(us)", "inside"]
LEAST_OF_COMPARISON = ["", "predicted(GB/s)", "operation", "most(us)", "least(us)"]
BOUND = ["size(B)", "sums_and_copies_at", "bound(us)", "limited by"]
RATIOS = ["size(B)", "algorithm", "time(us)", "bound(us)", "times_bound", "sums_and_copies_at", "limited_by"]
LEAST_OF_RATIOS = ["sums_and_copies_at", "limited_by", "whole(us)", "bound(us)", "fastest(us)"]
# Where the schedules of a bound sum and copy.
RANKS, ANYWHERE = "ranks", "servers or switches"
SYNTHESIS = ["size(B)", "time(us)", "bound(us)", "times_bound", "chosen"]
# Relative error at which the bar beside a row is full.
FULL_BAR = 0.5
# Sizes without a prediction that are named.
MAX_NAMED = 6


def parts_of_ranking(ranking: Ranking, title: str = "", title_least: Callable[[], Sequence[str]] = tuple) -> list[Part]:
    """Return the table of a ranking between what was derived and what it assumes.

    Parameters
    ----------
    ranking : Ranking
        Ranking.
    title : str
        Comment above the table.
    title_least : callable
        Function to the pieces of it that a narrow terminal leaves out, the least important first.
    """
    table = dataclasses.replace(table_of_ranking(ranking.by_size, title), title_least=title_least)
    return [*remarks(ranking.derived), table, *remarks(ranking.remarks)]


def table_of_ranking(by_size: Mapping[int, Sequence[tuple[str, Result]]], title: str) -> Table:
    """Return the table of algorithms by size, the fastest first, with their ranks where not all have as many.

    Parameters
    ----------
    by_size : mapping of int to sequence of (str, Result)
        Algorithms and their results by size in bytes, in order.
    title : str
        Comment above the table.
    """
    rows = [
        [
            f"{size}", f"{place}", name, microseconds(r.time), rate_cell(r.algbw), rate_cell(r.busbw),
            f"{times_best(r.time, order[0][1].time):.2f}x",
        ]
        for size, order in by_size.items() for place, (name, r) in enumerate(order, 1)
    ]  # fmt: skip
    of_rows = [result for order in by_size.values() for _, result in order]
    names, rows = with_spread(RANKING, rows, of_rows)
    title += hashes_in_title(of_rows)
    least = [*LEAST_OF_RANKING, "size(B)" if len(by_size) == 1 else "fastest(us)"]
    ranks = [f"{result.n_ranks}" for order in by_size.values() for _, result in order]
    if len(set(ranks)) > 1:
        rows = [[*row[:3], n, *row[3:]] for row, n in zip(rows, ranks, strict=True)]
        return Table([*names[:3], "ranks", *names[3:]], rows, title, least)
    return Table(names, rows, title, least)


def table_of_advice(advice: Advice, title: str, density: float | None = None) -> Table:
    """Return the ranked ways of an advice.

    Parameters
    ----------
    advice : Advice
        Advice.
    title : str
        Comment above the table.
    density : float, optional
        Only ways with data of this density, and those that send all. Default: all ways.
    """
    ways = [row for row in advice.ranked if density is None or row.candidate.density in (None, density)]
    before, best = advice.whole, ways[0].result.time
    rows = [
        [
            f"{i}",
            row.candidate.label if density is None else row.candidate.way_to_run,
            row.candidate.way,
            "yes" if row.candidate.exact else "no",
            microseconds(row.result.time),
            f"{times_best(row.result.time, best):.2f}x",
            f"{row.result.bytes_on_wire / row.result.n_ranks / 1e6:.4g}",
            f"{row.result.bytes_on_wire:.0f}",
            f"{row.result.link_bytes.max(initial=0):.0f}",
            short_limit(row.limit),
            *_cost_of_faults(row.result.time, before, row.candidate.label),
        ]
        for i, row in enumerate(ways, 1)
    ]
    names, found = ADVICE + ([] if before is None else list(COST)), [row.result for row in ways]
    names, rows = with_spread(names, rows, found)
    title += hashes_in_title(found)
    return Table(names, rows, title, LEAST_OF_ADVICE, lambda: least_in_title(advice.network))


def parts_of_advice(advice: Advice) -> list[Part]:
    """Return the ranked ways of an advice, and what it assumes and leaves out."""
    question = advice.question
    workers = count_text(question.n_workers, "worker")
    costs = f"{costs_in_title(advice.network)}{launch_in_title(advice.launch)}"
    where = f"on {advice.network.name}, {workers}, engine flow, {costs}"
    if len(question.densities) > 1 and question.gradients is None:
        tables = [
            table_of_advice(
                advice, f"{format_size(question.size)}, density {density:g} in runs of {question.run}, {where}", density
            )
            for density in question.densities
        ]
    else:
        drawn = question.densities if question.gradients is None else ()
        data = "".join(f", density {density:g} in runs of {question.run}," for density in drawn)
        tables = [table_of_advice(advice, f"{format_size(question.size)}{data} {where}")]
    return [*remarks((*advice.notes, *skipped(advice.left_out))), *tables, *remarks(advice.assumed)]


def _cost_of_faults(time: float, before: Mapping[str, float] | None, label: str) -> list[str]:
    """Cells of a way's time on the network without faults, where there are faults, and of what they cost."""
    if before is None:
        return []
    whole = before.get(label)
    return [microseconds(whole), f"{time / whole:.3f}x"] if whole else ["-", "-"]


def parts_of_pairs(
    pairs: Sequence[Pair], summary: Summary, title: str = "", alone: Sequence[Measurement] = (),
    causes: Sequence[str] = (), healthy: Sequence[Part] = (),
) -> list[Part]:  # fmt: skip
    """Return pairs of times, how far apart they are, and what was measured but not predicted.

    Parameters
    ----------
    pairs : sequence of Pair
        Predicted beside measured times.
    summary : Summary
        Their errors.
    title : str
        Comment above the table.
    alone : sequence of Measurement
        Measurements without a prediction.
    causes : sequence of str
        Lines on the causes of the errors; what the table says in sum follows where a terminal has room for it.
    healthy : sequence of Part
        What stands before the causes.
    """
    errors = {f"{pair.error:+.1%}" for pair in pairs if pair.error is not None}
    at = "every size" if len(errors) == 1 < len(pairs) else f"{summary.worst_size:.0f} B"
    text = f"error: median {summary.median:.1%}, 90th percentile {summary.p90:.1%}, worst {summary.worst:.1%} at {at}"
    bar = f"below 0 (<): predicted too short, above (>): too long, full at {FULL_BAR:.0%}"
    signed = Remark("signed-error", f"median signed error {summary.bias:+.1%}", summary.bias, details=bar)
    notes = [signed]
    within = [pair.is_within for pair in pairs if pair.is_within is not None]
    if within:
        line = f"{sum(within)} of {len(within)} predictions lie between the least and the most measured"
        notes.append(Remark("within-measured", line))
    inside = [pair for pair in pairs if pair.is_expected is not None]
    if inside:
        n = sum(pair.is_expected is True for pair in inside)
        above = sum(pair.is_expected is False and pair.measured.time > pair.predicted for pair in inside)
        rest = f": {above} above, {len(inside) - n - above} below" if n < len(inside) else ""
        line = f"{n} of {len(inside)} measured times lie in the intervals of 80 %{rest}"
        notes.append(Remark("within-interval", line, needed=True))
    if alone:
        named = ", ".join(f"{row.operation} {row.size:.0f} B" for row in alone[:MAX_NAMED])
        more = f" and {len(alone) - MAX_NAMED} more" if len(alone) > MAX_NAMED else ""
        notes.append(Remark("not-predicted", f"without a prediction: {named}{more}"))
    names, cells = list(COMPARISON), [_cells(pair) for pair in pairs]
    if any(pair.interval for pair in pairs):
        names[6:6] = OF_INTERVAL
        for pair, row in zip(pairs, cells, strict=True):
            row[6:6] = _interval(pair)
    said = comments([*causes, text], is_bounded=bool(causes))
    against = Table(names, cells, title, LEAST_OF_COMPARISON, only_verbose=bool(healthy))
    return [against, *healthy, *said, *remarks(notes)]


def _interval(pair: Pair) -> list[str]:
    if pair.interval is None:
        return ["-", "-", "-"]
    return [*map(microseconds, pair.interval), {None: "-", True: "yes", False: "no"}[pair.is_expected]]


def parts_of_comparison(comparison: Comparison, title: str = "", *, healthy: Sequence[Part] = ()) -> list[Part]:
    """Return a comparison's pairs and errors, what explains them, and causes; `healthy` stands before the causes."""
    causes = [unhealthy(comparison.faults)] if comparison.faults else []
    causes += [] if comparison.diagnosis is None else comparison.diagnosis.lines
    pairs = parts_of_pairs(comparison.pairs, comparison.summary, title, comparison.alone, causes, healthy)
    return [*remarks(comparison.notes), *pairs, *remarks(comparison.reasons)]


def _cells(pair: Pair) -> list[str]:
    m = pair.measured
    rate = m.busbw
    predicted = "-" if rate is None or not pair.predicted else f"{rate * m.time / pair.predicted / 1e9:.3f}"
    return [
        m.operation,
        f"{m.size:.0f}",
        microseconds(m.time),
        *("-" if value is None else microseconds(value) for value in (m.low, m.high)),
        microseconds(pair.predicted),
        "-" if pair.error is None else f"{pair.error:+.1%}",
        "-" if rate is None else f"{rate / 1e9:.3f}",
        predicted,
        _bar(pair.error or 0.0),
    ]


def _bar(error: float) -> str:
    """Draw the error as text: to the left of the middle when the prediction is too short."""
    length = round(min(1.0, abs(error) / FULL_BAR) * 8)
    left, right = ("<" * length, "") if error < 0 else ("", ">" * length)
    return f"{left.rjust(8)}|{right.ljust(8)}"


def table_of_bounds(bounds: Sequence[LowerBound], sizes: Sequence[int], what: str) -> Table:
    """Return lower bounds and what limits them, at every size.

    Parameters
    ----------
    bounds : sequence of LowerBound
        Bounds of one operation.
    sizes : sequence of int, bytes
        Sizes.
    what : str
        Operation and network.
    """
    rows = [[f"{s}", place_of_sums(b.anywhere), microseconds(b.time(s)), b.why(s)] for s in sizes for b in bounds]
    n_ranks = count_text(bounds[0].n_ranks, "rank")
    size_of = meaning_of_size(bounds[0].operation, bounds[0].n_ranks, sizes)
    any_schedule = " on the time of any schedule"
    title = f"{what}, {n_ranks}: lower bound{any_schedule}{size_of}"
    return Table(BOUND, rows, title, title_least=lambda: [any_schedule])


def parts_of_bound(bound: LowerBound) -> list[Part]:
    """Return a lower bound at a small, a middle and a large size."""
    name = "" if bound.network is None else f" on {bound.network.name}"
    return [table_of_bounds([bound], SIZES, f"{bound.operation}{name}"), *remarks(bound.remarks)]


def table_of_synthesis(synthesis: Synthesis) -> Table:
    """Return the fastest schedule of each size, beside the lower bound."""
    rows = [
        [
            f"{size}",
            microseconds(synthesis.best(size).time),
            microseconds(synthesis.bounds[size]),
            f"{synthesis.times_bound(size):.3f}x",
            synthesis.best(size).method,
        ]
        for size in synthesis.candidates
    ]
    where = f"{synthesis.operation} on {synthesis.network.name}, {count_text(synthesis.n_ranks, 'rank')}"
    size_of = meaning_of_size(synthesis.operation, synthesis.n_ranks, list(synthesis.candidates))
    return Table(SYNTHESIS, rows, f"{where}, {costs_in_title(synthesis.network)}{size_of}")


def crossovers_of_synthesis(synthesis: Synthesis) -> list[Part]:
    """Return which method is chosen from which size to which, where there are several."""
    ranges = synthesis.ranges()
    if len(ranges) < 2:
        return []
    cells = [[f"{size_range.low}", f"{size_range.high}", size_range.method] for size_range in ranges]
    return [Table(["from(B)", "to(B)", "chosen"], cells, "crossovers: geometric middles of the sizes above")]


def parts_of_synthesis(synthesis: Synthesis) -> list[Part]:
    """Return the fastest schedules, the sizes at which they change, and how they work."""
    return [table_of_synthesis(synthesis), *crossovers_of_synthesis(synthesis), *remarks(synthesis.remarks)]


def place_of_sums(anywhere: bool) -> str:
    """Return at which nodes the schedules of a bound sum and copy."""
    return ANYWHERE if anywhere else RANKS


def table_of_ratios(excess: OverBound, title: str = "") -> Table:
    """Return the times of algorithms over their bound, and what faults cost them."""
    if excess.network is not None:
        title = f"{title}, {software_costs(excess.network)}".removeprefix(", ")
    columns = RATIOS + (list(COST) if excess.has_faults else [])
    rows = [_cells_of_ratio(one, excess.has_faults) for one in excess.ratios]
    results = [one.result for one in excess.ratios]
    columns, rows = with_spread(columns, rows, results)
    return Table(columns, rows, title + hashes_in_title(results), LEAST_OF_RATIOS)


def _cells_of_ratio(one: Ratio, faults: bool) -> list[str]:
    times = microseconds(one.time), microseconds(one.bound), f"{one.times_bound:.3f}x"
    cells = [f"{one.size}", one.algorithm, *times, place_of_sums(one.anywhere), short_limit(one.limit)]
    if not faults:
        return cells
    if one.whole is None:  # an algorithm may be possible with the faults only
        return [*cells, "-", "-"]
    return [*cells, microseconds(one.whole), f"{one.faults_cost:.3f}x"]


def parts_of_over_bound(excess: OverBound) -> list[Part]:
    """Return the bounds of an operation, and the algorithms beside them."""
    sizes = sorted({int(one.size) for one in excess.ratios})
    network = excess.bounds[0].network
    title = excess.bounds[0].operation + ("" if network is None else f" on {network.name}")
    return [
        *remarks((*excess.derived, *skipped(excess.left_out))), table_of_bounds(excess.bounds, sizes, title),
        *remarks(note for bound in excess.bounds for note in bound.notes), table_of_ratios(excess),
        *remarks(excess.remarks),
    ]  # fmt: skip

"""How values show themselves in a notebook."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.core.units import format_bandwidth, format_size, format_time
from commsim.jobs.table_of_jobs import parts_of_solution
from commsim.pages.html_of_parts import html_of_parts
from commsim.pages.pictures.network_picture import draw_network
from commsim.pages.pictures.paint import svg_text
from commsim.pages.pictures.picture import Picture
from commsim.pages.plots.chart import Chart
from commsim.pages.schedules.schedule_picture import draw_schedule
from commsim.prediction.solve import Solution
from commsim.ranking.advice.advise import Advice
from commsim.ranking.rank_algorithms import Ranking
from commsim.ranking.synthesis.bound import LowerBound
from commsim.ranking.synthesis.over_bound import OverBound
from commsim.ranking.synthesis.synthesize import Synthesis
from commsim.ranking.tables_of_questions import (
    parts_of_advice,
    parts_of_bound,
    parts_of_comparison,
    parts_of_over_bound,
    parts_of_ranking,
    parts_of_synthesis,
)
from commsim.real.comparison.comparison import Comparison
from commsim.report.answer import Facts, Part, remarks

# Transfers of a schedule, and nodes of a network, up to which a picture is shown.
MAX_TRANSFERS, MAX_NODES = 200, 4000
# What shows itself as a verb's answer does.
PARTS: dict[type, Callable[[Any], list[Part]]] = {
    Advice: parts_of_advice, Comparison: parts_of_comparison, LowerBound: parts_of_bound, Ranking: parts_of_ranking,
    OverBound: parts_of_over_bound, Solution: parts_of_solution, Synthesis: parts_of_synthesis,
}  # fmt: skip


def html_of(value: object) -> str:
    """Return what a notebook shows: tables and remarks, and a picture where one is small enough to be read."""
    if isinstance(value, Network):
        return _facts(network_facts(value)) + (_svg(draw_network(value)[0]) if value.n_nodes <= MAX_NODES else "")
    if isinstance(value, Schedule):
        facts = {"schedule": value.name, "operation": value.operation, "ranks": value.n_ranks,
                 "helpers": value.n_helpers, "chunks": value.n_chunks, "transfers": value.n_transfers}  # fmt: skip
        return _facts(facts) + _picture_of_schedule(value)
    if isinstance(value, Chart):
        return _svg_of_chart(value)
    if isinstance(value, Result):
        facts = {"collective": value.collective, "ranks": value.n_ranks, "size": format_size(value.size),
                 "engine": value.engine, "time": format_time(value.time)}  # fmt: skip
        if value.operation != "custom" and value.time:
            facts["busbw"] = f"{value.busbw / 1e9:.4g} GB/s"
        if value.interval is not None:
            facts["low to high"] = " to ".join(map(format_time, value.interval))
        solution: Solution | None = getattr(value, "solution", None)
        before, after = ((), ()) if solution is None else (solution.derived, solution.remarks)
        return html_of_parts([*remarks(before), *_facts_part(facts), *remarks(after)])
    parts = PARTS.get(type(value))
    return f"<pre>{html.escape(repr(value))}</pre>" if parts is None else html_of_parts(parts(value))


def network_facts(network: Network) -> dict[str, Any]:
    """Return a network's name, its numbers of nodes by kind and of links, and its rates."""
    from commsim.core.network import KINDS, PLURALS

    counts = {PLURALS[kind]: int((network.kind == kind).sum()) for kind in range(len(KINDS))}
    rates = sorted(set(network.bandwidth.tolist()))
    shown = [format_bandwidth(rate) for rate in (rates if len(rates) <= 4 else (rates[0], rates[-1]))]
    facts: dict[str, Any] = {"network": network.name, **{name: n for name, n in counts.items() if n}}
    return facts | {"links": network.n_links, "rates": (", " if len(rates) <= 4 else " to ").join(shown)}


def _picture_of_schedule(schedule: Schedule) -> str:
    if schedule.n_transfers > MAX_TRANSFERS:
        return ""
    try:
        return _svg(draw_schedule(schedule))
    except InputError:  # too many ranks to be drawn
        return ""


def _facts(facts: dict[str, Any]) -> str:
    return html_of_parts(_facts_part(facts))


def _facts_part(facts: dict[str, Any]) -> list[Part]:
    return [Facts({name: str(value) for name, value in facts.items()})]


def _svg(picture: Picture) -> str:
    return svg_text(picture).partition("?>\n")[2]  # a page has no second XML declaration


def _svg_of_chart(chart: Chart) -> str:
    try:
        text = chart.svg()
    except InputError as error:  # matplotlib is missing: a notebook would show a traceback
        return f"<pre>{html.escape(str(error))}</pre>"
    return text[text.index("<svg") :]

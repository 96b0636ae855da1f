"""The table of messages between hosts: completion times beside the bound, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.remark import Remark, as_remarks
from commsim.core.units import format_size, microseconds
from commsim.packets.beside_table import met_by_packets
from commsim.prediction.bounds.limited_by import limit_of, row_of_limit
from commsim.prediction.result_remarks import NOTHING_LOST
from commsim.report.answer import Part, Table, remarks
from commsim.report.hash_columns import COST, cost_cells, spread_cells, spread_names
from commsim.report.titles import hashes_in_title

if TYPE_CHECKING:
    from commsim.prediction.solve import Solution

COLUMNS = ["messages", "first(us)", "mean(us)", "p99(us)", "last(us)", "bound(us)"]
COUNTED = {
    "sent_again": "n_resent", "trimmed": "n_trimmed", "dropped": "n_dropped", "marked": "n_marked",
    "pauses": "n_pauses", "longest_queue(B)": "peak_queue_bytes",
}  # fmt: skip
LEAST = ["first(us)", "marked", "pauses", "sent_again", "trimmed", "longest_queue(B)"]
DEEP = 1e11  # bytes: a queue that never fills


def title_of_traffic(solution: Solution, what: str) -> str:
    """Return the title: what is sent, on what, and how."""
    from commsim.packets.packet_options import told_transport

    wish = solution.scenario.wish
    how = told_transport(wish.model.transport) if wish.engine == "packet" else f"engine {wish.engine}"
    return f"{what} on {solution.plan.network.name}, {how}{hashes_in_title(solution.results)}"


def rows_of_traffic(solution: Solution) -> list[dict[str, Any]]:
    """Return the JSON row of each message."""
    carried = solution.details
    sent = carried.messages
    return [
        {"src": int(sent.src[i]), "dst": int(sent.dst[i]), "size_B": int(sent.nbytes[i]),
         "start_s": float(sent.start[i]), "received_s": float(carried.received[i]),
         "finished_s": float(carried.finished[i]), "slowdown": float(carried.slowdown[i])}
        for i in range(len(sent.src))
    ]  # fmt: skip


def more_of_traffic(solution: Solution) -> dict[str, Any]:
    """Return further keys of the JSON."""
    from commsim.packets.packet_options import queues_of
    from commsim.traffic.slowdown import cumulative

    carried = solution.details
    run: dict[str, Any] = {} if carried.run is None else {"counters": carried.run.counters, "rules": carried.run.rules}
    if run and (queues := queues_of(solution.scenario.wish.model.transport)):
        run["queues"] = queues
    lost = {"flap_lost": carried.lost} if carried.lost else {}
    (result,) = solution.results
    run |= {"whole_s": result.whole, "faults_cost": result.faults_cost} if result.whole is not None else {}
    return {
        "bound_s": carried.bound,
        **result.spread_row(),
        **row_of_limit(limit_of(solution.plan, result)),
        **run,
        "slowdown_cdf": cumulative(carried.slowdown),
        **lost,
    }


def parts_of_traffic(solution: Solution, title: str) -> list[Part]:
    """Return the table, between what was derived and remarks."""
    carried = solution.details
    times = np.sort(carried.finished)
    shown = [times[0], times.mean(), np.quantile(times, 0.99), times[-1], carried.bound]
    counted = {} if carried.run is None else {name: carried.run.counters[key] for name, key in COUNTED.items()}
    if not counted.get("dropped"):
        counted.pop("dropped", None)
    columns, cells = list(COLUMNS), [f"{len(times)}", *(microseconds(t) for t in shown)]
    (result,) = solution.results
    if result.hashes is not None:
        columns, cells = [*columns, *spread_names([result])], [*cells, *spread_cells(result)]
    if result.whole is not None:
        columns, cells = [*columns, *COST], [*cells, *cost_cells(result)]
    columns, cells = [*columns, *counted], [*cells, *map(str, counted.values())]
    least = sorted((one for one in LEAST if one in (*COLUMNS, *counted)), key=lambda one: counted.get(one, 0) > 0)
    table = Table(columns, [cells], title, least)
    return [*remarks(solution.derived), table, *remarks((*said_of_traffic(solution), *solution.remarks))]


def said_of_traffic(solution: Solution) -> list[Remark]:
    """Describe slowdowns, rules that were used, the bound, and what a flap costs."""
    from commsim.packets.packet_options import told_queues
    from commsim.traffic.slowdown import cumulative

    carried, wish = solution.details, solution.scenario.wish
    limit = limit_of(solution.plan, solution.results[0])
    points = cumulative(carried.slowdown)
    slow = f"median {points['0.5']:.3f}, 99 % {points['0.99']:.3f}, most {points['1']:.3f}"
    notes = [Remark("slowdown", f"slowdown against a message by itself: {slow}", points["1"] - 1, needed=True)]
    notes += [] if limit is None else [Remark("limited-by", f"limited by: {limit}", needed=True)]
    completion = "the last byte at the receiver"
    if carried.run is not None:
        queues = told_queues(wish.model.transport, solution.plan.network, marked=carried.run.counters["n_marked"] > 0)
        met = [line.removeprefix("# ") for line in met_by_packets(solution.results[0], "all messages")]
        notes += as_remarks(met, "packets-met")
        notes += as_remarks([_rules(carried.run.rules, has_marks=not queues), *queues], "rules")
        completion = "the last acknowledgement at the sender"
    busiest, even = "host", ""
    if carried.even > 0:
        busiest = "port that routes choose"
        even = f" ({microseconds(carried.even)} us with equal parts)"
    bound = f"bound: bytes of the busiest {busiest}, over its rate{even}"
    notes.append(Remark("bound", bound, details=f"headers are bytes too; completion is {completion}"))
    if carried.messages.start.any():
        end = float((carried.messages.start + carried.finished).max())
        told = f"times are from each message's start; all are complete after {microseconds(end)} us"
        notes.append(Remark("own-starts", told, needed=True))
    if carried.lost:
        lost = "" if carried.run is None else _lost_text(carried.run.counters)
        last, mean = carried.lost["last_s"], carried.lost["mean_s"]
        told = f"the flap costs the last message {microseconds(last)} us, {microseconds(mean)} us in the mean"
        if max(abs(last), abs(mean)) <= NOTHING_LOST:
            told = "the flap makes no message later"
        complete = float((carried.messages.start + carried.finished).max())
        effect = last / (complete - last) if complete > last else None
        notes.append(Remark("flap-cost", told, effect, needed=True, details=lost))
    return notes


def _lost_text(counters: Mapping[str, float]) -> str:
    return f"{counters['n_dropped']} packets lost, {counters['n_timeouts']} timeouts"


def _rules(rules: dict[str, float], *, has_marks: bool) -> str:
    # a sender with a rate has no window
    window = f"window {format_size(rules['window'])}" if rules["window"] < 1e12 else "no window"
    queue = f"queue {format_size(rules['queue'])}" if rules["queue"] < DEEP else "queues without limit"
    marks = ""
    if has_marks:
        low, high = format_size(rules["ecn_min"]), format_size(rules["ecn_max"])
        marks = f"marks from {low} to {high}, " if rules["ecn_max"] else "no marks, "
    return f"{window}, {queue}, {marks}round trip {microseconds(rules['rtt'])} us"

"""NCCL's closed form against the event engine on the machines of the measured tables, row by row.

What the event engine adds to its messages so that both agree where nothing is in the way is shown beside: the smaller
it is, the more of the time slows down with the network.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.nccl_tables.machines import Table
from benchmarks.nccl_tables.networks import question_of
from commsim.engine.ways.closed_form_way import ClosedFormPaths
from commsim.prediction.scenario import Wish
from commsim.prediction.solve import solve
from commsim.report.terminal import print_table

# Messages up to which a call is simulated event by event.
MAX_MESSAGES = 2**16


@dataclass(frozen=True, slots=True)
class Compared:
    """One size of one table, by both ways.

    Parameters
    ----------
    id : str
        Name of the table.
    size : int, bytes
        Size of the operation.
    how : str
        Algorithm and protocol.
    is_free : bool
        Whether no link can be in the way.
    closed, events : float, s
        By the closed form, and event by event; the second is not a number for a call of too many messages.
    rest : float, s
        Part of the second that is in no message and no launch.
    """

    id: str
    size: int
    how: str
    is_free: bool
    closed: float
    events: float
    rest: float

    @property
    def difference(self) -> float:
        """Size of the difference, relative to the closed form."""
        return abs(self.events / self.closed - 1)


def compared(table: Table) -> list[Compared]:
    """Compute all sizes of a table by both ways."""
    assert table.site is not None
    scenario, plan = question_of(table.site, table.operation, table.algorithm, table.protocol)
    event_by_event = dataclasses.replace(scenario, wish=Wish.of(method="events"))
    rows = []
    for size, _ in table.rows:
        here = plan.at(size)
        how = f"{here.parameters.get('algorithm', 'p2p')}/{here.parameters.get('protocol', '')}"
        paths = here.paths
        assert isinstance(paths, ClosedFormPaths)
        closed = paths.known.seconds + here.before
        events = rest = float("nan")
        if here.schedule.n_transfers <= MAX_MESSAGES:
            events = solve(event_by_event, [size], plan=plan).results[0].time
            reference = paths.on_reference(size)
            rest = paths.known.seconds - reference
        rows.append(Compared(table.id, size, how, paths.proof.full < 0, closed, events, rest))
    return rows


def print_compared(tables: Iterable[Table]) -> None:
    """Print each algorithm with its rows, differences, and parts that are in no message."""
    rows: list[Compared] = []
    for table in tables:
        rows += (some := compared(table))
        print("# " + "  ".join(_line(table.id, some)), flush=True)
    lines = [_line(name, [row for row in rows if row.how == name]) for name in sorted({row.how for row in rows})]
    header = ["algorithm", "rows", "free", "simulated", "largest difference", "median", "rest, median", "rest, 90th"]
    print_table(header, [*lines, _line("all", rows)], "closed form against the event engine; rest in parts of the time")
    held = sorted({row.id for row in rows if not row.is_free})
    if held:
        print(f"# links may be in the way on: {', '.join(held)}")


def _line(name: str, rows: list[Compared]) -> list[str]:
    both = [row for row in rows if not np.isnan(row.events)]
    counts = [name, str(len(rows)), str(sum(row.is_free for row in rows)), str(len(both))]
    if not both:
        return [*counts, "-", "-", "-", "-"]
    off, rest = [row.difference for row in both], [abs(row.rest) / row.closed for row in both]
    shares = [f"{np.median(rest):.1%}", f"{np.percentile(rest, 90):.1%}"]
    return [*counts, f"{max(off):.1e}", f"{np.median(off):.1e}", *shares]

"""Play laid-out tables to the end, whoever sends in them; and say beforehand what is to be recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from . import packet_state as s
from .fabric import PS
from .lay_out import grown


def watch(tables: s.Tables, tapped: Sequence[int], sample_every: float) -> None:
    """Record the packets of some links, and the state of slots and queues every so many seconds (0: never)."""
    tables.link["tapped"][list(tapped)] = True
    if sample_every:
        tables.clock[s.SAMPLE_EVERY], tables.clock[s.NEXT_SAMPLE] = max(1, round(sample_every * PS)), 0


def play(tables: s.Tables, margin: int, begin: Callable[[s.Tables], None]) -> tuple[s.Tables, bool, float]:
    """Run to the end; tables that are full grow.

    Parameters
    ----------
    tables : Tables
        Laid out.
    margin : int
        Packets that one event may need at most.
    begin : callable
        Schedules the first events.

    Returns
    -------
    tables : Tables
        All state at the end.
    finished : bool
        False when nothing can happen any more and somebody has not finished.
    cpu : float, s
        Taken, without compilation.
    """
    from .run_kernel import run

    tables = grown(tables, margin)
    unfinished, tables.clock[s.N_UNFINISHED] = int(tables.clock[s.N_UNFINISHED]), 0
    run(tables, margin)  # compiles, or loads, before the clock starts
    tables.clock[s.N_UNFINISHED] = unfinished
    began = time.process_time()
    begin(tables)
    while (why := run(tables, margin)) == s.FULL:
        tables = grown(tables, margin)
    return tables, why == s.DONE, time.process_time() - began

"""The program that every rank of a testbed runs: it measures what the launching process asks for, one cell at a time.

Rank 0 reads a line with a cell from its input, tells the others, and prints a line before and after, so that the
launching process can look at the network's counters while nothing is under way.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from commsim.core.errors import BackendError
from commsim.core.files.schedule_file import read_schedule
from commsim.core.schedule import Schedule
from commsim.real.connect import session
from commsim.real.measure import measure_native, measure_schedule
from commsim.real.transport import RankTransport

from .cells import measure_sparse, measure_training

# Begins the lines that are meant for the launching process: launchers and libraries print others.
ANSWER = "commsim: "
LONGEST_CELL = 1024


def main(backend: str) -> None:
    """Measure until rank 0's input ends."""
    with session(backend) as transport:
        schedules: dict[str, Schedule] = {}
        _say(transport, {"ready": transport.size})
        for cell in _cells(transport):
            _say(transport, _measured(transport, cell, schedules))


def _measured(transport: RankTransport, cell: dict[str, Any], schedules: dict[str, Schedule]) -> dict[str, Any]:
    """Prepare, wait for the word to go, and measure."""
    options: dict[str, Any] = {"warmup": cell["warmup"], "iterations": cell["iterations"]}
    path = cell.get("schedule", "")
    if path and path not in schedules:
        schedules[path] = read_schedule(path)
    _say(transport, {"prepared": True})
    if transport.rank == 0:
        sys.stdin.readline()
    transport.barrier()
    if "gradients" in cell:
        result = measure_sparse(transport, schedules[path], cell["gradients"], cell["block"], **options)
    elif "begin" in cell:
        result = measure_training(
            transport, schedules[path], cell["size"], cell["begin"], cell["compute"], cell["period"], cell["iterations"]
        )
    elif path:
        result = measure_schedule(transport, schedules[path], cell["size"], **options)
    else:
        result = measure_native(transport, cell["operation"], cell["size"] // 4, root=cell.get("root", 0), **options)
    return {"samples": result.samples.tolist(), "size": result.size, "wrong": result.counters.get("wrong", 0.0)}


def _cells(transport: RankTransport) -> Iterator[dict[str, Any]]:
    """Give every rank the cells that rank 0 reads."""
    while True:
        text = sys.stdin.readline() if transport.rank == 0 else ""
        line = np.zeros(LONGEST_CELL)
        cells = np.frombuffer(text.encode(), np.uint8)
        if len(cells) > LONGEST_CELL:
            raise BackendError(f"a cell takes at most {LONGEST_CELL} bytes, got {len(cells)}")
        line[: len(cells)] = cells
        heard = transport.max_over_ranks(line).astype(np.uint8).tobytes().rstrip(b"\0").decode()
        if not heard.strip():
            return
        yield json.loads(heard)


def _say(transport: RankTransport, what: dict[str, Any]) -> None:
    if transport.rank == 0:
        print(ANSWER + json.dumps(what), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

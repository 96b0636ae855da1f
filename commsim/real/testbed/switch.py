"""The live switch in a testbed: it answers in the namespace of the switch that the topology has in that place."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.cost import Framing
from commsim.core.errors import BackendError
from commsim.core.placement import Placement
from commsim.prediction.build import prepare
from switch_model.live.frames import HEADER_BYTES, PORT

from .build import entering
from .launch import ITERATIONS
from .layout import TestbedLayout
from .measure import LoadMeter, TestbedCell, as_cell, read_counts
from .places import NamesOfTestbed

# Elements of a packet: large packets, for what limits a switch in a process is packets per second.
ELEMENTS = 256
IP_AND_UDP, ETHERNET = 28, 14
SECONDS = 300.0
# Longer than a pool takes to drain on a slow link, or everything would be sent twice.
RTO = "200ms"
N_SLOTS = 32


def switch_wire() -> Framing:
    """Return how the live switch's packets are made."""
    return Framing(payload=4 * ELEMENTS, header=ETHERNET + IP_AND_UDP + HEADER_BYTES)


def measure_switch(
    place: NamesOfTestbed,
    layout: TestbedLayout,
    seats: Sequence[int],
    size: int,
    *,
    warmup: int = 1,
    iterations: int = ITERATIONS,
) -> TestbedCell:
    """All-reduce through the live switch, and predict the same with the flow engine.

    Parameters
    ----------
    place, layout : NamesOfTestbed, TestbedLayout
        A testbed whose switches are bridges.
    seats : sequence of int
        Node of each worker.
    size : int, bytes
        Size of the tensor.
    warmup, iterations : int
        Runs that are not timed, and those that are.

    Raises
    ------
    BackendError
        If the switch or a worker fails.
    InputError
        If no switch is above all workers.
    """
    network = layout.network
    nodes = np.asarray(seats, np.int32)
    prepared = prepare("switchml:system=none", network, n_ranks=len(nodes), placement=Placement(nodes))
    switch = int(prepared.placement.nodes[prepared.schedule.n_ranks])
    server = _serve(place, layout, switch)
    try:
        before, meter = read_counts(place, layout), LoadMeter(place)
        rows_of_workers = _work(place, layout, seats, switch, size, warmup + iterations)
        load, counts = meter.read(), read_counts(place, layout) - before
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=10)
    samples = np.max([[row["time_s"] for row in rows] for rows in rows_of_workers], axis=0)[warmup:]
    wrong = sum(row["right"] is False for rows in rows_of_workers for row in rows)
    answer = {"samples": samples.tolist(), "size": float(size), "wrong": float(wrong)}
    return as_cell(prepared, answer, counts, load, warmup + iterations, framing=switch_wire())


def _serve(place: NamesOfTestbed, layout: TestbedLayout, switch: int) -> subprocess.Popen[str]:
    address = str(layout.address(switch))
    command = [sys.executable, "-m", "commsim", "switch", "serve", "--host", address, "--port", str(PORT),
               "--elements-per-packet", str(ELEMENTS), "--pool-size", str(N_SLOTS + 32)]  # fmt: skip
    command += ["--no-secret"]  # only the testbed's own namespaces reach it
    command += ["--datagrams", "messages"]  # segments would leave as one frame of many packets
    server = subprocess.Popen([*entering(place.namespace(switch)), *command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert server.stdout is not None
    if not server.stdout.readline():
        raise BackendError(f"the switch does not start: {server.communicate()[1].strip().splitlines()[-1:]}")
    return server


def _work(
    place: NamesOfTestbed, layout: TestbedLayout, seats: Sequence[int], switch: int, size: int, n_runs: int
) -> list[Any]:
    files = [place.directory / f"worker{rank}.json" for rank in range(len(seats))]
    workers = []
    for rank, seat in enumerate(seats):
        command = [sys.executable, "-m", "commsim", "switch", "all-reduce", "--rank", str(rank), "--workers",
                   str(len(seats)), "--host", str(layout.address(switch)), "--port", str(PORT), "--size", f"{size}B",
                   "--iterations", str(n_runs), "--check", "--slots", str(N_SLOTS), "--rto", RTO,
                   "--datagrams", "messages", "--json", str(files[rank])]  # fmt: skip
        workers.append(subprocess.Popen([*entering(place.namespace(seat)), *command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True))  # fmt: skip
    try:
        ends = [worker.communicate(timeout=SECONDS)[1] for worker in workers]
    except subprocess.TimeoutExpired:
        raise BackendError(f"the switch's workers do not end within {SECONDS:g} s") from None
    finally:
        for worker in workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
    for worker, answer in zip(workers, ends, strict=True):
        if worker.returncode not in (0, 1):
            raise BackendError(
                f"a worker of the switch failed: {(answer.strip().splitlines() or ['without a word'])[-1]}"
            )
    return [_rows(file) for file in files]


def _rows(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(file.read_text())["results"]
    file.unlink()
    return rows

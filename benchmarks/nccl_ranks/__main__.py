"""Run the plans and keep what NCCL did: ``python -m benchmarks.nccl_ranks FOLDER``, as root, on a machine with a GPU.

The service that lets several processes use the GPU at once must run (``nvidia-cuda-mps-control -d``). With ``--dry``
gloo and the CPU stand in for NCCL and the GPU: to try the plans on a machine without one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commsim.networks import load_network
from commsim.real.testbed.build import entering
from commsim.real.testbed.own_testbed import temporary_testbed

KIB, MIB = 1 << 10, 1 << 20
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
SPEEDS = (1000, 10000, 25000, 100000, 200000, 400000)  # Mbit/s
FORCED = (("RING", "Simple"), ("RING", "LL"), ("TREE", "Simple"), ("TREE", "LL"))
NETWORKS = {
    "star 4 x 1G": "star:n_hosts=4,bandwidth=1Gbps,latency=0s",
    "star 8 x 1G": "star:n_hosts=8,bandwidth=1Gbps,latency=0s",
    "star 2 x 1G": "star:n_hosts=2,bandwidth=1Gbps,latency=0s",
    "leaf-spine 8 x 1G, 2:1": (
        "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=4,bandwidth=1Gbps,uplink_bandwidth=2Gbps,latency=0s"
    ),
    "star 4 x 200M": "star:n_hosts=4,bandwidth=200Mbps,latency=0s",
    "star 4 x 4G": "star:n_hosts=4,bandwidth=4Gbps,latency=0s",
}


def choices(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Return a step for each machine and number of ranks, with one call of each operation and size."""
    steps: list[dict[str, Any]] = [
        {"name": "found", "ranks": max(numbers), "dump": True, "cells": [["all_reduce", KIB, 1]]}
    ]
    sizes = [1 << k for k in range(10, 25)]
    cells = [[operation, size, 1] for operation in OPERATIONS for size in sizes] + [["all_reduce", 64 * MIB, 1]]
    machines = [{"speed": speed, "near": near, "cpu": "intel"} for speed in SPEEDS for near in ("PHB", "PIX")]
    machines += [{"speed": speed, "near": "PIX", "cpu": "amd"} for speed in (25000, 200000)]
    for ranks in numbers:
        steps += [{"name": "choices", "ranks": ranks, "machine": machine, "cells": cells} for machine in machines]
    return steps


def times(ranks: int, rate: float, largest: int, most: float = 0.4) -> list[dict[str, Any]]:
    """Return steps that time collectives on a network of this many bytes a second: as chosen, and as forced."""

    def cell(operation: str, size: int) -> list[Any]:
        """Return as many calls as take about `most` seconds, between 3 and 60."""
        factor = {"all_reduce": 2.0, "ping_pong": 2.0}.get(operation, 1.0)
        return [operation, size, int(min(max(most / (factor * size / rate + 2e-4), 3), 60))]

    sizes = [size for size in (4 << k for k in range(8, 25, 2)) if size <= largest]
    steps = [
        {"name": "times", "ranks": ranks, "cells": [cell(operation, size) for operation in
         ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "ping_pong") for size in sizes]}
    ]  # fmt: skip
    for algorithm, protocol in FORCED:
        environment = {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol}
        cells = [cell("all_reduce", size) for size in sizes if protocol != "LL" or size <= MIB]
        steps.append({"name": "forced", "ranks": ranks, "environment": environment, "cells": cells})
    return steps


def play(folder: Path, steps: list[dict[str, Any]], prefixes: Sequence[list[str]], device: Sequence[str],
         meeting: str, dry: bool, seconds: float) -> str:  # fmt: skip
    """Start a rank behind each prefix, wait until all have played the steps, and return what went wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    backend = {"backend": "gloo", "device": "cpu"} if dry else {"backend": "nccl", "device": "cuda:0"}
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"folder": str(folder), "steps": steps, **backend}))
    processes = []
    for rank, prefix in enumerate(prefixes):
        own = {"RANK": str(rank), "WORLD_SIZE": str(len(prefixes)), "MASTER_ADDR": meeting, "MASTER_PORT": "29411",
               "GLOO_SOCKET_IFNAME": device[rank], "NCCL_SOCKET_IFNAME": device[rank],
               "OMP_NUM_THREADS": "1"}  # fmt: skip
        with (folder / f"errors.{rank}").open("w") as errors:
            processes.append(subprocess.Popen(
                [*prefix, sys.executable, "-m", "benchmarks.nccl_ranks.rank", str(plan)],
                stdout=errors, stderr=errors, env=os.environ | own,
            ))  # fmt: skip
    deadline = time.monotonic() + seconds
    try:
        while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
            if any(process.poll() for process in processes):
                break
            time.sleep(0.1)
        late = time.monotonic() >= deadline
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.kill() if process.poll() is None else None
            process.wait()
    failed = [rank for rank, process in enumerate(processes) if process.returncode]
    if not failed:
        return ""
    said = (folder / f"errors.{failed[0]}").read_text().strip().splitlines()[-4:]
    return f"{'not done in time; ' if late else ''}ranks {failed}: {said}"


def main(words: Sequence[str] | None = None) -> int:
    """Run the plans."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--ranks", default="2,4,8,16", help="ranks of the communicators of choices")
    parser.add_argument("--only", default="choices,loopback,networks")
    asked = parser.parse_args(words)
    wanted, home = asked.only.split(","), asked.folder
    if "choices" in wanted:
        numbers = [int(number) for number in asked.ranks.split(",")]
        most = max(numbers)
        why = play(home / "choices", choices(numbers), [[]] * most, ["lo"] * most, "127.0.0.1", asked.dry, 170)
        print("choices:", why or "done", flush=True)
    for ranks in (2, 4, 8) if "loopback" in wanted else ():
        steps = times(ranks, 1e9, 64 * MIB, 0.3)
        why = play(home / f"loopback {ranks}", steps, [[]] * ranks, ["lo"] * ranks, "127.0.0.1", asked.dry, 60)
        print(f"loopback {ranks}:", why or "done", flush=True)
    for name, text in NETWORKS.items() if "networks" in wanted else ():
        network = load_network(text)
        rate = float(network.bandwidth.min())
        with temporary_testbed(network, print) as (place, layout):
            prefixes = [entering(place.namespace(seat)) for seat in layout.seats]
            devices = [layout.device(seat) for seat in layout.seats]
            steps = times(len(prefixes), rate, 4 * MIB if rate < 1e8 else 16 * MIB)
            why = play(home / name, steps, prefixes, devices, str(layout.address(layout.seats[0])), asked.dry, 75)
        print(f"{name}:", why or "done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

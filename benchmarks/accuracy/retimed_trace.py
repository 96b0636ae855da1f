"""A profile of 8 ranks that is timed again with 32, against a description of the same program with 32 ranks by hand.

    python -m benchmarks.accuracy.retimed_trace [--traces DIR] [--json FILE]

Eight processes train on loopback with gloo, by DDP and by FSDP2, and write Kineto traces and flight recorders. One step
of them is timed again with 32 ranks by ``commsim workload calls --ranks 32``. The reference knows the program: DDP
sends three buckets during the backward pass, from two threads, and waits for all at its end; FSDP2 on a processor waits
for each call at once. It takes from the flight recorders when calls were issued, from the traces when their operators
returned, when the last work of gloo and the step ended, and when the optimiser began, and is simulated as a graph of 32
ranks, each with the pieces of one of the eight.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.results_file import write_results
from commsim.core.units import format_time
from commsim.report.terminal import print_table
from commsim.training.cost_by_simulation import network_costs
from commsim.training.exchanges import ExchangesOnLinks
from commsim.training.task_graph import Task, TaskGraph, simulate_graph

TRACED, RANKS, STEPS = 8, 32, 8
NETWORKS = ("star:n_hosts=32,bandwidth=1Gbps", "star:n_hosts=32,bandwidth=10Gbps",
            "leaf_spine:n_leaves=4,n_spines=2,hosts_per_leaf=8,bandwidth=10Gbps")  # fmt: skip
BUCKET = 2101248.0  # bytes: two layers of 512 x 512 weights and 512 biases
SHARD = 1050624.0  # bytes of one layer's parameters
PROGRAMS = ("ddp", "fsdp2")


def main(argv: Sequence[str] | None = None) -> int:
    """Make the traces, and print both times for each network."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.accuracy.retimed_trace", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--json", metavar="FILE", help="write the results")
    parser.add_argument("--traces", metavar="DIR", type=Path, help="keep the traces here, or take those that are here")
    parser.add_argument("--train", nargs=2, metavar=("PROGRAM", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.train:
        _train(args.train[0], Path(args.train[1]))
        return 0
    rows = []
    for program in PROGRAMS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made) if args.traces is None else args.traces / program
            folder.mkdir(parents=True, exist_ok=True)
            if not list(folder.glob("trace.*")):
                _profile(program, str(folder))
            rows += [_row(program, network, folder) for network in NETWORKS]
    columns = ["program", "network", "retimed", "by hand", "error"]
    print_table(columns, [[row["program"], row["network"], format_time(row["retimed_s"]), format_time(row["by_hand_s"]),
                           f"{row['error']:+.2%}"] for row in rows])  # fmt: skip
    if args.json:
        write_results(args.json, {"traced_ranks": TRACED, "ranks": RANKS}, rows)
    return 0


def _row(program: str, network: str, folder: Path) -> dict[str, Any]:
    out = folder / "retimed.json"
    command = [sys.executable, "-m", "commsim", "workload", "calls", *map(str, sorted(folder.glob("*.rank*.json")))]
    subprocess.run([*command, "--network", network, "--ranks", str(RANKS), "--json", str(out)], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    retimed = json.loads(out.read_text())["step_s"]
    pieces = [
        _pieces(*(json.loads((folder / f"{kind}.rank{rank}.json").read_text()) for kind in ("trace", "flight")))
        for rank in range(TRACED)
    ]
    graph = _ddp(pieces) if program == "ddp" else _fsdp(pieces)
    costs = network_costs(network, n_ranks=RANKS)
    by_hand = simulate_graph(graph, costs, ExchangesOnLinks(costs)).iteration_time
    return {"program": program, "network": network, "retimed_s": retimed, "by_hand_s": by_hand,
            "error": retimed / by_hand - 1}  # fmt: skip


def _pieces(tree: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Read when the last whole step's calls were issued, had returned and ended, and its other ends."""
    spans = [e for e in tree["traceEvents"] if e.get("ph") == "X" and "dur" in e]
    begin, end = sorted(e["ts"] for e in spans if e["name"].startswith("ProfilerStep"))[-2:]

    def of(prefix: str) -> list[tuple[float, float]]:
        inside = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["name"].startswith(prefix))
        return [((a - begin) * 1e-6, (b - begin) * 1e-6) for a, b in inside if begin <= a < end]

    created = [(e["time_created_ns"] - tree["baseTimeNanoseconds"]) * 1e-9 - begin * 1e-6 for e in record["entries"]]
    length = (end - begin) * 1e-6
    return {
        "issued": sorted(t for t in created if 0 <= t < length), "returned": [b for _, b in of("c10d::")],
        "done": [b for _, b in of("gloo:")], "update": of("Optimizer.step")[0][0], "end": length,
    }  # fmt: skip


def _ddp(pieces: list[dict[str, Any]]) -> TaskGraph:
    """Make 32 ranks that send three buckets on two threads, and then wait for all."""
    tasks: list[Task] = []
    last: dict[int, int] = {}
    for k in range(3):
        for rank in range(RANKS):
            mine = pieces[rank % TRACED]["issued"]
            span = mine[k] - (mine[k - 1] if k else 0.0)
            tasks.append(Task(f"{rank}.{k}", (f"rank{rank}.compute",), span, after=(last[rank],) if k else ()))
            last[rank] = len(tasks) - 1
        tasks.append(Task(f"bucket {k}", (f"thread{k % 2}",), 0.0, "all_reduce", tuple(range(RANKS)), BUCKET,
                          after=tuple(last.values())))  # fmt: skip
    calls = tuple(i for i, task in enumerate(tasks) if task.operation)
    for rank in range(RANKS):
        piece = pieces[rank % TRACED]
        waited = min(piece["update"], max(piece["done"]))
        span = max(piece["returned"][2] - piece["issued"][2], 0.0) + piece["end"] - waited
        tasks.append(Task(f"{rank}.update", (f"rank{rank}.compute",), span, after=(last[rank], *calls)))
    return TaskGraph(tuple(tasks))


def _fsdp(pieces: list[dict[str, Any]]) -> TaskGraph:
    """Make 32 ranks that wait for each call before they go on."""
    tasks: list[Task] = []
    waits: dict[int, tuple[int, ...]] = dict.fromkeys(range(RANKS), ())
    kinds = ["all_gather"] * 6 + ["reduce_scatter", "all_gather"] * 2 + ["reduce_scatter"] * 2
    for k, kind in enumerate(kinds):
        computed = []
        for rank in range(RANKS):
            piece = pieces[rank % TRACED]
            span = piece["issued"][k] - (min(piece["done"][k - 1], piece["issued"][k]) if k else 0.0)
            tasks.append(Task(f"{rank}.{k}", (f"rank{rank}.compute",), max(span, 0.0), after=waits[rank]))
            computed.append(len(tasks) - 1)
        tasks.append(Task(f"{kind} {k}", ("network",), 0.0, kind, tuple(range(RANKS)), SHARD, after=tuple(computed)))
        waits = {rank: (computed[rank], len(tasks) - 1) for rank in range(RANKS)}
    for rank in range(RANKS):
        piece = pieces[rank % TRACED]
        span = max(piece["end"] - max(piece["done"]), 0.0)
        tasks.append(Task(f"{rank}.update", (f"rank{rank}.compute",), span, after=waits[rank]))
    return TaskGraph(tuple(tasks))


def _profile(program: str, folder: str) -> None:
    """Train in eight processes.

    Raises
    ------
    subprocess.CalledProcessError
        If one fails.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.accuracy.retimed_trace", "--train", program, folder]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": f"{port}", "WORLD_SIZE": f"{TRACED}", "OMP_NUM_THREADS": "1",
             "TORCH_FR_BUFFER_SIZE": "2000"}  # fmt: skip
    ranks = [subprocess.Popen(command, env={**os.environ, **place, "RANK": f"{rank}"}, stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) for rank in range(TRACED)]  # fmt: skip
    for process in ranks:
        if process.wait(timeout=300):
            raise subprocess.CalledProcessError(process.returncode, command)


def _train(program: str, folder: Path) -> None:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.profiler import ProfilerActivity, profile, schedule

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    n_layers = 6 if program == "ddp" else 4
    layers = [torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()) for _ in range(n_layers)]
    model: torch.nn.Module = torch.nn.Sequential(*layers)
    if program == "ddp":
        model = DistributedDataParallel(model, bucket_cap_mb=2)
    else:
        from torch.distributed.fsdp import fully_shard

        for layer in layers:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def write(made: Any) -> None:
        made.export_chrome_trace(str(folder / f"trace.rank{rank}.json"))

    plan = schedule(wait=1, warmup=1, active=STEPS - 2)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=write) as profiler:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(64, 512)).square().mean().backward()
            optimizer.step()
            profiler.step()
    record = torch._C._distributed_c10d._dump_fr_trace_json(True, False)
    (folder / f"flight.rank{rank}.json").write_bytes(record if isinstance(record, bytes) else record.encode())
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())

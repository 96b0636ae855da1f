"""The program of one rank: it makes a communicator for each step of a plan, calls collectives, and rank 0 writes times.

``python -m benchmarks.nccl_ranks.rank PLAN.json``, with torchrun's variables in the environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.nccl_ranks.machine_file import machine_file

PATIENCE = timedelta(seconds=60)
LARGEST = 1 << 26


class Rank:
    """A rank with its buffers."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan, self.rank = plan, int(os.environ["RANK"])
        self.folder = Path(plan["folder"])
        self.log = self.folder / f"nccl.{self.rank}.log"
        os.environ |= {
            "NCCL_HOSTID": f"machine{self.rank}",
            "NCCL_DEBUG": "INFO",
            "NCCL_DEBUG_SUBSYS": "INIT,GRAPH,TUNING",
            "NCCL_DEBUG_FILE": str(self.log),
            "NCCL_NET": "Socket",
            "NCCL_RAS_ENABLE": "0",
            "NCCL_TOPO_DUMP_FILE_RANK": str(self.rank),
        }
        dist.init_process_group("gloo", timeout=PATIENCE)
        device = plan["device"]
        self.given, self.taken = (torch.ones(LARGEST // 4, device=device) for _ in range(2))
        self.device = torch.device(device)

    def play(self) -> None:
        """Play all steps."""
        for step in self.plan["steps"]:
            members = list(range(step["ranks"]))
            variables = dict(step.get("environment", {}))
            if "dump" in step:
                variables["NCCL_TOPO_DUMP_FILE"] = str(self.folder / f"machine.{self.rank}.xml")
            if "machine" in step:
                variables["NCCL_TOPO_FILE"] = machine_file(self.folder, self.rank, step["machine"])
            os.environ |= variables
            begin = self.log.stat().st_size if self.log.exists() else 0
            group = dist.new_group(members, timeout=PATIENCE, backend=self.plan["backend"])
            if self.rank in members:
                rows = [self._timed(group, *cell) for cell in step["cells"]]
                dist.destroy_process_group(group)
                if self.rank == 0:
                    self._write(step, rows, begin)
            for name in variables:
                del os.environ[name]
            dist.barrier()

    def _write(self, step: dict[str, Any], rows: list[Any], begin: int) -> None:
        said = ""
        if self.log.exists():
            with self.log.open() as file:
                file.seek(begin)
                said = file.read()
        with (self.folder / "steps.jsonl").open("a") as file:
            file.write(
                json.dumps({key: step[key] for key in step if key != "cells"} | {"rows": rows, "log": said}) + "\n"
            )

    def _timed(self, group: Any, operation: str, size: int, calls: int) -> list[Any]:
        """Return operation, bytes, number of calls, and seconds of one of them, of the slowest rank; 0 if not timed."""
        one = self._call(group, operation, size)
        one()
        self._wait()
        if calls <= 1:
            return [operation, size, calls, 0.0]
        members = dist.get_process_group_ranks(group)
        if len(members) == dist.get_world_size():
            dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            one()
        self._wait()
        mean = torch.tensor([(time.perf_counter() - begin) / calls])
        if len(members) == dist.get_world_size():
            dist.all_reduce(mean, dist.ReduceOp.MAX)
        return [operation, size, calls, float(mean)]

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _call(self, group: Any, operation: str, size: int) -> Callable[[], object]:
        n, me = dist.get_world_size(group), self.rank
        whole, other = self.given[: size // 4], self.taken[: size // 4]
        part = self.taken[: size // 4 // n]
        parts = self.given[: len(part) * n]
        if operation == "all_reduce":
            return lambda: dist.all_reduce(whole, group=group)
        if operation == "broadcast":
            return lambda: dist.broadcast(whole, 0, group=group)
        if operation == "reduce":
            return lambda: dist.reduce(whole, 0, group=group)
        if operation == "all_gather":
            return lambda: dist.all_gather_into_tensor(parts, part, group=group)
        if operation == "reduce_scatter":
            return lambda: dist.reduce_scatter_tensor(part, parts, group=group)
        if operation == "all_to_all":
            return lambda: dist.all_to_all_single(other, whole, group=group)
        if operation != "ping_pong":
            raise ValueError(f"unknown operation {operation!r}")

        def ping_pong() -> None:
            if me == 0:
                dist.send(whole, 1, group=group)
                dist.recv(other, 1, group=group)
            elif me == 1:
                dist.recv(other, 0, group=group)
                dist.send(whole, 0, group=group)

        return ping_pong


if __name__ == "__main__":
    Rank(json.loads(Path(sys.argv[1]).read_text())).play()
    dist.destroy_process_group()

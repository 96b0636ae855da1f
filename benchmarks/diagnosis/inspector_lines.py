"""Lines as NCCL's inspector writes them (format v4.0), of a job that is made up: a file for each rank's process.

The job has a communicator of all ranks, and one for each rail: the GPUs at one place of all machines. A call takes its
time on the rank that comes last; each other rank waits for it, which its time has too.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from commsim.formats.json_rows import BY_PART
from commsim.formats.nccl_tests import NCCL_FUNCTIONS

FUNCTIONS = {name: function for function, name in reversed(NCCL_FUNCTIONS.items())}
# Waiting of the ranks that are not last, as a part of the time of the call.
WAITING = 0.3


class MadeJob(NamedTuple):
    """A job: machines, GPUs of each, and how long a call takes.

    Parameters
    ----------
    n_nodes, per_node : int
        Machines, and GPUs of each.
    seconds : callable
        Function from a communicator's name, an operation and a size in bytes to a time in s.
    late : dict of str to int
        Rank of a communicator that is last in nine of ten calls. Default: each one is as often.
    seed : int
        Seed of the waiting.
    """

    n_nodes: int
    per_node: int
    seconds: Callable[[str, str, float], float]
    late: Mapping[str, int] = MappingProxyType({})
    seed: int = 0


def communicators(job: MadeJob) -> dict[str, list[tuple[int, int]]]:
    """Return the machine and place of each rank of each communicator: all ranks, and rails of several machines."""
    nodes, places = range(job.n_nodes), range(job.per_node)
    found = {"world": [(node, place) for node in nodes for place in places]}
    if job.n_nodes > 1:
        found |= {f"rail {place}": [(node, place) for node in nodes] for place in places}
    return found


def lines_of(job: MadeJob, calls: list[tuple[str, str, float]]) -> Iterator[tuple[str, str]]:
    """Yield the name of a file and a line of it, call after call.

    Parameters
    ----------
    job : MadeJob
        Job.
    calls : list of (str, str, float)
        Communicator, operation and size in bytes of each call, in order.
    """
    rng, every = np.random.default_rng(job.seed), communicators(job)
    numbers = dict.fromkeys(every, 0)
    for name, operation, size in calls:
        ranks, numbers[name] = every[name], numbers[name] + 1
        waits = 1 + WAITING * rng.random(len(ranks))
        last = job.late[name] if name in job.late and rng.random() < 0.9 else int(rng.integers(len(ranks)))
        waits[last] = 1.0
        seconds = job.seconds(name, operation, size) * waits
        for rank, (node, place) in enumerate(ranks):
            about = {"name": name, "rank": rank, "n_ranks": len(ranks), "n_nodes": job.n_nodes}
            line = _line(about, operation, size, numbers[name], float(seconds[rank]), (node, place))
            yield f"node{node:02}-pid{1000 + place}.log", json.dumps(line) + "\n"


def _line(
    about: dict[str, Any], operation: str, size: float, number: int, seconds: float, where: tuple[int, int]
) -> dict[str, Any]:
    function, n_ranks = FUNCTIONS[operation], about["n_ranks"]
    n_bytes = int(size) // (n_ranks if function in BY_PART else 1)
    key = f"0x{zlib.crc32(about['name'].encode()):014x}"
    return {
        "header": {"id": key, "comm_name": about["name"], "rank": about["rank"], "n_ranks": n_ranks,
                   "nnodes": about["n_nodes"]},
        "metadata": {"inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "profiler_plugin",
                     "dump_timestamp_us": 1748030377748202 + number, "hostname": f"node{where[0]:02}",
                     "pid": 1000 + where[1]},
        "coll_perf": {"coll": function, "coll_sn": number, "coll_msg_size_bytes": n_bytes,
                      "coll_exec_time_us": max(1, round(seconds * 1e6)), "coll_timing_source": "kernel_gpu",
                      "coll_algobw_gbs": size / seconds / 1e9, "coll_busbw_gbs": size / seconds / 1e9},
    }  # fmt: skip

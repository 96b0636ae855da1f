"""Which queue the flow engine should have, and whether threads pay: ``python -m benchmarks.scale.queues [--times N]``.

The queue says which message ends first. The engine's own kernel is compiled with each queue in turn, and plays the same
works: processor seconds, the least of N runs that take turns. The wheel is told beforehand the width of a bucket in
which on average one message ends. Then rings that have nothing to do with each other are played in one event loop, one
loop after the other, and by two threads: processor seconds, and seconds on the clock. The threads run the kernel
without Python's lock, which is what Numba's prange would do; prange itself takes no tables of records.

Twice on a machine of two processors on which other programs ran, with 5 and 6 runs, processor seconds:

====================================  ===========  =============  =============  =============
work                                  binary heap  4-ary heap     tournament     wheel
====================================  ===========  =============  =============  =============
ring, 256 ranks                       0.053 0.054  0.059 0.060    0.058 0.057    0.050 0.047
ring, 1,024 ranks                     2.04 2.00    2.32 2.06      2.28 2.08      1.96 1.85
20,480 random flows                   0.060 0.051  0.053 0.060    0.060 0.052    0.057 0.051
all-to-all, 128 ranks, sizes 1 to 4   0.64 0.64    0.68 0.62      0.67 0.67      0.68 0.57
====================================  ===========  =============  =============  =============

The queue takes some 15 % of the time, so no queue wins much: the wheel 2 % and 7 % on average, with a width that nobody
knows beforehand. The heap stays. Eight rings of 128 ranks in pods of their own: one event loop 0.16 and 0.15 s, a loop
for each 0.12, two threads 0.12 and no less on the clock there (0.13 to 0.18 s, as without): threads cost no processor
time, and save time only where processors are idle, for which there are sweeps, whose points run in processes.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib.util
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.peers.works import WORKS
from benchmarks.scale import queue_kernels
from collectives import COLLECTIVES
from commsim.core.errors import CommsimError
from commsim.core.network import Network
from commsim.core.placement import Placement, place
from commsim.core.schedule import Schedule
from commsim.engine import flow_kernel
from commsim.engine.flow import payload
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import FlowPlan, plan_flows
from commsim.engine.flow_state import FlowState, allocate_state
from commsim.prediction.inputs import load_network
from commsim.report.terminal import print_table
from topologies.fat_tree import fat_tree

SIZE = 2.0**30
# Ends of messages in a bucket of the wheel, on average; others were not tried.
PER_BUCKET = 1.0
N_RINGS, N_RANKS = 8, 128


def irregular_fat_tree() -> Network:
    """Return a fat tree of 1,024 hosts whose links have between half their rate and all of it."""
    network = fat_tree(16)
    rates = np.tile(np.random.default_rng(0).uniform(0.5, 1.0, network.n_links // 2), 2)
    return dataclasses.replace(network, bandwidth=network.bandwidth * rates)


def scattered(schedule: Schedule) -> FlowPlan:
    """Put ranks on random hosts of the irregular fat tree, routed by hashes, which collide."""
    network = irregular_fat_tree()
    return plan_flows(network, [FlowJob(schedule, place(network, schedule.n_ranks, "random"))], routing="ecmp")


def random_flows() -> FlowPlan:
    """Return the random flows that are put to peers."""
    work = WORKS["random_flows_1024"]
    network, schedule = load_network(work.network), work.schedule()
    return plan_flows(network, [FlowJob(schedule, place(network, schedule.n_ranks))], routing=work.routing)


def unequal_all_to_all(n: int = 128) -> FlowPlan:
    """Return an all-to-all of sizes 1 to 4."""
    counts = tuple(np.random.default_rng(0).integers(1, 5, n**2).tolist())
    return scattered(COLLECTIVES["direct_all_to_all_v"].build(n, counts=counts))


PLANS: dict[str, Callable[[], FlowPlan]] = {
    "ring, 256 ranks": lambda: scattered(COLLECTIVES["ring_all_reduce"].build(256)),
    "ring, 1,024 ranks": lambda: scattered(COLLECTIVES["ring_all_reduce"].build(1024)),
    "20,480 random flows": random_flows,
    "all-to-all, 128 ranks, sizes 1 to 4": unequal_all_to_all,
}
QUEUES = {
    "binary heap": None,
    "4-ary heap": queue_kernels.four_ary_fix,
    "tournament": queue_kernels.tournament_fix,
    "wheel": queue_kernels.wheel_fix,
}


@functools.cache
def engine_with(queue: str) -> Callable[[FlowState, bool], None]:
    """Load the engine's event loop once more, with another queue; it is compiled anew and not kept on the disk."""
    spec = importlib.util.spec_from_file_location(f"{flow_kernel.__name__}_{queue[0]}", flow_kernel.__file__)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.heap_fix = QUEUES[queue] or module.heap_fix
    for name in ("prepare", "go_on_until", "allocate", "first_finish"):
        function = getattr(module, name)
        function.options = {**function.options, "cache": False, "nogil": True}
    simulate: Callable[[FlowState, bool], None] = module.simulate
    return simulate


def state(plan: FlowPlan, queue: str, took: float = 1.0) -> FlowState:
    """Allocate a run; `took` is its simulated time, from which the wheel has its width."""
    n_bytes = payload(plan, SIZE)
    transfers = plan.connection_of, plan.op, n_bytes, plan.waiting
    shared = plan.connection, plan.flow, plan.flow_link, plan.resource
    t = allocate_state(transfers, shared, plan.queue, plan.successors)
    n = len(t.flow)
    if queue == "tournament":
        queue_kernels.plant(t.finish_heap, t.finish_key, n)
    elif queue == "wheel":
        width = PER_BUCKET * took / len(n_bytes)
        heap = np.full(1 + queue_kernels.N_BUCKETS + 2 * n, -1, np.int32)
        t = t._replace(finish_heap=heap, finish_key=np.concatenate((np.full(n, np.inf), [width, 0.0])))
    return t


def compare_queues(times: int) -> list[list[str]]:
    """Return a row for each work: processor seconds with each queue.

    Raises
    ------
    CommsimError
        If two queues give different times.
    """
    rows = []
    for work, build in PLANS.items():
        plan, took, least = build(), 1.0, dict.fromkeys(QUEUES, np.inf)
        ends: dict[str, Any] = {}
        for _ in range(times + 1):  # the first is to warm up
            for queue in QUEUES:
                t, simulate = state(plan, queue, took), engine_with(queue)
                begin = time.process_time()
                simulate(t, False)
                least[queue] = min(least[queue], time.process_time() - begin) if queue in ends else np.inf
                ends[queue], took = t.done, float(t.done.max())
        if any((done != ends["binary heap"]).any() for done in ends.values()):
            raise CommsimError(f"{work}: queues differ in their times")
        rows.append([work, *(f"{seconds:.4f}" for seconds in least.values())])
    return rows


def compare_threads(times: int) -> list[list[str]]:
    """Return a row for each way to play rings that share nothing: processor seconds, and seconds on the clock."""
    network, schedule = irregular_fat_tree(), COLLECTIVES["ring_all_reduce"].build(N_RANKS)
    pods = np.split(place(network, N_RINGS * N_RANKS).nodes, N_RINGS)
    jobs = [FlowJob(schedule, Placement(np.random.default_rng(k).permutation(pod))) for k, pod in enumerate(pods)]
    together = plan_flows(network, jobs, routing="ecmp")
    apart = [plan_flows(network, [dataclasses.replace(job, number=k)], routing="ecmp") for k, job in enumerate(jobs)]
    simulate = engine_with("binary heap")

    def one_after_the_other(states: Sequence[FlowState]) -> None:
        for t in states:
            simulate(t, False)

    def at_once(states: Sequence[FlowState]) -> None:
        list(threads.map(simulate, states, [False] * len(states)))

    ways: dict[str, tuple[list[FlowPlan], Callable[[Sequence[FlowState]], None]]] = {
        "one event loop": ([together], one_after_the_other),
        "a loop for each": (apart, one_after_the_other),
        "a loop for each, two threads": (apart, at_once),
    }
    least = dict.fromkeys(ways, (np.inf, np.inf))
    with ThreadPoolExecutor(2) as threads:
        for turn in range(times + 1):  # the first is to warm up
            for way, (plans, play) in ways.items():
                states = [state(plan, "binary heap") for plan in plans]
                begin = time.process_time(), time.perf_counter()
                play(states)
                took = time.process_time() - begin[0], time.perf_counter() - begin[1]
                if turn:
                    least[way] = min(least[way][0], took[0]), min(least[way][1], took[1])
    return [[way, f"{cpu:.4f}", f"{clock:.4f}"] for way, (cpu, clock) in least.items()]


def main(argv: Sequence[str] | None = None) -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.scale.queues", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="runs of each (default 5)")
    times = parser.parse_args(argv).times
    if times < 1:
        parser.error(f"--times must be 1 or more, got {times}")
    print_table(["work", *QUEUES], compare_queues(times))
    print_table(["rings that share nothing", "processor(s)", "clock(s)"], compare_threads(times))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

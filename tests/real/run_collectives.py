"""Program for mpiexec: run collectives over a backend and compare with the reference.

mpiexec -n 4 python run_collectives.py mpi|gloo|groups|nccl[,...] [name ...]
"""

import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from collectives import COLLECTIVES
from commsim.core.operations import OPERATIONS
from commsim.ranking.synthesis.synthesize import synthesize
from commsim.real import connect
from commsim.real.execute import for_processes
from commsim.real.measure import measure_native, measure_schedule, usable_elements
from commsim.real.torch_backend import NCCLTransport
from tests.oracles.numeric_run import run_reference
from tests.oracles.one_run import run_once
from topologies.star import star


class GroupsTransport(NCCLTransport):
    """NCCL's way of posting messages in groups, over gloo, which needs no GPU."""

    name = "gloo"

    def _choose_device(self, meeting: object) -> str:  # noqa: ARG002 - all share the host
        return "cpu"


def same_bits(transport: object, schedule: object, n_elements: int) -> bool:
    rng = np.random.default_rng(n_elements)
    inputs = rng.standard_normal((schedule.n_ranks, n_elements)).astype(np.float32)
    if transport.rank >= schedule.n_ranks:  # a helper, to which nothing is promised
        run_once(transport, schedule, inputs[0])
        return True
    wanted = run_reference(schedule, inputs)[transport.rank]
    got = run_once(transport, schedule, inputs[transport.rank])
    return np.array_equal(got.view(np.int32), wanted.view(np.int32))


def variants(n_ranks: int) -> list:
    """Schedules that defaults do not make: unequal blocks, several dimensions, rails."""
    build = {name: COLLECTIVES[name].build for name in COLLECTIVES}
    machines = tuple(tuple(range(i, min(i + 2, n_ranks))) for i in range(0, n_ranks, 2))
    return [
        build["ring_all_gather_v"](n_ranks, counts=tuple(1 + 2 * (r % 3) - (r % 2) for r in range(n_ranks))),
        build["direct_all_to_all_v"](n_ranks, counts=tuple(1 + (5 * i) % 4 for i in range(n_ranks**2))),
        build["grid_neighbour_exchange"](n_ranks, dims=(n_ranks // (2 - n_ranks % 2), 2 - n_ranks % 2)),
        build["torus_all_reduce"](n_ranks, dims=(1, n_ranks)),
        build["multi_ring_all_reduce"](n_ranks, 3, machines),
        build["ep_dispatch"](n_ranks, tokens=5, machines=machines, pieces=2, in_order=True),
    ]


def synthesized(n_ranks: int) -> list:
    """Schedules for a star of hosts of which one is slow: trees with weights, and what small sizes take."""
    if n_ranks != 3 or find_spec("scipy") is None:  # once is enough
        return []
    from mpi4py import MPI

    return MPI.COMM_WORLD.bcast(synthesized_by_one(n_ranks) if MPI.COMM_WORLD.rank == 0 else None)


def synthesized_by_one(n_ranks: int) -> list:
    network = star(n_hosts=n_ranks, bandwidth=1e9)
    rates = network.bandwidth.copy()
    rates[(network.src == 0) | (network.dst == 0)] /= 2
    network = replace(network, bandwidth=rates)
    return [
        synthesize(operation, network, [size], textbook=False, max_messages=300).best(size).prepared.schedule
        for operation, size in (("all_reduce", 1 << 22), ("all_gather", 1 << 12), ("all_to_all", 1 << 16))
    ]


def main(backend: str, names: list[str]) -> int:
    usual = connect.connect
    if backend == "groups":
        connect.connect = lambda _: GroupsTransport()
    bad, operations = [], set()
    with connect.session("gloo" if backend == "groups" else backend) as transport:
        for name in names or COLLECTIVES:
            schedule = for_processes(COLLECTIVES[name].build, transport.size)
            if schedule is None:
                continue
            operations.add(schedule.operation)
            for n_bytes in (4, 12_000, 300_000):
                n_elements = usable_elements(schedule, n_bytes)
                if not same_bits(transport, schedule, n_elements):
                    bad.append(f"{name} of {n_elements}: bits differ")
                result = measure_schedule(transport, schedule, n_bytes, warmup=1, iterations=2)
                if result.counters["wrong"] or len(result.samples) != 2 or not result.time > 0:
                    bad.append(f"{name} of {n_bytes} bytes: {result}")
        for schedule in [] if names else variants(transport.size) + synthesized(transport.size):
            n_elements = usable_elements(schedule, 12_000)
            if not same_bits(transport, schedule, n_elements):
                bad.append(f"{schedule.name} {schedule.layout} of {n_elements}: bits differ")
            if measure_schedule(transport, schedule, 12_000, warmup=0, iterations=1).counters.get("wrong"):
                bad.append(f"{schedule.name} {schedule.layout}: wrong")
        # MPI's own need counts or a grid, which natives are not given
        for operation in sorted(o for o in operations if OPERATIONS[o].layout == "none"):
            native = measure_native(transport, operation, 60 * transport.size, warmup=1, iterations=2)
            if native.counters["wrong"]:
                bad.append(f"native {operation}: {native}")
        good = not transport.max_over_ranks(np.array([float(len(bad))]))[0]
        if transport.rank == 0 and good:
            print(f"{backend}, {transport.size} ranks: all right")
    connect.connect = usual
    for line in bad:
        print(line)
    return int(not good)


if __name__ == "__main__":
    sys.exit(sum(main(backend, sys.argv[2:]) for backend in sys.argv[1].split(",")))

"""Program for mpiexec: parameter servers as processes behind the ranks, or on them.

mpiexec -n 4 python run_servers.py
"""

import sys

import numpy as np

from collectives import COLLECTIVES
from commsim.core.schedule import Schedule
from commsim.real import connect
from tests.oracles.numeric_run import run_reference
from tests.oracles.one_run import run_once

PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7))


def cases(n_processes: int) -> list[Schedule]:
    """Every way that has exactly this many participants."""
    byteps, servers = COLLECTIVES["byteps"].build, COLLECTIVES["parameter_server"].build
    found = [byteps(n_processes), servers(n_processes, colocated=True)]
    found += [byteps(n_processes - k, k, 4) for k in range(1, n_processes // 2 + 1) if n_processes > 2]
    found += [servers(n_processes - s, s, n_partitions=4) for s in range(1, n_processes - 1)]
    found += [servers(n_processes, s, True, 4) for s in range(1, n_processes)]
    if n_processes == 8:
        found += [byteps(8, machines=PAIRS, roots=(1,), n_partitions=4), byteps(8, machines=PAIRS, roots=(0, 1))]
        found += [byteps(6, machines=((0, 1, 2), (3, 4, 5)), n_switches=2, n_partitions=2)]
        found += [byteps(4, 2, 2, machines=((0, 1), (2, 3)), n_switches=1)]
    return found


def inputs_for(schedule: Schedule) -> np.ndarray:
    """Gradients of a number of elements that nothing divides."""
    return np.random.default_rng(1).standard_normal((schedule.n_ranks, 10_007)).astype(np.float32)


def main() -> int:
    """Run all cases; 1 when a rank has other bits than the reference."""
    bad = []
    with connect.session("mpi") as transport:
        every = cases(transport.size)
        for number, schedule in enumerate(every):
            assert schedule.n_participants == transport.size
            inputs = inputs_for(schedule)
            got = run_once(transport, schedule, inputs[transport.rank % schedule.n_ranks])
            if transport.rank < schedule.n_ranks:
                wanted = run_reference(schedule, inputs)[transport.rank]
                if not np.array_equal(got.view(np.int32), wanted.view(np.int32)):
                    bad.append(number)
        n_bad = int(transport.max_over_ranks(np.array([float(len(bad))]))[0])
        if transport.rank == 0:
            print(f"{transport.size} processes, {len(every)} ways: {'all right' if not n_bad else f'wrong {bad}'}")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())

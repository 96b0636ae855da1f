"""One rank of the program that `make run` starts under mpirun: reduces real gradients, checks the sums, prints times.

mpirun -n 4 python -m benchmarks.real_gradients.gradient_ranks mpi gradients.npz
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.errors import CommsimError
from commsim.core.files.npz import read_archive
from commsim.core.result import Result
from commsim.real.busy import QUIET
from commsim.real.calibrate import Calibration
from commsim.real.comparison.under_mpirun import predictor
from commsim.real.connect import reported_once, session
from commsim.real.execute import Execution, require_ranks
from commsim.real.measure import WARMUP, timed
from commsim.real.transport import RankTransport
from commsim.real.validate import oversubscribed
from commsim.report.terminal import print_table
from tests.oracles.numeric_run import run_reference

COLUMNS = ["all-reduce", "fastest(us)", "median", "p95", "predicted(us)", "error", "sums"]
# Steps and gradients are timed in turn, so that what else runs on the cores disturbs both alike; the fastest times of
# both are those that nothing disturbed. A step is over in microseconds, and some of its times are undisturbed on busy
# cores too. A sum takes milliseconds and needs more chances.
ROUNDS, EACH = 4, 50


def main(backend: str, path: str) -> int:
    """Reduce, check and print; 1 if a sum is wrong."""
    archive = read_archive(path, "gradients")
    n_ranks = archive.header.whole("n_ranks")
    gradients = archive.take("gradients", np.float32).reshape(n_ranks, -1)
    archive.finish()
    with session(backend) as transport:
        require_ranks(transport, n_ranks)
        schedule = COLLECTIVES["ring_all_reduce"].build(n_ranks)
        exact = run_reference(schedule, gradients)[transport.rank]
        bound = (n_ranks - 1) * np.finfo(np.float32).eps * np.abs(gradients.astype(np.float64)).sum(axis=0)
        true = gradients.astype(np.float64).sum(axis=0)

        mine = gradients[transport.rank]
        execution = Execution(transport, schedule, len(mine))
        native = transport.native("all_reduce", len(mine), 0, "float32", mine)
        calibration, ours, theirs = _in_turn(transport, execution, native, mine)
        network = calibration.network()
        execution.load(mine)
        execution.run()
        bits = _everywhere(transport, np.array_equal(execution.result().view(np.int32), exact.view(np.int32)))
        got = transport.values(native.result)
        near = _everywhere(transport, bool((np.abs(got - true) <= bound).all()))
        shared = oversubscribed(transport)
        if transport.rank == 0:
            predicted = predictor(lambda: network)(schedule, float(gradients[0].nbytes))
            rows = [
                _row("ring, ours", ours, predicted, "equal bit for bit" if bits else "WRONG"),
                _row("native", theirs, None, "within (p-1) eps sum|x|" if near else "WRONG"),
            ]
            cores = "; fewer cores than ranks here: no good prediction" if shared else ""
            busy = float(np.median(calibration.busy))
            cores += f"; other processes took {busy:.0%} of the cores" if busy > QUIET else ""
            size = f"{gradients[0].nbytes} bytes of gradients"
            print_table(COLUMNS, rows, f"{n_ranks} ranks over {transport.name}, {size}{cores}")
    return 0 if bits and near else 1


def _in_turn(
    transport: RankTransport, execution: Execution, native: Any, gradient: NDArray[np.float32]
) -> tuple[Calibration, NDArray[np.float64], NDArray[np.float64]]:
    """Time single steps, our schedule and the library's own in turn; return the steps, and both times, s."""
    calibration = Calibration(transport, float(gradient.nbytes), fastest=True)
    ours, theirs = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    for _ in range(ROUNDS):
        calibration.run_pass()
        ours.append(timed(transport, execution.run, lambda: execution.load(gradient), WARMUP, EACH))
        theirs.append(timed(transport, native.run, native.reset, WARMUP, EACH))
    return calibration, np.concatenate(ours), np.concatenate(theirs)


def _everywhere(transport: RankTransport, good: bool) -> bool:
    return not transport.max_over_ranks(np.array([float(not good)]))[0]


def _row(name: str, times: NDArray[np.float64], predicted: Result | None, sums: str) -> list[str]:
    fastest = float(times.min())
    error = "-" if predicted is None else f"{predicted.time / fastest - 1:+.1%}"
    shown = "-" if predicted is None else f"{predicted.time * 1e6:.1f}"
    return [name, *(f"{t * 1e6:.1f}" for t in (fastest, *np.percentile(times, (50, 95)))), shown, error, sums]


def _checked(run: Callable[[], int]) -> int:
    try:
        with reported_once():
            return run()
    except CommsimError as error:
        print(f"benchmarks.real_gradients.gradient_ranks: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(_checked(lambda: main(*sys.argv[1:3])))

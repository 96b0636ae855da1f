"""One rank of the program that `make run` starts under mpirun: reduces real gradients, checks the sums, prints times.

mpirun -n 4 python -m benchmarks.real_gradients.gradient_ranks mpi gradients.npz
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
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
from commsim.real.measure import timed
from commsim.real.steps import REPEATS, SIZES, WARMUP, WORKING_SETS, TimedStep, start_sets, usual_steps
from commsim.real.transport import RankTransport
from commsim.real.validate import oversubscribed
from commsim.report.terminal import print_table
from tests.oracles.numeric_run import run_reference

COLUMNS = ["all-reduce", "median(us)", "fastest", "p95", "predicted(us)", "error", "sums"]
# Steps and sums are timed in turn, in bursts of as many runs, and medians of the bursts' medians are compared: other
# processes disturb both alike, and a median does not depend on how often each is timed. Fastest times are extremes:
# with gloo, whose two threads for each rank share the cores, the fastest of 200 sums took half of the median, and the
# fastest of 12 steps far more.
ROUNDS = 60


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
    """Time single steps, our schedule and the library's own in turn; return the steps, and both times by burst, s."""
    calibration = Calibration(transport, steps_of_ring(transport.size, gradient.nbytes), paired=True)
    ours, theirs = list[NDArray[np.float64]](), list[NDArray[np.float64]]()
    for k in range(2 * ROUNDS):
        if k % 2:
            calibration.run_pass()
        ours.append(timed(transport, execution.run, lambda: execution.load(gradient), WARMUP, REPEATS))
        theirs.append(timed(transport, native.run, native.reset, WARMUP, REPEATS))
    return calibration, np.stack(ours), np.stack(theirs)


def steps_of_ring(n_ranks: int, n_bytes: float) -> list[TimedStep]:
    """List the usual steps that a ring all-reduce is predicted from: its kinds of hops, of the two sizes next to its.

    With two ranks both hops together are a ring of another size, and the prediction interpolates between two of these.

    Parameters
    ----------
    n_ranks : int
        Ranks, which all send and receive at once, and wait for what they send on.
    n_bytes : float, bytes
        Memory of each rank.
    """
    message = n_bytes / n_ranks
    chains = [("reduce",), ("reduce", "copy"), *([("reduce", "reduce")] if n_ranks > 2 else [])]
    single = [step for step in usual_steps(n_bytes) if step.length == 1]
    # A network has a curve of copies one way, whatever is predicted on it.
    hops = [step for step in single if step.ops in (chains if step.two_way else [("copy",)])]
    sizes = {own: sorted({step.size for step in hops if step.working_set == own}) for own in (0, *WORKING_SETS)}
    hops = [step for step in hops if step.size in _next_to(sizes[step.working_set], message)]
    if n_bytes <= 2 * message:
        hops = [step for step in hops if not step.working_set]
    written = {start_sets()[0]}
    for memory in {n_bytes, *(max(step.working_set, step.size * (1 + step.two_way)) for step in hops)}:
        written.update(_next_to(start_sets(), memory))
    first = [step for step in single if step.size == SIZES[0] and step.working_set in written]
    return [step for step in single if not step.ops] + first + hops


def _next_to(values: Sequence[int], value: float) -> tuple[int, int]:
    """Return the two neighbours of a value in ascending ones; the first two or the last two where it is outside."""
    above = min(max(int(np.searchsorted(values, value)), 1), len(values) - 1)
    return values[above - 1], values[above]


def _everywhere(transport: RankTransport, good: bool) -> bool:
    return not transport.max_over_ranks(np.array([float(not good)]))[0]


def _row(name: str, times: NDArray[np.float64], predicted: Result | None, sums: str) -> list[str]:
    median = float(np.median(np.median(times, axis=1)))
    error = "-" if predicted is None else f"{predicted.time / median - 1:+.1%}"
    shown = "-" if predicted is None else f"{predicted.time * 1e6:.1f}"
    return [name, *(f"{t * 1e6:.1f}" for t in (median, times.min(), np.percentile(times, 95))), shown, error, sums]


def _checked(run: Callable[[], int]) -> int:
    try:
        with reported_once():
            return run()
    except CommsimError as error:
        print(f"benchmarks.real_gradients.gradient_ranks: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(_checked(lambda: main(*sys.argv[1:3])))

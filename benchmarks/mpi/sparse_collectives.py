"""Sparse all-reduces of real gradients, really done: right sums, bytes as predicted, and times beside predictions.

mpirun -n 4 python -m benchmarks.mpi.sparse_collectives [--model recommender|language_model] [--gradients FILE]

Rank 0 trains the model, unless a file has the gradients. A process beyond the ranks is a collective's aggregator or
server. Predictions are the flow engine's on the calibrated machine, with what writing, reading and adding lists costs
here, measured without any collective. Where processes share cores, predictions have no claim.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.mpi.calibrated import calibrate
from benchmarks.results_file import write_results
from collectives import COLLECTIVES
from commsim.core.curves import Curve
from commsim.core.errors import BackendError, CommsimError, InputError
from commsim.core.network import Network
from commsim.core.placement import place
from commsim.core.schedule import Schedule
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.real.calibrate import PASSES
from commsim.real.comparison.under_mpirun import network_from
from commsim.real.connect import reported_once, session
from commsim.real.execute import for_processes
from commsim.real.measure import measure_schedule, timed
from commsim.real.mpi import MPITransport, launched_rank, launched_size
from commsim.real.relative_error_fit import fit_costs
from commsim.real.sparse_execute import SparseExecution, add_lists
from commsim.real.sparse_wire import VectorLayout, codec
from commsim.real.validate import oversubscribed
from commsim.report.terminal import print_table
from commsim.sparse.encodings import Encoding
from commsim.sparse.form import SparseForm
from commsim.sparse.occupancy import occupancy_of

MODELS = {"recommender": "Recommender", "language_model": "LanguageModel"}
PARAMETERS: dict[str, tuple[dict[str, Any], ...]] = {
    "omnireduce": ({"n_partitions": 8}, {"colocated": True}),
    "parallax": ({"dense_share": 1 / 32},),
}
COLUMNS = [
    "collective",
    "ranks",
    "sent(MB)",
    "predicted(MB)",
    "wrong",
    "time(ms)",
    "fastest(ms)",
    "predicted(ms)",
    "error",
]
SAMPLED = (1_000, 10_000, 100_000)


@dataclass(frozen=True, slots=True)
class Row:
    """One collective: what was sent by all processes, elements that are wrong, and times; predictions on rank 0.

    `time` is the median, to which the error refers, `fastest` the shortest run: where something else takes a core for a
    while, the two are far apart.
    """

    collective: str
    n_ranks: int
    n_bytes: int
    predicted_bytes: float
    n_wrong: int
    time: float
    fastest: float
    predicted: float | None

    def cells(self) -> list[str]:
        """As text, under COLUMNS."""
        error = "-" if not self.predicted else f"{self.predicted / self.time - 1:+.0%}"
        sizes = [f"{n / 1e6:.3f}" for n in (self.n_bytes, self.predicted_bytes)]
        times = ["-" if t is None else f"{t * 1e3:.2f}" for t in (self.time, self.fastest, self.predicted)]
        return [self.collective, f"{self.n_ranks}", *sizes, f"{self.n_wrong}", *times, error]


def main(argv: Sequence[str] | None = None) -> int:
    """Run all lossless sparse collectives, and the dense ring; 0 when every sum is right, 1 when not."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.mpi.sparse_collectives", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument("--model", choices=MODELS, default="recommender", help="what is trained (recommender)")
    parser.add_argument("--gradients", metavar="FILE", help="instead of training: .npy, .npz or a folder")
    parser.add_argument("--steps", type=int, default=3, metavar="N", help="optimiser steps (3)")
    parser.add_argument("--iterations", type=int, default=30, metavar="N", help="timed runs (30)")
    parser.add_argument("--unpredicted", action="store_true", help="measure no costs of messages, and predict no times")
    parser.add_argument("--network", metavar="FILE", help="network of commsim calibrate (calibrates now)")
    parser.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    args = parser.parse_args(argv)
    try:
        with reported_once():
            return _run(args)
    except CommsimError as error:
        print(f"benchmarks.mpi.sparse_collectives: error: {error}", file=sys.stderr)
        return 2


def _run(args: argparse.Namespace) -> int:
    # the others wait for rank 0 where MPI starts, which takes none of the cores that it trains on
    mine: NDArray[Any] | CommsimError | None = None
    if launched_rank() == 0:
        try:
            mine = _gradients(args)
        except CommsimError as error:  # which is for all processes, and these meet below
            mine = error
    with session("mpi") as transport:
        assert isinstance(transport, MPITransport)
        gradients = _to_all(transport, mine)
        network = network_from(args.network, transport) if args.network else None
        if network is None and transport.size > 1 and not args.unpredicted:
            network = calibrate(transport, min(PASSES, args.iterations))
        found = rows(transport, gradients, args.iterations, network)
        shared = oversubscribed(transport)
        if transport.rank == 0:
            _print(transport, gradients, found, shared)
            if args.json:
                results = [dataclasses.asdict(row) for row in found]
                write_results(args.json, {"what": "sparse_real", "model": args.gradients or args.model}, results)
    return int(any(row.n_wrong for row in found))


def rows(transport: MPITransport, gradients: NDArray[Any], iterations: int, network: Network | None) -> list[Row]:
    """Measure all lossless sparse collectives that fit the processes, and the dense ring; predict on a network."""
    found = []
    for name in COLLECTIVES:
        form = COLLECTIVES[name].metadata["sparse"]
        if form is None or form.lossy:
            continue
        for parameters in PARAMETERS.get(name, ({},)):
            schedule = for_processes(_builder(name, parameters), transport.size)
            if schedule is not None:
                found.append(_measure(transport, schedule, form, parameters, gradients, network, iterations))
    ring = COLLECTIVES["ring_all_reduce"].build(transport.size)
    dense = measure_schedule(transport, ring, gradients[0].nbytes, warmup=2, iterations=iterations)
    n_bytes = round(2 * (transport.size - 1) * dense.size)
    predicted = None if network is None else _predict(network, ring, None, dense.size)
    wrong = int(dense.counters["wrong"])
    return [
        *found,
        Row(
            "ring_all_reduce (dense)",
            transport.size,
            n_bytes,
            n_bytes,
            wrong,
            dense.time,
            dense.samples.min(),
            predicted,
        ),
    ]


def _measure(
    transport: MPITransport,
    schedule: Schedule,
    form: SparseForm,
    parameters: dict[str, Any],
    gradients: NDArray[Any],
    network: Network | None,
    iterations: int,
) -> Row:
    n_ranks, rank = schedule.n_ranks, transport.rank
    execution = SparseExecution(transport, schedule, form, gradients.shape[1], str(gradients.dtype))
    own = gradients[min(rank, n_ranks - 1)]
    samples = timed(transport, execution.run, lambda: execution.load(own), 2, iterations)
    wrong = float(_n_wrong(execution.result().to_dense(), gradients[:n_ranks])) if rank < n_ranks else 0.0
    sent = np.zeros(transport.size)
    sent[rank] = execution.n_bytes
    total = transport.max_over_ranks(np.append(sent, wrong))
    found = occupancy_of(gradients[:n_ranks], form.block)
    n_bytes = dataclasses.replace(form, sends=None).transfer_bytes(schedule, found, parameters, gradients.itemsize)
    transfers = schedule.expand()
    away = n_bytes[transfers["src"] != transfers["dst"]].sum()
    slower = None if network is None else _with_lists(network, transport, execution.layout, form)
    predicted = None if slower is None or rank else _predict(slower, schedule, n_bytes, gradients[0].nbytes)
    given = ",".join(f"{key}={value}" for key, value in parameters.items())
    name = f"{schedule.name}:{given}" if given else schedule.name
    times = float(np.median(samples)), float(samples.min())
    return Row(name, n_ranks, int(total[:-1].sum()), float(away), int(total[-1]), *times, predicted)


def _with_lists(network: Network, transport: MPITransport, layout: VectorLayout, form: SparseForm) -> Network:
    """Add to the machine's costs those of lists: writing and reading to every message, adding to every reduction."""
    both = [_list_costs(layout, encoding) for encoding in (form.encoding, form.copying or form.encoding)]
    costs = transport.max_over_ranks(np.mean(both, axis=0))
    assert network.curves is not None
    curves = tuple(_slower(curve, *costs) if curve.step != "start" else curve for curve in network.curves.curves)
    return dataclasses.replace(network, curves=dataclasses.replace(network.curves, curves=curves))


def _slower(curve: Curve, per_message: float, per_byte: float, adding: float) -> Curve:
    """Add to what a step takes; a reduction of lists is theirs in place of that of arrays, which is small beside it."""
    more = per_message + curve.size * (per_byte + (adding if curve.step == "reduce" else 0.0))
    columns = {name: getattr(curve, name) + more for name in ("seconds", "occupancy", "low", "high")}
    return dataclasses.replace(curve, **columns)


def _list_costs(layout: VectorLayout, encoding: Encoding) -> tuple[float, float, float]:
    """Seconds per message and per byte of writing and reading a chunk, and per byte of adding two lists."""
    write, read = codec(encoding)
    chunks, every = [0], layout.blocks([0])
    block, n = layout.partition.block, len(every)
    rng = np.random.default_rng(0)
    coded, added, sizes = [], [], []
    for k in (max(1, min(n, size // block)) for size in SAMPLED):
        lists = [layout.elements(every[np.sort(rng.choice(n, k, replace=False))]) for _ in range(2)]
        one, other = ((index, np.ones(len(index), layout.dtype)) for index in lists)
        message = write(layout, chunks, one)
        sizes.append(len(message))
        coded.append(_best(lambda one=one: read(layout, chunks, write(layout, chunks, one))))  # type: ignore[misc]
        added.append(_best(lambda one=one, other=other: add_lists(one, other)))  # type: ignore[misc]
    columns = np.column_stack((np.ones(len(sizes)), np.array(sizes, np.float64)))
    (per_message, per_byte), (_, gamma) = (fit_costs(columns, np.array(seconds)) for seconds in (coded, added))
    return float(per_message), float(per_byte), float(gamma)


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _predict(network: Network, schedule: Schedule, n_bytes: NDArray[np.float64] | None, size: float) -> float:
    messages = None if n_bytes is None else lambda _: n_bytes
    job = FlowJob(schedule, place(network, schedule.n_participants), messages=messages)
    return simulate_flows(plan_flows(network, [job]), size)[0].time


def _n_wrong(got: NDArray[Any], gradients: NDArray[Any]) -> int:
    """Elements further from the sum than any order of adding could bring them."""
    wanted = gradients.astype(np.float64).sum(axis=0)
    bound = (len(gradients) - 1) * np.finfo(gradients.dtype).eps * np.abs(gradients.astype(np.float64)).sum(axis=0)
    return int((~(np.abs(got - wanted) <= bound)).sum())


def _builder(name: str, parameters: dict[str, Any]) -> Callable[[int], Schedule]:
    return lambda n_ranks: COLLECTIVES[name].build(n_ranks, **parameters)


def _gradients(args: argparse.Namespace) -> NDArray[Any]:
    if args.gradients:
        from commsim.sparse.gradients_file import read_gradients

        rows = read_gradients(args.gradients)[: launched_size()]
        if len(rows) < launched_size() or rows[0].dtype.kind != "f" or rows[0].itemsize < 4:
            raise InputError(
                f"{args.gradients}: needs float32 or float64 gradients of {launched_size()} ranks, got {len(rows)} of "
                f"{rows[0].dtype}"
            )
        return np.stack(rows)
    from benchmarks.real_gradients import sparse_models

    return sparse_models.train(getattr(sparse_models, MODELS[args.model]), launched_size(), args.steps)[1]


def _to_all(transport: MPITransport, mine: NDArray[Any] | CommsimError | None) -> NDArray[Any]:
    """Hand all ranks the gradients of all, which they check their sums against; an empty message where there are none.

    Raises
    ------
    CommsimError
        At every rank, if rank 0 has none.
    """
    if isinstance(mine, CommsimError):
        _send_all(transport, np.empty(0, np.int64))
        raise mine
    if mine is not None:
        _send_all(transport, np.array([*mine.shape, mine.dtype.num], np.int64), mine)
        return mine
    head = transport.receive_any_size(0, 0).view(np.int64).tolist()
    if not head:
        raise BackendError("rank 0 has no gradients")
    n_rows, n_columns, kind = head
    dtype = next(np.dtype(t) for t in (np.float32, np.float64) if np.dtype(t).num == kind)
    return transport.receive_any_size(0, 0).view(dtype).reshape(n_rows, n_columns)


def _send_all(transport: MPITransport, *arrays: NDArray[Any]) -> None:
    for handle in [transport.isend(array, peer, 0) for peer in range(1, transport.size) for array in arrays]:
        transport.wait(handle)


def _print(transport: MPITransport, gradients: NDArray[Any], found: list[Row], shared: bool) -> None:
    density = float(occupancy_of(gradients, 1).density.mean())
    cores = ", processes share cores: predictions have no claim" if shared else ""
    title = f"{gradients.shape[1]} parameters, density {density:.4f}, {transport.size} processes over MPI{cores}"
    print_table(COLUMNS, [row.cells() for row in found], title)


if __name__ == "__main__":
    sys.exit(main())

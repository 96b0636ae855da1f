"""Graphs of training, played, against formulas that were written down apart from them."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from commsim.core.cost import Framing, LogGP
from commsim.core.network import HOST, Network
from commsim.papers.systems.elastic import MorphingJob, shape_time
from commsim.prediction.inputs import load_network
from commsim.training.backward_trace import BackwardTrace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.cost_by_simulation import network_costs
from commsim.training.data_parallel import train
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.parallel.layer_parallel import TransformerLayer, tensor_parallel_graph
from commsim.training.parallel.pipeline import StageCosts, pipeline_graph
from commsim.training.parallel.pipeline_orders import ORDERS, gpipe
from commsim.training.sharing.periodic import JobPhase, PeriodicJob
from commsim.training.sharing.shared_links import simulate_jobs
from commsim.training.task_graph import simulate_graph
from commsim.training.tensor_queue import Discipline, run_iteration

from .row import Row

Played = functools.partial(Row, kind="closed_form", against="closed form", unit="s", engine="task graph",
                           operation="training")  # fmt: skip
BANDWIDTH, ALPHA = 12.5e9, 2e-6


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset has one case of each."""
    yield from pipelines(((4, 8),) if quick else ((4, 8), (8, 8), (8, 64), (16, 128)))
    yield from data_parallel((8,) if quick else (2, 8, 64))
    yield from with_costs_of_software((8,) if quick else (2, 8, 64))
    yield from overlapped()
    yield from tensor_parallel((8,) if quick else (2, 4, 8))


def pipelines(cases: tuple[tuple[int, int], ...]) -> Iterator[Row]:
    """Pipelines without messages: (N + D - 1)(F + B); Varuna's estimate, with messages, against a played GPipe."""
    for d, n in cases:
        for name in ("gpipe", "1f1b"):
            ours = simulate_graph(
                pipeline_graph(ORDERS[name](d, n), StageCosts(3e-3, 7e-3)), lambda _: 0.0
            ).iteration_time
            yield Played(id=f"closed_form/pipeline/{name}/{d}/{n}", model=name, reference=(n + d - 1) * 10e-3,
                         ours=ours, source="(N + D - 1)(F + B)", ranks=d)  # fmt: skip
        costs = StageCosts(3e-3, 7e-3, activation=2e6)
        ours = simulate_graph(pipeline_graph(gpipe(d, n), costs), closed_form_costs(0.0, BANDWIDTH)).iteration_time
        job = MorphingJob(d, 3e-3, 7e-3, 0.0, 2e6, batch=n, micro_batch=1, bandwidth=BANDWIDTH, max_blocks=d)
        yield Played(id=f"closed_form/pipeline/varuna/{d}/{n}", model="Varuna's estimate", ranks=d, ours=ours,
                     reference=shape_time(job, d, 1), source="(N + P - 1)(F + B) + 2 (P - 1) a/B")  # fmt: skip


def overlapped() -> Iterator[Row]:
    """Two equal jobs on one link: 4 s of sending alone, beside which c s are computed, and 10 - max(4, c) s after."""
    link = Network("one link", ("from", "to"), [HOST, HOST], [0], [1], BANDWIDTH, 0.0)
    for beside in (2.0, 6.0, 9.0):
        twins = [PeriodicJob(name, 2, 10.0, (JobPhase(0.0, 4.0, BANDWIDTH, beside),)) for name in "ab"]
        run = simulate_jobs(link, twins, [np.ones(1)] * 2, iterations=5)
        yield Played(id=f"closed_form/overlap/{beside:g}", model="phases that overlap computation", ranks=2,
                     operation="shared link", engine="shared links", reference=max(8, beside) + 10 - max(4, beside),
                     ours=float(run.iteration_times.mean()), source="max(8, c) + 10 - max(4, c)",
                     note="14 s before 0.2 whatever c was")  # fmt: skip


def data_parallel(workers: tuple[int, ...]) -> Iterator[Row]:
    """Without overlap all is added; with it a slow link is busy from the first tensor on, whatever the order."""
    draw = np.random.default_rng(5)
    gaps, sizes = draw.uniform(0.5e-3, 1.5e-3, 40), draw.uniform(4e6, 8e6, 40)
    trace = BackwardTrace(sizes, np.cumsum(gaps), 0.5 * gaps)
    for n in workers:
        sent = 2 * (n - 1) / n * float(sizes.sum()) / 1.25e9
        setting = TrainingSetting(trace, n, closed_form_costs(ALPHA, 1.25e9))
        steps = 2 * (n - 1) * ALPHA * len(sizes)
        forward = float(trace.forward.sum())
        first = float(gaps[0])
        for name, spec, before, source in (
            ("no_overlap", "wfbp:overlap=false", trace.backward_time, "computing + 2(n-1)(k alpha + S/nB)"),
            ("wfbp", "wfbp", first, "first gradient + 2(n-1)(k alpha + S/nB) + forward"),
        ):
            yield Played(id=f"closed_form/data_parallel/{name}/{n}", model=name, ranks=n,
                         reference=before + steps + sent + forward,
                         ours=train(spec, setting).iteration_time, source=source)  # fmt: skip
        how = Discipline(partition=20e3, priority=True, credit=60e3, barrier=False)
        queue = run_iteration(trace, LogGP(L=1e-6, B=1.25e9 * n / (2 * (n - 1))), how)
        yield Played(id=f"closed_form/data_parallel/bytescheduler/{n}", against="limit of small partitions", ranks=n,
                     model="bytescheduler", engine="queue", ours=queue.time,
                     reference=max(trace.compute_time, first + sent),
                     source="the longer of computing and sending; a partition and a layer are left over")  # fmt: skip


def with_costs_of_software(workers: tuple[int, ...]) -> Iterator[Row]:
    """Overheads, headers and the optimiser, of exchanges that are simulated on a star and not overlapped."""
    sizes = np.array([4e6, 40e6, 8e6])
    trace = BackwardTrace(sizes, np.array([1e-3, 2e-3, 3e-3]), np.full(3, 0.5e-3), update=np.full(3, 0.2e-3))
    overhead, packets = 5e-6, Framing(4096.0, 82.0)
    for n in workers:
        star = load_network(f"star:n_hosts={n},bandwidth=10Gbps,latency=1us")
        setting = TrainingSetting(trace, n, network_costs(star, overhead=overhead, framing=packets))
        sent = 2 * (n - 1) * float(packets.on_wire(sizes / n).sum()) / 1.25e9
        steps = 2 * (n - 1) * len(sizes) * (overhead + ALPHA)
        yield Played(id=f"closed_form/software/{n}", model="wfbp, overheads, headers, optimiser", ranks=n,
                     reference=trace.compute_time + steps + sent, network="star",
                     ours=train("wfbp:overlap=false", setting).iteration_time,
                     source="computing + optimiser + 2(n-1)(k (o + L) + packets of S/n over B)",
                     note="o, headers and the optimiser could not be given before 0.2")  # fmt: skip


def tensor_parallel(ranks: tuple[int, ...]) -> Iterator[Row]:
    """Four all-reduces per layer, which nothing hides; sequence parallelism has as many bytes."""
    for n in ranks:
        for sequence in (False, True):
            graph = tensor_parallel_graph(TransformerLayer(1e-3, 2e-3, 32e6), 12, n, sequence_parallel=sequence)
            ours = simulate_graph(graph, closed_form_costs(0.0, 300e9)).iteration_time
            yield Played(id=f"closed_form/tensor_parallel/{n}/{sequence}", model="tensor parallel", ranks=n, ours=ours,
                         reference=12 * (9e-3 + 4 * 2 * (n - 1) / n * 32e6 / 300e9),
                         source="L (3 F + 4 x 2 (n-1)/n a/B)")  # fmt: skip

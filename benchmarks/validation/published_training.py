"""Training at scale beside what was published of it: sharding, experts, stale workers, checkpoints, Horovod."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from benchmarks.accuracy import netai20
from commsim.papers.systems.gemini import wasted_time
from commsim.training.backward_trace import BackwardTrace, read_backward_trace
from commsim.training.cost_by_formula import closed_form_costs
from commsim.training.data_parallel import sent_bytes, train
from commsim.training.data_parallel_setting import TrainingSetting
from commsim.training.parallel.layer_parallel import shared_slow_down
from commsim.training.parallel.pipeline import StageCosts, bubble, pipeline_graph
from commsim.training.parallel.pipeline_orders import ORDERS, gems
from commsim.training.policies import load_policy
from commsim.training.staleness import draw_compute, run_workers
from commsim.training.task_graph import simulate_graph
from commsim.training.vector_add import read_vector_add

from .published_workload import TRACES
from .row import Row

Theory = functools.partial(Row, kind="published", against="published theory", operation="training")
Measured = functools.partial(Row, kind="published", against="measured", operation="training")
SSP_JITTER = 0.43  # with which 16 workers that wait for each other in every iteration take 2.02 times what they compute
TCP = "ours is the limit of the links; in the paper the TCP transport used at most about 32 Gb/s"

NO_RING = "ours is one ring over all GPUs, in which each of 2 machines sends 15/8 of the gradients; once would suffice"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset simulates no stale workers, and reads no traces."""
    yield from sharding()
    yield from pipelines()
    yield from small_ones()
    if quick:
        return
    yield from stale()
    if (TRACES / "netai20_vgg16.csv").exists():
        yield from horovod()


def sharding() -> Iterator[Row]:
    """Count what a worker of 16 sends in an iteration, in parameters."""
    n, psi = 16, 1e9
    trace = BackwardTrace(np.full(10, psi / 10), np.arange(1.0, 11.0), np.full(10, 0.5))
    setting = TrainingSetting(trace, n, closed_form_costs(0.0, 1e9))
    for policy, published in (("ddp", 2), ("zero1", 2), ("zero2", 2), ("zero3", 3), ("fsdp", 3)):
        yield Theory(id=f"published/zero/{policy}", model=f"{policy}, bytes sent", engine="task graph", ranks=n,
                     reference=published * (n - 1) / n, ours=sent_bytes(load_policy(policy)(setting)) / psi,
                     unit="parameters", source="ZeRO (SC 2020), section 7: 2, or 3, times the parameters; in rings"
                     " (n-1)/n of them")  # fmt: skip


def pipelines() -> Iterator[Row]:
    """GEMS's bubble, and the activations that a worker holds at most and at least."""
    for d, n in ((4, 64), (8, 64), (16, 64)):
        ours = bubble(simulate_graph(pipeline_graph(gems(d, n), StageCosts(1.0, 2.0)), lambda _: 0.0), d)
        yield Theory(id=f"published/bubble/gems/{d}/{n}", model="gems, bubble", engine="task graph", ranks=d,
                     reference=(d - 1) / (d + 0.5), ours=ours, unit="share of time",
                     source="Chimera (SC 2021), table 2: about (D-1)/(D+1/2), for many micro-batches")  # fmt: skip
        held = ORDERS["gpipe"](d, n).peak_activations, ORDERS["chimera"](d, n).peak_activations
        for name, published, activations in (("gpipe", n, max(held[0])), ("chimera_most", d, max(held[1])),
                                             ("chimera_least", d / 2 + 1, min(held[1]))):  # fmt: skip
            yield Theory(id=f"published/activations/{name}/{d}/{n}", model="pipelines, activations", ranks=d,
                         engine="task graph", reference=float(published), ours=float(activations),
                         unit="micro-batches", source="Chimera (SC 2021), table 2: N, and D/2+1 to D")  # fmt: skip


def small_ones() -> Iterator[Row]:
    """Lina's slow-down, and what a failure wastes with checkpoints at a remote store."""
    yield Measured(id="published/lina/most", model="all-to-all beside all-reduce", engine="closed-form", ranks=16,
                   reference=4.14, ours=shared_slow_down(1.0, 100.0), unit="times longer",
                   source="Lina (ATC 2023): all-to-all that overlaps all-reduce, the most",
                   note="one concurrent all-reduce with fair sharing at most doubles the time; the published factor"
                        " needs three")  # fmt: skip
    yield Measured(id="published/gemini/wasted", against="worked example", model="Gemini, wasted time",
                   engine="closed-form", reference=105.0, ours=wasted_time(42.0, 42.0, 42.0), unit="min", ranks=16,
                   source="Gemini (SOSP 2023): MT-NLG's checkpoint takes 42 min to a remote store")  # fmt: skip


def stale() -> Iterator[Row]:
    """Parameter servers with bounded delay: time of an iteration over what of it is computed."""
    published = {0: 1.76 / 0.87, 1: 1.28 / 0.91, 2: 1.11 / 0.93, 4: 1.03 / 0.96, 8: 1.02 / 0.99, 16: 1.12 / 1.1}
    compute = draw_compute(16, 150, 1.0, SSP_JITTER, seed=1)
    for bound, theirs in published.items():
        yield Measured(id=f"published/ps/delay/{bound}", model="parameter servers, bounded delay", engine="recurrence",
                       ranks=16, reference=theirs, ours=16 / run_workers(compute, bound=bound).throughput,
                       unit="time over computing", fitted=not bound,
                       source=f"Parameter Server (OSDI 2014), figure 13: delay of {bound}",
                       note="assumed: 16 workers with log-normal times, their spread fitted to delay 0")  # fmt: skip


def horovod() -> Iterator[Row]:
    """Scaling that was measured with Horovod: ours by the wire, from NetAI'20's backward passes."""
    add = read_vector_add(TRACES / "netai20_vector_add.csv")
    traces = {m: read_backward_trace(TRACES / f"netai20_{m}.csv").with_compute_time(t)
              for m, t in netai20.BATCH_TIME.items()}  # fmt: skip
    sweep = [("resnet50", n, gbps, theirs) for n, cells in ((64, (7, 47, 69, 71, 72)), (16, (13, 68, 75, 75, 76)))
             for gbps, theirs in zip((1, 10, 25, 40, 100), cells, strict=True)]  # fmt: skip
    sweep += [("vgg16", n, 100, theirs) for n, theirs in ((16, 56), (32, 63), (64, 60))]
    for model, n, gbps, theirs in sweep:
        ours = train(
            "horovod", TrainingSetting(traces[model], n, closed_form_costs(0.0, gbps * 1e9 / 8), 1.0, add)
        ).scaling
        yield Measured(id=f"published/netai20/measured/{model}/{n}/{gbps}", model=f"Horovod, {model}", ranks=n,
                       engine="closed-form", reference=float(theirs), ours=100 * ours, unit="% of linear",
                       source=f"NetAI 2020, measured: {n // 8} machines of 8 V100, {gbps} Gb/s",
                       note=NO_RING if (n, model) == (16, "resnet50") and gbps <= 10 else TCP)  # fmt: skip
    ours = train("horovod", TrainingSetting(traces["vgg16"], 512, closed_form_costs(0.0, 25e9 / 8), 1.0, add)).scaling
    yield Measured(id="published/horovod/vgg16", model="Horovod, vgg16", engine="closed-form", ranks=512,
                   reference=68.0, ours=100 * ours, unit="% of linear",
                   source="Horovod's documentation: 128 machines of 4 P100, 25 Gb/s",
                   note="our backward pass is that of a V100 with batches of 32; a P100 is slower and hides more"
                        " communication, and its batch was not published")  # fmt: skip

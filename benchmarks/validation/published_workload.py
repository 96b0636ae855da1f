"""Training iterations, pipelines and jobs on one link beside what was published of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.accuracy import netai20
from commsim.papers.systems.volumes import embedding_volume
from commsim.placement.crux import CruxJob, utilisation
from commsim.training.parallel.pipeline import StageCosts, bubble, pipeline_graph
from commsim.training.parallel.pipeline_orders import ORDERS
from commsim.training.task_graph import simulate_graph

from .row import Row

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
Theory = functools.partial(Row, kind="published", against="published theory", operation="training")
Example = functools.partial(Theory, against="worked example")


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset needs no traces."""
    yield from bubbles()
    yield from examples()
    if not quick and (TRACES / "netai20_vgg16.csv").exists():
        yield from netai()


def bubbles() -> Iterator[Row]:
    """Pipelines played as graphs against the ratios of Chimera's table 2; forward and backward take as long."""
    formulas: dict[str, tuple[Callable[[int, int], float], str]] = {
        "gpipe": (lambda d, n: (d - 1) / (n + d - 1), "(D-1)/(N+D-1)"),
        "1f1b": (lambda d, n: (d - 1) / (n + d - 1), "(D-1)/(N+D-1)"),
        "chimera": (lambda d, n: (d - 2) / (2 * n + d - 2), "(D-2)/(2N+D-2)"),
    }
    for name, (formula, text) in formulas.items():
        for d, n in ((4, 4), (4, 8), (8, 8), (8, 32)):
            timeline = simulate_graph(pipeline_graph(ORDERS[name](d, n), StageCosts(1.0, 1.0)), lambda _: 0.0)
            yield Theory(id=f"published/bubble/{name}/{d}/{n}", model=f"{name}, bubble", engine="task graph", ranks=d,
                         reference=formula(d, n), ours=bubble(timeline, d), unit="share of time",
                         source=f"Chimera (SC 2021), table 2: {text}")  # fmt: skip


def examples() -> Iterator[Row]:
    """Optimus-CC's embedding with four-fold data parallelism, and Crux's first example."""
    for fused, published in ((False, 2.5), (True, 1.75)):
        yield Example(id=f"published/optimus_cc/{fused}", model="Optimus-CC, embedding", engine="closed-form", ranks=8,
                      reference=published, ours=float(embedding_volume(4, fused=fused)), unit="embeddings sent",
                      source="Optimus-CC (ASPLOS 2023): 2.5 V, fused 1.75 V")  # fmt: skip
    jobs = CruxJob("J1", 10, 10.0, 2.0, 2.0), CruxJob("J2", 10, 5.0, 1.0, 1.0)
    for order, published in ((jobs, 37.5), (jobs[::-1], 41.7)):
        yield Example(id=f"published/crux/1/{order[0].name}", model="Crux, jobs on a link", engine="strict priority",
                      operation="shared link", ranks=20, reference=published, ours=100 * utilisation(order, 12.0),
                      unit="% busy", source="Crux (SIGCOMM 2024), example 1, over 12 s")  # fmt: skip


def netai() -> Iterator[Row]:
    """Scaling factors of NetAI'20, from its authors' traces, which lie beside the checkout or nowhere."""
    for model, n, gbps, compression, theirs, ours in netai20.rows(TRACES):
        yield Theory(id=f"published/netai20/{model}/{n}/{gbps:g}/{compression:g}", model=f"scaling of {model}",
                     engine="closed-form", ranks=n, reference=theirs, ours=ours, unit="% of linear",
                     source=f"{netai20.SOURCE}; {gbps:g} Gb/s, compression {compression:g}")  # fmt: skip

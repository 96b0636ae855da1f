"""Collectives and parameter servers beside what was published of them on machines of others."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.accuracy import byteps_fig12, published_rates
from collectives import COLLECTIVES
from commsim.core.placement import Placement
from commsim.core.units import parse_size
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.prediction.build import prepare
from commsim.prediction.inputs import load_network

from .row import Row

Measured = functools.partial(Row, kind="published", against="measured", engine="flow")
FIGURE_12 = {
    "BytePS": ("BytePS", ""),
    "all-reduce (NCCL)": ("all-reduce (ring)", "NCCL reached 70 % of its link rate; library costs are not modelled"),
    "native PS": ("PS on k machines", "the native servers reached about half of their link rate (CPU, copies)"),
}
NO_PROTOCOL = "only links are modelled; the library's protocol and copies account for the difference"
# Low-latency kernels of DeepEP, 128 tokens, by ranks: microseconds of dispatch and combine.
DEEPEP = {16: (118, 195), 32: (155, 273), 64: (173, 314)}
OTHER = "{}: not the algorithm or the channels that were measured"


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset leaves out the large hosts."""
    yield from figure_12()
    if not quick:
        yield from bus_bandwidths()
        yield from experts()
    yield from small_ones()
    yield from two_jobs()


def experts() -> Iterator[Row]:
    """Exchanges of experts, beside DeepEP's README: machines with other NVLinks, and no constant fitted on them."""
    for ranks, published in DEEPEP.items():
        for what, reference in zip(("dispatch", "combine"), published, strict=True):
            spec = f"ep_{what}:tokens=128,mode=low_latency,library=deepep"
            network = f"dgx-h100@star:machines={ranks // 8}"
            ready = prepare(spec, load_network(network))
            (size,), _ = ready.sizes([])
            yield Measured(id=f"published/deepep/{what}/{ranks}", model=spec, operation=f"ep_{what}", ranks=ranks,
                           network=network, size=size, unit="us", reference=float(reference),
                           ours=ready.predict(size).time * 1e6, source="DeepEP at 0297fc80, docs/legacy.md",
                           note="its launch is that of H100 in other tables, and routing is drawn")  # fmt: skip


def figure_12() -> Iterator[Row]:
    """BytePS's figure 12: theory, and three systems that were measured."""
    table = {(name, how): values for name, how, values in byteps_fig12.rows()}
    for k, published in enumerate(byteps_fig12.THEORY):
        yield Row(id=f"published/fig12/theory/{k}", kind="published", against="published theory", engine="closed-form",
                  model="BytePS", operation="all_reduce", ranks=8, network="star", unit="Gb/s", reference=published,
                  ours=table["BytePS", "theory"][k] or 0.0, source=f"{byteps_fig12.SOURCE}: its line",
                  size=byteps_fig12.SIZE)  # fmt: skip
    for name, (ours, why) in FIGURE_12.items():
        flat = len(set(byteps_fig12.MEASURED[name])) == 1
        for k, measured in enumerate(byteps_fig12.MEASURED[name][: 1 if flat else None]):  # a flat line is one number
            goodput = table[ours, "flow"][k]
            if goodput is None:
                continue  # without CPU machines nobody is a server
            note = why or "BytePS itself reached 90 to 95 % of theory"
            yield Measured(id=f"published/fig12/{name}/{k}", model=name, operation="all_reduce", ranks=8,
                           network="star", size=byteps_fig12.SIZE, unit="Gb/s", reference=float(measured),
                           ours=goodput, source=byteps_fig12.SOURCE, note=note)  # fmt: skip


def bus_bandwidths() -> Iterator[Row]:
    """All-reduce on hosts of 8 GPUs, one and four of them."""
    for case in published_rates.CASES:
        if case.published is None:
            continue
        result = published_rates.predicted(case)
        other = "another algorithm" in case.source or "one channel" in case.source
        note = OTHER.format(case.source.rpartition("; ")[2]) if other else NO_PROTOCOL
        # a latency-bound size of a simulator whose protocol is not in our links
        yield Measured(id=f"published/busbw/{case.network}/{case.collective}/{case.size}/{case.published:g}",
                       against="published simulation" if "SimAI" in case.source else "measured",
                       model=case.collective, operation=result.operation, ranks=result.n_ranks, network=case.network,
                       size=float(parse_size(case.size)), unit="GB/s", reference=case.published,
                       ours=result.busbw / 1e9, source=case.source, note=note)  # fmt: skip


def small_ones() -> Iterator[Row]:
    """Two rings of two hosts, with everything that was said of them."""
    software = "the TCP headers and the library's copies are not part of links of 125 MB/s"
    for name, hosts, speed, size, published, source, note in (
        ("Gloo, ring_chunked", 2, "1Gbps", 20e6, 0.180, "pytorch/gloo issue #21, a maintainer's text", software),
        ("VGG16, data parallel", 2, "50Gbps", 528e6, 0.114, "CASSINI (NSDI 2024), figure 3: Up phase",
         "NCCL over RoCE reached 74 to 78 % of the line rate; the number of workers is assumed"),
    ):  # fmt: skip
        ours = prepare("ring_all_reduce", f"star:n_hosts={hosts},bandwidth={speed},latency=1us").predict(size).time
        yield Measured(id=f"published/ring/{name}", model=name, operation="all_reduce", ranks=hosts, network="star",
                       size=size, unit="s", reference=published, ours=ours, source=source, note=note)  # fmt: skip


def two_jobs(size: float = 549e6) -> Iterator[Row]:
    """Jobs that meet on a link: what each gets of it, and how much slower it becomes."""
    spec = "leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf=2,oversubscription=2,latency=1us,bandwidth=50Gbps"
    network = load_network(spec)
    jobs = [FlowJob(COLLECTIVES["ring_all_reduce"].build(2), Placement(at)) for at in ([0, 2], [1, 3])]
    both = simulate_flows(plan_flows(network, jobs), size)[0].time
    yield Measured(id="published/cassini/share", model="fair share of a link", operation="all_reduce", ranks=2,
                   network="leaf_spine", size=size, unit="Gb/s", reference=22.0, ours=size * 8e-9 / both,
                   source="CASSINI (NSDI 2024), figure 2: two VGG19 jobs on 50 Gb/s, about 22 each",
                   note="half of the line rate; the share lost to DCQCN and headers is not modelled")  # fmt: skip
    network = load_network("star:n_hosts=4,bandwidth=100Gbps,latency=1us")
    build = [COLLECTIVES[name].build(4) for name in ("pairwise_all_to_all", "ring_all_reduce")]
    jobs = [FlowJob(schedule, Placement(range(4))) for schedule in build]
    alone = simulate_flows(plan_flows(network, jobs[:1]), size)[0].time
    beside = simulate_flows(plan_flows(network, jobs), [size, 100 * size])[0].time
    yield Measured(id="published/lina/slowdown", model="all-to-all beside all-reduce", operation="all_to_all", ranks=4,
                   network="star", size=size, unit="times longer", reference=1.83, ours=beside / alone,
                   source="Lina (ATC 2023): all-to-all that overlaps all-reduce, median",
                   note="ours overlaps from the first to the last byte; published is up to 4.14 times")  # fmt: skip

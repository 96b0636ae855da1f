"""A trial of the testbed before this one was built: shaped namespaces on one Linux machine, measured by others of us.

Predicted with no parameter fitted: the flow engine on the shaped rate, packets of MTU 9000, links without latency.
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Iterator

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.placement import Placement
from commsim.engine.flow import simulate_flows
from commsim.engine.flow_job import FlowJob
from commsim.engine.flow_plan import plan_flows
from commsim.packets.aggregated.aggregation_jobs import aggregation_job, with_loss
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from switch_model.systems import SYSTEMS

from .row import Row

MIB = 2**20
TCP = Framing(payload=9000 - 52, header=66)  # IP, TCP with time stamps; Ethernet as the shaper counts it
SOURCE = "trial in shaped namespaces, one machine of 2 cores"
Measured = functools.partial(Row, kind="published", against="measured", operation="all_reduce")
SPREAD_4, SPREAD_8 = (0, 2, 1, 3), (0, 4, 1, 5, 2, 6, 3, 7)
CPU = "not counted: in the trial the CPU was the bottleneck"
RENDEZVOUS = "likely cause: the TCP transport serialises the two directions of an exchange of large messages"
TIMERS = "unknown: the trial's workers are processes in user space, so their 50 ms timers may be late"
TREE = "unknown cause"
Trial = tuple[int, float, str, float, float]
GLOO: tuple[Trial, ...] = (  # ranks, Mbit/s, placement, ms, coefficient of variation
    (4, 100, "star", 507.8, 0.006), (4, 200, "star", 257.6, 0.036), (4, 500, "star", 102.1, 0.006),
    (4, 1000, "star", 50.8, 0.003), (4, 2000, "star", 25.5, 0.010), (4, 5000, "star", 11.3, 0.031),
    (8, 100, "star", 597.0, 0.016), (8, 200, "star", 307.0, 0.029), (8, 500, "star", 131.5, 0.105),
    (4, 200, "packed", 255.5, 0.018), (4, 200, "spread", 509.1, 0.009),
    (8, 100, "packed", 593.5, 0.001), (8, 100, "spread", 1193.3, 0.002), (8, 100, "spread 4:1", 2418.6, 0.013),
)  # fmt: skip
CPU_BOUND = {(4, 5000), (8, 500)}
MPICH = {  # ranks: ms of 1 MiB and of 4 MiB
    "ring_all_reduce": {4: (63.4, 255.2), 8: (148.1, 598.9)},
    "recursive_doubling_all_reduce": {4: (84.6, 679.0), 8: (257.7, 2035.0)},
    "halving_doubling_all_reduce": {4: (63.5, 421.0), 8: (147.9, 1213.0)},
    "binomial_tree_all_reduce": {4: (201.0, 1013.0)},
}


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset leaves out losses."""
    yield from gloo()
    yield from mpich()
    yield from two_jobs()
    yield from switch(quick)


def gloo() -> Iterator[Row]:
    """Gloo's ring of 4 MiB on stars and leaf-spines, packed and spread."""
    for n, mbps, where, ms, cv in GLOO:
        bound = (n, mbps) in CPU_BOUND
        yield Measured(id=f"published/trial/gloo/{n}/{mbps:g}/{where}", model=f"ring, {where}", engine="flow", ranks=n,
                       network="star" if where == "star" else "leaf_spine", size=4.0 * MIB, unit="s",
                       reference=ms / 1e3, ours=ring(n, mbps, where), source=f"{SOURCE}: Gloo, {mbps:g} Mbit/s",
                       spread=cv, valid=not bound, note=CPU if bound else "")  # fmt: skip


def ring(n: int, mbps: float, where: str) -> float:
    """Seconds of a ring of 4 MiB on the trial's star, or on its two racks."""
    ranks = {4: SPREAD_4, 8: SPREAD_8}[n] if where.startswith("spread") else tuple(range(n))
    return _alone("ring_all_reduce", _network(n, mbps, where), ranks, 4.0 * MIB)


def _network(n: int, mbps: float, where: str) -> str:
    if where == "star":
        return f"star:n_hosts={n},bandwidth={mbps:g}Mbps,latency=0us"
    uplink = n // 2 * mbps / (4 if where.endswith("4:1") else 2)
    return (
        f"leaf_spine:n_leaves=2,n_spines=1,hosts_per_leaf={n // 2},uplink_bandwidth={uplink:g}Mbps,"
        f"bandwidth={mbps:g}Mbps,latency=0us"
    )


def _alone(collective: str, network: str, ranks: tuple[int, ...], size: float) -> float:
    job = FlowJob(COLLECTIVES[collective].build(len(ranks)), Placement(ranks))
    return simulate_flows(plan_flows(load_network(network), [job]), size, framing=TCP)[0].time


def mpich() -> Iterator[Row]:
    """MPICH's algorithms on a star, 200 Mbit/s for 4 ranks and 100 for 8."""
    for name, measured in MPICH.items():
        for n, times in measured.items():
            for size, ms in zip((1.0 * MIB, 4.0 * MIB), times, strict=True):
                mbps = {4: 200, 8: 100}[n]
                ours = _alone(name, _network(n, mbps, "star"), tuple(range(n)), size)
                note = TREE if "tree" in name else RENDEZVOUS if size > MIB and "ring" not in name else ""
                yield Measured(id=f"published/trial/mpich/{name}/{n}/{size / MIB:g}", model=f"MPICH {name}",
                               engine="flow", ranks=n, network="star", size=size, unit="s", reference=ms / 1e3,
                               ours=ours, source=f"{SOURCE}: MPICH over TCP, {mbps} Mbit/s", note=note)  # fmt: skip


def two_jobs(size: float = 4.0 * MIB) -> Iterator[Row]:
    """Two rings of two ranks over a link of 100 Mbit/s: one alone, both at once, and the second 0.47 s later."""
    network = load_network(_network(4, 100, "packed"))
    jobs = [FlowJob(COLLECTIVES["ring_all_reduce"].build(2), Placement(at)) for at in ((0, 2), (1, 3))]
    for name, running, shift, measured in (
        ("alone", jobs[:1], 0.0, 0.341), ("at once", jobs, 0.0, 0.67485), ("shifted", jobs, 0.47, 0.3376),
    ):  # fmt: skip
        starts = [0.0, 0.0, shift, shift][: 2 * len(running)]
        ours = max(r.time_from_last_start for r in simulate_flows(
            plan_flows(network, running), size, starts=starts, framing=TCP))  # fmt: skip
        yield Measured(id=f"published/trial/jobs/{name}", model=f"two jobs, {name}", engine="flow", ranks=2,
                       network="leaf_spine", size=size, unit="s", reference=measured, ours=ours,
                       source=f"{SOURCE}: Gloo, two jobs on 100 Mbit/s")  # fmt: skip


def switch(quick: bool, size: float = 2.0 * MIB) -> Iterator[Row]:
    """SwitchML in the kernel's traffic control, with and without losses."""
    for n, mbps, loss, ms, spread in ((4, 50, 0.0, 360.0, 0.01), (4, 20, 0.0, 889.0, 0.02), (8, 50, 0.0, 441.5, 0.11),
                                      (4, 50, 0.001, 397.5, 0.09), (4, 50, 0.01, 707.5, 0.18)):  # fmt: skip
        if quick and loss:
            continue
        yield Measured(id=f"published/trial/switchml/{n}/{mbps}/{loss:g}", model="SwitchML in the kernel",
                       engine="packet", ranks=n, network="star", size=size, unit="s", reference=ms / 1e3,
                       ours=aggregated(n, mbps, loss, size), spread=spread, valid=n < 8,
                       source=f"{SOURCE}: traffic-control program, {mbps} Mbit/s, loss {loss:g} each way",
                       note=CPU if n == 8 else TIMERS if loss else "")  # fmt: skip


def aggregated(n: int, mbps: int, loss: float, size: float) -> float:
    """Seconds of an all-reduce through one switch; its shaper counts frames without preamble, gap and checksum."""
    usual = SYSTEMS["switchml_udp"].build(pool_size=32)
    system = dataclasses.replace(usual, header=50, rto=0.05)
    network = with_loss(load_network(f"star:n_hosts={n},bandwidth={mbps}Mbps,latency=0us"), loss, loss)
    job = aggregation_job(system, network, network.endpoints.tolist(), int(size) // 4)
    seeds = range(5 if loss else 1)
    return statistics.median(simulate_aggregation(network, [job], values=False, seed=s).results[0].time for s in seeds)

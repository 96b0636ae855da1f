"""In-network aggregation beside what was published: SwitchML's rates, and what stood beside them, SHARP's latencies."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from benchmarks.switch import rates as switch_rates
from commsim.packets.aggregated.aggregation_jobs import aggregation_job
from commsim.packets.run_packets import simulate_aggregation
from commsim.prediction.inputs import load_network
from switch_model.bounds import line_rate, ring_rate, server_rate
from switch_model.system import System
from switch_model.systems import SYSTEMS

from .row import Row

GBPS = 1e9 / 8
FIGURE = "SwitchML (NSDI 2021), figure 3, digitised to 2 %"
CPU = "host software (CPU, copies, TCP) limits this rate; the model has only links and packets"
LIBRARY = "a bound on bytes without headers, which no library reaches: NCCL's protocols and PCIe are not modelled"
RDMA_256, RDMA_64, UDP_256, UDP_64 = "RDMA, 256", "RDMA, 64", "DPDK, 256", "DPDK, 64"
SWITCHML: dict[tuple[str, int], dict[int, float]] = {
    (RDMA_256, 10): {8: 287}, (RDMA_256, 100): {4: 2830, 8: 2830, 16: 2780},
    (RDMA_64, 10): {4: 235, 8: 230, 16: 228}, (RDMA_64, 100): {4: 2320, 8: 2300, 16: 2250},
    (UDP_256, 10): {8: 289}, (UDP_256, 100): {8: 1850},
    (UDP_64, 10): {8: 241}, (UDP_64, 100): {4: 1020, 8: 1000, 16: 960},
}  # fmt: skip
LINE = {10: 289.0, 100: 2900.0}
OTHERS: dict[tuple[str, int], dict[int, float]] = {
    ("NCCL-RDMA", 10): {4: 187, 8: 160, 16: 150}, ("NCCL-RDMA", 100): {4: 1370, 8: 1280, 16: 970},
    ("NCCL-TCP", 10): {4: 188, 8: 163, 16: 147}, ("NCCL-TCP", 100): {4: 330, 8: 290, 16: 220},
    ("Gloo", 10): {4: 117, 8: 85, 16: 76}, ("Gloo", 100): {4: 130, 8: 110, 16: 90},
    ("servers on the workers' hosts", 10): {8: 101}, ("servers on the workers' hosts", 100): {4: 220, 8: 210, 16: 200},
    ("as many servers as workers", 10): {8: 204}, ("as many servers as workers", 100): {4: 450, 8: 430, 16: 400},
}  # fmt: skip
TREE = "leaf_spine:n_leaves=8,n_spines=1,hosts_per_leaf=16,bandwidth=100Gbps,latency=0.1us"
Measured = functools.partial(Row, kind="published", against="measured", operation="all_reduce")
Rated = functools.partial(Measured, unit="M elements/s", network="star")


def rows(quick: bool) -> Iterator[Row]:
    """Compare; the quick subset leaves out what takes the packet engine long."""
    yield from png(quick)
    yield from figure_3(quick)
    yield from other_libraries()
    if not quick:
        yield from sharp()


def png(quick: bool) -> Iterator[Row]:
    """Rates of the authors' repository: theirs, the line rate that it plots, and NCCL's."""
    cases = [case for case in switch_rates.cases() if case.published is not None]
    at = f"{switch_rates.PNG}, to 11 M elements/s"
    for case in cases[:1] if quick else cases:
        assert case.published is not None
        ours = switch_rates.simulated_rate(case.system, case.gbps, case.n_workers) / 1e6
        yield Rated(id=f"published/switchml/png/{case.n_workers}", model="SwitchML", engine="packet",
                    ranks=case.n_workers, reference=case.published, ours=ours, source=at)  # fmt: skip
    for case in cases:
        assert case.ring is not None
        yield Rated(id=f"published/nccl/png/{case.n_workers}", model="NCCL", engine="bound", ranks=case.n_workers,
                    reference=case.ring, ours=ring_rate(100 * GBPS, case.n_workers) / 1e6, source=at,
                    note=LIBRARY)  # fmt: skip
    bound = line_rate(cases[0].system, 100 * GBPS) / 1e6
    yield Rated(id="published/switchml/png/line", against="published theory", model="line rate", engine="bound",
                reference=2879.0, ours=bound, source=f"{at}: the dashed line")  # fmt: skip


def figure_3(quick: bool) -> Iterator[Row]:
    """SwitchML's four kinds of packets at 10 and 100 Gb/s."""
    for (name, gbps), measured in SWITCHML.items():
        for n, published in measured.items():
            if not quick or (n, gbps, name) == (8, 10, RDMA_64):
                ours = switch_rates.simulated_rate(_system(name), gbps, n) / 1e6
                yield Rated(id=f"published/switchml/fig3/{name}/{gbps}/{n}", model=f"SwitchML {name}", engine="packet",
                            ranks=n, reference=published, ours=ours, source=f"{FIGURE}: {gbps} Gb/s",
                            note=CPU if "DPDK" in name and gbps == 100 else "")  # fmt: skip
    for gbps, published in LINE.items():
        ours = line_rate(_system(RDMA_256), gbps * GBPS) / 1e6
        yield Rated(id=f"published/switchml/fig3/line/{gbps}", against="published theory", model="line rate",
                    engine="bound", reference=published, ours=ours, source=f"{FIGURE}: {gbps} Gb/s")  # fmt: skip


def _system(name: str) -> System:
    """Build what the figure names; the paper's messages have 16 packets."""
    kind, elements = name.split(", ")
    more = {"packets_per_message": 16} if kind == "RDMA" else {}
    return SYSTEMS["switchml_rdma" if more else "switchml_udp"].build(elements_per_packet=int(elements), **more)


def other_libraries() -> Iterator[Row]:
    """Rings and servers of the same figure, against bounds of bytes."""
    for (name, gbps), measured in OTHERS.items():
        for n, published in measured.items():
            bound = {"servers on the workers' hosts": ring_rate(gbps * GBPS, n),
                     "as many servers as workers": server_rate(gbps * GBPS, n, n)}  # fmt: skip
            note = LIBRARY if "NCCL-RDMA" in name else CPU.replace("packets", "bytes")
            yield Rated(id=f"published/fig3/{name}/{gbps}/{n}", model=name, engine="bound", ranks=n,
                        reference=published, ours=bound.get(name, ring_rate(gbps * GBPS, n)) / 1e6,
                        source=f"{FIGURE}: {gbps} Gb/s",
                        note=note)  # fmt: skip


def sharp() -> Iterator[Row]:
    """SHARP on 128 hosts; both latencies, and the rate of streams, are what its constants were fitted to."""
    at = "Graham et al., COMHPC 2016, abstract: 128 hosts"
    for n_bytes, published in ((8, 2.83), (4096, 14.48)):
        yield Measured(id=f"published/sharp/{n_bytes}", model="SHARP", engine="packet", ranks=128, network="leaf_spine",
                       reference=published, ours=sharp_time(n_bytes, "low_latency") * 1e6, unit="us",
                       size=float(n_bytes), source=at, fitted=True)  # fmt: skip
    rate = 2**24 / sharp_time(2**24, "streaming") / (100 * GBPS)
    yield Measured(id="published/sharp/stream", model="SHARP, streams", engine="packet", ranks=128, size=2.0**24,
                   network="leaf_spine", reference=0.95, ours=rate, unit="share of the link",
                   source="Graham et al., ISC 2020, abstract", fitted=True)  # fmt: skip


def sharp_time(n_bytes: int, mode: str) -> float:
    """Seconds of an all-reduce of 128 hosts."""
    network = load_network(TREE)
    job = aggregation_job(SYSTEMS["sharp"].build(mode=mode), network, network.endpoints.tolist(), n_bytes // 4)
    return simulate_aggregation(network, [job], values=False).results[0].time

"""Worked examples and small figures that others published, and that have one right answer."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from commsim.prediction.build import prepare
from switch_model.budget.jobs import budget
from switch_model.budget.tofino import tofino_1
from switch_model.systems import SYSTEMS

from . import rate_allocation
from .rate_allocation import push_pull_time
from .row import Row
from .slots_on_demand import FIRST_WORKERS_FIRST, on_demand, scheduled

Example = functools.partial(Row, kind="published", against="worked example", operation="all_reduce")


def rows(quick: bool) -> Iterator[Row]:
    """Compare; none of them takes long, but the rates need SciPy's import."""
    if not quick:
        yield from rates()
    yield from packets()
    yield from times()
    yield from memory()
    yield from cpu_links()


def rates() -> Iterator[Row]:
    """GRID's example of rates."""
    found = {"Geryon": (1.0, rate_allocation.unaggregated()), "ATP": (2.43, rate_allocation.atp()),
             "GRID": (3.0, rate_allocation.grid())}  # fmt: skip
    for name, (published, ours) in found.items():
        yield Example(id=f"published/grid/{name}", model="rate allocation", engine="linear program", ranks=8,
                      reference=published, ours=ours.rate, unit="Gb/s",
                      source="GRID (ToN 2023), section 3.1 and figure 1")  # fmt: skip


def packets() -> Iterator[Row]:
    """GOAT's example of slots: packets that the server receives and that leave switches."""
    found = {"ATP": (on_demand(FIRST_WORKERS_FIRST), 7, 17), "GOAT": (scheduled(FIRST_WORKERS_FIRST), 3, 13)}
    for name, (ours, server, egress) in found.items():
        for what, published, count in (("server", server, ours.server), ("egress", egress, ours.egress)):
            yield Example(id=f"published/goat/{name}/{what}", model="slots on demand", engine="slot rule", ranks=4,
                          reference=float(published), ours=float(count), unit="packets",
                          source="GOAT (ToN 2024), section III-B and figure 2")  # fmt: skip


def times() -> Iterator[Row]:
    """InArt's communication times from its rates; and SwitchML's definition of goodput."""
    for gbps, published in ((15.4, 0.56), (19.25, 0.45), (23.1, 0.38), (26.2, 0.31)):
        yield Example(id=f"published/inart/{gbps:g}", model="push and pull", engine="closed-form", ranks=6,
                      reference=published, ours=push_pull_time(548e6, gbps * 1e9 / 8), unit="s", size=548e6,
                      source="InArt (WWW 2024), figure 5, at the rates of its figure 2",
                      note="the paper's own rate gives 0.335 s, which contradicts its time"
                      if gbps == 26.2 else "")  # fmt: skip
    yield Example(id="published/goodput", model="goodput", engine="closed-form", ranks=4, size=4.0 * 2**20,
                  reference=0.0630755, ours=4 * 2**20 / 0.531972764 * 8e-9, unit="Gb/s",
                  source="README_zh.md of haolinyan/p4app-switchML: 2^20 elements in 0.531972764 s")  # fmt: skip


def memory() -> Iterator[Row]:
    """Compare registers of the public switch programs."""
    tofino = tofino_1()
    atp = budget(SYSTEMS["atp"].build(), tofino)
    switchml = budget(SYSTEMS["switchml_udp"].build(elements_per_packet=64), tofino, pool_size=8192)
    arrays = atp.layout.arrays + atp.layout.control_arrays
    for name, published, ours in (("ATP", 5.6, atp.n_entries * 4e-6 * arrays),
                                  ("SwitchML", 4.194304, switchml.value_bytes / 1e6)):  # fmt: skip
        yield Example(id=f"published/registers/{name}", model="switch budget", engine="budget", reference=published,
                      ours=ours, unit="MB", source=f"register arrays in the P4 program of {name}")  # fmt: skip


def cpu_links() -> Iterator[Row]:
    """Compare what the links between PCIe switches and the CPU carry, in gradients, in a machine of 8 GPUs."""
    for spec, published in (("ring_all_reduce", 7 / 4), ("byteps:n_switches=2", 1.0)):
        ready = prepare(spec, "pcie_host:n_gpus=8,n_pcie_switches=2")
        names = [ready.network.link_name(i) for i in range(ready.network.n_links)]
        carried = ready.predict(8e8).link_bytes
        ours = max(float(carried[names.index(name)]) for name in ("pcie0:cpu0", "cpu0:pcie0"))
        yield Example(id=f"published/cpu_link/{ready.schedule.name}", against="published theory",
                      model=f"{ready.schedule.name} inside a machine", engine="flow", ranks=8, network="pcie_host",
                      reference=published, ours=ours / 8e8, unit="gradients", size=8e8,
                      source="BytePS (OSDI 2020), slides: 7M/4 on the CPU's link, or M")  # fmt: skip

"""The same calls as two simulators' published models give them, as far as these can be stated in a line.

ASTRA-sim's analytical network: a ring of n - 1 steps (an all-reduce: twice), each a latency and a part of the bytes
over the bandwidth; its validated HGX-H100 has 400 GiB/s and 936.25 ns (astra-sim examples). SimAI: the same ring, with
3 us a send (``AS_SEND_LAT=3`` of its README) and the rates of ``calbusbw.h``. Neither knows protocols or channels. A
ring over several machines crosses the NICs, so the smaller rate counts.
"""

from __future__ import annotations

from commsim.core.operations import operation as operation_of
from commsim.nccl.site import Site

ASTRA_BANDWIDTH, ASTRA_LATENCY = 400 * 2.0**30, 936.25e-9
SIMAI_SEND = 3e-6
# Rates that calbusbw.h takes for a GPU's NVLinks and for NICs, in bytes/s; NICs by what they are sold as.
SIMAI_NVLINK = {"ampere": 240e9, "hopper": 370.8e9}
SIMAI_NIC = {25e9: 23.5e9, 50e9: 48.5e9}


def ring(operation: str, n: int, size: int, latency: float, rate: float) -> float:
    """Return steps times latency and bytes over rate; a message for two ranks that exchange one."""
    if operation == "send_recv":
        return latency + size / rate
    n_steps = (2 if operation == "all_reduce" else 1) * (n - 1)
    return n_steps * latency + operation_of(operation).busbw_factor(n) * size / rate


def astra_ring(site: Site, operation: str, size: int) -> float | None:
    """Return ASTRA-sim's time in seconds; it has validated constants for Hopper on NVSwitch only."""
    if site.setting.gpu != "hopper" or site.pcie:
        return None
    rate = ASTRA_BANDWIDTH if site.setting.n_nodes == 1 else min(ASTRA_BANDWIDTH, site.nics)
    return ring(operation, site.setting.n_ranks, size, ASTRA_LATENCY, rate)


def simai(site: Site, operation: str, size: int) -> float | None:
    """Return SimAI's time in seconds; None for GPUs or NICs that it has no rates for."""
    where = site.setting
    rate = SIMAI_NVLINK.get(where.gpu)
    if rate is None or site.pcie:
        return None
    if where.n_nodes > 1:
        each = site.nics / max(1, round(site.nics / 50e9)) if where.gpu == "hopper" else 25e9
        known = SIMAI_NIC.get(each)
        if known is None:
            return None
        rate = min(rate, site.nics / each * known)
    return ring(operation, where.n_ranks, size, SIMAI_SEND, rate)

"""Faults of collectives without a closed form, RCCL's and plain ones: each is put into the network or the plan.

Every fault is one simulation of each size, so that few forms of each cause are tried.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commsim.core.faults.failures import remove_cables
from commsim.core.network import GPU, SWITCH, Network
from commsim.core.network_queries import partners, units
from commsim.diagnosis.causes.all_faults import FaultTimes, fault_times
from commsim.diagnosis.causes.fabric_faults import CONGESTED, LATE, UNSTEADY
from commsim.diagnosis.causes.fault import ROUNDABOUT, Fault
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import solve

# Parts of the links' rate that are tried; algorithms of RCCL; and factors of what the way through the host carries.
PARTS, ALGORITHMS, STAGED = (2, 4, 8), ("ring", "tree"), (0.6, 0.3)
# Latency that a hop has more over sockets, s, and rate that a core moves over TCP, bytes/s (as in software_faults).
HOP_OF_SOCKETS, TCP = (10e-6, 50e-6), 42e9 / 8


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """A scenario as faults change it.

    Parameters
    ----------
    scenario : Scenario
        Question.
    delay : float, s
        Time that each call takes longer.
    known : dict
        Times of the scenario that are known, by sizes: those with a delay are not simulated again.
    """

    scenario: Scenario
    delay: float = 0.0
    known: dict[tuple[float, ...], NDArray[np.float64]] = field(default_factory=dict)

    def times(self, sizes: Sequence[float]) -> NDArray[np.float64]:
        """Return the time of a call of each size in bytes, s.

        Raises
        ------
        InputError
            If the collective cannot run on the network.
        """
        if tuple(sizes) not in self.known:
            self.known[tuple(sizes)] = np.array([result.time for result in solve(self.scenario, sizes).results])
        return self.known[tuple(sizes)] + self.delay

    def on(self, network: Network) -> Simulated:
        """Return the same on another network."""
        return Simulated(dataclasses.replace(self.scenario, network=network), self.delay)

    def with_rates(self, rates: NDArray[np.float64]) -> Simulated:
        """Return the same with other rates of links, float64[n_links], bytes/s."""
        return self.on(dataclasses.replace(self.scenario.network, bandwidth=rates, family=""))


def predict_simulated_faults(
    scenario: Scenario, sizes: Sequence[float], over: Callable[[Sequence[Fault]], Iterable[Fault]] = iter
) -> list[FaultTimes]:
    """Return the times without a fault, and those with each that is tried.

    Parameters
    ----------
    scenario : Scenario
        Question.
    sizes : sequence of float, bytes
        Sizes.
    over : callable
        Wrapper of the faults that shows progress.

    Raises
    ------
    InputError
        If the collective cannot run.
    """
    ground = Simulated(scenario)
    whole = ground.times(sizes)
    faults = [fault for kind in KINDS for fault in kind(ground)]
    return [FaultTimes(None, whole), *fault_times(over(faults), sizes, whole)]


def _between(network: Network) -> NDArray[np.bool_]:
    """Find the links that are not inside a machine: bool[n_links]."""
    src, dst = network.machine[network.src], network.machine[network.dst]
    found: NDArray[np.bool_] = (src != dst) | (src < 0)
    return found


def _where(network: Network) -> str:
    return " between machines" if (network.machine >= 0).any() else " of links"


def _slower_links(ground: Simulated) -> Iterator[Fault]:
    network = ground.scenario.network
    for part in PARTS:
        rates = np.where(_between(network), 1 / part, 1.0) * network.bandwidth
        yield Fault("nic_rate_degraded", f"1/{part} of the rate{_where(network)}", ground.with_rates(rates))


def _fewer_nics(ground: Simulated) -> Iterator[Fault]:
    network = ground.scenario.network
    machine = network.machine[network.src]
    cables = np.flatnonzero(_between(network) & (machine >= 0) & (np.arange(network.n_links) != partners(network)))
    order = cables[np.argsort(machine[cables], kind="stable")]
    number = np.arange(len(order)) - np.searchsorted(machine[order], machine[order])
    if (number % 2).any():
        half = ground.on(remove_cables(network, order[number % 2 == 1]))
        yield Fault("half_or_fewer_nics_used", "half of the NICs are used", half)


def _through_hosts(ground: Simulated) -> Iterator[Fault]:
    """Yield slower ways between machines of GPUs: bytes that go through the host."""
    network = ground.scenario.network
    between = _between(network) & (network.machine[network.src] >= 0)
    for share in STAGED if between.any() and (network.kind == GPU).any() else ():
        slower = ground.with_rates(np.where(between, share, 1.0) * network.bandwidth)
        yield Fault("gpudirect_rdma_off", "no GPUDirect RDMA: bytes go through the host", slower, 1.0, ROUNDABOUT)


def _sockets(ground: Simulated) -> Iterator[Fault]:
    network = ground.scenario.network
    between = _between(network)
    for later, cap in itertools.product(HOP_OF_SOCKETS, (TCP, np.inf)):
        rates = np.where(between, np.minimum(network.bandwidth, cap), network.bandwidth)
        slower = ground.with_rates(rates).scenario.network
        slower = dataclasses.replace(slower, latency=network.latency + np.where(between, later, 0.0))
        text = f"sockets or another software path: {later * 1e6:.0f} us more for each hop"
        yield Fault("ib_disabled_tcp_sockets", text, ground.on(slower), 1.0, ROUNDABOUT, other_way=True)


def _forced_choices(ground: Simulated) -> Iterator[Fault]:
    name = ground.scenario.name
    for algorithm in ALGORITHMS if name.startswith("rccl") and ":" not in name else ():
        forced = Simulated(ground.scenario.with_collective(f"{name}:algorithm={algorithm}"))
        text = f"RCCL takes {algorithm} at every size"
        yield Fault("wrong_algorithm_or_protocol_forced", text, forced, other_way=True)


def _shared_fabric(ground: Simulated) -> Iterator[Fault]:
    network = ground.scenario.network
    switches = (network.kind[network.src] == SWITCH) & (network.kind[network.dst] == SWITCH) & _between(network)
    for part in PARTS if switches.any() else ():
        less = ground.with_rates(np.where(switches, 1 / part, 1.0) * network.bandwidth)
        text = f"uplinks carry 1/{part}: oversubscription, or hashes that put flows on one"
        yield Fault("oversubscribed_or_hash_collisions", text, less)
    for share in CONGESTED[1:3]:
        less = ground.with_rates(np.where(_between(network), share, 1.0) * network.bandwidth)
        yield Fault("pfc_ecn_or_congestion", "congestion, pauses or drops", less, 1.0, ROUNDABOUT, UNSTEADY)


def _slow_host(ground: Simulated) -> Iterator[Fault]:
    """Yield grounds with one host that comes late to each call, or moves less."""
    for late in LATE:
        text = f"one host comes {late * 1e6:.0f} us late to each call"
        later = dataclasses.replace(ground, delay=late)
        yield Fault("straggler_host", text, later, 1.0, ROUNDABOUT)
    network = ground.scenario.network
    unit = units(network)
    ends = (unit[network.src] == unit[0]) | (unit[network.dst] == unit[0])
    slow = ground.with_rates(np.where(ends & _between(network), 0.5, 1.0) * network.bandwidth)
    yield Fault("straggler_host", "one host moves 50% of its rate", slow, 1.0, ROUNDABOUT)


KINDS: tuple[Callable[[Simulated], Iterator[Fault]], ...] = (
    _slower_links, _fewer_nics, _through_hosts, _sockets, _forced_choices, _shared_fabric, _slow_host,
)  # fmt: skip

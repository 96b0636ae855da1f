"""What a call of NCCL runs on, as a value in which a fault is injected, and the closed form's times on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives.nccl.call import release_of
from collectives.nccl.launch import VERSION
from commsim.core.errors import InputError
from commsim.core.machines.hardware import read_hardware, write_hardware
from commsim.core.network import NIC, Network
from commsim.core.network_queries import units, with_rates
from commsim.core.placement import Placement
from commsim.nccl.gpu_costs import GpuCosts, costs
from commsim.nccl.of_network import NcclOptions, setting_of
from commsim.nccl.plans.nccl_launch import NcclLaunch
from commsim.nccl.prediction import predict
from commsim.nccl.site import Site, site_of

_PER_NODE = ("kind", "forwards", "aggregates", "overhead", "recv_overhead", "gamma", "machine", "coordinates",
             "message_engines")  # fmt: skip
_PER_LINK = ("src", "dst", "bandwidth", "latency", "buffer", "loss", "metric")


@dataclass(frozen=True, slots=True)
class Ground:
    """What a call runs on and with: what faults change.

    Parameters
    ----------
    network, placement : Network, Placement
        Network and placement of the ranks.
    n_ranks : int
        Number of ranks.
    operation : str
        Name of the operation.
    options : NcclOptions
        What is known of NCCL: release, bounds of its channels.
    algorithm, protocol : str
        What is forced; empty: NCCL's choice.
    costs : tuple of callable
        Changes of the site that NCCL does not see, and so does not choose by.
    delay : float, s
        Time that each call takes longer.
    plugin : tuple of (str, float)
        Costs of the network's plugin, by name, and factors of them.
    """

    network: Network
    placement: Placement
    n_ranks: int
    operation: str
    options: NcclOptions
    algorithm: str = ""
    protocol: str = ""
    costs: tuple[Callable[[Site], Site], ...] = ()
    delay: float = 0.0
    plugin: tuple[tuple[str, float], ...] = ()

    @property
    def nodes(self) -> NDArray[np.int32]:
        """Nodes of the ranks."""
        return self.placement.nodes[: self.n_ranks]

    @property
    def has_several(self) -> bool:
        """Whether the ranks are in several machines."""
        return len(np.unique(units(self.network)[self.nodes])) > 1

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts of the machines."""
        return read_hardware(self.network.hardware)

    def site(self) -> Site:
        """Return where the call runs, as NCCL's search finds it and with the costs that it does not see.

        Raises
        ------
        InputError
            If NCCL finds no channel, or a cost is not known.
        """
        setting = setting_of(self.network, self.placement, self.n_ranks, self.options)
        site = site_of(self.network, self.placement, setting)
        for change in self.costs:
            site = change(site)
        return site

    def times(self, sizes: Sequence[float]) -> NDArray[np.float64]:
        """Predict calls of some sizes.

        Parameters
        ----------
        sizes : sequence of float, bytes
            Sizes of the operation.

        Returns
        -------
        float64[n], s
            Times of the closed form.

        Raises
        ------
        InputError
            As :meth:`site`, or if what is forced does not exist here.
        """
        site, forced = self.site(), (self.algorithm, self.protocol)
        known = self._known(site.network)
        found = [predict(site, self.operation, int(size), *forced, known).seconds for size in sizes]
        return np.array(found) + self.delay

    def _known(self, name: str) -> GpuCosts:
        """Return the constants, with those of the plugin of a network changed."""
        known = costs()
        if not self.plugin or name not in known.plugins:
            return known
        plugin = known.plugins[name]
        changed = {field: getattr(plugin, field) * factor for field, factor in self.plugin}
        return dataclasses.replace(known, plugins={**known.plugins, name: dataclasses.replace(plugin, **changed)})

    def with_cost(self, change: Callable[[Site], Site]) -> Ground:
        """Return the ground with one more cost that NCCL does not see."""
        return dataclasses.replace(self, costs=(*self.costs, change))

    def with_facts(self, **facts: str) -> Ground:
        """Return the ground of machines with other facts."""
        hardware = write_hardware({**self.facts, **facts})
        return dataclasses.replace(self, network=with_rates(self.network, hardware=hardware))

    def with_rates(self, links: NDArray[np.bool_], factor: float) -> Ground:
        """Return the ground with some links at a factor of their rate."""
        rates = self.network.bandwidth * np.where(links, factor, 1.0)
        return dataclasses.replace(self, network=with_rates(self.network, bandwidth=rates, family=""))


def ground_of(launch: NcclLaunch, n_ranks: int) -> Ground:
    """Return the ground of a planned collective.

    Parameters
    ----------
    launch : NcclLaunch
        A collective of NCCL on placed ranks.
    n_ranks : int
        Number of ranks.
    """
    arguments = launch.arguments
    options = NcclOptions(version=release_of(arguments.get("version", VERSION)), **launch.decided.words)
    algorithm, protocol = (str(arguments.get(key, "")) for key in ("algorithm", "protocol"))
    return Ground(launch.network, launch.placement, n_ranks, launch.operation, options, algorithm, protocol)


def links_between(network: Network) -> NDArray[np.bool_]:
    """Find the links that leave or reach a machine: bool[n_links]."""
    src, dst = network.machine[network.src], network.machine[network.dst]
    between: NDArray[np.bool_] = (src != dst) & ((src >= 0) | (dst >= 0))
    return between


def nics_of_machines(ground: Ground) -> list[NDArray[np.int64]]:
    """Return the NICs of each machine that has ranks."""
    unit = units(ground.network)
    is_nic = ground.network.kind == NIC
    return [np.flatnonzero(is_nic & (unit == one)) for one in np.unique(unit[ground.nodes])]


def without_links(ground: Ground, dead: NDArray[np.bool_]) -> Ground:
    """Return the ground without some links.

    Parameters
    ----------
    ground : Ground
        Whole.
    dead : bool[n_links]
        Links that are taken away.
    """
    edges = {name: getattr(ground.network, name)[~dead] for name in _PER_LINK}
    return dataclasses.replace(ground, network=dataclasses.replace(ground.network, family="", **edges))


def without_nodes(ground: Ground, dead: NDArray[np.int64]) -> Ground:
    """Return the ground without some nodes and all their links.

    Parameters
    ----------
    ground : Ground
        Whole.
    dead : int64[n]
        Nodes without a rank.

    Raises
    ------
    InputError
        If a rank sits on one of them.
    """
    if np.isin(ground.nodes, dead).any():
        raise InputError("a node of a rank cannot be taken away")
    network = ground.network
    kept = ~np.isin(np.arange(network.n_nodes), dead)
    number = np.cumsum(kept) - 1
    links = kept[network.src] & kept[network.dst]
    nodes = {name: getattr(network, name)[kept] for name in _PER_NODE}
    edges = {name: getattr(network, name)[links] for name in _PER_LINK}
    edges |= {end: number[edges[end]] for end in ("src", "dst")}
    names = tuple(name for name, keep in zip(network.nodes, kept, strict=True) if keep)
    left = dataclasses.replace(network, nodes=names, family="", **nodes, **edges)
    return dataclasses.replace(ground, network=left, placement=Placement(number[ground.nodes]))

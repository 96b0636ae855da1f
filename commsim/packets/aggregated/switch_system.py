"""The switch system of a prepared collective: its packets, and what the flow engine takes from it at a size."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from collectives import COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.schedule import Schedule
from commsim.core.units import format_bandwidth, format_size, format_time
from commsim.routing.aggregation_tree import AggregationTree
from commsim.routing.aggregator_placement import AggregatorPlacement
from switch_model.systems import System, SystemSpec

if TYPE_CHECKING:
    from commsim.packets.aggregated.packet_job import AggregationJob

FEWEST_CHUNKS, MAX_CHUNKS = 256, 4096
# Chunks times participants: with more, a flow prediction would take longer than a second.
MAX_TRANSFERS = 2**16
# Bytes of a tensor for which a system that goes by size takes its mode for small ones.
SMALLEST = 1.0


@dataclass(frozen=True, slots=True)
class FlowView:
    """What the flow engine takes from a system at a size.

    Parameters
    ----------
    size : float, bytes
        Size of whole messages.
    parameters : mapping of str to value
        Parameters of the schedule: chunks of whole packets, and as many of them under way as the window holds where
        that keeps idle links busy.
    framing : Framing
        Framing of its packets.
    rate_cap : float, bytes/s
        Largest rate of each message on the wire: a window in each round trip, and a packet in each turn of an
        aggregation unit.
    latency : float, s
        Latency of host and aggregation units, once per operation; less what a chunk takes longer at `rate_cap` than at
        the rate of the links, since packets pass the links at the rate of the links.
    differences : tuple of str
        Differences from the packet engine that are left, and their size.
    """

    size: float
    parameters: Mapping[str, Any]
    framing: Framing
    rate_cap: float
    latency: float
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """A collective's switch system, and where its aggregators are.

    Parameters
    ----------
    build : callable
        Builder of its schedule.
    parameters : mapping of str to value
        Parameters of the builder that the user gave.
    spec : SystemSpec
        The system.
    where : AggregatorPlacement
        Switches, trees and server.
    """

    build: Callable[..., Schedule]
    parameters: Mapping[str, Any]
    spec: SystemSpec
    where: AggregatorPlacement

    def __reduce__(self) -> tuple[Any, ...]:
        return _aggregation_of, (self.build.__name__, self.parameters, self.spec, self.where)

    def system(self, size: float) -> System:
        """Return the system at a size, with the window that `pool` chunks of the schedule would be."""
        system = self.spec.at(size)
        if self.parameters.get("pool") is None:
            return system
        per_message = system.packets_per_message
        packets = self.parameters["pool"] * size / self.parameters.get("n_chunks", FEWEST_CHUNKS) / system.payload
        window = max(1, round(packets / per_message)) * per_message
        return dataclasses.replace(system, window=window, pool_size=max(system.pool_size, window))

    def job(self, network: Network, ranks: NDArray[np.integer], size: float, starts: Any = ()) -> AggregationJob:
        """Return the packet engine's job: all ranks' tensors of `size` bytes.

        Raises
        ------
        InputError
            If a parameter was given that only the schedule of the flow engine has.
        """
        from commsim.packets.aggregated.aggregation_jobs import aggregation_job

        for name in self.parameters.keys() - {"n_chunks", "pool"}:
            raise InputError(
                f"{name}={self.parameters[name]} is a parameter of the flow engine's schedule; packets "
                "follow those of the "
                "switch system, such as pool_size; leave it out with engine packet"
            )
        system = self.system(size)
        n_elements = math.ceil(size / system.element_bytes)
        return aggregation_job(system, network, ranks.tolist(), n_elements, starts=tuple(starts), where=self.where)

    def flow_view(self, network: Network, size: float) -> FlowView:
        """Return what the flow engine takes at this size."""
        system, trees = self.spec.at(size), self.where.trees
        per_message = system.packets_per_message
        n_packets = math.ceil(size / system.payload / per_message) * per_message
        parameters: dict[str, Any] = {"n_chunks": FEWEST_CHUNKS, **self.parameters, "tree": self.where.tree}
        chosen = {key for key in ("n_chunks", "pool") if self.parameters.get(key) is not None}
        if not chosen:
            most = min(MAX_CHUNKS, max(FEWEST_CHUNKS, MAX_TRANSFERS // len(self.where.tree)))
            parameters["n_chunks"] = math.ceil(n_packets / math.ceil(n_packets / most))
        if system.shared and (under_way := min(system.window, n_packets)) > system.pool_size:
            # of fragments under way as many as there are slots hold one, and the others go straight to the server
            parameters["collision"] = max(parameters.get("collision", 0.0), 1 - system.pool_size / under_way)
        packets = n_packets / parameters["n_chunks"]
        units = _unit_times(system, trees[0])
        bandwidth = float(min(network.bandwidth[link] for link in links_of_trees(trees)))
        chunk = float(system.framing.on_wire(packets * system.payload))
        cap = _rate(system, network, trees, units, windowed="pool" not in chosen)
        whole = packets == 1 == per_message  # of parts of messages, a pool would slide on before the message is back
        if whole and not system.unit_time(1) and "pool" not in chosen:
            parameters["pool"], cap = system.window, math.inf
        cap = cap if cap < bandwidth else math.inf
        if per_message == 1 and cap == math.inf and "pool" not in parameters:
            parameters["pool"] = _window_in_chunks(system, network, trees, packets)
        n_stages = 2 * (_levels(trees[0]) + system.server)
        latency = system.host_latency + units - n_stages * max(0.0, chunk / cap - chunk / bandwidth) * (cap < math.inf)
        longer = (n_stages - 1) * (chunk - system.message_bytes / per_message) / bandwidth
        differences = self._differences(system, network, n_packets, packets, longer)
        if parameters.get("collision") and len(trees[0].nodes) > 1:
            differences += ("a fragment with a slot in one switch and none in another waits here for nothing",)
        if cap < math.inf:
            differences += (f"windows and aggregation units as a rate of {format_bandwidth(cap)}",)
        return FlowView(n_packets * system.payload, parameters, system.framing, cap, latency, differences)

    def _differences(
        self, system: System, network: Network, n_packets: int, packets: float, longer: float
    ) -> tuple[str, ...]:
        """Describe in what the flow engine differs from the packet engine."""
        lines = []
        if longer > 1e-12:
            lines.append(f"chunks of {packets:.3g} packets: +{format_time(longer)}")
        if system.n_trees > 1:
            lines.append(f"1 tree of {system.n_trees}")
        streams = collections.Counter(link for path in self.where.trees[0].up for link in path)
        link, most = max(streams.items(), key=lambda item: item[1], default=(0, 0))
        if most > 1:
            burst = (most - 1) * min(system.window, n_packets) * system.message_bytes / system.packets_per_message
            lines.append(
                f"{most} streams of packets share {network.link_name(link)}, where flows take the network's routes: "
                f"up to -{format_time(burst / network.bandwidth[link])} for each window"
            )
        if (widest := max(max(tree.fan_in) for tree in self.where.trees)) > system.max_fan_in:
            lines.append(f"{widest} children of a switch, more than the {system.max_fan_in} that {system.name} takes")
        return tuple(lines)


def _aggregation_of(name: str, *rest: Any) -> Aggregation:
    """Return what comes out of a pickle, which has no functions: the builder by the name of its collective."""
    return Aggregation(COLLECTIVES[name].build, *rest)


def _rate(
    system: System, network: Network, trees: tuple[AggregationTree, ...], units: float, *, windowed: bool
) -> float:
    """Bytes per second on the wire that a worker's window and the aggregation units allow."""
    packet = system.message_bytes / system.packets_per_message
    slowest = system.unit_time(max(max(tree.fan_in) for tree in trees))
    cap: float = packet / slowest if slowest else math.inf
    if not windowed:
        return cap
    return min(cap, float(system.window * packet / round_trip(system, network, trees, units)))


def round_trip(system: System, network: Network, trees: Sequence[AggregationTree], units: float | None = None) -> float:
    """Return the seconds from the first packet of a message to its result, on idle links.

    Parameters
    ----------
    system, network : System, Network
        System, and the network of its trees.
    trees : sequence of AggregationTree
        Aggregation trees of a job.
    units : float, s, optional
        Time in the aggregation units on the longest way up. Default: that of the first tree.
    """
    packet = system.message_bytes / system.packets_per_message
    hop = network.latency + packet / network.bandwidth
    one_way = [float(hop[_path(tree, i)].sum()) for tree in trees for i in range(len(tree.leaf))]
    slowest = float(min(network.bandwidth[link] for link in links_of_trees(trees)))
    following = (system.packets_per_message - 1) * packet / slowest
    return 2 * max(one_way) + (_unit_times(system, trees[0]) if units is None else units) + following


def _window_in_chunks(
    system: System, network: Network, trees: tuple[AggregationTree, ...], packets: float
) -> int | None:
    """Chunks of several packets that a window holds; None where that many would not keep idle links busy."""
    pool = int(system.window / packets)
    chunk = float(system.framing.on_wire(packets * system.payload))
    hop = network.latency + chunk / network.bandwidth
    round_trip = 2 * max(float(hop[_path(tree, i)].sum()) for tree in trees for i in range(len(tree.leaf)))
    return pool if pool * chunk >= round_trip * float(network.bandwidth[links_of_trees(trees)].max()) else None


def _path(tree: AggregationTree, worker: int) -> list[int]:
    """Links of a worker up to the root, and to the server above it."""
    path, here = list(tree.worker_up[worker]), tree.leaf[worker]
    while tree.parent[here] >= 0:
        path += tree.up[here]
        here = tree.parent[here]
    return path + list(tree.to_server)


def _unit_times(system: System, tree: AggregationTree) -> float:
    """Seconds in the aggregation units on the longest way up."""
    longest = [0.0] * len(tree.nodes)
    for a, (fan_in, parent) in enumerate(zip(tree.fan_in, tree.parent, strict=True)):
        above = longest[parent] if parent >= 0 else 0.0
        longest[a] = above + system.unit_time(fan_in) + system.switch_latency
    return max(longest)


def _levels(tree: AggregationTree) -> int:
    """Count the aggregators that a packet passes on the longest way up."""
    depth = [1]
    for parent in tree.parent[1:]:
        depth.append(depth[parent] + 1)
    return max(depth)


def links_of_trees(trees: Sequence[AggregationTree]) -> list[int]:
    """Return the links of trees, from workers up to the root and to the server."""
    return [link for tree in trees for path in (*tree.worker_up, *tree.up, tree.to_server) for link in path]


def describe_packets(spec: SystemSpec) -> str:
    """Describe which system it is, at which sizes, and what its packets look like."""
    small, large = spec.at(SMALLEST), spec.at()
    if small == large:
        return _packets(large)
    low, high = SMALLEST, 2.0**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if spec.at(middle) == small else (low, middle)
    return f"{_packets(small)} below {format_size(high)}, {_packets(large)} from there on"


def _packets(system: Any) -> str:
    header = f"{system.framing.payload:.0f} + {system.framing.header:.0f} bytes of headers"
    return f"{system.name} (packets of {header}, {system.window} under way)"

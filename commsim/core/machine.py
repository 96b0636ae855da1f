"""The inside of a machine, put together part by part; the result is a Network, whose NICs a fabric can be joined to.

Shortest paths are by the sum of the links' metrics, and these make traffic go where it goes in such machines:

- between two GPUs by NVLink rather than by PCIe, and never through the network;
- from a GPU to the network by its own NIC, not by another one under the same switch or across the CPUs;
- where GPUs forward, over NVLink to the GPU on the right rail rather than through the spine.

A machine times a fabric: every NIC of a machine takes the place of one host of the fabric.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError
from .network import CPU, GPU, HOST, KINDS, NIC, SEATS, SWITCH, Network, both_ways

NVLINK_METRIC, PCIE_METRIC = 1, 2
# Between the parts of a PCIe tree: two of them cost more than six links of a fabric, five less than two exits.
CROSSING_METRIC = 32
# Between a NIC and the inside.
EXIT_METRIC = 128
# What :func:`commsim.core.machine.attach_machines` multiplies a fabric's metrics by: two NVLinks cost less than one.
FABRIC_FACTOR = 4

# Seconds along one of the two links between GPUs: half of the 936.25 ns that ASTRA-sim's validated HGX-H100 has.
NVLINK_LATENCY = 468.125e-9
# Seconds along one PCIe link: two of them are the 0.3 us that a NIC adds at the least when it sends.
PCIE_LATENCY = 150e-9

# A node, and the bandwidth of its link in bytes/s.
Device = tuple[int, float]


class Parts:
    """Nodes and cables of one machine while it is being put together."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._kinds: list[int] = []
        self._forwards: dict[int, bool] = {}
        self._aggregates: dict[int, bool] = {}
        self._cables: list[tuple[int, int, float, float, int]] = []

    def add(self, name: str, kind: int, *, forwards: bool | None = None, aggregates: bool | None = None) -> int:
        """Add a node, and return its number.

        Parameters
        ----------
        name : str
            Of the node.
        kind : int
            An index of ``KINDS``.
        forwards, aggregates : bool, optional
            As in :class:`commsim.core.network.Network`; those of the kind unless given.
        """
        node = len(self._names)
        self._names.append(name)
        self._kinds.append(kind)
        if forwards is not None:
            self._forwards[node] = forwards
        if aggregates is not None:
            self._aggregates[node] = aggregates
        return node

    def cable(self, a: int, b: int, bandwidth: float, latency: float = PCIE_LATENCY, metric: int = PCIE_METRIC) -> None:
        """Join two nodes, both ways.

        Parameters
        ----------
        a, b : int
            The two nodes.
        bandwidth : float, bytes/s
            In each direction.
        latency : float, s
            In each direction.
        metric : int
            For routing.
        """
        self._cables.append((a, b, bandwidth, latency, metric))

    def nvlink(self, a: int, b: int, bandwidth: float, latency: float = NVLINK_LATENCY) -> None:
        """Join two GPUs, or a GPU and an NVSwitch."""
        self.cable(a, b, bandwidth, latency, NVLINK_METRIC)

    def join_gpus(self, bandwidth: float) -> None:
        """Add ``nvswitch0``, and join every GPU to it."""
        gpus = [i for i, kind in enumerate(self._kinds) if kind == GPU]
        switch = self.add("nvswitch0", SWITCH)
        for gpu in gpus:
            self.nvlink(gpu, switch, bandwidth)

    def mesh(
        self, bandwidth: Mapping[tuple[int, int], float], gpus: Sequence[int], latency: float = NVLINK_LATENCY
    ) -> None:
        """Join pairs of GPUs directly; unless every pair of `gpus` is among them, these forward for each other."""
        for (a, b), rate in bandwidth.items():
            self.nvlink(a, b, rate, latency)
        if bandwidth and len(bandwidth) < len(gpus) * (len(gpus) - 1) // 2:
            self._forwards.update(dict.fromkeys(gpus, True))

    def leaf(self, parent: int, device: Device, latency: float = PCIE_LATENCY) -> None:
        """Hang a device on the PCIe switch or the CPU that it is plugged into."""
        node, bandwidth = device
        self.cable(parent, node, bandwidth, latency, EXIT_METRIC if self._kinds[node] == NIC else PCIE_METRIC)

    def pcie_switch(self, name: str, devices: Sequence[Device], latency: float = PCIE_LATENCY) -> int:
        """Add a PCIe switch with devices on it, and return the node that its uplink belongs to.

        A switch with several NICs is drawn as one node per NIC, with the GPUs that use this NIC, around a hub to
        which they are joined so widely that nothing inside the switch is a bottleneck.

        Parameters
        ----------
        name : str
            Of the hub; the nodes per NIC are called ``name.0`` and so on.
        devices : sequence of (node, bandwidth)
            GPUs, NICs and anything else. GPUs are dealt to the NICs in equal runs, in the order given.
        latency : float, s
            Of each device's link.
        """
        hub = self.add(name, SWITCH)
        nics = [device for device in devices if self._kinds[device[0]] == NIC]
        others = [device for device in devices if self._kinds[device[0]] != NIC]
        if len(nics) < 2 or not others:
            for device in devices:
                self.leaf(hub, device, latency)
            return hub
        for k, nic in enumerate(nics):
            slot = self.add(f"{name}.{k}", SWITCH)
            users = [device for i, device in enumerate(others) if i * len(nics) // len(others) == k]
            for device in (*users, nic):
                self.leaf(slot, device, latency)
            self.cable(hub, slot, nic[1] + sum(b for _, b in users), 0.0, CROSSING_METRIC)
        return hub

    def crossing(self, a: int, b: int, bandwidth: float, latency: float = PCIE_LATENCY) -> None:
        """Join a PCIe switch to what it hangs on, or two CPUs."""
        self.cable(a, b, bandwidth, latency, CROSSING_METRIC)

    def join_cpus(self, bandwidth: float) -> None:
        """Join every CPU to every other one."""
        for a, b in itertools.combinations([i for i, kind in enumerate(self._kinds) if kind == CPU], 2):
            self.crossing(a, b, bandwidth)

    def build(self, name: str) -> Network:
        """Return the machine: nodes that ranks may sit on come first, in the order in which they were added.

        Raises
        ------
        InputError
            If no rank can sit in it, or a bandwidth or a latency is out of its range.
        """
        order = np.argsort(~np.isin(self._kinds, self._seat_kind()), kind="stable")
        place = np.argsort(order)
        columns: list[Any] = list(zip(*self._cables, strict=True)) or [()] * 5
        src, dst = both_ways(*(place[np.array(column, np.int64)] for column in columns[:2]))
        bandwidth, latency, metric = (np.tile(np.array(column), 2) for column in columns[2:])
        plain = Network(
            name, [self._names[i] for i in order], np.array(self._kinds, np.uint8)[order], src, dst, bandwidth, latency,
            machine=0, metric=metric,
        )  # fmt: skip
        masks: dict[str, Any] = {"forwards": plain.forwards.copy(), "aggregates": plain.aggregates.copy()}
        for mask, given in zip(masks.values(), (self._forwards, self._aggregates), strict=True):
            for node, value in given.items():
                mask[place[node]] = value
        return dataclasses.replace(plain, **masks)

    def _seat_kind(self) -> int:
        """Kind of the nodes that ranks sit on."""
        return next((kind for kind in SEATS if kind in self._kinds), SEATS[0])


_PER_NODE = ("kind", "forwards", "aggregates", "overhead", "recv_overhead", "gamma")
_PER_LINK = ("bandwidth", "latency", "buffer", "loss", "metric")


def attach_machines(fabric: Network, machine: Network, ports: ArrayLike | None = None) -> Network:
    """Put one machine on every few hosts of a fabric.

    Parameters
    ----------
    fabric : Network
        Of hosts, each of which becomes a NIC, and switches. Links keep their rates: a port runs at the fabric's.
    machine : Network
        The inside, as :mod:`commsim.core.machine` puts it together.
    ports : int[n_machines, n_nics], optional
        Which host (0 for the first host of the fabric) each NIC takes the place of. By default a machine takes the
        next hosts in order, so that all of its NICs are near each other.

    Returns
    -------
    Network
        Endpoints ``m0.gpu0, m0.gpu1 … m1.gpu0 …``, then the rest of every machine, then the fabric's switches. What
        a host of the fabric costs per message or byte is forgotten; that of the machine's own nodes counts.

    Raises
    ------
    InputError
        If the fabric has something else than hosts and switches, the machine has no NIC, or `ports` does not name
        every host exactly once.
    """
    hosts, nics = fabric.hosts, np.flatnonzero(machine.kind == NIC)
    foreign = np.flatnonzero(np.isin(fabric.kind, (HOST, 1), invert=True))
    if foreign.size:
        raise InputError(f"{fabric.name} is no fabric for machines: {fabric.nodes[foreign[0]]} is a "
                         f"{KINDS[fabric.kind[foreign[0]]]}, not a host or a switch")  # fmt: skip
    if not nics.size:
        raise InputError(f"{machine.name} has no NIC and cannot be attached to {fabric.name}")
    if ports is None and len(hosts) % len(nics):
        raise InputError(f"{fabric.name} has {len(hosts)} ports for hosts, which is no multiple of the {len(nics)} "
                         f"NICs of {machine.name}")  # fmt: skip
    port = (np.arange(len(hosts)) if ports is None else np.asarray(ports, np.int64)).reshape(-1, len(nics))
    if not np.array_equal(np.sort(port, axis=None), np.arange(len(hosts))):
        raise InputError(f"ports must name each of the {len(hosts)} hosts of {fabric.name} exactly once")
    return _joined(fabric, machine, port, nics)


def _joined(fabric: Network, machine: Network, port: NDArray[np.int64], nics: NDArray[np.intp]) -> Network:
    n, size, switches = len(port), machine.n_nodes, np.flatnonzero(fabric.kind != HOST)
    inside = np.arange(n * size).reshape(n, size)  # node i of machine m, before the endpoints are moved to the front
    is_endpoint = np.tile(machine.kind == machine.seat_kind, n)
    order = np.argsort(~np.concatenate((is_endpoint, np.zeros(len(switches), np.bool_))), kind="stable")
    place = np.argsort(order)
    of_fabric = np.empty(fabric.n_nodes, np.int64)
    of_fabric[fabric.hosts[port]] = inside[:, nics]
    of_fabric[switches] = n * size + np.arange(len(switches))
    names = [f"m{m}.{name}" for m in range(n) for name in machine.nodes] + [fabric.nodes[i] for i in switches]

    def ends(field: str) -> list[NDArray[Any]]:
        within = place[inside[:, getattr(machine, field)]]
        return [within, place[of_fabric[getattr(fabric, field)]]]

    factor = np.int32(FABRIC_FACTOR)
    fabric = dataclasses.replace(fabric, metric=fabric.metric * factor)
    links: dict[str, Any] = {
        name: _woven([np.tile(getattr(machine, name), (n, 1)), getattr(fabric, name)]) for name in _PER_LINK
    }
    nodes: dict[str, Any] = {
        name: np.concatenate((np.tile(getattr(machine, name), n), getattr(fabric, name)[switches]))[order]
        for name in _PER_NODE
    }
    at = np.repeat(fabric.coordinates[fabric.hosts[port[:, 0]]], size, axis=0)  # where a machine's first NIC is, and
    at[inside[:, nics]] = fabric.coordinates[fabric.hosts[port]]  # the others where they are
    at = np.concatenate((at, fabric.coordinates[switches]))[order]
    owner = np.concatenate((np.repeat(np.arange(n), size), np.full(len(switches), -1)))[order]
    return Network(
        f"{machine.name}@{fabric.name}", [names[i] for i in order], src=_woven(ends("src")), dst=_woven(ends("dst")),
        **nodes, **links, machine=owner, coordinates=at, routing=fabric.routing,
        hardware=machine.hardware,
    )  # fmt: skip


def _woven(columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Numbers of the links of all machines and of the fabric: first the first halves of each, then the second ones.

    Where both are made of cables, all ways there so come before all ways back.
    """
    halves = [np.split(column, [(column.shape[-1] + 1) // 2], axis=-1) for column in columns]
    return np.concatenate([half[i].ravel() for i in (0, 1) for half in halves])

"""The inside of a machine, put together part by part; the result is a Network, whose NICs a fabric can be joined to.

Shortest paths are by the sum of the links' metrics, and these make traffic go where it goes in such machines:

- between two GPUs by NVLink rather than by PCIe, and never through the network;
- from a GPU to the network by its own NIC, not by another one under the same switch or across the CPUs;
- where GPUs forward, over NVLink to the GPU on the right rail rather than through the spine.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from commsim.core.network import CPU, NIC, SEATS, SWITCH, Network, both_ways

NVLINK_METRIC, PCIE_METRIC = 1, 2
# Between the parts of a PCIe tree: two of them cost more than six links of a fabric, five less than two exits.
CROSSING_METRIC = 32
# Between a NIC and the inside.
EXIT_METRIC = 128

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
            Name of the node.
        kind : int
            An index of ``KINDS``.
        forwards, aggregates : bool, optional
            Same as in :class:`commsim.core.network.Network`; by default those of the kind.
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
            Bandwidth, one way.
        latency : float, s
            Latency, one way.
        metric : int
            Metric of both links in routing.
        """
        self._cables.append((a, b, bandwidth, latency, metric))

    def nvlink(self, a: int, b: int, bandwidth: float, latency: float = NVLINK_LATENCY) -> None:
        """Join two GPUs, or a GPU and an NVSwitch."""
        self.cable(a, b, bandwidth, latency, NVLINK_METRIC)

    def join_gpus(self, name: str, bandwidth: Mapping[int, float], *, aggregates: bool = False) -> None:
        """Add an NVSwitch, and join GPUs to it.

        Parameters
        ----------
        name : str
            Name of the switch.
        bandwidth : mapping of int to float, bytes/s
            GPUs, and the bandwidth of each to the switch.
        aggregates : bool
            Whether the switch can add.
        """
        switch = self.add(name, SWITCH, aggregates=aggregates)
        for gpu, rate in bandwidth.items():
            self.nvlink(gpu, switch, rate)

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
        which they are joined so widely that nothing inside the switch is a bottleneck; with fewer GPUs than NICs, as
        one node per GPU, with the NICs that this has to itself.

        Parameters
        ----------
        name : str
            Name of the hub; the nodes per NIC are called ``name.0`` and so on.
        devices : sequence of (node, bandwidth)
            GPUs, NICs and anything else. GPUs are dealt to the NICs in equal runs, in the order given.
        latency : float, s
            Latency of each device's link.
        """
        hub = self.add(name, SWITCH)
        nics = [device for device in devices if self._kinds[device[0]] == NIC]
        others = [device for device in devices if self._kinds[device[0]] != NIC]
        if len(nics) < 2 or len(others) < 2:
            for device in devices:
                self.leaf(hub, device, latency)
            return hub
        n_slots = min(len(nics), len(others))
        for k in range(n_slots):
            slot = self.add(f"{name}.{k}", SWITCH)
            dealt = [device for kind in (others, nics) for device in self._dealt(kind, k, n_slots)]
            for device in dealt:
                self.leaf(slot, device, latency)
            self.cable(hub, slot, sum(rate for _, rate in dealt), 0.0, CROSSING_METRIC)
        return hub

    @staticmethod
    def _dealt(devices: Sequence[Device], slot: int, n_slots: int) -> list[Device]:
        return [device for i, device in enumerate(devices) if i * n_slots // len(devices) == slot]

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
        for mask, n in zip(masks.values(), (self._forwards, self._aggregates), strict=True):
            for node, value in n.items():
                mask[place[node]] = value
        return dataclasses.replace(plain, **masks)

    def _seat_kind(self) -> int:
        """Kind of the nodes that ranks sit on."""
        return next((kind for kind in SEATS if kind in self._kinds), SEATS[0])

"""What NCCL's primitives and its network plugins cost: ``gpu_costs.toml``, read once."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError

from .nccl_setting import ALGORITHMS

PATH = Path(__file__).parent / "gpu_costs.toml"
# Latency of the third EFA by that of the second one: AWS's news of December 2024 say 35 % less of P5en than of P5.
EFA3 = 0.65
# Part of a hop over a network by which it varies from message to message, as an exponential wait has it: proxies look
# at their connections in turn. In tables of LL from one channel to one for each NIC, 4 KiB for each, the time rises by
# 0.3 to 0.5 of the network's hop with each unit of `slowest`: InfiniBand, RoCE, two generations of EFA.
HOP_VARIES = 0.4


@dataclass(frozen=True, slots=True)
class Primitives:
    """Costs of one generation of GPUs, the same in every algorithm.

    Parameters
    ----------
    launch : float, s
        Time of a call from its launch to the first primitive, and from the last one to the next call.
    hop_ll, hop_ll128, hop_simple : float, s
        Time from the end of a send to the start of what the receiver does with it, inside a machine.
    slice : float, s
        Time of every slice of Simple: both sides synchronise their threads and publish the step.
    rate_ll, rate_ll128, rate_simple : float, bytes/s
        Data that one channel moves by a primitive, if no link is in its way.
    nvls_loop, nvls_head : float, s
        Time of a loop of NVLink SHARP, and of each head that a channel serves in it.
    nvls_rate : float, bytes/s
        Rate of one channel that reduces or multicasts in the switch.
    p2p_ll, p2p_simple : float, s
        Time of an exchange of messages between all peers, besides the launch, by protocol.
    p2p_chunk : float, s
        Time of every chunk of a message, for the first two.
    p2p_efficiency : float
        Share of the NVLinks' rate that messages reach.
    p2p_warp : float, bytes/s
        Rate at which a warp receives messages; infinite where only the links are known to hold them.
    nvls_crowded : float
        Share of the switch's rate that is left in a rack where all channels of several racks are under way.
    """

    launch: float
    hop_ll: float
    hop_ll128: float
    hop_simple: float
    slice: float
    rate_ll: float
    rate_ll128: float
    rate_simple: float
    nvls_loop: float
    nvls_head: float
    nvls_rate: float
    p2p_ll: float
    p2p_simple: float
    p2p_chunk: float
    p2p_efficiency: float
    p2p_warp: float = float("inf")
    nvls_crowded: float = 1.0

    def hop(self, protocol: str) -> float:
        """Return the latency of a hop inside a machine."""
        return {"ll": self.hop_ll, "ll128": self.hop_ll128, "simple": self.hop_simple}[protocol]

    def rate(self, protocol: str) -> float:
        """Return the rate of a channel."""
        return {"ll": self.rate_ll, "ll128": self.rate_ll128, "simple": self.rate_simple}[protocol]


@dataclass(frozen=True, slots=True)
class Plugin:
    """Costs of a network as NCCL uses it.

    Parameters
    ----------
    hop_ll, hop_ll128, hop_simple : float, s
        Time from the end of a send to the start of what the receiver does with it, over the network.
    efficiency : float
        Share of the NICs' rate that is reached by data and the flags among it.
    ll_efficiency : float
        Further factor of `efficiency` with LL.
    eager : float, bytes
        Messages of LL above this have to be announced first.
    announce : float, s
        Mean time that it takes.
    post : float, s
        Time of each message: of the next peer in an exchange, of the next channel in a ring or tree.
    copy : float, bytes/s
        Rate at which the CPU copies for each rank, where the NIC cannot write to the receiver's buffer by itself.
    threads : int
        Threads that copy for a rank together.
    exchange : float
        Part of the rate of Simple that the messages of exchanges reach, which are of 128 KiB.
    protocols, algorithms : tuple of str
        Protocols and algorithms that NCCL may use over it: as its operator's guide sets them, or the plugin.
    """

    hop_ll: float
    hop_ll128: float
    hop_simple: float
    efficiency: float
    ll_efficiency: float = 1.0
    eager: float = float("inf")
    announce: float = 0.0
    post: float = 1e-6
    copy: float = float("inf")
    threads: int = 1
    exchange: float = 1.0
    protocols: tuple[str, ...] = ("ll", "ll128", "simple")
    algorithms: tuple[str, ...] = ALGORITHMS

    def hop(self, protocol: str, message: float = 0.0, nics: int = 1) -> float:
        """Return the latency of a hop over the network for messages of so many bytes on the wire by so many NICs."""
        if protocol == "ll":
            return self.hop_ll + self.announced(protocol, message, nics)
        return self.hop_ll128 if protocol == "ll128" else self.hop_simple

    def announced(self, protocol: str, message: float, nics: int = 1, turns: int = 1) -> float:
        """Return how long the slowest NIC takes to announce messages; nothing if they need not be announced.

        Parameters
        ----------
        protocol : str
            Name of the protocol.
        message : float, bytes
            Size of a message on the wire.
        nics, turns : int
            NICs that announce at once, and messages of each, one after another.

        Notes
        -----
        Waits are taken as exponential (:func:`slowest`).
        """
        if protocol != "ll" or message <= self.eager:
            return 0.0
        return self.announce * (turns + slowest(nics, turns))

    def varied(self, protocol: str, nics: int, turns: int) -> float:
        """Return how much later than the mean the slowest of several channels is after hops over as many NICs.

        Parameters
        ----------
        protocol : str
            Name of the protocol.
        nics, turns : int
            Channels that leave by different NICs, and hops of each, one after another.
        """
        return HOP_VARIES * self.hop(protocol) * slowest(nics, turns)


def slowest(n: int, turns: int) -> float:
    """Return how much longer than the mean sum of `turns` exponential waits the longest of `n` such sums is.

    It is in units of the mean of one wait. The longest of k waits has the mean 1 + 1/2 + ... + 1/k of one; a sum of t
    waits spreads by the root of t.
    """
    return math.sqrt(turns) * sum(1 / k for k in range(2, n + 1))


@dataclass(frozen=True, slots=True)
class GpuCosts:
    """All constants.

    Parameters
    ----------
    primitives : mapping of str to Primitives
        Primitives of each generation of GPU.
    plugins : mapping of str to Plugin
        Plugin of each network.
    pcie : mapping of str to (float, float)
        Efficiency of PCIe for rings, and with LL as a part of that, by generation, where GPUs have no NVLink.
    pcie_exchange : mapping of str to float
        Part of the first that messages of an all-to-all reach.
    fitted_on : tuple of str
        Tables that any of them was fitted on.
    """

    primitives: Mapping[str, Primitives]
    plugins: Mapping[str, Plugin]
    pcie: Mapping[str, tuple[float, float]]
    pcie_exchange: Mapping[str, float]
    fitted_on: tuple[str, ...]

    def of_gpu(self, generation: str) -> Primitives:
        """Return what the primitives of a generation cost.

        Raises
        ------
        InputError
            If no constants are known for it.
        """
        if generation not in self.primitives:
            known = ", ".join(self.primitives)
            raise InputError(f"costs of NCCL's primitives are known for {known}, not for {generation}")
        return self.primitives[generation]

    def algorithms_over(self, network: str) -> tuple[str, ...]:
        """Return the algorithms that a network leaves to NCCL; all over one that is not known."""
        return self.plugins[network].algorithms if network in self.plugins else ALGORITHMS

    def of_network(self, name: str) -> Plugin:
        """Return what a network costs.

        Raises
        ------
        InputError
            If no constants are known for it.
        """
        if name == "efa3":
            return _faster(self.of_network("efa2"), EFA3)
        if name not in self.plugins:
            raise InputError(f"costs of a network are known for {', '.join(self.plugins)}, not for {name!r}")
        return self.plugins[name]


def _faster(plugin: Plugin, share: float) -> Plugin:
    """Return a plugin whose hops take a share of the time."""
    hops = {name: share * getattr(plugin, name) for name in ("hop_ll", "hop_ll128", "hop_simple")}
    return replace(plugin, **hops)


def _scaled(table: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Read the fields of a class; on file times end in ``_us`` and rates in ``_GBps``."""
    constants: dict[str, Any] = {}
    for field in fields(kind):
        if field.name in ("protocols", "algorithms"):
            constants |= {field.name: tuple(table[field.name])} if field.name in table else {}
            continue
        for suffix, unit in (("", 1.0), ("_us", 1e-6), ("_GBps", 1e9)):
            if field.name + suffix in table:
                constants[field.name] = float(table[field.name + suffix]) * unit
    return constants


def read_costs(text: str) -> GpuCosts:
    """Read a file of constants.

    Parameters
    ----------
    text : str
        TOML, as ``gpu_costs.toml``.
    """
    tree = tomllib.loads(text)
    for name, table in tree["plugin"].items():
        tree["plugin"][name] = tree["plugin"].get(table.get("like"), {}) | table
    tables = [table for kind in ("primitives", "racks", "plugin", "pcie") for table in tree[kind].values()]
    for name, table in tree["racks"].items():
        tree["primitives"][name] = table | tree["primitives"][name]
    return GpuCosts(
        {name: Primitives(**_scaled(table, Primitives)) for name, table in tree["primitives"].items()},
        {name: Plugin(**_scaled(table, Plugin)) for name, table in tree["plugin"].items()},
        {name: (table["efficiency"], table["ll_efficiency"]) for name, table in tree["pcie"].items()},
        {name: table.get("exchange", 1.0) for name, table in tree["pcie"].items()},
        tuple(dict.fromkeys(name for table in tables for name in table["fitted_on"])),
    )


@functools.cache
def costs() -> GpuCosts:
    """Return the constants of this version."""
    return read_costs(PATH.read_text(encoding="utf-8"))

"""What communication software reaches on links: measured rates by name, and a network on which it sends."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import MessageProtocol
from commsim.core.errors import InputError, look_up
from commsim.core.network import NIC, SEATS, SWITCH, Network
from commsim.core.network_queries import fabric_switches
from commsim.core.remark import Remark
from commsim.core.units import format_time, parse_bandwidth, parse_rate, parse_size, parse_time

# Fields of a preset that say how it sends messages by their size.
PROTOCOL = {"eager": parse_size, "copy": parse_bandwidth}


@dataclass(frozen=True, slots=True)
class Software:
    """One library on one transport.

    Parameters
    ----------
    name : str
        Name on the command line.
    rate : float, bytes/s
        The most that one port sends or receives.
    efficiency : float
        Share of a link that it uses where the link is slower than that.
    overhead : float, s
        Overhead of each message, beside the network's own.
    fixed : float, s
        Time of each call, whatever its size.
    gamma : float, s/byte
        Time of a host to add a received byte; 0 where the measured rate holds for rings, whose adding it includes.
    systems : tuple of str
        Collectives that `fixed` and `gamma` were measured of; empty for all.
    protocol : MessageProtocol or None
        How it sends small and large messages, where that is known.
    between_machines : bool
        Whether only messages between machines were measured, so that two ranks in one machine have no number.
    source, fitted : str
        Source of the numbers, and the rows that they were taken from: these rows are no test of them.
    """

    name: str
    rate: float
    efficiency: float
    overhead: float
    fixed: float
    gamma: float
    systems: tuple[str, ...]
    protocol: MessageProtocol | None
    between_machines: bool
    source: str
    fitted: str

    def on(self, network: Network) -> Network:
        """Return the network as this software uses it: its ports are slower, the fabric behind them is as it was.

        A port is a link between a host or a NIC and a switch of the fabric; links inside machines stay, since the
        measured limits are those of transports between machines. What a call and its adding cost is not of the network:
        :meth:`adding` and `fixed` are of each collective.
        """
        port = np.isin(network.kind, (*SEATS, NIC))
        fabric = fabric_switches(network)
        at_port = (port[network.src] & fabric[network.dst]) | (fabric[network.src] & port[network.dst])
        slower = np.minimum(network.bandwidth * self.efficiency, self.rate)
        return dataclasses.replace(
            network,
            bandwidth=np.where(at_port, slower, network.bandwidth),
            overhead=np.where(network.kind == SWITCH, network.overhead, network.overhead + self.overhead),
            software=self.name,
            protocol=self.protocol,
        )

    def is_measured_of(self, collective: str) -> bool:
        """Whether the times of a call and of adding are those of a collective."""
        return not self.systems or collective in self.systems

    def adding(self, network: Network) -> Network:
        """Return the network whose hosts add as slowly as this software."""
        if not self.gamma:
            return network
        slower = np.where(network.kind == SWITCH, network.gamma, np.maximum(network.gamma, self.gamma))
        return dataclasses.replace(network, gamma=slower)

    @property
    def own_costs(self) -> str:
        """What a call and its adding cost; empty where only rates and overheads were measured."""
        parts = [f"{format_time(self.fixed)} per call"] * (self.fixed > 0)
        parts += [f"{self.gamma * 1e9:.3g} ns to add a byte"] * (self.gamma > 0)
        return " and ".join(parts)

    @property
    def remark(self) -> Remark:
        """One line on what it assumes."""
        parts = [f"at most {self.rate * 8e-9:.3g} Gb/s per port"]
        parts += [f"{self.efficiency:.0%} of a slower one"] * (self.efficiency < 1)
        parts += [f"{self.overhead * 1e6:.3g} us per message"] * (self.overhead > 0)
        parts += [self._told_protocol] if self.protocol is not None else []
        whose = f", both of {', '.join(self.systems)} only" if self.systems else ""
        parts += [self.own_costs + whose] if self.own_costs else []
        from_ = f"fitted to {self.fitted}; {self.source}"
        return Remark("software", f"software {self.name}: {', '.join(parts)}", details=from_)

    @property
    def _told_protocol(self) -> str:
        assert self.protocol is not None
        if math.isinf(self.protocol.eager):
            return f"messages are copied at {self.protocol.copy * 1e-9:.3g} GB/s or announced first, as is faster"
        return f"messages above {self.protocol.eager:.0f} bytes are announced first"

    def refuse(self, machines: NDArray[np.int32]) -> None:
        """Raise where ranks share a machine, and only messages between machines were measured.

        Parameters
        ----------
        machines : int32[n_ranks]
            Machine of each rank; -1 for a node that is one of its own.

        Raises
        ------
        InputError
            If two ranks are on one machine.
        """
        shared = machines[machines >= 0]
        if self.between_machines and len(np.unique(shared)) < len(shared):
            raise InputError(
                f"software {self.name} has no number for messages inside a machine: MPI libraries differ there by a "
                "factor of 3.5; place one rank on each machine, or leave the software out for a model of links"
            )


@functools.cache
def _tables() -> dict[str, dict[str, Any]]:
    import tomllib  # few runs name a software

    return tomllib.loads(importlib.resources.files("commsim.prediction").joinpath("software.toml").read_text("utf-8"))


@functools.cache
def known_software() -> dict[str, Software]:
    """Read all presets that have numbers."""
    return {
        name: Software(
            name,
            parse_bandwidth(row["rate"], f"{name}: rate"),
            float(row.get("efficiency", 1.0)),
            parse_time(row.get("overhead", "0s"), f"{name}: overhead"),
            parse_time(row.get("fixed", "0s"), f"{name}: fixed"),
            1 / parse_rate(row["adding"], f"{name}: adding") if "adding" in row else 0.0,
            tuple(row.get("systems", ())),
            _protocol(name, row),
            row.get("between_machines", False),
            row["source"],
            row["fitted"],
        )
        for name, row in _tables().items()
        if "no_number" not in row
    }


def _protocol(name: str, row: dict[str, Any]) -> MessageProtocol | None:
    fields = {key: parse(row[key], f"{name}: {key}") for key, parse in PROTOCOL.items() if key in row}
    return MessageProtocol(**fields) if fields else None


def software(name: str) -> Software:
    """Return the preset of that name.

    Raises
    ------
    InputError
        If the name is unknown, or nobody measured that software so that it has a number.
    """
    if (without := _tables().get(name, {}).get("no_number")) is not None:
        raise InputError(f"software {name} has no measured rate: {without}")
    return look_up("software", name, known_software())

"""What communication software reaches on links: measured rates by name, and a network on which it sends."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
from dataclasses import dataclass

import numpy as np

from commsim.core.errors import named
from commsim.core.network import NIC, SEATS, SWITCH, Network
from commsim.core.remark import Remark
from commsim.core.units import format_time, parse_bandwidth, parse_time


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
    source: str
    fitted: str

    def on(self, network: Network) -> Network:
        """Return the network as this software uses it: its ports are slower, the fabric behind them is as it was.

        A port is a link between a host or a NIC and a switch of the fabric; links inside machines stay, since the
        measured limits are those of transports between machines. What a call and its adding cost is not of the network:
        :meth:`adding` and `fixed` are of each collective.
        """
        port = np.isin(network.kind, (*SEATS, NIC))
        fabric = (network.kind == SWITCH) & (network.machine < 0)
        at_port = (port[network.src] & fabric[network.dst]) | (fabric[network.src] & port[network.dst])
        slower = np.minimum(network.bandwidth * self.efficiency, self.rate)
        return dataclasses.replace(
            network,
            bandwidth=np.where(at_port, slower, network.bandwidth),
            overhead=np.where(network.kind == SWITCH, network.overhead, network.overhead + self.overhead),
            software=self.name,
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
    def told(self) -> Remark:
        """One line on what it assumes."""
        parts = [f"at most {self.rate * 8e-9:.3g} Gb/s per port"]
        parts += [f"{self.efficiency:.0%} of a slower one"] * (self.efficiency < 1)
        parts += [f"{self.overhead * 1e6:.3g} us per message"] * (self.overhead > 0)
        whose = f", both of {', '.join(self.systems)} only" if self.systems else ""
        parts += [self.own_costs + whose] if self.own_costs else []
        from_ = f"fitted to {self.fitted}; {self.source}"
        return Remark("software", f"software {self.name}: {', '.join(parts)}", details=from_)


@functools.cache
def known_software() -> dict[str, Software]:
    """Read all presets."""
    import tomllib  # few runs name a software

    text = importlib.resources.files("commsim.software").joinpath("presets.toml").read_text("utf-8")
    return {
        name: Software(
            name,
            parse_bandwidth(row["rate"], f"{name}: rate"),
            float(row.get("efficiency", 1.0)),
            parse_time(row.get("overhead", "0s"), f"{name}: overhead"),
            parse_time(row.get("fixed", "0s"), f"{name}: fixed"),
            1 / parse_bandwidth(row["adding"], f"{name}: adding") if "adding" in row else 0.0,
            tuple(row.get("systems", ())),
            row["source"],
            row["fitted"],
        )
        for name, row in tomllib.loads(text).items()
    }


def software(name: str) -> Software:
    """Return the preset of that name.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    return named("software", name, known_software())

"""The scenario: a question as one frozen value, from which every door gets the same answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import Schedule
from commsim.scenario.together.composition import Composition
from commsim.scenario.wish import Wish

__all__ = ["Scenario"]


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A network with its faults, the work on it, and the engine that is wished for.

    Parameters
    ----------
    network : Network
        Network, with faults and costs of messages.
    collective : str or Schedule
        ``name:key=value,...`` of a collective, a file of a schedule, or a schedule; empty with jobs.
    n_ranks : int, optional
        Number of ranks. Default: all that the placement or the network has.
    placement : str or Placement, optional
        Strategy, file or placement. Default: what the file of a schedule says, else ``packed``.
    routing : str, optional
        Routing in place of the network's own.
    seed : int
        Seed of all that is drawn: placement, hashes of routes, data, jitter, losses.
    compressor : str, optional
        Compressor of gradients, such as ``top_k:density=0.01``.
    groups : tuple of tuple of int
        Ranks of groups that run the collective at once; empty for one group of all.
    jobs : Composition, optional
        Jobs and background traffic that share the network, in place of a collective.
    assume_programmable : bool
        Whether aggregators may sit on switches of a network that declares none as able to aggregate.
    wish : Wish
        Engine and its options.
    remarks : tuple of str
        What was drawn, chosen or assumed when the scenario was made.
    """

    network: Network
    collective: str | Schedule = ""
    n_ranks: int | None = None
    placement: str | Placement | None = None
    routing: str | None = None
    seed: int = 0
    compressor: str | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    jobs: Composition | None = None
    assume_programmable: bool = True
    wish: Wish = field(default_factory=Wish)
    remarks: tuple[str, ...] = ()

    @property
    def placing(self) -> dict[str, Any]:
        """What places ranks and routes their messages."""
        return {"placement": self.placement, "routing": self.routing, "seed": self.seed}

    @property
    def name(self) -> str:
        """The collective, as it was named."""
        return self.collective if isinstance(self.collective, str) else self.collective.name

"""Rates of the links of each tier, which no scheduler's file says."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.core.errors import InputError
from commsim.core.spec import is_whole
from commsim.core.units import parse_bandwidth, parse_ratio

_ENTRY = re.compile(r"(\d{1,3})\s*=\s*(.*)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tiers:
    """Rates by tier: 1 is the link between a node and its switch, 2 the link from there upwards, and so on.

    Parameters
    ----------
    bandwidth : dict of int to float, bytes/s
        Bandwidth of each link, one way.
    oversubscription : dict of int to float
        Ratio of what the switch's links downwards can carry together to what those upwards can, in place of a rate.
    cables : dict of int to int
        Parallel cables of a tier with a rate, where there is more than one.
    """

    bandwidth: dict[int, float]
    oversubscription: dict[int, float]
    cables: dict[int, int] = field(default_factory=dict)

    def uplinks(self, tier: int, below: float, port: float, what: str) -> tuple[float, int]:
        """Rate of each link upwards of a switch or node, and how many there are.

        A ratio lays cables at the rate of the ports below, as all topologies with tiers do: the fewest that are no
        more oversubscribed than that.

        Parameters
        ----------
        tier : int
            Tier of the links.
        below : float, bytes/s
            Bandwidth of the links downwards of their lower end, together.
        port : float, bytes/s
            Bandwidth of the fastest of these.
        what : str
            Their ends, for messages.

        Returns
        -------
        float, int
            Bytes/s of each, and their number.

        Raises
        ------
        InputError
            If the table does not say.
        """
        if tier in self.bandwidth:
            return self.bandwidth[tier], self.cables.get(tier, 1)
        if tier in self.oversubscription:
            return port, math.ceil(below / port / self.oversubscription[tier] * (1 - 1e-9))
        raise InputError(f"--tier-bandwidth does not give the rate of tier {tier} ({what}); the file has no"
                         f" rates; give for example --tier-bandwidth 1=100Gbps,2=2:1")  # fmt: skip

    def require_used(self, what: Mapping[int, str]) -> None:
        """Raise if the table says something about a tier that is not there.

        Parameters
        ----------
        what : mapping of int to str
            By tier, the ends of one of its links, for messages.
        """
        for tier in (*self.bandwidth, *self.oversubscription):
            if tier not in what:
                known = ", ".join(f"{number} ({ends})" for number, ends in sorted(what.items()))
                raise InputError(f"--tier-bandwidth has a tier {tier}, but the highest is {max(what)}: {known}")


def parse_tiers(text: str) -> Tiers:
    """Read ``1=100Gbps,2=4x400Gbps,3=2:1``; N:1 is the oversubscription of the links into that tier.

    Raises
    ------
    InputError
        If it is something else, a tier appears twice, or tier 1 is a ratio.
    """
    table = Tiers({}, {})
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise InputError(f"--tier-bandwidth is TIER=RATE,..., as in 1=100Gbps,2=4x400Gbps or 1=100Gbps,2=2:1, "
                             f"got {entry!r}")  # fmt: skip
        tier = int(match[1])
        if tier in table.bandwidth or tier in table.oversubscription:
            raise InputError(f"--tier-bandwidth names tier {tier} twice")
        name = f"--tier-bandwidth {tier}"
        if ":" not in match[2]:
            count, times, rate = match[2].rpartition("x")
            if times:
                table.cables[tier] = _count(count, name)
            table.bandwidth[tier] = parse_bandwidth(rate, name)
        elif tier == 1:
            raise InputError(f"{name} cannot be {match[2]}: tier 1, the link of a node, has nothing below it")
        else:
            table.oversubscription[tier] = parse_ratio(match[2], name)
    return table


def _count(text: str, name: str) -> int:
    if not (is_whole(text, 3) and int(text)):
        raise InputError(f"{name} has from 1 to 999 cables, as in 4x400Gbps, got {text!r}")
    return int(text)

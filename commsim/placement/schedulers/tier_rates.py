"""Rates of the links of each tier, which no scheduler's file says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_ratio

_ENTRY = re.compile(r"\s*(\d{1,3})\s*=\s*(.*?)\s*", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tiers:
    """Rates by tier: 1 is the link between a node and its switch, 2 the link from there upwards, and so on.

    Parameters
    ----------
    bandwidth : dict of int to float, bytes/s
        Bandwidth of each link, one way.
    oversubscription : dict of int to float
        Ratio of what the switch's links downwards can carry together to what the link upwards can, in place of a rate.
    """

    bandwidth: dict[int, float]
    oversubscription: dict[int, float]

    def uplink(self, tier: int, below: float, what: str) -> float:
        """Rate of one link upwards.

        Parameters
        ----------
        tier : int
            Tier of the link.
        below : float, bytes/s
            Bandwidth of the links downwards of its lower end, together.
        what : str
            The link, for messages.

        Raises
        ------
        InputError
            If the table does not say.
        """
        if tier in self.bandwidth:
            return self.bandwidth[tier]
        if tier in self.oversubscription:
            return below / self.oversubscription[tier]
        raise InputError(f"--tier-bandwidth does not give the rate of tier {tier} ({what}); the file has no"
                         f" rates; give for example --tier-bandwidth 1=100Gbps,2=2:1")  # fmt: skip

    def require_used(self, n_tiers: int) -> None:
        """Raise if the table says something about a tier that is not there."""
        for tier in (*self.bandwidth, *self.oversubscription):
            if not 1 <= tier <= n_tiers:
                raise InputError(f"--tier-bandwidth has a tier {tier}, but there are 1..{n_tiers}")


def parse_tiers(text: str) -> Tiers:
    """Read ``1=100Gbps,2=400Gbps,3=2:1``; N:1 is the oversubscription of the links into that tier.

    Raises
    ------
    InputError
        If it is something else, a tier appears twice, or tier 1 is a ratio.
    """
    table = Tiers({}, {})
    for entry in text.split(","):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise InputError(f"--tier-bandwidth is TIER=RATE,..., as in 1=100Gbps,2=400Gbps or 1=100Gbps,2=2:1, "
                             f"got {entry!r}")  # fmt: skip
        tier = int(match[1])
        if tier in table.bandwidth or tier in table.oversubscription:
            raise InputError(f"--tier-bandwidth names tier {tier} twice")
        name = f"--tier-bandwidth {tier}"
        if ":" not in match[2]:
            table.bandwidth[tier] = parse_bandwidth(match[2], name)
        elif tier == 1:
            raise InputError(f"{name} cannot be {match[2]}: tier 1, the link of a node, has nothing below it")
        else:
            table.oversubscription[tier] = parse_ratio(match[2], name)
    return table

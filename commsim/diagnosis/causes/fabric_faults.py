"""Faults between machines, and of one machine: oversubscription, collisions, congestion, cabling, a slow host."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator

from commsim.diagnosis.causes.fault import ROUNDABOUT, Fault
from commsim.diagnosis.causes.ground import Ground
from commsim.nccl.site import Site

# Flows that share a link where hosts have it for themselves: whole ratios, and others. A ratio by design has this
# weight beside those that hashes give.
OVERSUBSCRIBED, COLLISIONS, LEAST = (2, 3, 4, 8), (4 / 3, 1.5), 0.15
CONGESTED = (0.75, 0.55, 0.4, 0.25)
# Further spread of a row in a congested fabric, which others use by turns.
UNSTEADY = 0.3
# Time of a call that a slow host takes more, s, and parts of the rate that it moves.
LATE, SLOW_PARTS = (30e-6, 100e-6, 300e-6, 1e-3), (0.75, 0.5, 0.25)


def oversubscription(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose fabric carries 1/K of what NICs send, which NCCL does not see; K flows meet on a link."""
    if not ground.has_several:
        return
    label, n_flows = "oversubscribed_or_hash_collisions", _flows(ground)
    for k in OVERSUBSCRIBED:
        if k <= n_flows:
            text = f"the fabric is oversubscribed by {k}, or hashes put {k} flows on a link"
            yield Fault(label, text, ground.with_cost(rates_times(1 / k)), _most_on_a_link(n_flows, k) + LEAST)
    for ratio in COLLISIONS if n_flows > 2 else ():
        text = f"the fabric is oversubscribed by {ratio:.3g}"
        yield Fault(label, text, ground.with_cost(rates_times(1 / ratio)), 2 * LEAST)


def _flows(ground: Ground) -> int:
    """Return the flows that leave a machine at once, of all machines that may meet on a link."""
    site = ground.site()
    out = min(site.n_nics, site.setting.n_ranks // site.setting.n_nodes)
    return out * (site.setting.n_nodes - 1)


def _most_on_a_link(n_flows: int, k: int) -> float:
    """Return about how likely it is that the fullest of as many links as flows has `k` of them, hashed at random."""
    n = min(n_flows, 256)

    def at_most(m: int) -> float:
        one = sum(math.comb(n, i) * (1 / n) ** i * (1 - 1 / n) ** (n - i) for i in range(m + 1))
        return float(one**n)

    return at_most(k) - at_most(k - 1) if n > 1 else 0.0


def congestion(ground: Ground) -> Iterator[Fault]:
    """Yield grounds whose fabric is shared with others, or pauses: less at large sizes, and unsteady."""
    for part in CONGESTED if ground.has_several else ():
        changed = ground.with_cost(rates_times(part))
        yield Fault("pfc_ecn_or_congestion", "congestion, pauses or drops", changed, 1.0, ROUNDABOUT, UNSTEADY)


def crossed_rails(ground: Ground) -> Iterator[Fault]:
    """Yield grounds in which the NICs of a rail are not on one switch: their flows share the links between."""
    site = ground.site()
    if ground.has_several and site.n_nics > 1 and site.setting.n_ranks > site.setting.n_nodes:
        for part in (0.75, 0.5):
            text = "NICs of one rail are on several switches"
            changed = ground.with_cost(rates_times(part))
            yield Fault("rail_mismatch_or_cabling", text, changed, 1.0, ROUNDABOUT)


def slow_host(ground: Ground) -> Iterator[Fault]:
    """Yield grounds with one host that comes late to each call, or moves less; of one machine it is itself that."""
    for late in LATE:
        text = f"one host comes {late * 1e6:.0f} us late to each call"
        yield Fault("straggler_host", text, dataclasses.replace(ground, delay=late), 1.0, ROUNDABOUT)
    for part, late in itertools.product(SLOW_PARTS, (0.0, LATE[0])):
        slow = ground.with_cost(rates_times(part, inside=not ground.has_several))
        text = f"one host moves {part:.0%} of its rate{', and comes late' if late else ''}"
        yield Fault("straggler_host", text, dataclasses.replace(slow, delay=late), 0.5, ROUNDABOUT)


def rates_times(factor: float, *, inside: bool = False) -> Callable[[Site], Site]:
    """Return a change: what leaves machines, or the links inside one, carries a factor of its rate.

    Parameters
    ----------
    factor : float
        Factor.
    inside : bool
        Whether the links inside machines do.
    """

    def change(site: Site) -> Site:
        if inside:
            return dataclasses.replace(site, link=site.link * factor)
        return dataclasses.replace(site, nics=site.nics * factor)

    return change

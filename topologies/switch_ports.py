"""Tiers of a rail-optimised fabric out of switches with a number of ports: groups, and the fewest switches above."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from commsim.core.errors import InputError

from .uplinks import ROUNDED, CableOptions, Cables, Tier, required_ratio

RAILS = Tier("rail_optimized", "leaf", "spine")
MOST_PORTS = 2048  # of any switch
# What takes fewer ports of a switch.
HINTS = {
    "leaf": "give a smaller hosts_per_group", "spine": "give groups_per_pod, for a third tier",
    "core switch": "give fewer uplinks_per_core",
}  # fmt: skip


def fitting_group(n_hosts: int, ports: int, n_rails: int, port: float, options: CableOptions) -> int:
    """Return how many machines a group has whose leaves have so many ports, down and up.

    There are as few groups as there can be. Of their sizes it is the one with the fewest spines, and of these the one
    that leaves the groups most alike.

    Parameters
    ----------
    n_hosts : int
        Machines.
    ports : int
        Ports of a switch.
    n_rails : int
        Leaves of a group that a spine has cables to.
    port : float, bytes/s
        Rate of a leaf's ports to machines.
    options : CableOptions
        What the user says of cables up.

    Raises
    ------
    InputError
        If no leaf has ports enough, or the number of ports is that of no switch.
    """
    if not 1 <= ports <= MOST_PORTS:
        raise InputError(f"{RAILS.topology}: switch_ports must be 1 to {MOST_PORTS}, got {ports}")
    ratio = required_ratio(RAILS, options.oversubscription or 1.0) * (options.rate or port) / port
    sizes = {}
    for group in range(1, min(n_hosts, ports) + 1):
        up = group / ratio
        cables = max(1, round(up) if options.oversubscription else math.ceil(up * (1 - 1e-9)))
        is_built = not options.oversubscription or abs(cables - up) <= ROUNDED * up
        if is_built and group + cables <= ports:
            sizes[group] = cables
    if not sizes:
        asked = f"{RAILS.ratio_key}={options.oversubscription or 1:g}"
        raise InputError(f"{RAILS.topology}: switch_ports={ports} are too few for a leaf with {asked}")
    n_groups = -(-n_hosts // max(sizes))
    fewest = [group for group in sizes if -(-n_hosts // group) == n_groups]
    spines = {group: fewest_above(Cables(sizes[group], 1, port), n_groups * n_rails, ports) for group in fewest}
    return min(fewest, key=lambda group: (spines[group].n_above, group))


def fewest_above(cables: Cables, n_below: int, ports: float) -> Cables:
    """Lay the same cables up to as few switches as have ports for those of all below; as they are where none has.

    Parameters
    ----------
    cables : Cables
        Cables up from each switch below.
    n_below : int
        Switches below that each one above has cables to.
    ports : float
        Ports down of a switch above.
    """
    total = cables.n_above * cables.per_pair
    most = min(total, int(ports / n_below))
    per_pair = next((n for n in range(most, 0, -1) if total % n == 0), 0)
    return dataclasses.replace(cables, n_above=total // per_pair, per_pair=per_pair) if per_pair else cables


def require_ports(needed: Mapping[str, int], ports: int) -> None:
    """Refuse switches of more ports than there are.

    Raises
    ------
    InputError
        Names the switch, and what takes fewer ports.
    """
    for switch, n in needed.items():
        if n > ports:
            raise InputError(f"{RAILS.topology}: a {switch} needs {n} ports, got switch_ports={ports}; {HINTS[switch]}")

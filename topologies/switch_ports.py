"""Tiers of switches with a number of ports: how much fits below them, and the fewest switches above."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass

from commsim.core.errors import InputError

from .uplinks import ROUNDED, CableOptions, Cables, Tier, lay, required_ratio

RAILS = Tier("rail_optimized", "leaf", "spine")
MOST_PORTS = 2048  # of any switch
USUAL_PORTS = 64  # where only hosts are counted: of NVIDIA's QM9700 and SN5600, at 400 and 800 Gb/s
LEAVES = ("hosts_per_leaf", "n_leaves")  # parameters of the hosts of a leaf, and of leaves
# What takes fewer ports of a switch, of a topology or of all.
HINTS = {
    "rail_optimized leaf": "give a smaller hosts_per_group",
    "rail_optimized spine": "give a smaller groups_per_pod, or a larger switch_ports",
    "core switch": "give fewer uplinks_per_core", "leaf": "give a smaller hosts_per_leaf",
    "switch of a rack": "give a smaller hosts_per_rack", "rack": "give a smaller hosts_per_rack",
    "pod switch": "give fewer racks_per_pod", "three_tier core switch": "give fewer pods, or more n_cores",
    "spine": "give fewer leaves or a larger switch_ports, or take rail_optimized or fat_tree, which have a third tier",
}  # fmt: skip


def require_count_of_ports(name: str, ports: int) -> None:
    """Refuse a number of ports that no switch has.

    Raises
    ------
    InputError
        If it is not 1 to ``MOST_PORTS``.
    """
    if not 1 <= ports <= MOST_PORTS:
        raise InputError(f"{name}: switch_ports must be 1 to {MOST_PORTS}, got {ports}")


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of two tiers, or racks, and what is on them.

    Parameters
    ----------
    n_leaves, per_leaf, n_hosts : int
        Leaves or racks, hosts that one has room for, and all hosts: they fill one after the other.
    up : Cables
        Cables up from each leaf.
    """

    n_leaves: int
    per_leaf: int
    n_hosts: int
    up: Cables


@dataclass(frozen=True, slots=True)
class LeafUp:
    """The cables up from the leaves of two tiers, and what their switches have ports for.

    Parameters
    ----------
    tier : Tier
        Its words.
    keys : (str, str)
        Parameters of the number of hosts of a leaf, and of leaves.
    port : float, bytes/s
        Rate of each port to a host.
    options : CableOptions
        What the user says of cables up. Without a number of spines they are as few as are non-blocking.
    ports : int, optional
        Ports of each switch; any number by default.
    side_by_side : int
        Leaves to which each host of a rack has a port.
    """

    tier: Tier
    keys: tuple[str, str]
    port: float
    options: CableOptions
    ports: int | None
    side_by_side: int = 1

    def laid(self, per_leaf: int | None, n_leaves: int | None, n_hosts: int | None) -> Leaves:
        """Return the leaves with their cables.

        Parameters
        ----------
        per_leaf : int, optional
            What the user says of the hosts of a leaf; by default as few as take all hosts, or as a leaf has ports for.
        n_leaves : int, optional
            Leaves, or racks; by default as few as take all hosts.
        n_hosts : int, optional
            All hosts; by default all leaves are full.

        Raises
        ------
        InputError
            If too little is given, no leaf has the ratio, a switch has too few ports, or hosts do not fill the leaves.
        """
        name, (per_key, count_key) = self.tier.topology, self.keys
        if n_leaves is None and n_hosts is None:
            raise InputError(f"{name} needs {count_key}, such as {name}:{count_key}=4, or n_hosts")
        ports = self.ports
        counts = (ports, per_leaf, n_leaves, self.options.n_above, self.options.per_pair)
        if all(count is None for count in counts):
            ports = USUAL_PORTS
        if ports is not None:
            require_count_of_ports(name, ports)
        if per_leaf is None:
            per_leaf = self._chosen(n_leaves, n_hosts, ports)
        if n_leaves is None or n_hosts is None:
            n_hosts = n_hosts or (n_leaves or 0) * per_leaf
            n_leaves = n_leaves or -(-n_hosts // per_leaf)
        elif (fill := -(-n_hosts // per_leaf)) != n_leaves:
            filled = f"{count_key}={fill} of {per_key}={per_leaf}"
            raise InputError(f"{name}: n_hosts={n_hosts} fill {filled}, got {count_key}={n_leaves}")
        up = self._cables(per_leaf)
        if ports is not None:
            below = n_leaves * self.side_by_side
            if self.options.n_above is None and self.options.per_pair is None:
                up = fewest_above(up, below, ports)
            needed = {self.tier.below: per_leaf + up.n_above * up.per_pair, self.tier.above: below * up.per_pair}
            require_ports(name, needed, ports)
        return Leaves(n_leaves, per_leaf, n_hosts, up)

    def _chosen(self, n_leaves: int | None, n_hosts: int | None, ports: int | None) -> int:
        """Return how many hosts a leaf has room for where nobody said."""
        if n_leaves is not None and n_hosts is not None:
            fewest = -(-n_hosts // n_leaves)
            most = max(fewest, -(-n_hosts // max(1, n_leaves - 1)) - 1)  # with one more, the last leaf is empty
            sizes = range(fewest, min(most, fewest + MOST_PORTS) + 1)
            return next((n for n in sizes if self._exact(n)), fewest)  # of nearly the ratio, or refused
        if ports is None:
            name, key = self.tier.topology, self.keys[n_leaves is None]
            raise InputError(f"{name} needs {key}, such as {name}:{key}=4, or switch_ports")
        most = self._fitting(ports)
        return most if n_hosts is None else self._alike(n_hosts, most, ports)

    def _alike(self, n_hosts: int, most: int, ports: int) -> int:
        """Return the hosts of a leaf that leave as few leaves and spines, and the last leaf the fullest.

        A last leaf of few hosts would have the cables of a full one, and so another ratio than the fabric.
        """
        n_leaves = -(-n_hosts // most)
        built = {n: up for n in range(-(-n_hosts // n_leaves), most + 1) if (up := self._exact(n))}
        if self.options.n_above is None and self.options.per_pair is None:
            built = {n: fewest_above(up, n_leaves * self.side_by_side, ports) for n, up in built.items()}
        return min(built, key=lambda n: (built[n].n_above, n))

    def _exact(self, hosts: int) -> Cables | None:
        """Return the cables up from a leaf of so many hosts if they have the ratio that is asked for, not nearly."""
        with contextlib.suppress(InputError):
            up, ratio = self._cables(hosts), self.options.oversubscription
            wanted = hosts * self.port / (up.rate * (ratio or 1.0))
            if ratio is None or abs(up.n_above * up.per_pair - wanted) <= ROUNDED * wanted:
                return up
        return None

    def _cables(self, hosts: int) -> Cables:
        return lay(self.tier, hosts * self.port, self.port, self.options, is_full=self.options.n_above is None)

    def _fitting(self, ports: int) -> int:
        """Return how many hosts a leaf has beside its cables up."""
        for n in range(ports - 1, 0, -1):
            if (up := self._exact(n)) and n + up.n_above * up.per_pair <= ports:
                return n
        few = f"{self.tier.topology}: switch_ports={ports} are too few for a {self.tier.below}"
        raise InputError(f"{few} with one host and its cables up")


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
    require_count_of_ports(RAILS.topology, ports)
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


def require_ports(name: str, needed: Mapping[str, int], ports: int) -> None:
    """Refuse switches of more ports than there are.

    Raises
    ------
    InputError
        Names the switch, and what takes fewer ports.
    """
    for switch, n in needed.items():
        if n > ports:
            hint = HINTS.get(f"{name} {switch}") or HINTS[switch]
            raise InputError(f"{name}: a {switch} needs {n} ports, got switch_ports={ports}; {hint}")

"""What a network costs, and has to keep: prices of ports, cables and switches, and the goal, from a file."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.network import SWITCH, Network
from commsim.core.network_queries import fabric_switches
from commsim.core.spec import is_whole
from commsim.core.units import parse_bandwidth, parse_time, write_bandwidth

# What has a price, and what that is. `nic`, `port` and `cable` are priced by rate, `switch` by its number of ports.
ITEMS = {
    "nic": "a port of a host",
    "port": "a port of a switch",
    "cable": "a cable",
    "switch": "a switch",
}

# The currency and the prices where none are given: nobody's money, but a fabric with fewer parts is the cheaper one.
COUNTED = ("cables and switches", {"nic": 0.0, "port": 0.0, "cable": 1.0, "switch": 1.0})

# What can be kept: its column, how its bound is read, and whether more is better.
KEPT: dict[str, tuple[str, Callable[[str, str], float] | None, bool]] = {
    "time": ("time_s", parse_time, False),
    "iteration": ("iteration_s", parse_time, False),
    "exposed": ("exposed_comm_s", parse_time, False),
    "algbw": ("algbw_Bps", parse_bandwidth, True),
    "busbw": ("busbw_Bps", parse_bandwidth, True),
    "scaling": ("scaling", None, True),
}

# A rate that messages reach has the price of the rate as sold: of the next one above, by at most this factor.
MOST_ABOVE = 1.1
# Of one piece: the sum of any number of them is finite.
MAX_PRICE = 1e18


@dataclass(frozen=True, slots=True)
class PriceItem:
    """One line of the bill.

    Parameters
    ----------
    item : str
        Member of ``ITEMS``.
    what : str
        The rate, or the number of ports.
    count : int
        How many.
    each : float
        Price of one.
    """

    item: str
    what: str
    count: int
    each: float


@dataclass(frozen=True, slots=True)
class Prices:
    """The table ``[cost]`` of a file.

    Parameters
    ----------
    path : str
        The file, for messages.
    currency : str
        What prices are in; printed as it is.
    by_item : mapping
        Price of each item, or prices by rate in bytes/s, of switches by number of ports.
    """

    path: str
    currency: str
    by_item: Mapping[str, float | Mapping[float, float]]

    def bill(self, network: Network) -> tuple[PriceItem, ...]:
        """Price what a network is made of; what is inside of a machine is not bought.

        Raises
        ------
        InputError
            If a price is needed that the file does not have, or a link has none back at the same rate.
        """
        lines, missing = list[PriceItem](), list[str]()
        parts = [(item, write_bandwidth(self._sold(item, rate)), n, functools.partial(self._by_rate, item, rate))
                 for (item, rate), n in _cabling(network).items()]  # fmt: skip
        parts += [("switch", f"{n_ports} ports", n, functools.partial(self._switch, n_ports))
                  for n_ports, n in _switches(network).items()]  # fmt: skip
        for item, what, count, price in parts:
            try:
                lines.append(PriceItem(item, what, count, price()))
            except InputError as error:
                missing.append(str(error).removeprefix(f"{self.path}: "))
        if missing:
            raise InputError(f"{self.path}: {'; '.join(dict.fromkeys(missing))}")
        return tuple(lines)

    def _given(self, item: str, what: str) -> float | Mapping[float, float]:
        if item not in self.by_item:
            raise InputError(f"{self.path}: cost.{item} is missing: what {ITEMS[item]} of {what} costs")
        return self.by_item[item]

    def _by_rate(self, item: str, rate: float) -> float:
        given = self._given(item, write_bandwidth(rate))
        if isinstance(given, float):
            return given
        if (sold := self._sold(item, rate)) in given:
            return given[sold]
        rates = ", ".join(map(write_bandwidth, given))
        raise InputError(f"{self.path}: cost.{item} has no price for {write_bandwidth(rate)}, only for {rates}")

    def _sold(self, item: str, rate: float) -> float:
        """Return the rate as sold of what reaches a rate, as the prices say it; the rate itself where none is near."""
        given = self.by_item.get(item, 0.0)
        known = [] if isinstance(given, float) else list(given)
        same = [one for one in known if math.isclose(one, rate, rel_tol=1e-9)]
        above = [one for one in known if rate < one <= rate * MOST_ABOVE]
        return same[0] if same else min(above, default=rate)

    def _switch(self, n_ports: int) -> float:
        """Return the price of the smallest switch with so many ports."""
        given = self._given("switch", f"{n_ports} ports")
        if isinstance(given, float):
            return given
        enough = [ports for ports in given if ports >= n_ports]
        if not enough:
            most = f"the largest has {max(given):.0f}"
            raise InputError(f"{self.path}: cost.switch has no price for a switch with {n_ports} ports, {most}")
        return given[min(enough)]


def total(bill: tuple[PriceItem, ...]) -> float:
    """Sum of a bill."""
    return math.fsum(line.count * line.each for line in bill)


def read_prices(tree: Mapping[str, Any], path: str | Path) -> Prices:
    """Read the table ``[cost]`` of a file; without it cables and switches are counted.

    Raises
    ------
    InputError
        If a price is not a number of 0 to 1e18.
    """
    if "cost" not in tree:
        return Prices(str(path), *COUNTED)
    fields = TableFields(tree, path).table("cost")
    currency = fields.text("currency", "")
    by_item = {item: _price(fields, item) for item in ITEMS if item in fields}
    for item in ITEMS:
        fields.raw(item)  # so that the message of what is unknown names all
    fields.finish()
    return Prices(str(path), currency, by_item)


def _price(fields: TableFields, item: str) -> float | dict[float, float]:
    if not isinstance(fields.raw(item), Mapping):
        return _amount(fields, item)
    table = fields.table(item)
    prices = {}
    for key in table:
        at = float(_ports(table, key)) if item == "switch" else _rate(table, key)
        prices[at] = _amount(table, key)
    if not prices:
        fields.fail(item, "has no price")
    return prices


def _amount(fields: TableFields, key: str) -> float:
    amount = fields.number(key)
    return amount if 0 <= amount <= MAX_PRICE else fields.refuse(key, f"a price of 0 to {MAX_PRICE:g}")


def _rate(fields: TableFields, key: str) -> float:
    try:
        return parse_bandwidth(key)
    except InputError as error:
        fields.fail(key, f": {error}")


def _ports(fields: TableFields, key: str) -> int:
    if not (is_whole(key, 8) and int(key)):
        fields.fail(key, "must be a number of ports, such as 32 = 9000")
    return int(key)


def _cabling(network: Network) -> dict[tuple[str, float], int]:
    """Count ports and cables between machines, by rate."""
    outside = ~((network.machine[network.src] == network.machine[network.dst]) & (network.machine[network.src] >= 0))
    _require_cables(network, outside)
    counts: dict[tuple[str, float], int] = {}
    chosen_by_item = {
        "nic": outside & (network.kind[network.src] != SWITCH),
        "port": outside & (network.kind[network.src] == SWITCH),
        "cable": outside & (network.src < network.dst),  # a cable is two links
    }
    for item, chosen in chosen_by_item.items():
        for rate, n in zip(*np.unique(network.bandwidth[chosen], return_counts=True), strict=True):
            counts[item, float(rate)] = int(n)
    return counts


def _require_cables(network: Network, outside: NDArray[np.bool_]) -> None:
    """Refuse links that are no cable: each needs one back, at the same rate."""
    src, dst, rate = network.src[outside], network.dst[outside], network.bandwidth[outside]
    there, back = np.lexsort((rate, dst, src)), np.lexsort((rate, src, dst))
    wrong = (src[there] != dst[back]) | (dst[there] != src[back]) | (rate[there] != rate[back])
    if wrong.any():
        link = there[np.argmax(wrong)]
        a, b = network.nodes[src[link]], network.nodes[dst[link]]
        raise InputError(f"{network.name} has no price: not every link from {a} to {b} has one back at the same rate, "
                         "and a cable is two links")  # fmt: skip


def _switches(network: Network) -> dict[int, int]:
    """Count switches outside of machines, by how many of their ports have a cable."""
    ports = np.bincount(network.src, minlength=network.n_nodes)[fabric_switches(network)]
    return {int(n): int(count) for n, count in zip(*np.unique(ports, return_counts=True), strict=True)}


@dataclass(frozen=True, slots=True)
class Goal:
    """The table ``[goal]`` of a file.

    Parameters
    ----------
    keep : str
        Member of ``KEPT``.
    bound : float
        Bound in SI units: largest value, or smallest if more is better.
    """

    keep: str
    bound: float

    @property
    def column(self) -> str:
        """Of the results."""
        return KEPT[self.keep][0]

    @property
    def more_is_better(self) -> bool:
        """Whether the bound is a lower one."""
        return KEPT[self.keep][2]

    def better(self, a: float, b: float) -> float:
        """Return the better of two values."""
        return max(a, b) if self.more_is_better else min(a, b)

    def is_kept(self, value: float | None) -> bool:
        """Whether a value is within the bound."""
        return value is not None and self.better(value, self.bound) == value


def read_goal(tree: Mapping[str, Any], path: str | Path) -> Goal:
    """Read the table ``[goal]`` of a file.

    Raises
    ------
    InputError
        If it is missing or wrong.
    """
    if "goal" not in tree:
        raise InputError(f'{path}: [goal] is missing, such as: keep = "time", within = "5ms"')
    fields = TableFields(tree, path).table("goal")
    keep = fields.one_of("keep", tuple(KEPT))
    _, parse, more = KEPT[keep]
    key = "at_least" if more else "within"
    bound = fields.number(key) if parse is None else fields.quantity(key, parse)
    fields.finish()
    return Goal(keep, bound)

"""Cables from the switches of one tier to those above: how many there are where a ratio of capacities is asked for.

Every topology with tiers takes the same parameters. A cable has the rate of the ports below it unless
``uplink_bandwidth`` says otherwise; ``oversubscription=2:1`` lays half as many cables as would be non-blocking. Every
switch has as many cables to each of the switches above it, as ECMP and adaptive routing need it: where there are fewer
cables than switches above, the others are left out. Cables are whole: the nearest number that can be built is taken if
its ratio is within ``NEAR`` of the one asked for, and 1:1 never gets fewer cables than are non-blocking.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import count_text, format_bandwidth

# Parameters that say how many cables there are, and change nothing in the number of hosts.
COUNTS_OF_CABLES = ("oversubscription", "uplinks_per_spine", "pod_oversubscription", "uplinks_per_core")

# Relative error of a ratio that people round: 1.07 for 16:15 is taken as that.
ROUNDED = 4e-3
# Relative error of the ratio of whole cables: 11 up from 32 hosts are taken for 3:1, 2 up from 8 are not for 5:1.
NEAR = 0.1
LEAST_RATIO = 1e-6  # a ratio below it would give a port more than a million cables


@dataclass(frozen=True, slots=True)
class Tier:
    """The words of a tier in a topology's parameters and messages.

    Parameters
    ----------
    topology : str
        Name of the topology.
    below, above : str
        The switches at the two ends of its cables, in the singular.
    count_key, pair_key : str
        Names of the parameters of the number of switches above, and of parallel cables; empty where there are none.
    prefix : str
        What the names of its parameters begin with: ``pod_`` for the cables up from pods.
    """

    topology: str
    below: str
    above: str
    count_key: str = "n_spines"
    pair_key: str = "uplinks_per_spine"
    prefix: str = ""

    @property
    def ratio_key(self) -> str:
        """Name of the parameter of its ratio."""
        return f"{self.prefix}oversubscription"

    @property
    def rate_key(self) -> str:
        """Name of the parameter of its cables' rate."""
        return f"{self.prefix}uplink_bandwidth"


@dataclass(frozen=True, slots=True)
class CableOptions:
    """What a user says of the cables of a tier; None is not said.

    Parameters
    ----------
    n_above : int, optional
        Switches above.
    per_pair : int, optional
        Parallel cables of two switches.
    oversubscription : float, optional
        Capacity below a switch over that of its cables up.
    rate : float, bytes/s, optional
        Bandwidth of each cable, one way.
    """

    n_above: int | None = None
    per_pair: int | None = None
    oversubscription: float | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Cables:
    """The cables of a tier.

    Parameters
    ----------
    n_above, per_pair : int
        Switches above that have some, and the cables between each of the two.
    rate : float, bytes/s
        Bandwidth of each, one way.
    left_out : str
        The switches above that were asked for and would get none; empty if all get some.
    """

    n_above: int
    per_pair: int
    rate: float
    left_out: str = ""


def lay(tier: Tier, capacity: float, port: float, options: CableOptions, *, is_full: bool = False) -> Cables:
    """Return the cables of a tier.

    Parameters
    ----------
    tier : Tier
        Its words.
    capacity : float, bytes/s
        Bandwidth of all links up into one switch below.
    port : float, bytes/s
        Rate of one of them, which its cables up have unless another is given.
    options : CableOptions
        What the user says. Numbers of switches and of cables give a ratio; a ratio gives the numbers that are not said.
    is_full : bool
        What is built where neither a ratio nor a number of cables is given: the fewest cables that are non-blocking, in
        place of one between every two switches.

    Raises
    ------
    InputError
        If no whole number of cables has nearly the ratio; the message names the two nearest that can be built. If the
        numbers of switches and of cables are given beside a ratio that they do not have.
    """
    rate = port if options.rate is None else options.rate
    if options.oversubscription is None:
        return _by_count(capacity / rate, rate, options, is_full=is_full)
    wanted = capacity / rate / required_ratio(tier, options.oversubscription)
    if (n := options.n_above) is not None and (each := options.per_pair) is not None:
        _refuse_another(tier, capacity / rate, options.oversubscription, (n, each))
        return Cables(n, each, rate)
    near = _near(wanted, options.per_pair or 1, math.inf if options.n_above is None else options.n_above)
    if options.n_above is not None:
        near |= _near(wanted, options.n_above, math.inf)
    counts = ((tier.count_key, options.n_above), (tier.pair_key, options.per_pair))
    text = ",".join(f"{key}={count}" for key, count in counts if key and count is not None)
    total = nearest(tier, capacity / rate, rate, options.oversubscription, near, text)
    per_pair = options.per_pair or max(1, total // (options.n_above or total))
    n_above = total // per_pair
    missing = 0 if options.n_above is None else options.n_above - n_above
    above = f"{tier.above}es" if tier.above.endswith("ch") else f"{tier.above}s"
    return Cables(n_above, per_pair, rate, f"{missing} of {options.n_above} {above}" if missing else "")


def by_tier(n_cables: Sequence[int], *latencies: float | None) -> NDArray[np.float64]:
    """Return the latency of each link, s: those of one way tier by tier, and then those of the other.

    Parameters
    ----------
    n_cables : sequence of int
        Cables of each tier, the hosts' first.
    *latencies : float or None, s
        Latency of each tier's cables; None is that of the tier below.
    """
    of_tiers: list[float] = []
    for own in latencies:
        of_tiers.append(of_tiers[-1] if own is None else own)
    return np.tile(np.repeat(np.array(of_tiers, np.float64), n_cables), 2)


def _refuse_another(tier: Tier, ports: float, ratio: float, counts: tuple[int, int]) -> None:
    """Refuse a ratio beside a number of switches above and of cables to each, where these have another ratio.

    Raises
    ------
    InputError
        If they differ; the message names both. Which of the two is meant cannot be told.
    """
    wanted, cables = ports / ratio, counts[0] * counts[1]
    if abs(cables - wanted) > ROUNDED * wanted:
        given = f"{tier.count_key}={counts[0]},{tier.pair_key}={counts[1]}"
        raise InputError(
            f"{tier.topology}: {tier.ratio_key}={ratio:.6g} is {wanted:.4g} cables up from each {tier.below}, but "
            f"{given} is {cables}, {_ratio_text(ports, cables)}; change one of them"
        )


def _by_count(ports: float, rate: float, options: CableOptions, *, is_full: bool) -> Cables:
    """Cables without a ratio; `ports` is the capacity below in cables of this rate."""
    enough = max(1, math.ceil(ports * (1 - 1e-9)))
    if options.per_pair is not None:
        return Cables(options.n_above or -(-enough // options.per_pair), options.per_pair, rate)
    n_above = options.n_above or enough
    return Cables(n_above, -(-enough // n_above) if is_full else 1, rate)


def nearest(tier: Tier, ports: float, rate: float, ratio: float, near: Iterable[int], text: str = "") -> int:
    """Return the number of cables up from a switch whose ratio is the nearest to one asked for.

    Parameters
    ----------
    tier : Tier
        Its words.
    ports : float
        Capacity below the switch, in cables of this rate.
    rate : float, bytes/s
        Bandwidth of a cable.
    ratio : float
        What is asked for.
    near : iterable of int
        Numbers of cables that can be built, at least those next to the ratio on both sides.
    text : str
        Other parameters that decide what can be built, for the message.

    Raises
    ------
    InputError
        If none of them has nearly the ratio.
    """
    wanted = ports / required_ratio(tier, ratio)
    by_distance = sorted(set(near), key=lambda n: (abs(math.log(n / wanted)), n))
    least = wanted * (1 - ROUNDED) if ratio == 1 else 0.0  # fewer are not non-blocking
    best = next((n for n in by_distance if n >= least), None)
    if best is not None and abs(ports / best - ratio) <= NEAR * ratio:
        return best
    sides = [next((n for n in by_distance if (n < wanted) == fewer), None) for fewer in (True, False)]
    two = [n for n in sides if n is not None] if None not in sides else by_distance[:2]
    can = " and ".join(f"{_ratio_text(ports, n)} ({count_text(n, 'cable')})" for n in sorted(two))
    raise InputError(
        f"{tier.topology}: {tier.ratio_key}={ratio:.6g} is {wanted:.4g} cables of {format_bandwidth(rate)} up from "
        f"each {tier.below}; the nearest that can be built{' with ' * bool(text)}{text}: {can or 'none'}; "
        f"{tier.rate_key} gives cables another rate"
    )


def required_ratio(tier: Tier, ratio: float) -> float:
    """Return a ratio.

    Raises
    ------
    InputError
        If it is not positive and finite, or so small that a port would have more than a million cables.
    """
    if not 0 < ratio < math.inf:
        raise InputError(f"{tier.topology} needs a positive {tier.ratio_key}, got {ratio}")
    if ratio < LEAST_RATIO:
        raise InputError(f"{tier.topology} needs {tier.ratio_key} of at least {LEAST_RATIO:g}, got {ratio}")
    return ratio


def _near(wanted: float, step: int, most: float) -> set[int]:
    """Multiples of a step next to a number, from the step to the most."""
    at = min(math.floor(wanted / step), 2**40) if most == math.inf else min(wanted, most) // step
    around = (max(1, int(at) + i) * step for i in (-1, 0, 1, 2))
    return {n for n in around if n <= most}


def _ratio_text(ports: float, cables: int) -> str:
    """Write a ratio as it can be given: ``4:3``."""
    ratio = Fraction(ports).limit_denominator(1000) / cables
    return f"{ratio.numerator}:{ratio.denominator}"

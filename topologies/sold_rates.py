"""Rates of cables as they are sold, on a fabric under machines whose NICs have the rate that messages reach."""

from __future__ import annotations

from collections.abc import Mapping

from commsim.core.errors import InputError
from commsim.core.spec import split_spec
from commsim.core.units import parse_bandwidth, write_bandwidth

from .presets import PRESETS

# Rates that ports and cables are sold with, bytes/s, rising.
SOLD = tuple(gbps * 1e9 / 8 for gbps in (10, 25, 40, 50, 100, 200, 400, 800, 1600))
DELIVERED = 0.9  # the least part of the rate that a port is sold with that is left without headers
NIC_RATE = "nic"
UPLINKS = "uplink_bandwidth"  # with a prefix, of the tier above pods


def as_reached(raw: Mapping[str, str], machine: str) -> dict[str, str]:
    """Return a fabric's arguments, with rates of cables between switches as messages reach them.

    A preset's NIC of 400 Gb/s has the 388 Gb/s that messages reach beside headers. A cable of 800 Gb/s above it loses
    the same share: taken as it is sold, twice the rate would be 2.06 times the rate, and no ratio of whole cables.

    Parameters
    ----------
    raw : mapping of str to str
        Arguments, as they were written. Where ``bandwidth`` says the rate of the ports too, all stay as they are.
    machine : str
        Machine on the fabric, as it was written. One that is no preset, or has ``rates=spec`` or a ``nic`` of its own,
        has rates as they are.

    Returns
    -------
    dict of str to str
        With other uplink rates, where these are rates as sold; ``97GB/s`` is none, and stays.
    """
    share = _share(machine)
    if share == 1 or "bandwidth" in raw:
        return dict(raw)
    return {key: _reached(text, share) if key.endswith(UPLINKS) else text for key, text in raw.items()}


def sold_rate(rate: float) -> float:
    """Return the rate, bytes/s, that a port is sold with whose messages reach a rate; `rate` if that is of none."""
    return next((sold for sold in SOLD if DELIVERED * sold <= rate <= sold), rate)


def _share(machine: str) -> float:
    """Return the part of the rate of its NICs that messages reach on a machine; 1 where that is not known."""
    name, raw = split_spec(machine)
    if name not in PRESETS or NIC_RATE in raw or raw.get("rates") == "spec":
        return 1.0
    for rate in PRESETS[name].rates:
        if rate.parameter == NIC_RATE and rate.spec and rate.effective:
            return parse_bandwidth(rate.effective) / parse_bandwidth(rate.spec)
    return 1.0


def _reached(text: str, share: float) -> str:
    try:
        rate = parse_bandwidth(text)
    except InputError:  # is refused with the parameter's name by whoever reads all arguments
        return text
    return write_bandwidth(rate * share) if rate in SOLD else text

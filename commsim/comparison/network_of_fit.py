"""From a fit to the network that would give it: an algorithm's closed form says how often it pays what."""

from __future__ import annotations

from commsim.core.cost import LogGP
from commsim.core.errors import InputError

from .hockney import Fit


def network_costs(fit: Fit, collective: str) -> tuple[LogGP, LogGP, LogGP]:
    """Turn the fit of one algorithm into the network's alpha and bandwidth, by the algorithm's closed form.

    Parameters
    ----------
    fit : Fit
        With a number of ranks.
    collective : str
        The algorithm, as a registered collective, such as ``ring_all_reduce``.

    Returns
    -------
    LogGP, LogGP, LogGP
        The costs, and those of the two ends of the intervals: the fastest and the slowest network. L holds all of
        alpha, since nothing here tells L from o; gamma is in B.

    Raises
    ------
    InputError
        If the collective is another operation, or has no closed form that is linear in the size.
    """
    from collectives import COLLECTIVES

    if collective not in COLLECTIVES:
        raise InputError(f"unknown collective {collective!r}")
    entry = COLLECTIVES[collective]
    if entry.facts["operation"] != fit.operation:
        raise InputError(f"{collective} implements {entry.facts['operation']}, and {fit.operation} was measured")
    cost = entry.facts["cost"]
    if cost is None or fit.n_ranks is None or fit.n_ranks < 2:
        raise InputError(f"{collective}: needs a closed form and at least 2 ranks, to say what the network must have")
    try:
        hops = float(cost(fit.n_ranks, 0.0, LogGP(L=1.0, B=float("inf"))))
        share, twice = (float(cost(fit.n_ranks, size, LogGP(B=1.0))) for size in (1.0, 2.0))
    except TypeError:
        raise InputError(
            f"{collective}: its closed form needs to know the network, so that a fit says nothing of it"
        ) from None
    if abs(twice - 2 * share) > 1e-9 * share or not hops or not share:
        raise InputError(f"{collective}: its closed form is not linear in the size, so that a fit says nothing of it")
    ends = (("value", "value"), ("low", "low"), ("high", "high"))
    found = [LogGP(L=getattr(fit.startup, a) / hops, B=share / max(getattr(fit.per_byte, b), 1e-300)) for a, b in ends]
    return found[0], found[1], found[2]

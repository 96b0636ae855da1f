"""Machines that are asked about: so many of one joined by a fabric; and the rate of false alarms that is asked for."""

from __future__ import annotations

from commsim.core.errors import InputError
from commsim.prediction.inputs import NetworkLike, network_of

# GPUs of machines that are joined here: with more, one operation takes minutes.
MOST_GPUS = 16_384
# Least rate that is taken: a smaller one would be a guess about what no public table shows.
LEAST_RATE = 1e-4


def on_machines(network: NetworkLike, machines: int | None) -> NetworkLike:
    """Return a machine as so many of it, joined by a fabric that is not oversubscribed.

    Parameters
    ----------
    network : str, Network or NetworkBuilder
        Machine, or anything else if no number is given.
    machines : int or None
        Number of machines.

    Raises
    ------
    InputError
        If the number is below 1 or too large, or the network has machines on a fabric already.
    """
    if machines is None:
        return network
    if not isinstance(network, str) or "@" in network:
        named = network if isinstance(network, str) else "the network"
        raise InputError(f"machines={machines} needs one machine such as dgx-h100; {named} already has its fabric")
    if machines < 1:
        raise InputError(f"there must be at least 1 machine, got {machines}")
    if machines > 1 and machines * (each := len(network_of(network).endpoints)) > MOST_GPUS:
        raise InputError(f"at most {MOST_GPUS} GPUs are joined to be predicted, got {machines} machines of {each}")
    return network if machines == 1 else f"{network}@star:machines={machines}"


def check_rate(false_alarms: float) -> None:
    """Refuse a rate of false alarms that is none, or less than tables can show.

    Raises
    ------
    InputError
        If it is not from 0.01 % to 50 %.
    """
    if not LEAST_RATE <= false_alarms <= 0.5:
        raise InputError(f"the rate of false alarms must be 0.01% to 50%, got {false_alarms * 100:g}%")

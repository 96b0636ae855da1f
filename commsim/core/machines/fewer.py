"""A machine of which a job uses some GPUs and NICs: the others, and switches with nothing left on them, are gone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import GPU, NIC, SWITCH, Network

from .attach import PER_LINK, PER_NODE


def fewer_devices(machine: Network, n_gpus: int | None = None, n_nics: int | None = None) -> Network:
    """Return a machine with its first GPUs, and the NICs that such a share of it has.

    Parameters
    ----------
    machine : Network
        The whole machine.
    n_gpus : int, optional
        Number of GPUs that are used, the first ones. Default: all.
    n_nics : int, optional
        Number of NICs, at equal distances among those of the GPUs. Default: the share of the GPUs, rounded up.

    Raises
    ------
    InputError
        If the machine has fewer.
    """
    gpus, nics = (np.flatnonzero(machine.kind == kind) for kind in (GPU, NIC))
    n_gpus = len(gpus) if n_gpus is None else n_gpus
    for name, wanted, least, most in (("n_gpus", n_gpus, 1, len(gpus)), ("n_nics", n_nics or 0, 0, len(nics))):
        if not least <= wanted <= most:
            raise InputError(f"{machine.name}: {name} must be {least}..{most}, got {wanted}")
    near = -(-len(nics) * n_gpus // len(gpus))
    n_nics = near if n_nics is None else n_nics
    whole = max(near, n_nics)
    place = np.arange(whole)
    kept_nics = nics[:whole][(place + 1) * n_nics // max(1, whole) > place * n_nics // max(1, whole)]
    keep = np.ones(machine.n_nodes, np.bool_)
    keep[np.setdiff1d(np.concatenate((gpus, nics)), np.concatenate((gpus[:n_gpus], kept_nics)))] = False
    for ends in _dead_ends(machine, keep):
        keep[ends] = False
    return restricted(machine, keep)


def _dead_ends(machine: Network, keep: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
    """Find, again and again, the switches that lost all but one of their neighbours."""
    had = np.bincount(machine.src, minlength=machine.n_nodes)
    while True:
        left = np.bincount(machine.src[keep[machine.dst]], minlength=machine.n_nodes)
        ends = np.flatnonzero(keep & (machine.kind == SWITCH) & (left <= 1) & (left < had))
        if not ends.size:
            return
        yield ends


def restricted(network: Network, keep: NDArray[np.bool_]) -> Network:
    """Return a network without some nodes and their links.

    Parameters
    ----------
    network : Network
        The whole.
    keep : bool[n_nodes]
        Nodes that stay.
    """
    number = np.cumsum(keep) - 1
    links = keep[network.src] & keep[network.dst]
    per: dict[str, Any] = {name: getattr(network, name)[keep] for name in (*PER_NODE, "machine", "coordinates")}
    per |= {name: getattr(network, name)[links] for name in PER_LINK}
    return dataclasses.replace(
        network, nodes=tuple(name for name, kept in zip(network.nodes, keep, strict=True) if kept),
        src=number[network.src[links]], dst=number[network.dst[links]], **per,
    )  # fmt: skip

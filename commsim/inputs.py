"""What people name on a command line, as values: a network, a placement on it, a schedule."""

from __future__ import annotations

from pathlib import Path

from collectives import COLLECTIVES
from topologies import TOPOLOGIES

from .core.errors import InputError
from .core.network import Network
from .core.placement import STRATEGIES, Placement, place
from .core.schedule import Schedule
from .core.spec import read_arguments, split_spec
from .core.store import SUFFIXES, read_network, read_placement, read_schedule


def load_network(text: str) -> Network:
    """Build ``name:key=value,...`` from the registered topologies, or read a .toml, .json or .npz file.

    Parameters
    ----------
    text : str
        What the user wrote. It is a path when it ends with one of the three suffixes.

    Raises
    ------
    InputError
        If the topology is unknown, an argument is wrong, or the file does not hold a network.
    """
    if Path(text).suffix in SUFFIXES:
        return read_network(text)
    name, raw = split_spec(text)
    if name not in TOPOLOGIES and (Path(text).exists() or "/" in name):
        raise InputError(f"{text}: a network file ends with {', '.join(SUFFIXES)}")
    build = TOPOLOGIES[name].build
    return build(**read_arguments(build, raw))


def load_placement(text: str, network: Network, n_participants: int, seed: int = 0) -> Placement:
    """Place by a named strategy, or as a .toml, .json or .npz file says.

    Parameters
    ----------
    text : str
        A strategy, or a path when it ends with one of the three suffixes.
    network : Network
        Where to.
    n_participants : int
        How many ranks and helpers there are.
    seed : int
        Of the random strategy.

    Raises
    ------
    InputError
        If the strategy is unknown, the network has too few hosts, or the file does not place `n_participants`.
    """
    if Path(text).suffix not in SUFFIXES:
        if text not in STRATEGIES:
            files = f"a file that ends with {', '.join(SUFFIXES)}"
            raise InputError(f"unknown placement {text!r}; known: {', '.join(STRATEGIES)}, or {files}")
        return place(network, n_participants, text, seed)
    placement = read_placement(text, network)
    if len(placement.nodes) != n_participants:
        raise InputError(f"{text}: places {len(placement.nodes)} participants, but there are {n_participants}")
    return placement


def load_schedule(text: str, n_ranks: int | None = None) -> Schedule:
    """Build ``name:key=value,...`` from the registered collectives, or read an .npz file.

    Parameters
    ----------
    text : str
        What the user wrote. It is a path when it ends with .npz.
    n_ranks : int, optional
        Needed for a collective that is named.

    Raises
    ------
    InputError
        If the collective is unknown, an argument is wrong or missing, or the file does not hold a schedule.
    """
    if Path(text).suffix in SUFFIXES:
        return read_schedule(text)
    name, raw = split_spec(text)
    build = COLLECTIVES[name].build
    if n_ranks is None:
        raise InputError(f"{name} needs a number of ranks: --ranks N")
    return build(n_ranks, **read_arguments(build, raw, given=("n_ranks", "groups")))

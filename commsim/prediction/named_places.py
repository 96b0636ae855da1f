"""Places of ranks that people name: a strategy, a file, or a job of a file that ``commsim place`` wrote."""

from __future__ import annotations

from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import STRATEGIES, Placement, is_strategy, place
from commsim.core.spec import SUFFIXES
from commsim.core.units import count_text

PACKED = "packed"  # the placement where none is given


def load_placement(text: str, network: Network, n_participants: int, seed: int = 0) -> Placement:
    """Place by a named strategy, or as a .toml, .json or .npz file says.

    Parameters
    ----------
    text : str
        A strategy, or a path when it ends with one of the three suffixes; ``FILE.json:JOB`` is a job of the JSON of
        ``commsim place``.
    network : Network
        Network to place on.
    n_participants : int
        How many there are: ranks, and in a file helpers too.
    seed : int
        Seed of the random strategy.

    Raises
    ------
    InputError
        If the strategy is unknown, the network has too few hosts, or the file does not place `n_participants`.
    """
    text, job = _with_job(text) if ".json:" in text else (text, None)
    if Path(text).suffix not in SUFFIXES:
        if not is_strategy(text):
            files = f"a file that ends with {', '.join(SUFFIXES)}"
            raise InputError(f"unknown placement {text!r}; known: {', '.join(STRATEGIES)}, or {files}")
        return place(network, n_participants, text, seed)
    from commsim.core.files.store import read_placement

    placement = read_placement(text, network, job)
    if len(placement.nodes) != n_participants:
        raise InputError(f"{text}: places {len(placement.nodes)} participants, but there are {n_participants}")
    return placement


def _with_job(text: str) -> tuple[str, str | None]:
    """Split ``FILE.json:JOB``."""
    path, colon, job = text.rpartition(":")
    return (path, job) if colon and Path(path).suffix == ".json" else (text, None)


def placement_of_ranks(
    network: Network, n_ranks: int | None, placement: str | Placement | None, seed: int = 0
) -> Placement:
    """Return where the ranks of an operation without servers are.

    Parameters
    ----------
    network : Network
        Network to place on.
    n_ranks : int, optional
        Number of ranks. Default: all that the placement or the network has.
    placement : str or Placement, optional
        Strategy, file or placement. Default: ``packed``.
    seed : int
        Seed of the random strategy.

    Raises
    ------
    InputError
        If there are too few places, or the placement is unknown or does not fit.
    """
    if isinstance(placement, Placement):
        if n_ranks is not None and n_ranks != len(placement.nodes):
            raise InputError(f"the placement has {count_text(len(placement.nodes), 'rank')}, got n_ranks={n_ranks}")
        return placement
    most = len(network.endpoints)
    p = most if n_ranks is None else n_ranks
    if not 1 <= p <= most:
        raise InputError(f"ranks must be 1..{most}, since {network.name} has {count_text(most, 'host')}; got {p}")
    return load_placement(placement or PACKED, network, p, seed)

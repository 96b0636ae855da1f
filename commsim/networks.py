"""Networks and what is placed on them, by whatever names them: text, a file, a value, or a builder."""

from __future__ import annotations

from collections.abc import Sequence

from commsim.core.errors import wrong_kind
from commsim.core.files.placement_file import read_placement as placement_in
from commsim.core.network import Network
from commsim.core.placement import PACKED, Placement
from commsim.core.placement import place as place_ranks
from commsim.core.schedule import Schedule
from commsim.prediction.build import prepare as prepare_plan
from commsim.prediction.faults import with_faults as faulty
from commsim.prediction.inputs import (
    CollectiveLike,
    NetworkLike,
    PlacementLike,
    collective_of,
    network_of,
    placement_of,
)
from commsim.prediction.inputs import load_placement as placement_named
from commsim.prediction.plans.dense import Plan
from commsim.prediction.read import changed_network

__all__ = ["load_network", "load_placement", "place", "prepare", "read_placement", "with_faults"]


def load_network(network: NetworkLike) -> Network:
    """Return a network.

    Parameters
    ----------
    network : str, path, Network or NetworkBuilder
        Text such as ``leaf_spine:n_leaves=4``, a preset, a file, or a value; text is read as
        :func:`commsim.prediction.inputs.load_network` says.

    Raises
    ------
    InputError
        If a name is unknown, an argument is wrong, or a file holds no network.
    """
    return network_of(network)


def with_faults(network: NetworkLike, *, fail: Sequence[str] = (), scale: Sequence[str] = (), seed: int = 0) -> Network:
    """Return a network without some links and switches, or with slower links.

    Parameters
    ----------
    network
        Same as in :func:`load_network`.
    fail : sequence of str
        What fails, such as ``link:leaf0:spine0``, ``switch:spine1``, ``host:h2`` or ``links:5%``.
    scale : sequence of str
        Links at another rate, such as ``link:leaf0:*=0.5``.
    seed : int
        Seed of faults that are drawn.

    Raises
    ------
    InputError
        If a name is unknown, or a fault cannot be read.

    Examples
    --------
    >>> import commsim as cs
    >>> cs.with_faults("leaf_spine:n_leaves=2,n_spines=2,hosts_per_leaf=2", fail=["link:leaf0:spine0"]).n_links
    14
    """
    for name, texts in (("fail", fail), ("scale", scale)):
        if isinstance(texts, str) or not isinstance(texts, Sequence):
            raise wrong_kind(name, "a list such as ['link:leaf0:spine0']", texts)
    return faulty(network_of(network), fail, scale, seed)[0]


def place(network: NetworkLike, n_ranks: int, strategy: str = PACKED, seed: int = 0) -> Placement:
    """Put ranks on a network's endpoints, as :func:`commsim.core.placement.place` does; any kind of network."""
    return place_ranks(network_of(network), n_ranks, strategy, seed)


def load_placement(text: str, network: NetworkLike, n_participants: int, seed: int = 0) -> Placement:
    """Place as :func:`commsim.prediction.inputs.load_placement` does, on any kind of network."""
    return placement_named(_text(text, "text"), network_of(network), n_participants, seed)


def read_placement(path: str, network: NetworkLike) -> Placement:
    """Read a placement as :func:`commsim.core.files.placement_file.read_placement` does, on any kind of network."""
    return placement_in(path, network_of(network))


def prepare(
    collective: CollectiveLike,
    network: NetworkLike,
    *,
    n_ranks: int | None = None,
    placement: PlacementLike | None = None,
    routing: str | None = None,
    seed: int = 0,
    assume_programmable: bool = True,
    overhead: float | str | None = None,
) -> Plan:
    """Build, place and lay out a collective, as :func:`commsim.prediction.build.prepare` does; any kind of each value.

    Messages cost `overhead`, or what the network says, or else the usual, as in :func:`commsim.predict`.
    """
    where = changed_network(network_of(network), overhead=overhead)[0]
    placement, n_ranks = placement_of(placement, where, n_ranks)
    made: str | Schedule = collective_of(collective, len(where.endpoints) if n_ranks is None else n_ranks)
    return prepare_plan(
        made, where, n_ranks=n_ranks, placement=placement, routing=routing, seed=seed,
        assume_programmable=assume_programmable,
    )  # fmt: skip


def _text(text: str, name: str) -> str:
    if not isinstance(text, str):
        raise wrong_kind(name, "text such as 'packed', or the path of a file", text)
    return text

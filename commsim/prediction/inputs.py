"""What people and programs name, as values: a network, sizes, packets of messages, a placement, a collective."""

from __future__ import annotations

import numbers
import operator
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast

import numpy as np
from numpy.typing import NDArray

from commsim.core.cost import ROCE_HEADER, Framing
from commsim.core.errors import InputError
from commsim.core.limits import is_there
from commsim.core.network import Network
from commsim.core.placement import PACKED, RANK_ORDERS, Placement, is_strategy, place
from commsim.core.schedule import Schedule
from commsim.core.spec import SUFFIXES, OwnFile, is_own_file, read_arguments, split_spec
from commsim.core.units import count_text, parse_size
from commsim.extensions import house
from topologies import TOPOLOGIES

if TYPE_CHECKING:
    from commsim.prediction.network_builder import NetworkBuilder

# Values of extensions, which the core only passes on: the extensions' modules say what they are.
Composition: TypeAlias = Any
Fabric: TypeAlias = Any
Messages: TypeAlias = Any
Spraying: TypeAlias = Any
LARGEST = 2**63  # bytes, as in commsim.core.units.parse_nccl_size

NetworkLike: TypeAlias = Union[str, PathLike[str], Network, "NetworkBuilder"]
PlacementLike: TypeAlias = str | PathLike[str] | Placement | Sequence[int] | Sequence[str] | NDArray[np.integer]
SizeLike: TypeAlias = float | str
CollectiveLike: TypeAlias = str | PathLike[str] | Schedule | Callable[[int], Schedule]


def network_of(network: NetworkLike) -> Network:
    """Return a network, by whatever it was given; a path is the caller's own word, and may be code.

    Raises
    ------
    InputError
        If a name is unknown, or what was given or built is no network.
    """
    if isinstance(network, (str, PathLike)):
        return load_network(network if isinstance(network, str) else OwnFile(fspath(network)))
    if isinstance(network, Network):
        return network
    from commsim.prediction.network_builder import NetworkBuilder

    if not isinstance(network, NetworkBuilder):
        raise InputError(
            "network must be text such as 'star:n_hosts=8', a file, a Network or a NetworkBuilder, got "
            f"{_short(network)}"
        )
    return network.build()


def load_network(text: str) -> Network:
    """Build what `text` names, or read a .toml, .json or .npz file.

    Parameters
    ----------
    text : str
        What the user wrote: ``name:key=value,...`` of a topology, a preset or a host type (one machine by itself, or
        ``machines=N`` of them on one switch);
        ``MACHINE@FABRIC``, which puts machines on the hosts of a fabric (``machines=N`` of them); or a path, when it
        ends with .toml, .json or .npz, with .yml or .yaml (a network of ASTRA-sim), or with .xml or .txt for one
        machine; or
        ``FILE.py:function:key=value,...``, which is executed if it is an :class:`commsim.OwnFile`.

    Raises
    ------
    InputError
        If a name is unknown, an argument is wrong, or the file does not hold a network.
    """
    name = text.partition(":")[0].strip()
    if "@" not in text and name in TOPOLOGIES:
        entry, raw = TOPOLOGIES[name], split_spec(text)[1]
        try:
            if not ("machines" in raw or entry.metadata["holds_machines"]):
                return entry.build(**read_arguments(entry.build, raw))
            from .machines_named import network_of_its_machines

            return network_of_its_machines(name, raw, load_network)
        except InputError:
            from .machines_named import refuse_of_machines

            refuse_of_machines(name, raw)
            raise
    if (found := network_of_another_tool(text)) is not None:
        return found
    if Path(text).suffix in SUFFIXES and (is_there(text) or "@" not in text):
        from commsim.core.files.network_file import read_network  # only for files, as below

        return read_network(text)
    if Path(text).suffix in house().networks and (is_there(text) or "@" not in text):
        network: Network = house().networks[Path(text).suffix](text)
        return network
    if is_own_file(text):
        from commsim.core.files.own_files import own_entry

        own, given = own_entry(TOPOLOGIES, text)
        return own.build(**read_arguments(own.build, given))
    from .machines_named import network_of_machines

    return network_of_machines(text, load_network)


def network_of_another_tool(text: str) -> Network | None:
    """Read a network from a file of another tool; None where the text names no such file.

    The suffix does not say what such a file is: .txt may be a machine or a topology of ns-3, .json many things.
    """
    name = text.partition(":")[0]
    path = text if is_there(text) else name if is_there(name) else ""
    if not path or Path(path).suffix in (".npz", ".toml", ".py"):
        return None
    read = house().services.get("network of a file")
    found: Network | None = None if read is None else read(text)
    return found


def size_of(size: SizeLike, name: str = "size") -> float:
    """Return bytes of a number, or of text such as ``64MiB``.

    Raises
    ------
    InputError
        If it is neither, or not a whole number of bytes.
    """
    if isinstance(size, bool) or not isinstance(size, (str, numbers.Real)):
        raise InputError(
            f"{name} is one number of bytes, or text such as '64MiB', got {_short(size)}; for several, call it for "
            "each, or cs.solve(cs.scenario_of(...), sizes), which has arrays .time and .busbw, cs.rank or cs.run_sweep"
        )
    number: Any = parse_size(size, name) if isinstance(size, str) else size
    if not (0 <= number < LARGEST and number == int(number)):
        raise InputError(f"{name} must be a whole number of bytes below 8 EiB, got {_short(size)}")
    return float(number)


def sizes_of(sizes: SizeLike | Sequence[SizeLike], name: str = "sizes") -> list[float]:
    """Return bytes of one size or of several.

    Raises
    ------
    InputError
        If one is no size, or none is given.
    """
    several = isinstance(sizes, Iterable) and not isinstance(sizes, (str, bytes, Mapping))
    every: list[Any] = list(cast(Sequence[Any], sizes)) if several else [sizes]
    if not every:
        raise InputError(f"{name} must name at least one size, such as '64MiB'")
    return [size_of(size) for size in every]


def framing_of(payload: float | str | None, header: float | str | None) -> Framing | None:
    """Return how messages are cut into packets; None where neither is given.

    Parameters
    ----------
    payload, header : float, bytes, or str, optional
        Bytes of each packet, as numbers or text such as ``4096B``. The header of a payload alone is that of RoCE.

    Raises
    ------
    InputError
        If one is no size.
    """
    if payload is None and header is None:
        return None
    header = ROCE_HEADER if header is None else header
    sizes = [
        parse_size(value, name) if isinstance(value, str) else value
        for value, name in ((payload, "payload"), (header, "header"))
    ]
    return Framing(*(float("inf") if size is None else float(size) for size in sizes))


def placement_of(
    given: PlacementLike | None, network: Network, n_ranks: int | None
) -> tuple[str | Placement | None, int | None]:
    """Return a placement, and the number of ranks where a list says it.

    Raises
    ------
    InputError
        If a node is none of the network's, or the list has another length than there are ranks.
    """
    if isinstance(given, str) and given not in RANK_ORDERS and n_ranks is None:
        from .node_lists import ranks_named

        named = ranks_named(given, network)
        return given, None if named is None else len(named)
    if given is None or isinstance(given, (str, Placement)):
        return given, n_ranks
    if isinstance(given, PathLike):
        return OwnFile(fspath(given)), n_ranks
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(
            f"placement must be text such as 'packed', a file, a Placement or a node for each rank, got {_short(given)}"
        )
    nodes = [_node(node, network) for node in given]
    if n_ranks is not None and len(nodes) != n_ranks:
        raise InputError(f"placement must name a node for each of n_ranks={n_ranks}, got {len(nodes)} nodes")
    placement = Placement(np.array(nodes, np.int32))
    placement.check(network, len(nodes))
    return placement, len(nodes)


def load_placement(text: str, network: Network, n_participants: int, seed: int = 0) -> Placement:
    """Place by a named strategy, as a .toml, .json or .npz file says, or on the machines of a list or host file.

    Parameters
    ----------
    text : str
        A strategy, or a path when it ends with one of the three suffixes or has JSON; ``FILE:JOB`` is a job of the JSON
        of ``commsim place``; else what :func:`commsim.prediction.node_lists.ranks_named` reads.
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
    if is_strategy(text):
        return place(network, n_participants, text, seed)
    from commsim.prediction.node_lists import placement_file, ranks_named

    named = ranks_named(text, network)
    if named is None:
        from commsim.core.files.store import read_placement

        path, job = placement_file(text) or (text, None)
        placement = read_placement(path, network, job)
    else:
        placement = Placement(named)
    n = len(placement.nodes)
    if n != n_participants:
        fewer = f": --ranks {n} takes those of the file" if n < n_participants else ""
        raise InputError(f"{text}: places {n} participants, but there are {n_participants}{fewer}")
    return placement


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
    if n_ranks is None and placement is not None and not is_strategy(placement):
        from commsim.prediction.node_lists import ranks_named

        p = len(ranks_named(placement, network) or range(p))
    if not 1 <= p <= most:
        raise InputError(f"ranks must be 1..{most}, since {network.name} has {count_text(most, 'host')}; got {p}")
    return load_placement(placement or PACKED, network, p, seed)


def collective_of(collective: CollectiveLike, n_ranks: int) -> str | Schedule:
    """Return a collective that :func:`commsim.prediction.prepare` takes; a function's schedule is built and proved.

    Raises
    ------
    InputError
        If a function makes no schedule, or one that does not do what it promises.
    """
    if isinstance(collective, (str, Schedule)):
        return collective
    if isinstance(collective, PathLike):
        return OwnFile(fspath(collective))
    if not callable(collective):
        raise InputError(
            "collective must be text such as 'ring_all_reduce', a file, a Schedule or a function from a number of "
            f"ranks to one, got {_short(collective)}"
        )
    schedule = collective(n_ranks)
    if not isinstance(schedule, Schedule):
        raise InputError(f"{_name(collective)}({n_ranks}) must return a Schedule, got {type(schedule).__name__}")
    from commsim.core.checking.check_compact import check_builder  # numba's kernels, for own functions only

    check_builder(collective, n_ranks)
    return schedule


def _node(node: int | str | np.integer, network: Network) -> int:
    if not isinstance(node, str):
        try:
            return operator.index(node)
        except TypeError:
            raise InputError(f"placement must name nodes, by number or by name, got {_short(node)}") from None
    if node not in network.nodes:
        raise InputError(f"placement: {network.name} has no node {node!r}; its first is {network.nodes[0]!r}")
    return network.nodes.index(node)


def _short(value: object) -> str:
    """Describe what was given, in part if it is long."""
    return reprlib.repr(value)


def _name(function: Callable[..., object]) -> str:
    return getattr(function, "__name__", "the function")

"""From one format to another, by way of our own values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.schedule import Schedule
from commsim.inputs import load_network, load_schedule

from .kinds import FORMATS, NETWORK, SCHEDULE, SYSTEM, WORKLOAD, format_of_source, format_of_target, kind_of_own_file
from .programs.matching import MAX_OPS

Notes = tuple[str, ...]
MAX_MESSAGES = MAX_OPS // 2


@dataclass(frozen=True, slots=True)
class Given:
    """What a format needs and a value of ours does not say.

    Parameters
    ----------
    n_ranks : int, optional
        Of a collective that is named.
    size : float, bytes, optional
        Of the operation, for formats whose messages have sizes.
    gamma : float, s/byte
        What reducing costs.
    network : str, optional
        On which a system layer's collectives run, or flows.
    operation : str
        Which of a system layer's collectives.
    min_bytes, max_bytes : int
        For which sizes MSCCL's runtime takes an algorithm.
    gpu_type : str
        Name of the GPUs for SimAI.
    """

    n_ranks: int | None = None
    size: float | None = None
    gamma: float = 0.0
    network: str | None = None
    operation: str = "all_reduce"
    min_bytes: int = 0
    max_bytes: int = 2**40
    gpu_type: str = "H100"


@dataclass(frozen=True, slots=True, eq=False)
class Sized:
    """A schedule, and what is known of its messages.

    Parameters
    ----------
    schedule : Schedule
        What is sent.
    n_bytes : float64[n_transfers], bytes, optional
        Of each message, where the file says.
    size : float, bytes
        That gives the messages their sizes, where there is one.
    gamma : float64[n_participants], s/byte
        Where the file says.
    """

    schedule: Schedule
    n_bytes: NDArray[np.float64] | None = None
    size: float = 0.0
    gamma: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))

    def messages(self, given: Given) -> NDArray[np.float64]:
        """Bytes of every message.

        Raises
        ------
        InputError
            If neither the file nor the user says.
        """
        if self.n_bytes is not None:
            return self.n_bytes
        if given.size is None:
            raise InputError(f"{self.schedule.name} has no sizes of its own, and this format needs them: say --size")
        return np.asarray(self.schedule.expand()["count"] * (given.size / self.schedule.n_chunks))


def convert(source: str, target: str, given: Given, from_: str | None = None, to: str | None = None) -> Notes:
    """Read `source` and write `target`.

    Parameters
    ----------
    source : str
        A file, or ``name:key=value,...`` of one of our collectives or topologies.
    target : str
        A file; of Chakra traces the prefix.
    given : Given
        What else is needed.
    from_, to : str, optional
        Names of ``FORMATS``; found out unless given.

    Returns
    -------
    tuple of str
        What was lost or changed, and should be said.

    Raises
    ------
    InputError
        If something is wrong, or the one format holds nothing that the other can.
    """
    to = to or format_of_target(target)
    kinds = _kinds_of_target(target, to)
    named = _named(source)
    notes: Notes = ()
    if named:
        kind = named
        value: Any = load_network(source) if kind == NETWORK else Sized(load_schedule(source, given.n_ranks))
        if kind not in kinds:
            raise InputError(f"{source} is a {kind}, and {to} holds a {' or a '.join(kinds)}")
    else:
        from_ = from_ or format_of_source(source)
        held = (kind_of_own_file(source),) if from_ == "commsim" else FORMATS[from_].reads
        kind = next((one for one in kinds if one in held), "")
        if not kind:
            raise InputError(f"{source} ({from_}) becomes a {' or a '.join(held) or 'nothing'}, and {to} holds a "
                             f"{' or a '.join(kinds) or 'nothing'}")  # fmt: skip
        value, notes = _read_naming(from_, kind, source, given)
    if kind == SCHEDULE and to not in ("commsim", "astra-system") and value.schedule.n_transfers > MAX_MESSAGES:
        n = value.schedule.n_transfers
        raise InputError(f"{value.schedule.name} has {n} messages; {to} is written with up to {MAX_MESSAGES}")
    return notes + _write(to, kind, value, target, given)


def _kinds_of_target(target: str, to: str) -> tuple[str, ...]:
    kinds = FORMATS[to].writes
    if to == "commsim":
        return (NETWORK, SCHEDULE) if Path(target).suffix == ".npz" else (NETWORK, WORKLOAD)
    return kinds


def _named(source: str) -> str:
    from collectives import COLLECTIVES
    from topologies import TOPOLOGIES
    from topologies.presets import PRESETS

    name = source.partition(":")[0]
    if Path(source).exists():
        return ""
    if name in COLLECTIVES:
        return SCHEDULE
    return NETWORK if name in TOPOLOGIES or name in PRESETS or "@" in source else ""


def _read(name: str, kind: str, source: str, given: Given) -> tuple[Any, Notes]:
    from . import readers

    read: Callable[[str, Given], tuple[Any, Notes]] = readers.READERS[name, kind]
    return read(source, given)


def _read_naming(name: str, kind: str, source: str, given: Given) -> tuple[Any, Notes]:
    """Read, and begin whatever is wrong with the name of the file."""
    try:
        return _read(name, kind, source, given)
    except InputError as error:
        if str(error).startswith((str(Path(source).with_suffix("")), given.network or source)):
            raise
        raise InputError(f"{source}: {error}") from None


def _write(name: str, kind: str, value: Any, target: str, given: Given) -> Notes:
    from . import writers

    write: Callable[[Any, str, Given], Notes] = writers.WRITERS[name, kind]
    return write(value, target, given)


def sizes_of(network: str | None) -> tuple[int, ...]:
    """Hosts along each dimension of the network that goes with a system layer.

    Raises
    ------
    InputError
        If none is given, or it is no product of dimensions.
    """
    from .astra.recognise import dimensions_of

    if network is None:
        raise InputError("a system layer needs the network that it is for: say --network")
    return tuple(d.n_hosts for d in dimensions_of(any_network(network))[0])


def any_network(text: str) -> Network:
    """Load a network by name, or from a file of any format."""
    if Path(text).suffix in (".yml", ".yaml", ".graphml"):
        return _read(format_of_source(text), NETWORK, text, Given())[0]  # type: ignore[no-any-return]
    return load_network(text)


__all__ = ["SYSTEM", "Given", "Sized", "any_network", "convert", "sizes_of"]

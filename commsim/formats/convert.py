"""From one format to another, by way of our own values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.inputs import load_network, load_schedule

from .given import Given, Notes, Sized
from .kinds import FORMATS, NETWORK, SCHEDULE, WORKLOAD, format_of_source, format_of_target, kind_of_own_file
from .programs.matching import MAX_OPS

MAX_MESSAGES = MAX_OPS // 2


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


def _read_naming(name: str, kind: str, source: str, given: Given) -> tuple[Any, Notes]:
    """Read, and begin whatever is wrong with the name of the file."""
    from .readers import READERS

    try:
        return READERS[name, kind](source, given)
    except InputError as error:
        if str(error).startswith((str(Path(source).with_suffix("")), given.network or source)):
            raise
        raise InputError(f"{source}: {error}") from None


def _write(name: str, kind: str, value: Any, target: str, given: Given) -> Notes:
    from . import writers

    write: Callable[[Any, str, Given], Notes] = writers.WRITERS[name, kind]
    return write(value, target, given)

"""From one format to another, by way of our own values; and how formats are recognised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_tree
from commsim.core.schedule import Schedule
from commsim.core.spec import is_own_file, split_file
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import collective_entry, load_schedule
from commsim.prediction.inputs import load_network

from .catalogue import FORMATS, SCHEDULE, WORKLOAD, read, write
from .context import Context, Notes, SizedSchedule
from .network_formats import NETWORK
from .programs.operations import MAX_OPS
from .recognise import format_of_file

MAX_MESSAGES = MAX_OPS // 2
# Needs that the machines of a network decide.
MACHINES = {"groups", "machines", "dims"}


def format_of_target(target: str) -> str:
    """Return the format of a file to be written, by its suffix.

    Raises
    ------
    InputError
        If the suffix says nothing.
    """
    suffixes = ("".join(Path(target).suffixes[-2:]), Path(target).suffix)
    found = (name for suffix in suffixes for name, entry in FORMATS.items() if suffix in entry.suffixes)
    target_format = next(found, None)
    if target_format is None:
        raise InputError(f"{target}: no format has this suffix; give --to {'|'.join(FORMATS)}")
    return target_format


def kind_of_own_file(path: str) -> str:
    """Return the kind of value that a file of ours holds."""
    if Path(path).suffix == ".npz":
        from commsim.core.files.npz import read_arrays
        from commsim.core.files.whole_files import parse_json

        header = read_arrays(path, 2**28, "header").get("header")
        try:
            kind = parse_json(header.tobytes().decode())["kind"] if header is not None else ""
        except (ValueError, KeyError, TypeError, RecursionError):
            kind = ""
        if kind not in (NETWORK, SCHEDULE):
            raise InputError(f"{path}: holds no network and no schedule")
        return str(kind)
    return WORKLOAD if "tasks" in read_tree(path) else NETWORK


def convert(
    source: str, target: str, context: Context, from_: str | None = None, to: str | None = None, *, code_is: str = ""
) -> Notes:
    """Read `source` and write `target`.

    Parameters
    ----------
    source : str
        A file, or ``name:key=value,...`` of one of our collectives or topologies, or of one in a file of Python.
    target : str
        A file; of Chakra traces the prefix.
    context : Context
        What else is needed.
    from_, to : str, optional
        Names of ``FORMATS``; by default detected.
    code_is : str
        What a file of Python makes: a ``network`` or a ``schedule``. Default: what the format holds.

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
    name = (code_is or kinds[0]) if is_own_file(source) else _name_of(source)
    notes: Notes = ()
    if name:
        kind = name
        value: Any
        value, notes = (load_network(source), ()) if kind == NETWORK else _build_collective(source, context)
        if kind not in kinds:
            raise InputError(f"{source} is a {kind}, and {to} holds a {' or a '.join(kinds)}")
    else:
        from_ = from_ or format_of_file(split_file(source)[0])
        held = (kind_of_own_file(source),) if from_ == "commsim" else tuple(FORMATS[from_].reads)
        kind = next((kind for kind in kinds if kind in held), "")
        if not kind:
            raise InputError(f"{source} ({from_}) becomes a {' or a '.join(held) or 'nothing'}, and {to} holds a "
                             f"{' or a '.join(kinds) or 'nothing'}")  # fmt: skip
        value, notes = _read_naming(from_, kind, source, context)
    if kind == SCHEDULE and to not in ("commsim", "astra-system") and value.schedule.n_transfers > MAX_MESSAGES:
        n = value.schedule.n_transfers
        raise InputError(f"{value.schedule.name} has {n} messages; {to} is written with up to {MAX_MESSAGES}")
    return notes + write(to, kind, value, target, context)


def read_foreign(source: str) -> tuple[Schedule, Notes]:
    """Read and prove the schedule in a file of another tool; return it, and what should be said.

    Raises
    ------
    InputError
        If the file is wrong, or holds no schedule.
    """
    from_ = format_of_file(split_file(source)[0])
    if SCHEDULE not in FORMATS[from_].reads:
        raise InputError(f"{source} ({from_}) holds no schedule")
    sized, notes = _read_naming(from_, SCHEDULE, source, Context())
    return sized.schedule, notes


def _build_collective(source: str, context: Context) -> tuple[SizedSchedule, Notes]:
    """Build a collective for the network that is given, as a run on it does; say what a file leaves out of it."""
    entry = collective_entry(source)[0]
    is_nccl = "nccl" in entry.metadata["needs"]
    notes = [f"{entry.name}: a file has messages only, and none of what the library's primitives cost"] * is_nccl
    if context.network is not None:
        plan = prepare(source, load_network(context.network), n_ranks=context.n_ranks)
        return SizedSchedule((plan.at(context.size) if context.size else plan).schedule), tuple(notes)
    if is_nccl or MACHINES & set(entry.metadata["needs"]):
        notes.insert(0, f"{entry.name}: built as on one machine; with --topology as `commsim run` builds it there")
    return SizedSchedule(load_schedule(source, context.n_ranks, context.size)), tuple(notes)


def _kinds_of_target(target: str, to: str) -> tuple[str, ...]:
    if to == "commsim":
        return (NETWORK, SCHEDULE) if Path(target).suffix == ".npz" else (NETWORK, WORKLOAD)
    return tuple(FORMATS[to].writes)


def _name_of(source: str) -> str:
    from collectives import COLLECTIVES
    from topologies import TOPOLOGIES
    from topologies.presets import PRESETS

    name = source.partition(":")[0]
    if Path(source).exists():
        return ""
    if name in COLLECTIVES:
        return SCHEDULE
    return NETWORK if name in TOPOLOGIES or name in PRESETS or "@" in source else ""


def _read_naming(name: str, kind: str, source: str, context: Context) -> tuple[Any, Notes]:
    """Read, and begin whatever is wrong with the name of the file."""
    try:
        return read(name, kind, source, context)
    except InputError as error:
        if str(error).startswith((str(Path(source).with_suffix("")), context.network or source)):
            raise
        raise InputError(f"{source}: {error}") from None

"""Save and load the four values: TOML or JSON for people, npz for arrays, whole or not at all, never a pickle.

A schedule in an npz file: the bodies of its blocks one after the other, and how they repeat in the header; beside it,
where that is known, the placement that it was made for.

A result in a file: JSON for people, npz for arrays; the trace of a result in JSON is an npz file beside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import InputError
from ..core.network import Network
from ..core.placement import Placement
from ..core.result import Result, Trace
from ..core.schedule import TRANSFER, Block, Schedule, Transfers
from .fields import Fields
from .network_file import read_network, write_network
from .npz import Archive, read_archive, write_archive
from .placement_file import named_placement, read_placement, take_named_placement, write_placement
from .whole_files import SUFFIXES, read_tree, write_json

__all__ = ["SUFFIXES", "read_network", "read_placed_schedule", "read_placement", "read_result", "read_schedule", "save"]


_TEXTS = ("collective", "operation", "engine")
_NUMBERS = ("size", "time", "time_from_last_start", "bytes_on_wire")
_ARRAYS = ("link_bytes", "samples")
_TRACE = ("start", "sent", "done")


def read_result(path: str | Path) -> Result:
    """Read a result from a .json or .npz file.

    Raises
    ------
    InputError
        If something in the file is missing, unknown or wrong.
    """
    path = Path(path)
    if path.suffix not in (".json", ".npz"):
        raise InputError(f"{path}: a result is a .json or .npz file")
    if path.suffix == ".npz":
        archive = read_archive(path, "result")
        values = _read_scalars(archive.header)
        values |= {name: archive.take(name, np.float64) for name in _ARRAYS}
        trace = _take_trace(archive) if "start" in archive else None
        archive.finish()
    else:
        top = Fields(read_tree(path), path)
        top.schema()
        top.one_of("kind", ("result",))
        values = _read_scalars(top)
        values |= {name: top.numbers(name) for name in _ARRAYS}
        trace = _read_trace_beside(top, path) if "trace" in top else None
        top.finish()
    try:
        return Result(trace=trace, **values)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_result(result: Result, path: str | Path) -> None:
    """Write a result so that :func:`read_result` gives the same back; ``x.json`` puts its trace in ``x.trace.npz``."""
    path = Path(path)
    scalars: dict[str, Any] = {name: getattr(result, name) for name in (*_TEXTS, "n_ranks", *_NUMBERS)}
    scalars["counters"] = dict(result.counters)
    if result.interval is not None:
        scalars["interval"] = list(result.interval)
    trace = {} if result.trace is None else {name: getattr(result.trace, name) for name in _TRACE}
    if path.suffix == ".npz":
        write_archive(path, "result", scalars, {name: getattr(result, name) for name in _ARRAYS} | trace)
        return
    if path.suffix != ".json":
        raise InputError(f"{path}: a result is saved as .json or .npz")
    tree = {"schema": 1, "kind": "result", **scalars} | {name: getattr(result, name).tolist() for name in _ARRAYS}
    if trace:
        beside = path.with_suffix(".trace.npz")
        write_archive(beside, "trace", {}, trace)
        tree["trace"] = beside.name
    write_json(path, tree)


def _read_scalars(top: Fields) -> dict[str, Any]:
    values: dict[str, Any] = {name: top.text(name) for name in _TEXTS}
    values |= {name: top.number(name) for name in _NUMBERS}
    counters = top.table("counters")
    if "interval" in top:
        interval = top.numbers("interval")
        if len(interval) != 2:
            top.refuse("interval", "two times in seconds")
        values["interval"] = tuple(interval)
    return values | {"n_ranks": top.whole("n_ranks", 1), "counters": {key: counters.number(key) for key in counters}}


def _take_trace(archive: Archive) -> Trace:
    start, sent, done = (archive.take(name, np.float64) for name in _TRACE)
    try:
        return Trace(start, sent, done)
    except InputError as error:
        raise InputError(f"{archive.path}: {error}") from None


def _read_trace_beside(top: Fields, path: Path) -> Trace:
    name = top.text("trace")
    if Path(name).name != name or not name.endswith(".npz"):
        top.refuse("trace", "the name of an .npz file in the same folder")
    archive = read_archive(path.with_name(name), "trace")
    trace = _take_trace(archive)
    archive.finish()
    return trace


_COUNTS = ("n_ranks", "n_helpers", "n_chunks", "n_scratch", "root")
MAX_REPETITIONS = 2**24
MAX_BYTES = 2**31


def read_schedule(path: str | Path) -> Schedule:
    """Read a schedule; compact blocks stay compact, and the placement that it was made for stays in the file.

    Raises
    ------
    InputError
        If the file is damaged, or the schedule breaks a rule of its own.
    """
    return _read_schedule(path, None)[0]


def read_placed_schedule(path: str | Path, network: Network) -> tuple[Schedule, Placement | None]:
    """Read a schedule, and the placement on `network` that it was made for, if its file says one.

    Raises
    ------
    InputError
        As :func:`read_schedule`; or if the placement names what the network does not have.
    """
    return _read_schedule(path, network)


def pins_routes(path: str | Path) -> bool:
    """Whether a schedule's file holds a placement with pinned routes."""
    return "route_ends" in read_archive(path, "schedule", MAX_BYTES)


def _read_schedule(path: str | Path, network: Network | None) -> tuple[Schedule, Placement | None]:
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a schedule is a .npz file")
    archive = read_archive(path, "schedule", MAX_BYTES)
    header = archive.header
    name, operation = header.text("name"), header.text("operation")
    counts = {key: header.whole(key) for key in _COUNTS}
    tables = header.tables("blocks")
    shapes = [_read_shape(fields) for fields in tables]
    layout = tuple(header.items("layout", int, "a whole number")) if "layout" in header else ()
    transfers = archive.take("transfers", TRANSFER)
    weights = archive.take("weights", np.float64) if "weights" in archive else np.empty(0)
    placement = take_named_placement(archive, network)
    archive.finish()
    sizes = [size for size, _ in shapes]
    if sum(sizes) != len(transfers):
        raise InputError(f"{path}: blocks must hold {len(transfers)} transfers in all, got {sum(sizes)}")
    _check_codes(transfers, path)
    bodies = np.split(transfers, np.cumsum(sizes)[:-1]) if sizes else []
    try:
        blocks = tuple(Block(body, **shape) for body, (_, shape) in zip(bodies, shapes, strict=True))
        return Schedule(name, operation, blocks=blocks, layout=layout, weights=weights, **counts), placement
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_schedule(
    schedule: Schedule, path: str | Path, network: Network | None = None, placement: Placement | None = None
) -> None:
    """Write a schedule so that :func:`read_schedule` gives exactly the same back.

    Parameters
    ----------
    schedule : Schedule
        What to write.
    path : path
        Ends with .npz.
    network, placement : Network, Placement, optional
        What it was made for; the file then says where its participants sit, by name.
    """
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a schedule is saved as .npz")
    blocks = [
        {
            "n_transfers": len(block.body), "n_hops": block.n_hops, "n_fences": block.n_fences, "times": block.times,
            "first": block.first, "step": list(block.step), "xor": block.xor,
        }
        for block in schedule.blocks
    ]  # fmt: skip
    header: dict[str, Any] = {"name": schedule.name, "operation": schedule.operation, "blocks": blocks}
    if schedule.layout:
        header["layout"] = list(schedule.layout)
    # Assigned field by field into zeros: the padding between fields would otherwise be whatever memory held.
    transfers = np.zeros(sum(len(block.body) for block in schedule.blocks), TRANSFER)
    for field in TRANSFER.names or ():
        transfers[field] = np.concatenate([np.empty(0, TRANSFER[field]), *(b.body[field] for b in schedule.blocks)])
    counts = {key: getattr(schedule, key) for key in _COUNTS}
    arrays: dict[str, Any] = {"transfers": transfers}
    if len(schedule.weights):
        arrays["weights"] = schedule.weights
    if network is not None and placement is not None:
        header["placement"], routes = named_placement(placement, path, network)
        arrays |= routes
    write_archive(path, "schedule", header | counts, arrays)


def _read_shape(fields: Fields) -> tuple[int, dict[str, Any]]:
    size = fields.whole("n_transfers")
    shape: dict[str, Any] = {key: fields.whole(key) for key in ("n_hops", "n_fences", "first")}
    shape["times"] = fields.whole("times", 1, MAX_REPETITIONS)
    shape["xor"] = fields.truth("xor", False)
    step = fields.items("step", int, "a whole number")
    if len(step) != 4 or any(abs(value) >= 2**31 for value in step):
        fields.refuse("step", "four whole numbers that fit 32 bits")
    fields.finish()
    return size, shape | {"step": tuple(step)}


def _check_codes(transfers: Transfers, path: str | Path) -> None:
    """Raise for a number that stands for nothing; the schedule itself checks participants and chunks."""
    for field, limit in (("op", 2), ("src_buffer", 3), ("dst_buffer", 3)):
        if transfers.size and transfers[field].max() >= limit:
            raise InputError(f"{path}: {field} must be 0..{limit - 1}, got {transfers[field].max()}")
    for field in ("hop", "stage", "channel"):
        if transfers.size and transfers[field].min() < 0:
            raise InputError(f"{path}: {field} must not be negative, got {transfers[field].min()}")


def save(
    value: Network | Schedule | Placement | Result,
    path: str | Path,
    *,
    network: Network | None = None,
    placement: Placement | None = None,
) -> None:
    """Write a value to a file whose suffix says how; reading it back gives an equal value.

    Parameters
    ----------
    value : Network, Schedule, Placement or Result
        What to write. A schedule is npz only; a result is JSON or npz.
    path : path
        Where to; ends with .toml, .json or .npz.
    network : Network, optional
        Needed for a placement in TOML or JSON, which hold the names of nodes.
    placement : Placement, optional
        On that network, for which a schedule was made; kept beside it.

    Raises
    ------
    InputError
        If the suffix does not suit the value, or the file cannot be written.
    """
    if Path(path).suffix not in SUFFIXES:
        raise InputError(f"{path}: the name of a file must end with one of {', '.join(SUFFIXES)}")
    if isinstance(value, Network):
        write_network(value, path)
    elif isinstance(value, Schedule):
        write_schedule(value, path, network, placement)
    elif isinstance(value, Placement):
        write_placement(value, path, network)
    else:
        write_result(value, path)

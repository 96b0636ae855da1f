"""Schedules in npz files: bodies of the blocks one after the other, how they repeat; placement and size if known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.data_order.chunk_orders import ChunkOrders
from commsim.core.errors import InputError
from commsim.core.files.opening import path_of
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.schedule import TRANSFER, Block, Schedule, Transfers

from .fields import TableFields
from .npz import Archive, read_archive, write_archive
from .placement_file import named_placement, take_named_placement

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
    return _read_schedule(path_of(path, "schedule"), None)[0]


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


def own_size(path: str | Path) -> float:
    """Return the size with which messages have the bytes of the file that a schedule was read from; 0 of no file."""
    header = read_archive(path, "schedule", MAX_BYTES).header
    return header.number("size", 0.0)


def _read_schedule(path: str | Path, network: Network | None) -> tuple[Schedule, Placement | None]:
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a schedule is a .npz file")
    archive = read_archive(path, "schedule", MAX_BYTES)
    header = archive.header
    name, operation = header.text("name"), header.text("operation")
    counts = {key: header.whole(key) for key in _COUNTS}
    tables = header.tables("blocks")
    shapes = [_read_shape(fields) for fields in tables]
    sizes, of_orders = [size for size, _ in shapes], [_read_orders(fields) for fields in tables]
    for fields in tables:
        fields.finish()
    if header.number("size", 0.0) < 0:
        header.refuse("size", "bytes, 0 or more")
    layout = tuple(header.items("layout", int, "a whole number")) if "layout" in header else ()
    transfers = archive.take("transfers", TRANSFER)
    weights = archive.take("weights", np.float64) if "weights" in archive else np.empty(0)
    placement = take_named_placement(archive, network)
    orders = _take_orders(archive, sizes, of_orders)
    archive.finish()
    if sum(sizes) != len(transfers):
        raise InputError(f"{path}: blocks must hold {len(transfers)} transfers in all, got {sum(sizes)}")
    _check_codes(transfers, path)
    bodies = np.split(transfers, np.cumsum(sizes)[:-1]) if sizes else []
    try:
        blocks = tuple(
            Block(body, **shape, orders=None if order is None else ChunkOrders(*order))
            for body, (_, shape), order in zip(bodies, shapes, orders, strict=True)
        )
        return Schedule(name, operation, blocks=blocks, layout=layout, weights=weights, **counts), placement
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def write_schedule(
    schedule: Schedule,
    path: str | Path,
    network: Network | None = None,
    placement: Placement | None = None,
    *,
    size: float = 0.0,
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
    size : float, bytes
        Size with which its messages have the bytes of the file that it was read from; 0 of no file.
    """
    if Path(path).suffix != ".npz":
        raise InputError(f"{path}: a schedule is saved as .npz")
    blocks = [
        {
            "n_transfers": len(block.body), "n_hops": block.n_hops, "n_fences": block.n_fences, "times": block.times,
            "first": block.first, "step": list(block.step), "xor": block.xor,
            **({} if block.orders is None else {"orders": list(block.orders.parts.shape)}),
        }
        for block in schedule.blocks
    ]  # fmt: skip
    header: dict[str, Any] = {"name": schedule.name, "operation": schedule.operation, "blocks": blocks}
    if size:
        header["size"] = size
    if schedule.layout:
        header["layout"] = list(schedule.layout)
    # Assigned field by field into zeros: the padding between fields would otherwise be whatever memory held.
    transfers = np.zeros(sum(len(block.body) for block in schedule.blocks), TRANSFER)
    for field in TRANSFER.names or ():
        transfers[field] = np.concatenate([np.empty(0, TRANSFER[field]), *(b.body[field] for b in schedule.blocks)])
    counts = {key: getattr(schedule, key) for key in _COUNTS}
    arrays: dict[str, Any] = {"transfers": transfers}
    if along := [block.orders for block in schedule.blocks if block.orders is not None]:
        arrays["orders"] = np.concatenate([orders.parts.ravel() for orders in along])
        arrays["order_of_row"] = np.concatenate([orders.of_row for orders in along])
    if len(schedule.weights):
        arrays["weights"] = schedule.weights
    if network is not None and placement is not None:
        header["placement"], routes = named_placement(placement, path, network)
        arrays |= routes
    write_archive(path, "schedule", header | counts, arrays)


def _read_shape(fields: TableFields) -> tuple[int, dict[str, Any]]:
    size = fields.whole("n_transfers")
    shape: dict[str, Any] = {key: fields.whole(key) for key in ("n_hops", "n_fences", "first")}
    shape["times"] = fields.whole("times", 1, MAX_REPETITIONS)
    shape["xor"] = fields.truth("xor", False)
    step = fields.items("step", int, "a whole number")
    if len(step) != 4 or any(abs(value) >= 2**31 for value in step):
        fields.refuse("step", "four whole numbers that fit 32 bits")
    return size, shape | {"step": tuple(step)}


def _read_orders(fields: TableFields) -> tuple[int, ...]:
    """Return how many orders of chunks a block has, and of how many parts; nothing of a block without them."""
    shape = fields.items("orders", int, "a whole number") if "orders" in fields else []
    if shape and (len(shape) != 2 or min(shape) < 1):
        fields.refuse("orders", "numbers of orders and of their parts, each at least 1")
    return tuple(shape)


def _take_orders(
    archive: Archive, sizes: Sequence[int], shapes: Sequence[tuple[int, ...]]
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]] | None]:
    """Read the orders of chunks of each block, and which of them each of its transfers follows; None without them."""
    if not any(shapes):
        return [None] * len(shapes)
    parts, of_row = archive.take("orders", np.int32), archive.take("order_of_row", np.int32)
    found: list[tuple[NDArray[np.int32], NDArray[np.int32]] | None] = []
    for size, shape in zip(sizes, shapes, strict=True):
        if not shape:
            found.append(None)
            continue
        n = math.prod(shape)
        if len(parts) < n or len(of_row) < size:
            break
        found.append((parts[:n].reshape(shape), of_row[:size]))
        parts, of_row = parts[n:], of_row[size:]
    if len(found) < len(shapes) or len(parts) or len(of_row):
        raise InputError(f"{archive.path}: orders and order_of_row must have the sizes that the blocks state")
    return found


def _check_codes(transfers: Transfers, path: str | Path) -> None:
    """Raise for a number without meaning; the schedule itself checks participants and chunks."""
    for field, limit in (("op", 2), ("src_buffer", 3), ("dst_buffer", 3)):
        if transfers.size and transfers[field].max() >= limit:
            raise InputError(f"{path}: {field} must be 0..{limit - 1}, got {transfers[field].max()}")
    for field in ("hop", "stage", "channel"):
        if transfers.size and transfers[field].min() < 0:
            raise InputError(f"{path}: {field} must not be negative, got {transfers[field].min()}")

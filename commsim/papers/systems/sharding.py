"""Sharding specs: which device of a mesh holds which part of a tensor, and what moves when both change.

A spec has one word per dimension of the tensor: R (each device has all of it), S0 or S1 (divided among the mesh's rows
or columns), S01 (among all its devices, row by row). An axis divides one dimension at most.

References
----------
Zhuang et al., "On optimizing the communication of model parallelism", MLSys 2023, section 2.2 and figure 2.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Sequence

from commsim.core.errors import InputError
from commsim.training.parallel.resharding import ReshardingPiece

Box = tuple[tuple[int, int], ...]  # first and one past the last element, of each dimension
MAX_WORKS = 4096  # the order of more takes minutes to search


def parse_sharding(text: str) -> tuple[tuple[int, ...], ...]:
    """Read a spec: the mesh axes that divide each dimension, none for R.

    Raises
    ------
    InputError
        If a word is not R, S0, S1, S01 or S10, or an axis divides two dimensions.
    """
    if not re.fullmatch(r"(R|S0|S1|S01|S10)+", text):
        raise InputError(f"a sharding has R, S0, S1, S01 or S10 for each dimension, such as S0R, got {text!r}")
    axes = tuple(tuple(map(int, word[1:])) for word in re.findall(r"R|S\d+", text))
    if max(map(list(itertools.chain(*axes)).count, (0, 1))) > 1:
        raise InputError(f"an axis of the mesh divides one dimension at most, got {text!r}")
    return axes


def boxes(shape: Sequence[int], mesh: tuple[int, int], sharding: str) -> list[Box]:
    """Part of the tensor that each device has, row by row of the mesh.

    Parameters
    ----------
    shape : sequence of int
        Elements of the tensor in each dimension.
    mesh : tuple of int
        Rows and columns of devices.
    sharding : str
        A spec with a word per dimension.

    Raises
    ------
    InputError
        If the spec has other dimensions than the tensor, or a dimension cannot be divided evenly.
    """
    axes = parse_sharding(sharding)
    if len(axes) != len(shape) or min((*shape, *mesh)) < 1:
        raise InputError(
            f"a mesh needs rows and columns, and a tensor a word of {sharding!r} for each of its dimensions, got "
            f"{'x'.join(map(str, mesh))} and {'x'.join(map(str, shape))}"
        )
    for length, divided in zip(shape, axes, strict=True):
        parts = math.prod(mesh[axis] for axis in divided)
        if length % parts:
            raise InputError(f"{sharding!r} divides a dimension of {length} elements into {parts} unequal parts")
    return [tuple(_span(length, mesh, divided, device) for length, divided in zip(shape, axes, strict=True))
            for device in itertools.product(range(mesh[0]), range(mesh[1]))]  # fmt: skip


def resharding_works(
    sources: Sequence[Box], targets: Sequence[Box], seconds_per_element: float, per_host: tuple[int, int] = (1, 1)
) -> list[ReshardingPiece]:
    """Pieces that move: each part that senders divide and receivers need as one, from its holders to its users.

    Parameters
    ----------
    sources, targets : sequence of Box
        What each device has, and needs.
    seconds_per_element : float, s
        Time per element of a broadcast to all receivers, whose many chunks take as long as one message.
    per_host : tuple of int
        Devices of a host of the source mesh, and of the target mesh; those of a host are numbered in a row.

    Returns
    -------
    list of ReshardingPiece
        Between hosts: the source mesh's come first, then the target mesh's.
    """
    holders, users = _hosts(sources, per_host[0], 0), _hosts(targets, per_host[1], -(-len(sources) // per_host[0]))
    if len(holders) * len(users) > MAX_WORKS:
        raise InputError(f"{len(holders)} x {len(users)} different parts are more than {MAX_WORKS} pieces of work")
    works = []
    for (have, senders), (need, receivers) in itertools.product(holders.items(), users.items()):
        both = [min(a[1], b[1]) - max(a[0], b[0]) for a, b in zip(have, need, strict=True)]
        if min(both) > 0:
            works.append(ReshardingPiece(senders, receivers, math.prod(both) * seconds_per_element))
    return works


def _span(length: int, mesh: tuple[int, int], divided: tuple[int, ...], device: tuple[int, ...]) -> tuple[int, int]:
    index, parts = 0, 1
    for axis in divided:
        index, parts = index * mesh[axis] + device[axis], parts * mesh[axis]
    return index * length // parts, (index + 1) * length // parts


def _hosts(parts: Sequence[Box], per_host: int, first: int) -> dict[Box, tuple[int, ...]]:
    """Hosts that have each different part, in their order."""
    hosts: dict[Box, dict[int, None]] = defaultdict(dict)
    for device, part in enumerate(parts):
        hosts[part][first + device // per_host] = None
    return {part: tuple(hosts) for part, hosts in hosts.items()}

"""Mapping between our schedules and the collectives of an ASTRA-sim system layer.

The system layer of ASTRA-sim: JSON that says, among much else, how collectives are done in each dimension.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.files.fields import Fields
from commsim.files.whole_files import read_json, write_json
from commsim.run.inputs import load_schedule

from .astra_phases import BASELINE, DIRECT, HALVING, LOCAL, RING, TREE, schedule_of_ways, ways_of
from .context import Notes

OPERATIONS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
}  # fmt: skip
_WAYS = re.compile(r"ring|oneRing|doubleBinaryTree|(direct|oneDirect)\d*|halvingDoubling|oneHalvingDoubling")


@dataclass(frozen=True, slots=True)
class System:
    """A system file.

    Parameters
    ----------
    tree : mapping
        All of it, as it was; keys that commsim does not know are kept.
    ways : mapping of str to tuple of str
        For our name of an operation, how it is done in each dimension.
    custom : mapping of str to str
        For our name of an operation, the prefix of the Chakra traces that do it instead.
    """

    tree: Mapping[str, Any]
    ways: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    custom: Mapping[str, str] = field(default_factory=dict)


def read_system(path: str | Path) -> System:
    """Read a system file.

    Raises
    ------
    InputError
        If it is no JSON table, or says of a collective what ASTRA-sim does not know.
    """
    tree = read_json(path, 2**24)
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected a table at the top level, got {type(tree).__name__}")
    top, ways, custom = Fields(tree, path), {}, {}
    for theirs, ours in OPERATIONS.items():
        key = f"{theirs}-implementation"
        if key in top:
            ways[ours] = tuple(top.items(key, str, "text"))
            for k, way in enumerate(ways[ours]):
                if not _WAYS.fullmatch(way):
                    known = (
                        "ring, oneRing, doubleBinaryTree, direct[N], oneDirect[N], halvingDoubling, oneHalvingDoubling"
                    )
                    top.member(key, k, f"must be one of {known}, got {way[:60]!r}")
        if f"{key}-custom" in top:
            prefixes = top.items(f"{key}-custom", str, "the prefix of files")
            if len(prefixes) != 1:
                top.refuse(f"{key}-custom", "a list of one prefix of files")
            custom[ours] = prefixes[0]
    return System(tree, ways, custom)


def write_system(system: System, path: str | Path) -> None:
    """Write a system file, with all that was in the one that was read."""
    write_json(path, system.tree)


_OURS = {
    ("all_reduce", RING): "ring_all_reduce",
    ("all_reduce", TREE): "double_tree_all_reduce",
    ("all_reduce", HALVING): "halving_doubling_all_reduce",
    ("all_reduce", DIRECT): "byteps",  # without servers of its own: all to all, added, and back
    ("all_gather", RING): "ring_all_gather",
    ("all_gather", HALVING): "recursive_doubling_all_gather",
    ("reduce_scatter", RING): "ring_reduce_scatter",
    ("all_to_all", DIRECT): "direct_all_to_all",
    ("all_to_all", RING): "pairwise_all_to_all",
}


# Keys that change ASTRA-sim's times and not ours, and the value with which they do not.
_UNSAID = {"endpoint-delay": 0, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
           "local-reduction-delay": 0, "L": 0, "o": 0, "g": 0, "G": 0, "model-shared-bus": 0}  # fmt: skip


def schedule_of_system(system: System, operation: str, sizes: tuple[int, ...]) -> tuple[Schedule, Notes]:
    """Build the schedule of a collective in a system file.

    Parameters
    ----------
    system : System
        As read.
    operation : str
        Our name, such as ``all_reduce``.
    sizes : tuple of int
        Hosts along each dimension, as in the network's file.

    Returns
    -------
    Schedule, tuple of str
        What is sent, and what should be said of it.

    Raises
    ------
    InputError
        If the file does not say, or it is not known what ASTRA-sim does then.
    """
    if operation in system.custom:
        raise InputError(f"{operation} is done by the Chakra traces {system.custom[operation]}.*.et; import those")
    said = system.ways.get(operation)
    if said is None or len(said) != len(sizes):
        raise InputError(f"{operation} must be said for {len(sizes)} dimensions, got {list(said or ())}")
    optimization = system.tree.get("collective-optimization", BASELINE)
    if optimization not in (BASELINE, LOCAL):
        raise InputError(f"collective-optimization must be {BASELINE} or {LOCAL}, got {str(optimization)[:60]!r}")
    ways = tuple(re.sub(r"\d+$", "", way) for way in said)
    notes = [f"the window of {way} is not modelled: all is sent at once" for way in said if way[-1].isdigit()]
    left = [f"{key}={system.tree[key]!s:.20}" for key, none in _UNSAID.items() if system.tree.get(key, none) != none]
    notes += [f"left out: {', '.join(left)}"] if left else []
    if any(way.startswith("one") for way in ways):
        if len(set(ways)) > 1:
            raise InputError(f"{operation}: a way that begins with 'one' goes over all dimensions, got {list(said)}")
        ways, sizes = (ways[0][3].lower() + ways[0][4:],), (math.prod(sizes),)
    spec = ""
    if len(sizes) == 1:
        spec = _OURS.get((operation, ways[0]), "")
    elif operation == "all_reduce" and set(ways) == {RING} and optimization == LOCAL:
        spec = f"torus_all_reduce:dims={'x'.join(map(str, sizes[::-1]))}"
    n = math.prod(sizes)
    schedule = load_schedule(spec, n) if spec else schedule_of_ways(operation, ways, sizes, optimization)
    return schedule, (f"{operation} is done by {spec or schedule.name}", *notes)


def system_of(collective: str, sizes: tuple[int, ...]) -> tuple[System, str]:
    """Say how ASTRA-sim should do what a collective of ours does.

    Parameters
    ----------
    collective : str
        The name of the schedule, without parameters.
    sizes : tuple of int
        Hosts along each dimension.

    Returns
    -------
    System, str
        What to write, and which operation of it is the collective.

    Raises
    ------
    InputError
        If ASTRA-sim has it not built in.
    """
    operation, ways, optimization = _said(collective, sizes) or ("", (), BASELINE)
    if not ways:
        raise InputError(
            f"{collective} over {len(sizes)} dimensions is not built into ASTRA-sim; write it as Chakra traces"
        )
    tree: dict[str, Any] = {
        "scheduling-policy": "LIFO", "endpoint-delay": 0, "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1, **{f"{theirs}-implementation": [RING] * len(sizes) for theirs in OPERATIONS},
        "collective-optimization": optimization,
    }  # fmt: skip
    theirs = next(k for k, v in OPERATIONS.items() if v == operation)
    tree[f"{theirs}-implementation"] = list(ways)
    said = {v: tuple(tree[f"{k}-implementation"]) for k, v in OPERATIONS.items()}
    return System(tree, said), operation


def _said(collective: str, sizes: tuple[int, ...]) -> tuple[str, tuple[str, ...], str] | None:
    """Operation, ways per dimension, and the order of phases; None if ASTRA-sim has nothing of the kind."""
    if collective == "torus_all_reduce":
        return "all_reduce", (RING,) * len(sizes), LOCAL
    own = ways_of(collective)
    if own is not None:
        operation, ways, optimization = own
        if len(ways) not in (1, len(sizes)):
            raise InputError(f"{collective} is for {len(ways)} dimensions, and the network has {len(sizes)}")
        return operation, _over_all(ways[0], sizes) if len(ways) == 1 else ways, optimization
    operation, way = next((key for key, name in _OURS.items() if name == collective), ("", ""))
    return (operation, _over_all(way, sizes), BASELINE) if operation and (way != TREE or len(sizes) == 1) else None


def _over_all(way: str, sizes: tuple[int, ...]) -> tuple[str, ...]:
    """One way for all hosts, whatever their dimensions."""
    return (way,) if len(sizes) == 1 else (f"one{way[0].upper()}{way[1:]}",) * len(sizes)

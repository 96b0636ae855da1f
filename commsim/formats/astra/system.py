"""The system layer of ASTRA-sim: JSON that says, among much else, how collectives are done in each dimension."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.formats.bounded import read_json
from commsim.core.formats.fields import Fields
from commsim.core.formats.files import write_json

OPERATIONS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
}  # fmt: skip
_WAYS = re.compile(r"ring|oneRing|doubleBinaryTree|(direct|oneDirect)\d*|halvingDoubling|oneHalvingDoubling")
_OURS = {
    ("all_reduce", "ring"): "ring_all_reduce",
    ("all_reduce", "doubleBinaryTree"): "double_tree_all_reduce",
    ("all_reduce", "halvingDoubling"): "halving_doubling_all_reduce",
    ("all_reduce", "direct"): "byteps",  # without servers of its own: all to all, added, and back
    ("all_gather", "ring"): "ring_all_gather",
    ("all_gather", "halvingDoubling"): "recursive_doubling_all_gather",
    ("reduce_scatter", "ring"): "ring_reduce_scatter",
    ("all_to_all", "direct"): "direct_all_to_all",
    ("all_to_all", "ring"): "pairwise_all_to_all",
}


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


def collective_of(system: System, operation: str, sizes: tuple[int, ...]) -> str:
    """Name our collective that does an operation as a system file says.

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
    str
        ``name:key=value,...``

    Raises
    ------
    InputError
        If the file does not say, or no collective of ours does that.
    """
    if operation in system.custom:
        raise InputError(f"{operation} is done by the Chakra traces {system.custom[operation]}.*.et; import those")
    ways = system.ways.get(operation)
    if ways is None or len(ways) != len(sizes):
        raise InputError(f"{operation} must be said for {len(sizes)} dimensions, got {list(ways or ())}")
    plain = {re.sub(r"\d+$", "", way.removeprefix("one")) for way in ways}
    plain = {way[0].lower() + way[1:] for way in plain}
    way = plain.pop() if len(plain) == 1 else ""
    if len(sizes) == 1 and (operation, way) in _OURS:
        return _OURS[operation, way]
    if operation == "all_reduce" and way == "ring":
        return f"torus_all_reduce:dims={'x'.join(map(str, sizes[::-1]))}"
    raise InputError(f"no collective of commsim does {operation} as {list(ways)} over {len(sizes)} dimensions")


def system_of(collective: str, sizes: tuple[int, ...], custom: str = "") -> System:
    """Say how ASTRA-sim should do what a collective of ours does.

    Parameters
    ----------
    collective : str
        The name of the collective, without parameters.
    sizes : tuple of int
        Hosts along each dimension.
    custom : str, optional
        Prefix of the Chakra traces that do it, for one that ASTRA-sim has not built in.

    Raises
    ------
    InputError
        If ASTRA-sim has it not built in, and no traces are given.
    """
    ways = {name: key for key, name in _OURS.items()}
    operation, way = ways.get(collective, ("", ""))
    if collective == "torus_all_reduce":
        operation, way = "all_reduce", "ring"
    elif len(sizes) != 1 and not custom:
        way = ""
    if not way and not custom:
        raise InputError(
            f"{collective} over {len(sizes)} dimensions is not built into ASTRA-sim; write it as Chakra traces"
        )
    tree: dict[str, Any] = {
        "scheduling-policy": "LIFO", "endpoint-delay": 0, "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1, **{f"{theirs}-implementation": ["ring"] * len(sizes) for theirs in OPERATIONS},
        "collective-optimization": "baseline",
    }  # fmt: skip
    theirs = next((k for k, v in OPERATIONS.items() if v == operation), "all-reduce")
    if custom:
        tree[f"{theirs}-implementation-custom"] = [custom]
    else:
        tree[f"{theirs}-implementation"] = [way] * len(sizes)
    said = {v: tuple(tree[f"{k}-implementation"]) for k, v in OPERATIONS.items()}
    return System(tree, said, {OPERATIONS[theirs]: custom} if custom else {})

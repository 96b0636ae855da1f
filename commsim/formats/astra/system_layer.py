"""The system layer of ASTRA-sim: JSON that says, among much else, how collectives are done in each dimension."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_json, write_json

OPERATIONS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all",
}  # fmt: skip
_WAYS = re.compile(r"ring|oneRing|doubleBinaryTree|(direct|oneDirect)\d*|halvingDoubling|oneHalvingDoubling")


@dataclass(frozen=True, slots=True)
class AstraSystem:
    """A system file.

    Parameters
    ----------
    tree : mapping
        All of it, as it was; keys that commsim does not know are kept.
    ways : mapping of str to tuple of str
        Map from our name of an operation to how it is done in each dimension.
    custom : mapping of str to str
        Map from our name of an operation to the prefix of the Chakra traces that do it instead.
    """

    tree: Mapping[str, Any]
    ways: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    custom: Mapping[str, str] = field(default_factory=dict)


def read_system(path: str | Path) -> AstraSystem:
    """Read a system file.

    Raises
    ------
    InputError
        If it is no JSON table, or says of a collective what ASTRA-sim does not know.
    """
    tree = read_json(path, 2**24)
    if not isinstance(tree, dict):
        raise InputError(f"{path}: expected a table at the top level, got {type(tree).__name__}")
    top, ways, custom = TableFields(tree, path), {}, {}
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
    return AstraSystem(tree, ways, custom)


def write_system(system: AstraSystem, path: str | Path) -> None:
    """Write a system file, with all that was in the one that was read."""
    write_json(path, system.tree)

"""Mapping between our schedules and the collectives of an ASTRA-sim system layer."""

from __future__ import annotations

import math
import re
from typing import Any

from commsim.core.errors import InputError
from commsim.core.schedule import Schedule
from commsim.formats.context import Notes
from commsim.prediction.collective_names import load_schedule

from .phases import BASELINE, DIRECT, HALVING, LOCAL, RING, TREE, schedule_of_ways, ways_of
from .system_layer import OPERATIONS, AstraSystem

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


def schedule_of_system(system: AstraSystem, operation: str, sizes: tuple[int, ...]) -> tuple[Schedule, Notes]:
    """Build the schedule of a collective in a system file.

    Parameters
    ----------
    system : AstraSystem
        System file as read.
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


def system_of(collective: str, sizes: tuple[int, ...]) -> tuple[AstraSystem, str]:
    """Return how ASTRA-sim should do what a collective of ours does.

    Parameters
    ----------
    collective : str
        The name of the schedule, without parameters.
    sizes : tuple of int
        Hosts along each dimension.

    Returns
    -------
    AstraSystem, str
        What to write, and which operation of it is the collective.

    Raises
    ------
    InputError
        If ASTRA-sim has it not built in.
    """
    operation, ways, optimization = _choice_of(collective, sizes) or ("", (), BASELINE)
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
    return AstraSystem(tree, said), operation


def _choice_of(collective: str, sizes: tuple[int, ...]) -> tuple[str, tuple[str, ...], str] | None:
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

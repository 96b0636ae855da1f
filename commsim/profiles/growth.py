"""More ranks than were traced: ranks without a profile that do what the traced ones do, and groups that are larger.

Ranks are numbered in blocks as long as the world of the profile. A block more does what the first one does, at the
same time; the groups that grow have the ranks of all blocks, all others are repeated in each. Bytes follow what
sharding does. An operation's size is the whole array, so that it stays: gradients of an all-reduce are those of the
model, the shards of an all-gather and a reduce-scatter shrink, and a rank sends as many tokens in an all-to-all, to
more ranks. A gather and a scatter have a block for each rank, and grow.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection

from commsim.core.errors import InputError
from commsim.core.units import count_text
from commsim.training.task_graph import Task, TaskGraph

from .graph_of_ranks import SEND, TracedGraph
from .rank import ProcessGroup

DATA = ("data", "dp", "fsdp", "replicate", "ddp", "hsdp", "default pg")
NOT_DATA = ("tensor", "tp", "pipeline", "pp", "expert", "ep", "context", "cp", "sequence", "sp")
SHARDED = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "reduce")
PER_RANK = ("gather", "scatter")
MAX_FACTOR = 4096
# Tasks of all ranks together, and ranks in all groups that differ.
MAX_TASKS = 1_000_000
MAX_MEMBERS = 2**24


def growing_groups(traced: TracedGraph, named: Collection[str]) -> tuple[frozenset[str], list[str]]:
    """Return the names of the groups that grow, and what was assumed.

    Parameters
    ----------
    traced : TracedGraph
        The step.
    named : collection of str
        Names or descriptions of process groups. Without any, the data-parallel group.

    Raises
    ------
    InputError
        If a name is that of no group, or it is not clear which group is data parallel.
    """
    of_name: dict[str, list[Task]] = {}
    for task, name in zip(traced.graph.tasks, traced.group_of, strict=True):
        if task.operation and len(task.group) > 1:
            of_name.setdefault(name, []).append(task)
    used = {name: traced.groups.get(name, ProcessGroup(name)) for name in of_name}
    if named:
        groups: set[str] = set()
        for word in named:
            same = [name for name, group in used.items() if word in (name, group.description, group.label)]
            if not same:
                raise InputError(f"--grow {word}: no process group has this name; there are {_listed(used)}")
            groups.update(same)
        return frozenset(groups), []
    data = [name for name, group in used.items() if _is_data(group)]
    if not data and len(used) == 1:
        data = list(used)
    sharded = [name for name in data if all(task.operation in SHARDED for task in of_name[name])]
    kinds = {(len(of_name[name][0].group), _words(used[name])) for name in sharded}
    if len(kinds) != 1:
        raise InputError(f"it is not clear which process group is data parallel; name it with --grow: {_listed(used)}")
    label = used[sharded[0]].label
    return frozenset(sharded), [f"the ranks of process group {label} are data parallel, and grow"]


def _words(group: ProcessGroup) -> str:
    return group.description.lower().replace("-", " ").replace("_", " ").strip()


def _is_data(group: ProcessGroup) -> bool:
    words = _words(group).split()
    parts = {*words, " ".join(words)}
    return bool(parts & set(DATA)) and not parts & set(NOT_DATA)


def _listed(groups: dict[str, ProcessGroup]) -> str:
    return ", ".join(f"{group.label} ({count_text(group.size, 'rank')})" for group in groups.values())


def grown(traced: TracedGraph, growing: Collection[str], factor: int) -> TracedGraph:
    """Return the step of `factor` times as many ranks.

    Parameters
    ----------
    traced : TracedGraph
        The step of the ranks that have a profile.
    growing : collection of str
        Names of the process groups that grow.
    factor : int
        1 only adds what ranks without a profile do.

    Raises
    ------
    InputError
        If there would be too many ranks in all exchanges together.
    """
    images = _images(traced)
    alike: dict[tuple[str, tuple[int, ...]], list[tuple[int, ...]]] = {}
    total = 0
    for key in zip(traced.group_of, (task.group for task in traced.graph.tasks), strict=True):
        if key not in alike:
            groups = [key[1], *images.get(key, ())] if key[1] else [()]
            alike[key] = _repeated(groups, factor if key[1] else 1, traced.world, key[0] in growing)
        total += len(alike[key])
    if total > MAX_TASKS:
        raise InputError(f"a step of {traced.world * factor} ranks has too many exchanges; take fewer ranks")
    tasks: list[Task] = []
    names: list[str] = []
    place: list[tuple[int, ...]] = []  # of each task of the profile, those that its followers wait for
    for task, group in zip(traced.graph.tasks, traced.group_of, strict=True):
        after = tuple(sorted({k for j in task.after for k in place[j]}))
        found = alike[group, task.group]
        size = task.size * (factor if task.operation in PER_RANK and group in growing else 1)
        place.append(tuple(range(len(tasks), len(tasks) + len(found))))
        for k, members in enumerate(found):
            resources = task.resources if k == 0 else tuple(f"{resource}.alike{k}" for resource in task.resources)
            tasks.append(dataclasses.replace(task, after=after, group=members, size=size, resources=resources))
            names.append(group)
    return dataclasses.replace(
        traced, graph=TaskGraph(tuple(tasks)), group_of=tuple(names), world=traced.world * factor
    )


def _repeated(groups: list[tuple[int, ...]], factor: int, world: int, grows: bool) -> list[tuple[int, ...]]:
    """Return groups with the ranks of all blocks, or once for each block."""
    if factor * sum(map(len, groups)) > MAX_MEMBERS:
        raise InputError(f"groups of {world * factor} ranks are too many or too large; take fewer ranks")
    blocks = [k * world for k in range(factor)]
    if grows:
        return [tuple(rank + b for b in blocks for rank in group) for group in groups]
    return [tuple(rank + b for rank in group) for b in blocks for group in groups]


def _images(traced: TracedGraph) -> dict[tuple[str, tuple[int, ...]], list[tuple[int, ...]]]:
    """List the groups of ranks without a profile, by the traced group that they do the same as.

    A group of ranks at equal distances is one of those that tile the world; what is not is not repeated.
    """
    used = {
        (name, task.group)
        for task, name in zip(traced.graph.tasks, traced.group_of, strict=True)
        if task.operation and task.operation != SEND
    }
    covered = {tuple(sorted(members)) for _, members in used}
    first: dict[tuple[int, int], tuple[int, ...]] = {}
    images: dict[tuple[str, tuple[int, ...]], list[tuple[int, ...]]] = {}
    for name, members in sorted(used, key=lambda pair: pair[1]):
        n, stride = len(members), _stride(members, traced.world)
        if stride is not None and first.setdefault((n, stride), members) == members:
            starts = (block + j for block in range(0, traced.world, n * stride) for j in range(stride))
            tiles = (tuple(start + i * stride for i in range(n)) for start in starts)
            images[name, members] = [tile for tile in tiles if tile not in covered]
    return images


def _stride(members: tuple[int, ...], world: int) -> int | None:
    """Distance of the ranks of a group that tiles the world; None of others."""
    ordered = sorted(members)
    n, stride = len(ordered), ordered[1] - ordered[0] if len(ordered) > 1 else world
    block = n * stride
    regular = all(b - a == stride for a, b in itertools.pairwise(ordered))
    inside = ordered[0] % block + (n - 1) * stride < block
    return stride if n > 1 and regular and inside and world % block == 0 else None

"""Ranks out of files: a Kineto trace each, a record of the flight recorder each, or both.

A trace of a processor has no process groups and often no sizes; the record of the same rank has both, and the clock of
the system, which the trace has too.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.files.whole_files import parse_json, read_bytes, read_text, refused_by_name
from commsim.formats.chakra.traces import SUFFIX
from commsim.formats.measurement import MAX_BYTES
from commsim.profiles.calls import RecordedCall
from commsim.profiles.kineto import is_kineto, kineto_tree
from commsim.profiles.plain_pickle import MAX_PICKLE_BYTES, load_plain_pickle
from commsim.profiles.profiles import flight_recorder_calls, record_rank

from .events import Events
from .graph_of_ranks import TracedGraph, graph_of_steps
from .kernel_names import KernelNames, sizes_by_name
from .rank import DONE_AS, MAX_RANKS, TracedCall, TracedRank, groups_of, require_calls
from .read_chakra import graph_of_files
from .read_kineto import rank_of_kineto
from .step import RankStep, last_steps

# A trace and a record are of the same calls if half of these were issued at times that differ by at most this, s; of a
# record that lacks some, a call of the trace is the nearest one, and not further from it.
NEAR = 20e-3
MAX_FILES = 4096


@dataclasses.dataclass(frozen=True, slots=True)
class _Record:
    """A record of the flight recorder."""

    source: str
    rank: int | None
    calls: tuple[tuple[RecordedCall, int], ...]  # with the time at which each was issued, in ns of the system's clock
    groups: Mapping[str, Any]


def read_ranks(
    paths: Sequence[str | Path], names: KernelNames, sizes: list[tuple[str, float]], notes: list[str]
) -> list[TracedRank]:
    """Read all files, and join those of one rank.

    Parameters
    ----------
    paths : sequence of path
        Traces of Kineto, records of the flight recorder (JSON or pickle), each of one rank.
    names : KernelNames
        Kernels that exchange data.
    sizes : list of (str, float)
        Bytes of calls whose kernel or group has a name in it.
    notes : list of str
        Receives what was left out.

    Returns
    -------
    list of TracedRank
        In the order of ranks.

    Raises
    ------
    InputError
        If a file is neither, is damaged or too large, has no calls, or two of one kind are of the same rank.
    """
    if len(paths) > MAX_FILES:
        raise InputError(f"at most {MAX_FILES} files are read, got {len(paths)}")
    traced: dict[int | None, TracedRank] = {}
    based: dict[int | None, int] = {}
    records: dict[int | None, _Record] = {}
    for path in map(Path, paths):
        if (read := _kineto(path, names, sizes)) is not None:
            rank, base = read
            _put(traced, rank.rank, rank, path)
            based[rank.rank] = base
            notes += rank.notes
        else:
            record = _record(path, notes)
            _put(records, record.rank, record, path)
    for number, record in records.items():
        joined = traced.get(number)
        if joined is None:
            traced[number] = _alone(record)
            notes += traced[number].notes
        else:
            traced[number] = _with_record(joined, based[number], record)
    if len(traced) > 1 and None in traced:
        raise InputError(f"{traced[None].source}: does not say its rank; of several files each must")
    return [traced[number] for number in sorted(traced, key=lambda number: -1 if number is None else number)]


def _put(where: dict[int | None, Any], rank: int | None, value: object, path: Path) -> None:
    if rank in where:
        raise InputError(f"{path}: two files of one kind are of rank {rank}; give one file for each rank")
    where[rank] = value


def _kineto(path: Path, names: KernelNames, sizes: list[tuple[str, float]]) -> tuple[TracedRank, int] | None:
    """Read a trace, and where its clock begins, ns; None for another kind of file."""
    if read_bytes(path, MAX_BYTES)[:1] == b"\x80":
        return None
    text = read_text(path, MAX_BYTES)
    if not is_kineto(text):
        return None
    events = Events(names)
    with refused_by_name(path):
        tree = kineto_tree(text, events.add)
    base = tree.get("baseTimeNanoseconds")
    return rank_of_kineto(tree, events, path, names, sizes), base if isinstance(base, int) else 0


def _record(path: Path, notes: list[str]) -> _Record:
    if read_bytes(path, MAX_BYTES)[:1] == b"\x80":
        tree = load_plain_pickle(read_bytes(path, MAX_PICKLE_BYTES), str(path))
    else:
        with refused_by_name(path):
            tree = parse_json(read_text(path, MAX_BYTES))
    if not isinstance(tree, dict) or "entries" not in tree:
        raise InputError(f"{path}: neither a record of the flight recorder (entries) nor a trace (traceEvents)")
    issued: list[int] = []
    calls = flight_recorder_calls(tree, path, notes, issued)
    require_calls(calls, str(path), notes)
    rank = record_rank(tree, path)
    rank = rank if rank is not None and 0 <= rank < MAX_RANKS else None
    return _Record(str(path), rank, tuple(zip(calls, issued, strict=True)), groups_of(tree.get("pg_config")))


def _alone(record: _Record) -> TracedRank:
    """Make a rank of a record by itself: it computes from the time at which one call is issued to that of the next."""
    first = min(issued for _, issued in record.calls)
    calls, begins = [], []
    for call, issued in sorted(record.calls, key=lambda pair: pair[1]):
        at = (issued - first) * 1e-9
        start = at if call.duration is None else max(at, call.start - first * 1e-9)
        calls.append(TracedCall(call.operation, call.size, call.group, f"group{call.group}", at, start,
                                start + (call.duration or 0.0)))  # fmt: skip
        begins.append(at)
    text = f"{record.source}: has no computation; the time from one call to the next counts as such"
    world = max((group.size for group in record.groups.values()), default=0) or None
    return TracedRank(record.source, record.rank, world, record.groups, np.array([[begins[0], begins[-1]]]),
                      tuple(calls), notes=(text,))  # fmt: skip


def _with_record(rank: TracedRank, base: int, record: _Record) -> TracedRank:
    """Give the calls of a trace the sizes and groups of those in the record that were issued at the same time."""
    noted = sorted(((at - base) * 1e-9, i) for i, (_, at) in enumerate(record.calls))
    times, kinds = [time for time, _ in noted], [record.calls[i][0].operation for _, i in noted]
    found = []
    for call, k in zip(
        rank.calls, _in_order(rank.calls, times, kinds) or _nearest(rank.calls, times, kinds), strict=True
    ):
        if k is None:
            found.append(call)
            continue
        known = record.calls[noted[k][1]][0]
        size = known.size if call.size is None else call.size
        at = min(times[k], call.start)
        found.append(dataclasses.replace(call, size=size, group=known.group, issued=at))
    groups = {**rank.groups, **{name: group for name, group in record.groups.items() if name not in rank.groups}}
    return dataclasses.replace(rank, calls=tuple(found), groups=groups)


def _is_one_of(call: TracedCall, kind: str) -> bool:
    return kind in (call.operation, DONE_AS.get(call.operation, call.operation))


def _in_order(calls: Sequence[TracedCall], times: Sequence[float], kinds: Sequence[str]) -> list[int | None]:
    """Pair the calls of a trace with as many in a row of the record, of the same operations; empty where none fit.

    A thread that the processor takes away between the operator and the record is late by any time, but the order stays.
    """
    rows = range(len(kinds) - len(calls) + 1)
    fitting = [o for o in rows if all(_is_one_of(call, kinds[o + i]) for i, call in enumerate(calls))]
    if not fitting or not calls:
        return []
    late = [float(np.median([abs(times[o + i] - call.issued) for i, call in enumerate(calls)])) for o in fitting]
    best = int(np.argmin(late))
    return list(range(fitting[best], fitting[best] + len(calls))) if late[best] <= NEAR else []


def _nearest(calls: Sequence[TracedCall], times: Sequence[float], kinds: Sequence[str]) -> list[int | None]:
    """Pair each call of a trace with the one of the record that was issued nearest to it; None where none is near."""
    used, found = set[int](), list[int | None]()
    for call in calls:
        near = range(bisect.bisect_left(times, call.issued - NEAR), bisect.bisect_right(times, call.issued + NEAR))
        fitting = [k for k in near if k not in used and _is_one_of(call, kinds[k])]
        found.append(min(fitting, key=lambda k: abs(times[k] - call.issued)) if fitting else None)
        used.update(k for k in found[-1:] if k is not None)
    return found


def traced_graph(
    paths: Sequence[str | Path], kernels: str | None, sizes: tuple[str, ...], period: float | None, notes: list[str]
) -> tuple[TracedGraph, list[RankStep]]:
    """Read files as one step of all ranks that have one.

    Parameters
    ----------
    paths : sequence of path
        As for :func:`read_ranks`.
    kernels : path, optional
        Table of kernels of the user's.
    sizes : tuple of str
        ``NAME=SIZE`` of calls whose bytes are not recorded.
    period : float, s, optional
        Length of a step, for profiles in which nothing repeats.
    notes : list of str
        Receives what was left out.

    Returns
    -------
    TracedGraph, list of RankStep
        The steps are none of a trace of Chakra, which has its graph.
    """
    if Path(paths[0]).suffix == SUFFIX:
        return graph_of_files(paths), []
    ranks = read_ranks(paths, KernelNames(kernels), sizes_by_name(sizes), notes)
    steps = last_steps(ranks, period)
    return graph_of_steps(steps), steps

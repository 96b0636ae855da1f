"""A rank out of a Kineto trace: kernels on streams of a GPU, or operators and threads of a processor.

On a GPU a call is issued when it is launched and the kernels before it in the program have ended. On a processor it is
issued by an operator of c10d; the thread of the backend that does the work says when it ran, and the n-th work of an
operation is that of the n-th call.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.profiles.calls import bytes_of_type, left_out_notes, operation_of
from commsim.profiles.kineto import WITHOUT_SIZE, collective_call, step_times

from .events import Events, largest_tensor
from .kernel_names import KernelNames
from .rank import DONE_AS, MAX_RANKS, ProcessGroup, TracedCall, TracedRank, groups_of, ranks_of, require_calls, union_of

EXPERTS = ("expert", "ep", "moe")


def rank_of_kineto(
    tree: Mapping[str, Any], events: Events, path: Path, names: KernelNames, sizes: list[tuple[str, float]]
) -> TracedRank:
    """Make a rank of a decoded trace.

    Parameters
    ----------
    tree : mapping
        The trace, from :func:`commsim.profiles.kineto.kineto_tree`.
    events : Events
        What was kept of its events.
    path : path
        Path of the file, for messages.
    names : KernelNames
        Kernels that exchange data.
    sizes : list of (str, float)
        Bytes of calls whose kernel or group has a name in it, which precede those of the profile.

    Raises
    ------
    InputError
        If it has no calls.
    """
    about = tree.get("distributedInfo")
    about = about if isinstance(about, dict) else {}
    rank, world = (about.get(key) for key in ("rank", "world_size"))
    rank = rank if isinstance(rank, int) and 0 <= rank < MAX_RANKS else None
    world = world if isinstance(world, int) and 0 < world <= MAX_RANKS else None
    groups = groups_of(about.get("pg_config"))
    notes: list[str] = []
    events.linked.world = world
    if events.has_gpu:
        calls = _calls_of_kernels(events, names, groups, rank, path, notes)
        spans, _ = events.kernels()
    else:
        calls, spans = _calls_of_operators(events, groups), events.operators()
    calls = [_with_size(call, groups, sizes) for call in calls]
    require_calls(calls, str(path), notes)
    return TracedRank(
        str(path), rank, world, groups,
        union_of(spans), tuple(sorted(calls, key=lambda call: (call.issued, call.start))),
        tuple(step_times(tree, path)), tuple(sorted(events.updates)), events.has_gpu, tuple(notes),
    )  # fmt: skip


def _with_size(call: TracedCall, groups: Mapping[str, ProcessGroup], sizes: list[tuple[str, float]]) -> TracedCall:
    if call.operation == "barrier":  # of no bytes
        return call
    group = groups.get(call.group, ProcessGroup(call.group))
    words = (call.kernel, call.operation, group.name, group.description)
    size = next((size for name, size in sizes if any(name in word for word in words)), call.size)
    return dataclasses.replace(call, size=size)


def _calls_of_kernels(
    events: Events, names: KernelNames, groups: dict[str, ProcessGroup], rank: int | None, path: Path, notes: list[str]
) -> list[TracedCall]:
    spans, launched = events.kernels()
    order = np.argsort(launched, kind="stable")  # what is not known comes last, and is left out
    order = order[: int(np.isfinite(launched).sum())]
    ends, launches = np.maximum.accumulate(spans[order, 1]), launched[order]
    waited = _waited(events, spans, launched)
    calls, left_out = [], Counter[str]()
    for event in events.exchanges:
        call = _call(event, names, groups, rank, events)
        if isinstance(call, str):
            left_out[call] += 1
            continue
        number = event["args"].get("correlation")
        issued = events.launched.get(number) if isinstance(number, int) else None
        if issued is not None:
            before = int(np.searchsorted(launches, issued))
            issued = max(issued, float(ends[before - 1]) if before else issued)
        calls.append(
            dataclasses.replace(
                call, issued=min(call.start, call.start if issued is None else issued), waited=waited.get(number)
            )
        )
    notes += left_out_notes(path, left_out, "kernels")
    return calls


def _waited(events: Events, spans: NDArray[np.float64], launched: NDArray[np.float64]) -> dict[object, float]:
    """Start of the first kernel that waits for the exchange of each correlation, by recorded waits of streams."""
    numbers = [(events.launched.get(e["args"].get("correlation", -1)), e) for e in events.exchanges]
    on_stream: dict[object, list[tuple[float, object]]] = defaultdict(list)
    for time, event in numbers:
        if time is not None:
            on_stream[event["args"].get("stream")].append((time, event["args"].get("correlation")))
    for row in on_stream.values():
        row.sort(key=lambda pair: pair[0])
    found: dict[object, float] = {}
    order = np.argsort(launched, kind="stable")
    order = order[: int(np.isfinite(launched).sum())]
    launches = launched[order]
    for wait in events.waits:
        arguments = wait["args"]
        if arguments.get("stream") in on_stream:  # no computation waits
            continue
        recorded = events.launched.get(arguments.get("wait_on_cuda_event_record_corr_id", -1))
        asked = events.launched.get(arguments.get("correlation", -1), wait["begin"])
        row = on_stream.get(arguments.get("wait_on_stream"), [])
        before = 0 if recorded is None else bisect.bisect_right(row, recorded, key=lambda pair: pair[0])
        after = int(np.searchsorted(launches, asked))
        if before and after < len(order):
            number, begins = row[before - 1][1], float(spans[order[after], 0])
            found[number] = min(begins, found.get(number, np.inf))
    return found


def _call(
    event: dict[str, Any], names: KernelNames, groups: dict[str, ProcessGroup], rank: int | None, events: Events
) -> TracedCall | str:
    """Make a call of a kernel that exchanges; its issue is not known yet."""
    arguments, begin, end = event["args"], event["begin"], event["end"]
    stream = f"stream{arguments.get('stream', '')}"
    if "Collective name" not in arguments:
        arguments = {**arguments, **events.linked.arguments(arguments.get("correlation"))}
    if isinstance(arguments.get("Collective name"), str):
        plain = {"ts": begin * 1e6, "dur": (end - begin) * 1e6, "name": event["name"]}
        called = collective_call(plain, arguments, rank)
        if called == WITHOUT_SIZE:
            operation, group = operation_of(arguments["Collective name"]), str(arguments.get("Process Group Name", ""))
            _learn(groups, group, arguments)
            return TracedCall(operation, None, group, stream, begin, begin, end, kernel=event["name"])
        if isinstance(called, str):
            return called
        _learn(groups, called.group, arguments)
        peers = tuple(arguments.get(key) for key in ("Src Rank", "Dst Rank"))
        whole = all(isinstance(peer, int) and peer >= 0 for peer in peers) and peers[0] != peers[1]
        return TracedCall(
            called.operation, called.size, called.group, stream, begin, begin, end,
            peers=tuple(peer for peer in peers if isinstance(peer, int)) if whole else (),
        )  # fmt: skip
    kernel = names.find(event["name"])
    if kernel is None:
        return f"{event['name'][:40]!r} is no kernel that is known"
    group = _named_group(kernel.group, groups, kernel.n_ranks)
    size = 0.0 if kernel.operation == "barrier" else kernel.size
    if size is None:
        size = largest_tensor(arguments) or events.bytes_of(arguments.get("External id")) or None
    return TracedCall(kernel.operation, size, group, stream, begin, begin, end, kernel=event["name"])


def _learn(groups: dict[str, ProcessGroup], name: str, arguments: Mapping[str, Any]) -> None:
    """Add what the arguments of a call say of its process group."""
    known = groups.get(name, ProcessGroup(name))
    ranks = ranks_of(arguments.get("Process Group Ranks"))
    size = arguments.get("Group size")
    size = size if isinstance(size, int) and size > 0 else 0
    text = arguments.get("Process Group Description")
    groups[name] = ProcessGroup(
        name, known.description or (text if isinstance(text, str) and text != "undefined" else ""),
        known.ranks or (ranks if size in (0, len(ranks)) else ()), known.size or size or len(ranks),
    )  # fmt: skip


def _named_group(word: str, groups: dict[str, ProcessGroup], n_ranks: int | None) -> str:
    """Name of the process group of a kernel: one whose description has the word, else the one with all ranks."""
    if n_ranks is not None:
        groups.setdefault(f"{n_ranks} ranks", ProcessGroup(f"{n_ranks} ranks", size=n_ranks))
        return f"{n_ranks} ranks"
    words = EXPERTS if word == "expert" else (word,) if word else ()
    for group in groups.values():
        parts = f"{group.name} {group.description}".lower().replace("-", "_").replace("_", " ").split()
        if any(w in parts or (len(w) > 3 and any(w in part for part in parts)) for w in words):
            return group.name
    return max(groups.values(), key=lambda group: group.size, default=ProcessGroup("")).name


def _calls_of_operators(events: Events, groups: Mapping[str, ProcessGroup]) -> list[TracedCall]:
    """Pair what the program issued with what threads of the backend did, which take calls in turn."""
    largest = max(groups.values(), key=lambda group: group.size, default=ProcessGroup(""))
    works: dict[str, deque[dict[str, Any]]] = defaultdict(deque)
    for work in sorted(events.works, key=lambda work: float(work["begin"])):
        works[_done_as(work["name"])].append(work)
    n_threads = len(events.threads) or 1
    calls = []
    # a trace with annotations of the backend only; a receive is the send of somebody else
    issues = events.issues or [work for work in events.works if operation_of(work["name"])]
    for i, issue in enumerate(sorted(issues, key=lambda issue: float(issue["begin"]))):
        operation, waiting = operation_of(issue["name"]), works[_done_as(issue["name"])]
        while waiting and waiting[0]["begin"] < issue["begin"]:  # of a call before the profile began
            waiting.popleft()
        work = waiting.popleft() if waiting else issue
        calls.append(TracedCall(
            operation, 0.0 if operation == "barrier" else _bytes(issue, work), largest.name,
            f"thread{i % n_threads}", min(issue["end"], work["begin"]), work["begin"], work["end"], issue["end"],
        ))  # fmt: skip
    return calls


def _done_as(name: str) -> str:
    operation = operation_of(name)
    return DONE_AS.get(operation, operation)


def _bytes(issue: dict[str, Any], work: dict[str, Any]) -> float | None:
    """Whole array of a call: the largest of its tensors, whose type the backend's event says."""
    kinds = work["args"].get("Input type")
    each = next((n for n in map(bytes_of_type, map(str, kinds)) if n), 0) if isinstance(kinds, list) else 0
    arguments = issue["args"]
    if each and isinstance(arguments.get("Input type"), list):
        arguments = {**arguments, "Input type": ["" for _ in arguments["Input type"]]}
        return max(largest_tensor(arguments) / 4 * each, largest_tensor(work["args"])) or None
    return max(largest_tensor(arguments), largest_tensor(work["args"])) or None


def unknown_size(rank: TracedRank, call: TracedCall) -> InputError:
    """Return the error of a call whose bytes nothing says."""
    what = f"kernel {call.kernel[:80]!r}" if call.kernel else call.operation
    return InputError(
        f"{rank.source}: the bytes of {what} are not recorded; profile with record_shapes=True, add the rank's flight"
        f" recorder, or give --size {_word(call)}=SIZE"
    )


def _word(call: TracedCall) -> str:
    words = [one for one in ("dispatch", "combine") if one in call.kernel]
    return words[0] if words else call.operation

"""The file that says which jobs and which background traffic share a network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_tree
from commsim.core.operations import OPERATIONS
from commsim.core.operations import operation as known_operation
from commsim.core.registry import usual_spelling
from commsim.core.units import parse_bandwidth, parse_nccl_size, parse_size, parse_time
from commsim.engine.flow_job import number_of
from commsim.packets.packet_options import FABRIC, SPRAYING, TRANSPORT, checked_packets
from commsim.prediction.collective_names import require_operation, spelled_out

from .job_entries import Background, Composition, JobEntry, number_of_unnamed

_RANKS = re.compile(r"(\d{1,8})(?:-(\d{1,8}))?", re.ASCII)
MAX_LOAD = 1.0
# What a job may say of its packets; losses, pauses and shared buffers are the fabric's.
OWN = ("preset", *TRANSPORT, *SPRAYING, "buffer", "ecn_min", "ecn_max", "ecn_probability")
# Flags of a run that have another name than the option.
OF_RUN = {"pause_at": "--pause", "resume_at": "--pause", "alpha": "--buffer-alpha"}
__all__ = ["read_beside", "read_composition"]


def read_composition(path: str | Path) -> Composition:
    """Read a TOML or JSON file with tables ``[[job]]`` and ``[[background]]``.

    Raises
    ------
    InputError
        If the file is wrong; the message has its line and what would be right.
    """
    top = TableFields(read_tree(path), path)
    top.schema(required=False)
    jobs = tuple(_job(entry, i) for i, entry in enumerate(top.tables("job"))) if "job" in top else ()
    background = tuple(_background(entry) for entry in top.tables("background")) if "background" in top else ()
    top.finish()
    if not jobs:
        raise InputError(f"{path}: at least one [[job]] is needed, such as collective = 'ring_all_reduce'")
    names = [job.name for job in jobs]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two jobs are called {next(n for n in names if names.count(n) > 1)!r}")
    load = sum(entry.load for entry in background)
    if load > MAX_LOAD:
        raise InputError(f"{path}: background loads add up to {load:.4g}, and hosts can send 1 (100 %) at most")
    return Composition(jobs, background)


def _job(entry: TableFields, i: int) -> JobEntry:
    collective, name = _collective(entry), entry.text("name", "")
    if len(given := [key for key in ("placement", "machines", "ranks") if key in entry]) > 1:
        entry.fail(given[0], f"is given beside {given[1]}: give one of the two")
    named = entry.text(given[0]) if given and _has_names(entry, given[0]) else ""
    machines = _numbers(entry, "machines") if given == ["machines"] and not named else ()
    ranks = () if named or machines else _numbers(entry, "ranks")
    job = JobEntry(
        name or f"{i}:{collective.partition(':')[0]}",
        collective,
        ranks,
        _positive(entry, "size", parse_size, None),
        entry.quantity("start", parse_time, 0.0),
        entry.number("weight", 1.0),
        entry.whole("priority", default=0),
        entry.quantity("rate_cap", parse_bandwidth, float("inf")),
        number_of(name) if name else number_of_unnamed(collective, ranks) if ranks else None,
        _packets(entry),
        machines,
        named,
    )
    entry.finish()
    if job.weight <= 0:
        entry.refuse("weight", "a number above 0")
    return job


def _collective(entry: TableFields) -> str:
    """Read a collective, whose operation may stand beside it: ``nccl`` and ``all_to_all``."""
    collective, operation = entry.text("collective"), entry.text("operation", "")
    if not operation:
        return collective
    try:
        operation = known_operation(usual_spelling(operation, OPERATIONS)).name
        named = spelled_out(collective, operation)
        require_operation(named, operation)
    except InputError as error:
        entry.fail("operation", f": {error}")
    return named


def _has_names(entry: TableFields, key: str) -> bool:
    """Whether a field names nodes, such as ``m0,m2``, in place of numbers."""
    raw = entry.raw(key)
    return key == "placement" or (key == "machines" and isinstance(raw, str) and raw[:1].isalpha())


def _numbers(entry: TableFields, key: str) -> tuple[int, ...]:
    raw = entry.raw(key)
    if isinstance(raw, list):
        return tuple(entry.wholes(key))
    numbers: list[int] = []
    for part in str(raw).split(","):
        match = _RANKS.fullmatch(part.strip())
        if match is None or not isinstance(raw, str):
            entry.refuse(key, f"{key} such as '0-7,12' or [0, 1, 2]")
        numbers += range(int(match[1]), int(match[2] or match[1]) + 1)
    return tuple(numbers)


def _background(entry: TableFields) -> Background:
    kind = entry.one_of("kind", ("poisson", "incast", "send"))
    if kind == "send":
        return _sent(entry)
    until, priority = _positive(entry, "until", parse_time, None), entry.whole("priority", default=0)
    if kind == "poisson":
        load = entry.number("load")
        if not 0 < load <= MAX_LOAD:
            entry.refuse("load", "a part of what hosts can send, above 0 and at most 1 (100 %)")
        websearch = "size" not in entry or entry.raw("size") == "websearch"
        size = None if websearch else _positive(entry, "size", parse_size, None)
        background = Background(kind, until, load, size, priority=priority, packets=_packets(entry))
    else:
        senders = entry.whole("senders", minimum=1)
        size, every = _positive(entry, "size", parse_size, None), _positive(entry, "every", parse_time, until)
        background = Background(
            kind, until, size=size, senders=senders, every=every, priority=priority, packets=_packets(entry)
        )
    entry.finish()
    return background


def _sent(entry: TableFields) -> Background:
    size = _positive(entry, "size", parse_size, None)
    until, every = (_positive(entry, key, parse_time, None) if key in entry else 0.0 for key in ("until", "every"))
    if bool(until) != bool(every):
        entry.fail("every" if every else "until", "goes with until and every, both: without them hosts send once")
    background = Background(
        "send", until, size=size, every=every, priority=entry.whole("priority", default=0), packets=_packets(entry),
        source=entry.text("from"), target=entry.text("to"),
    )  # fmt: skip
    entry.finish()
    return background


def read_beside(text: str) -> Background:
    """Read ``FROM:TO=SIZE``, such as ``h[0-3]:h4=1GiB``: each host of FROM sends that much to the hosts of TO.

    Raises
    ------
    InputError
        If it is something else.
    """
    hosts, equals, size = text.rpartition("=")
    source, colon, target = hosts.partition(":")
    if not (equals and colon and source.strip() and target.strip()):
        raise InputError(f"--beside takes FROM:TO=SIZE, such as h[0-3]:h4=1GiB, got {text!r}")
    return Background("send", 0.0, size=float(parse_nccl_size(size, "--beside")), source=source, target=target)


def _packets(entry: TableFields) -> dict[str, Any] | None:
    """Read how packets are sent; None where nothing is said."""
    for key in FABRIC.keys() - {*OWN}:
        if key in entry:
            entry.fail(key, f"is the fabric's, whoever sends: give it to the run, {OF_RUN.get(key, _flag(key))}")
    given = {key: entry.raw(key) for key in OWN}
    try:
        return checked_packets(given, None, None) or None
    except InputError as error:
        entry.fail(None, f": {error}")


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _positive(entry: TableFields, key: str, parse: Callable[[str, str], float], default: float | None) -> float:
    value = entry.quantity(key, parse, default)
    if not value > 0:
        entry.refuse(key, "more than 0")
    return value

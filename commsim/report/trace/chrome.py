"""A run as trace events: a process per rank and per node that has links, a thread per lane, counters, arrows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from commsim.files.trace_events import process_name, sort_index, thread_name, write_events

from .timeline import Timeline, Track


def write_chrome(timeline: Timeline, path: str | Path) -> int:
    """Write JSON, compressed when the name ends with .gz; return the number of events.

    Times are microseconds with six digits behind the point, so that they are the whole picoseconds of the slices.
    """
    return write_events(path, _events(timeline), otherData=dict(timeline.provenance))


def _events(timeline: Timeline) -> Iterator[dict[str, Any] | str]:
    for pid, name in timeline.processes.items():
        yield process_name(pid, name)
        yield sort_index(pid, None, pid)
    for track in timeline.tracks:
        for lane, (name, pid) in track.lanes.items():
            yield thread_name(pid, lane, name)
            yield sort_index(pid, lane, lane)
    for track in timeline.tracks:
        yield from _slices(timeline, track)
    for counter in timeline.counters():
        name = json.dumps(f"load {counter.name}")
        for time, load in counter.changes():
            yield f'{{"ph":"C","pid":{counter.pid},"name":{name},"ts":{_us(time)},"args":{{"percent":{load:.4g}}}}}'


def _slices(timeline: Timeline, track: Track) -> Iterator[str]:
    """Complete events; an arrow starts at the slice of the sender and ends at that of the receiver."""
    arrow = {"send": '"ph":"s"', "receive": '"ph":"f","bp":"e"'}.get(track.kind)
    for one in timeline.slices(track):
        at = f'"pid":{one.pid},"tid":{one.lane},"ts":{_us(one.start)}'
        more = f',"cname":"terrible","cat":"{track.kind},critical"' if one.critical else f',"cat":"{track.kind}"'
        yield (
            f'{{"ph":"X",{at},"dur":{_us(one.end - one.start)},"name":{json.dumps(one.name)}{more},'
            f'"args":{{"bytes":{one.n_bytes:.17g},"hop":{one.hop},"transfer":{one.transfer}}}}}'
        )
        if arrow is not None and timeline.has_arrow(one):
            yield f'{{{arrow},{at},"name":"message","cat":"message","id":{one.transfer}}}'


def _us(picoseconds: int) -> str:
    return f"{picoseconds // 1_000_000}.{picoseconds % 1_000_000:06d}"

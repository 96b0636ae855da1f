"""A timeline as trace events (JSON), or in Perfetto's own format, which needs the extra ``perfetto``."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from commsim.core.errors import InputError
from commsim.core.extras import needs
from commsim.core.files.trace_events import opened, process_name, sort_index, thread_name, write_events

from .timeline import Timeline, Track

# Packets that are in memory at a time; traces are concatenated by concatenating their bytes.
AT_ONCE = 8192
_SEQUENCE = 1
# Numbers of tracks: lanes and processes are below this.
_COUNTERS = 1 << 40
_PROCESSES = 1 << 32


class TimelineOffset(NamedTuple):
    """Position of a timeline in a file of several: what is added to its processes and messages, and before names."""

    pid: int = 0
    message: int = 0
    label: str = ""


def write_chrome(timeline: Timeline, path: str | Path) -> int:
    """Write JSON, compressed when the name ends with .gz; return the number of events.

    Times are microseconds with six digits behind the point, so that they are the whole picoseconds of the slices.
    """
    return write_events(path, _events(timeline, TimelineOffset()), otherData=dict(timeline.provenance))


def write_beside(timelines: Mapping[str, Timeline], path: str | Path) -> int:
    """Write several timelines into one file as :func:`write_chrome` does, one below the other on the same time axis.

    Parameters
    ----------
    timelines : mapping of str to Timeline
        Timelines by the text before the names of their processes.
    path : path
        Path to write.

    Returns
    -------
    int
        Events.
    """
    places, at = [], TimelineOffset()
    for label, timeline in timelines.items():
        places.append(at._replace(label=f"{label}: "))
        at = TimelineOffset(at.pid + max(timeline.processes, default=0) + 1, at.message + len(timeline.run.n_bytes))
    events = itertools.chain.from_iterable(map(_events, timelines.values(), places))
    about = {
        f"{label}: {name}": word for label, timeline in timelines.items() for name, word in timeline.provenance.items()
    }
    return write_events(path, events, otherData=about)


def _events(timeline: Timeline, place: TimelineOffset) -> Iterator[dict[str, Any] | str]:
    for number, name in timeline.processes.items():
        pid = number + place.pid
        yield process_name(pid, place.label + name)
        yield sort_index(pid, None, pid)
    for track in timeline.tracks:
        for lane, (name, pid) in track.lanes.items():
            yield thread_name(pid + place.pid, lane, name)
            yield sort_index(pid + place.pid, lane, lane)
    for track in timeline.tracks:
        yield from _slices(timeline, track, place)
    for counter in timeline.counters():
        name, pid = json.dumps(counter.name), counter.pid + place.pid
        for time, value in counter.changes():
            shown = f"{value:.0f}" if counter.unit == "bytes" else f"{value:.4g}"
            yield f'{{"ph":"C","pid":{pid},"name":{name},"ts":{_us(time)},"args":{{"{counter.unit}":{shown}}}}}'


def _slices(timeline: Timeline, track: Track, place: TimelineOffset) -> Iterator[str]:
    """Complete events; an arrow starts at the slice of the sender and ends at that of the receiver."""
    arrow = {"send": '"ph":"s"', "receive": '"ph":"f","bp":"e"'}.get(track.kind)
    for span in timeline.slices(track):
        at = f'"pid":{span.pid + place.pid},"tid":{span.lane},"ts":{_us(span.start)}'
        more = f',"cname":"terrible","cat":"{track.kind},critical"' if span.critical else f',"cat":"{track.kind}"'
        yield (
            f'{{"ph":"X",{at},"dur":{_us(span.end - span.start)},"name":{json.dumps(span.name)}{more},'
            f'"args":{{"bytes":{span.n_bytes:.17g},"hop":{span.hop},"transfer":{span.transfer}}}}}'
        )
        if arrow is not None and timeline.has_arrow(span):
            yield f'{{{arrow},{at},"name":"message","cat":"message","id":{span.transfer + place.message}}}'


def _us(picoseconds: int) -> str:
    return f"{picoseconds // 1_000_000}.{picoseconds % 1_000_000:06d}"


def require_perfetto() -> Any:
    """Import the messages of the format.

    Raises
    ------
    InputError
        If the package is missing.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise InputError(needs("Perfetto's own format needs perfetto", "perfetto", ", or write .json.gz")) from None
    return perfetto_trace_pb2


def write_perfetto(timeline: Timeline, path: str | Path) -> int:
    """Write the trace; return the number of packets. Times are whole nanoseconds, rounded down."""
    messages = require_perfetto()
    n = 0
    with opened(path) as out:
        part = messages.Trace()
        for packet in _packets(timeline, messages):
            part.packet.append(packet)
            n += 1
            if len(part.packet) == AT_ONCE:
                out.write(part.SerializeToString(deterministic=True))
                part = messages.Trace()
        out.write(part.SerializeToString(deterministic=True))
    return n


def _packets(timeline: Timeline, messages: Any) -> Iterator[Any]:
    for pid, name in timeline.processes.items():
        packet, about = _descriptor(messages, _PROCESSES + pid, name, None)
        about.process.pid, about.process.process_name = pid, name
        yield packet
    for track in timeline.tracks:
        for lane, (name, pid) in track.lanes.items():
            yield _descriptor(messages, lane, name, _PROCESSES + pid)[0]
    for track in timeline.tracks:
        yield from _packets_of_slices(timeline, track, messages)
    for i, counter in enumerate(timeline.counters()):
        packet, about = _descriptor(messages, _COUNTERS + i, counter.name, _PROCESSES + counter.pid)
        about.counter.unit_name = "%" if counter.unit == "percent" else counter.unit
        yield packet
        for time, value in counter.changes():
            packet, event = _event(messages, time, _COUNTERS + i, messages.TrackEvent.TYPE_COUNTER)
            event.double_counter_value = value
            yield packet


def _descriptor(messages: Any, uuid: int, name: str, parent: int | None) -> tuple[Any, Any]:
    packet = messages.TracePacket()
    about = packet.track_descriptor
    about.uuid, about.name = uuid, name
    if parent is not None:
        about.parent_uuid = parent
    return packet, about


def _event(messages: Any, picoseconds: int, uuid: int, kind: int) -> tuple[Any, Any]:
    packet = messages.TracePacket()
    packet.timestamp, packet.trusted_packet_sequence_id = picoseconds // 1000, _SEQUENCE
    packet.track_event.type, packet.track_event.track_uuid = kind, uuid
    return packet, packet.track_event


def _packets_of_slices(timeline: Timeline, track: Track, messages: Any) -> Iterator[Any]:
    kinds = messages.TrackEvent
    for span in timeline.slices(track):
        packet, event = _event(messages, span.start, span.lane, kinds.TYPE_SLICE_BEGIN)
        event.name = span.name
        event.categories.extend([track.kind, "critical"] if span.critical else [track.kind])
        for name, value in (("bytes", span.n_bytes), ("hop", span.hop), ("transfer", span.transfer)):
            note = event.debug_annotations.add()
            note.name = name
            if isinstance(value, float):
                note.double_value = value
            else:
                note.int_value = value
        if track.kind == "send" and timeline.has_arrow(span):
            event.flow_ids.append(span.transfer + 1)
        if track.kind == "receive" and timeline.has_arrow(span):
            event.terminating_flow_ids.append(span.transfer + 1)
        yield packet
        yield _event(messages, span.end, span.lane, kinds.TYPE_SLICE_END)[0]

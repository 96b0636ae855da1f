"""The formats: what each is called and holds, how it is read, and how it is written.

A reader or writer is a function that is named as text, so that only what is used is imported, or one of those below,
which adds what the format does not say itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import HOST
from commsim.core.remark import Remark
from commsim.core.units import count_text, format_bandwidth
from commsim.extensions import found_at

from .context import Context, Notes, SizedSchedule
from .network_formats import NETWORK, NETWORK_FORMATS, Format, Reader, Writer

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.training.task_graph import TaskGraph

    from .programs.operations import Programs

# A program is what every rank does, as GOAL and Chakra say it: from the one to the other nothing is made of it.
SCHEDULE, WORKLOAD, SYSTEM, PROGRAM = "schedule", "workload", "system", "program"
# Formats of networks that say which nodes forward, or whose hosts always do.
KEEP_FORWARDING = ("commsim", "graphml", "node-link", "astra-network")
FENCED = "fences are marked, and read back; to others a stage ends when a rank's own messages have left and arrived"


def function(place: str) -> Callable[..., Any]:
    """Import a function of commsim, such as ``formats.goal:read_goal_text``."""
    imported: Callable[..., Any] = found_at(f"commsim.{place}")
    return imported


def any_network(text: str) -> Network:
    """Load a network by name, or from a file of any format."""
    from commsim.prediction.inputs import load_network

    return load_network(text)


def _sizes(network: str | None) -> tuple[int, ...]:
    """Hosts along each dimension of the network that goes with a system layer."""
    from .astra.recognise import dimensions_of

    if network is None:
        raise InputError("a system layer needs its network: give --network")
    return tuple(d.n_hosts for d in dimensions_of(any_network(network))[0])


def _own_schedule(source: str, _: Context) -> tuple[SizedSchedule, Notes]:
    from commsim.core.files.schedule_file import own_size, pins_routes, read_schedule

    lost = "the placement and the routes that it was made for stay behind: other formats have neither"
    return SizedSchedule(read_schedule(source), size=own_size(source)), (lost,) if pins_routes(source) else ()


def _write_own_schedule(value: SizedSchedule, target: str, _: Context) -> Notes:
    from commsim.core.files.schedule_file import write_schedule

    if value.n_bytes is not None and not value.size:
        raise InputError(
            f"{value.schedule.name}: the sizes of its messages have no common divisor that is large enough, and "
            "a schedule's file gives sizes in chunks; write a size that is a multiple of the number of chunks, use "
            "commsim.formats in Python, or read it as a workload (.toml)"
        )
    write_schedule(value.schedule, target, size=value.size)
    notes = []
    if value.size:
        notes.append(f"messages have the sizes of the file when it is run with -b {value.size:.0f} -e {value.size:.0f}")
    if rates := sorted({format_bandwidth(1 / cost) for cost in value.gamma[value.gamma > 0]}):
        notes.append(
            f"computations after a receive are taken for reductions of what it brings, which the file does not say: "
            f"{', '.join(rates[:3])}{' and more' if rates[3:] else ''} as a rank's mean; --reduce-rate gives it to "
            "a run, which has none otherwise"
        )
    return tuple(notes)


def _read_msccl(source: str, _: Context) -> tuple[SizedSchedule, Notes]:
    from .msccl.to_schedule import schedule_of_algorithm
    from .msccl.xml import read_msccl

    algorithm, notes = read_msccl(source)
    schedule = schedule_of_algorithm(algorithm)
    proved = f"proved to be {schedule.operation} on {count_text(schedule.n_ranks, 'rank')}"
    custom = "'custom' has no postcondition, so only termination was checked"
    once = (
        "the runtime repeats it over pieces of the data, and here it runs once: what ranks pass on may be slower here"
    )
    return SizedSchedule(schedule), (*notes, custom if schedule.operation == "custom" else proved, once)


def _write_msccl(value: SizedSchedule, target: str, context: Context) -> Notes:
    from .msccl.from_schedule import algorithm_of
    from .msccl.xml import write_msccl

    algorithm, notes = algorithm_of(value.schedule, min_bytes=context.min_bytes, max_bytes=context.max_bytes)
    write_msccl(algorithm, target)
    return notes


def _read_system(source: str, context: Context) -> tuple[SizedSchedule, Notes]:
    from .astra.schedule_choice import schedule_of_system
    from .astra.system_layer import read_system

    schedule, notes = schedule_of_system(read_system(source), context.operation, _sizes(context.network))
    return SizedSchedule(schedule), notes


def _write_system(value: SizedSchedule, target: str, context: Context) -> Notes:
    from .astra.schedule_choice import schedule_of_system, system_of
    from .astra.system_layer import write_system

    sizes, schedule = _sizes(context.network), value.schedule
    if math.prod(sizes) != schedule.n_ranks:
        hosts = count_text(math.prod(sizes), "host")
        raise InputError(f"{schedule.name} has {count_text(schedule.n_ranks, 'rank')}, and {context.network} {hosts}")
    system, operation = system_of(schedule.name, sizes)
    back = schedule_of_system(system, operation, sizes)[0]
    write_system(system, target)
    if back == schedule:
        return ()
    return (f"the format has no field for the parameters of {schedule.name}; read back it is another {operation}",)


def _reads_programs(place: str) -> dict[str, Reader | str]:
    """Read what ranks do, as it is, as a schedule, and as a workload; `place` is the reader of a format."""
    from_programs = "formats.programs.operations:graph_of"

    def programs(source: str, _: Context) -> tuple[Programs, Notes]:
        value = function(place)(source)
        function(from_programs)(value)  # checks that sends and receives match, and that it ends
        return value, ()

    def schedule(source: str, context: Context) -> tuple[SizedSchedule, Notes]:
        from .programs.programs_to_schedule import schedule_of

        messages = schedule_of(function(place)(source), Path(source).stem, context.n_helpers)
        return SizedSchedule(messages.schedule, messages.n_bytes, messages.size, messages.gamma), messages.notes

    def workload(source: str, _: Context) -> tuple[TaskGraph, Notes]:
        return function(from_programs)(function(place)(source)), ()

    return {PROGRAM: programs, SCHEDULE: schedule, WORKLOAD: workload}


def _writes_programs(place: str) -> dict[str, Writer | str]:
    """Write what ranks do, and a schedule; `place` is the writer of a format."""

    def schedule(value: SizedSchedule, target: str, context: Context) -> Notes:
        programs, notes = _programs_of(value, context)
        function(place)(programs, target)
        return notes

    return {PROGRAM: place, SCHEDULE: schedule}


def _programs_of(value: SizedSchedule, context: Context) -> tuple[Programs, Notes]:
    from .programs.schedule_to_programs import programs_of
    from .programs.waits import find_reductions

    n_bytes = value.messages(context)
    gamma = context.gamma if context.gamma or value.gamma.size < 2 else value.gamma
    notes = []
    if (n_bytes != np.rint(n_bytes)).any():
        notes.append("messages are rounded to whole bytes; choose a size of whole bytes")
    if any(block.n_fences for block in value.schedule.blocks):
        notes.append(FENCED)
    if value.schedule.n_helpers:
        first, n = value.schedule.n_ranks, value.schedule.n_helpers
        notes.append(
            f"helpers are ranks {first}..{first + n - 1} of the file; --helpers {n} reads them as helpers again"
        )
    programs = programs_of(value.schedule, n_bytes, gamma)
    try:
        find_reductions(programs)
    except InputError:
        notes.append("sums of a rank's own data are computations; a file with them can only be read as a workload")
    return programs, tuple(notes)


def _write_chakra(value: SizedSchedule, target: str, context: Context) -> Notes:
    from .chakra.programs import write_programs

    programs, notes = _programs_of(value, context)
    write_programs(programs, target, value.schedule.name)
    return notes


def _write_flows(value: SizedSchedule, target: str, context: Context) -> Notes:
    from .htsim_flows import write_flows

    n = value.schedule.n_participants
    n_hosts = n if context.network is None else len(any_network(context.network).endpoints)
    return write_flows(value.schedule, value.messages(context), target, tuple(range(n)), n_hosts)


FORMATS = {
    "commsim": Format(
        "our own files", (".npz", ".toml", ".json"),
        {NETWORK: "core.files.store:read_network", SCHEDULE: _own_schedule, WORKLOAD: "training.task_graph:read_graph"},
        {NETWORK: "core.files.store:save", SCHEDULE: _write_own_schedule, WORKLOAD: "training.task_graph:write_graph"},
    ),
    "astra-network": Format(
        "ASTRA-sim's network, YAML", (".yml", ".yaml"),
        {NETWORK: "formats.astra.network:read_astra_network"}, {NETWORK: "formats.astra.network:write_astra_network"},
    ),
    "astra-system": Format(
        "ASTRA-sim's system layer, JSON", (),
        {SYSTEM: "formats.astra.system_layer:read_system", SCHEDULE: _read_system},
        {SYSTEM: "formats.astra.system_layer:write_system", SCHEDULE: _write_system},
    ),
    "msccl": Format(
        "MSCCL's algorithms, XML; not the JSON plans of MSCCL++", (".xml",),
        {SCHEDULE: _read_msccl}, {SCHEDULE: _write_msccl},
    ),
    "goal": Format(
        "GOAL of LogGOPSim and ATLAHS, text", (".goal",),
        _reads_programs("formats.goal:read_goal_text"), _writes_programs("formats.goal:write_goal_text"),
    ),
    "goal-binary": Format(
        "GOAL, binary", (".bin",),
        _reads_programs("formats.goal:read_goal_binary"), _writes_programs("formats.goal:write_goal_binary"),
    ),
    "chakra": Format(
        "Chakra traces, PREFIX.RANK.et", (".et",),
        {**_reads_programs("formats.chakra.programs:read_programs"),
         WORKLOAD: "formats.chakra.graphs:read_chakra_graph"},
        {PROGRAM: "formats.chakra.programs:write_programs", SCHEDULE: _write_chakra,
         WORKLOAD: "formats.chakra.graphs:write_chakra_graph"},
    ),
    **NETWORK_FORMATS,
    "htsim-flows": Format("htsim's matrix of connections", (".cm",), {}, {SCHEDULE: _write_flows}),
}  # fmt: skip


def read(name: str, kind: str, source: str, context: Context) -> tuple[Any, Notes]:
    """Read a file of a format as one of the kinds that it becomes; return it, and what should be said.

    Parameters
    ----------
    name : str
        Name in ``FORMATS``.
    kind : str
        What the file becomes.
    source : str
        The file.
    context : Context
        What else is given.
    """
    reader = FORMATS[name].reads[kind]
    value = reader(source, context) if callable(reader) else function(reader)(source)
    found, notes = value if isinstance(value, tuple) else (value, ())
    return found, tuple(dict.fromkeys((*notes, *notes_of(found))))


def notes_of(value: Any) -> Notes:
    """Return what a value says of itself that its file will not keep, such as which ports of a network are down."""
    return tuple(str(remark) for remark in getattr(value, "told", ()))


def as_told(notes: Notes, network: Network) -> tuple[Remark, ...]:
    """Return notes of a reader that a network does not say itself, as remarks on it."""
    return tuple(Remark("network-file", note, needed=True) for note in notes if note not in notes_of(network))


def write(name: str, kind: str, value: Any, target: str, context: Context) -> Notes:
    """Write a value as a file of a format; return what should be said.

    Parameters
    ----------
    name : str
        Name in ``FORMATS``.
    kind : str
        What the value is.
    value : object
        What to write.
    target : str
        The file.
    context : Context
        What else is given.
    """
    writer = FORMATS[name].writes[kind]
    notes = function(writer)(value, target) if isinstance(writer, str) else writer(value, target, context)
    lost = _lost_forwarding(value) if kind == NETWORK and name not in KEEP_FORWARDING else ()
    return (*(notes if isinstance(notes, tuple) else ()), *lost)


def _lost_forwarding(network: Network) -> Notes:
    """Say that hosts forward, of a network that is written without it."""
    ends = network.endpoints
    if not network.forwards[ends].any():
        return ()
    what = "hosts" if network.seat_kind == HOST else "GPUs"
    return (f"that {what} forward for others is lost: the format has no field for it",)

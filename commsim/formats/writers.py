"""How each format is written, as a table: what it is called and what is written -> function.

The graph of an iteration as the TOML or JSON that ``commsim workload`` reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import format_bandwidth, write_size, write_time
from commsim.files.network_file import node_link_of
from commsim.files.store import save
from commsim.files.whole_files import write_json, write_tree
from commsim.workload.task_graph import Graph

from .astra_choice import schedule_of_system, system_of, write_system
from .astra_network import write_astra_network
from .chakra.graphs import traces_of_graph
from .chakra.messages import GROUPS
from .chakra.programs import traces_of
from .chakra.traces import prefix_of, write_traces
from .convert import NETWORK, PROGRAM, SCHEDULE, SYSTEM, WORKLOAD, Given, Notes, Sized
from .goal import write_goal_binary, write_goal_text
from .graphml import write_graphml
from .htsim import write_flows, write_htsim
from .msccl.from_schedule import algorithm_of
from .msccl.xml import write_msccl
from .ns3 import write_ns3, write_simai
from .programs.operations import Programs
from .programs.schedule_to_programs import programs_of
from .programs.stages import find_reductions
from .readers import any_network, sizes_of


def write_graph(graph: Graph, path: str | Path) -> None:
    """Write a graph; a task whose name an earlier one has gets its number behind it."""
    names: dict[str, None] = {}
    tasks = []
    for i, task in enumerate(graph.tasks):
        name = task.name or "task"
        names[name if name not in names else f"{name}#{i}"] = None
    named = list(names)
    for name, task in zip(named, graph.tasks, strict=True):
        row: dict[str, Any] = {"name": name}
        if task.resources:
            row["resources"] = list(task.resources)
        if task.duration:
            row["duration"] = write_time(task.duration)
        if task.operation:
            row |= {"operation": task.operation, "group": list(task.group), "size": write_size(task.size)}
        if task.priority:
            row["priority"] = task.priority
        if task.after:
            row["after"] = [named[j] for j in task.after]
        tasks.append(row)
    write_tree(path, {"tasks": tasks})


Writer = Callable[[Any, str, Given], Notes]
FENCED = "fences are marked, and read back; to others a stage ends when a rank's own messages have left and arrived"


def _plain(write: Callable[[Any, str], object]) -> Writer:
    def call(value: Any, target: str, _: Given) -> Notes:
        notes = write(value, target)
        return notes if isinstance(notes, tuple) else ()

    return call


def _schedule(value: Sized, target: str, _: Given) -> Notes:
    if value.n_bytes is not None and not value.size:
        raise InputError(
            f"{value.schedule.name}: its messages have no common measure that is not too small, and a schedule's file "
            "says their sizes in chunks; use commsim.formats in Python, or read it as a workload (.toml)"
        )
    save(value.schedule, target)
    said = (
        (f"its messages have their sizes when it is run with -b {value.size:.0f} -e {value.size:.0f}",)
        if value.size
        else ()
    )
    rates = sorted({format_bandwidth(1 / cost) for cost in value.gamma[value.gamma > 0]})
    return said + ((f"ranks reduce {', '.join(rates[:3])}, which --reduce-rate says",) if rates else ())


def _programs(value: Sized, given: Given) -> tuple[Programs, Notes]:
    n_bytes = value.messages(given)
    gamma = given.gamma if given.gamma or value.gamma.size < 2 else value.gamma
    notes = []
    if (n_bytes != np.rint(n_bytes)).any():
        notes.append("messages are rounded to whole bytes; choose a size that is a multiple of the number of chunks")
    if any(block.n_fences for block in value.schedule.blocks):
        notes.append(FENCED)
    if value.schedule.n_helpers:
        first, n = value.schedule.n_ranks, value.schedule.n_helpers
        notes.append(
            f"helpers are ranks {first}..{first + n - 1} of the file; --helpers {n} reads them as helpers again"
        )
    programs = programs_of(value.schedule, n_bytes, gamma)
    if _has_local_sums(programs):
        notes.append("sums of what a rank holds itself are computations; with them the file is read as a workload only")
    return programs, tuple(notes)


def _has_local_sums(programs: Programs) -> bool:
    try:
        find_reductions(programs)
    except InputError:
        return True
    return False


def _goal(write: Callable[[Programs, str], None]) -> Writer:
    def call(value: Sized, target: str, given: Given) -> Notes:
        programs, notes = _programs(value, given)
        write(programs, target)
        return notes

    return call


def _program(write: Callable[[Programs, str], object]) -> Writer:
    def call(value: Programs, target: str, _: Given) -> Notes:
        write(value, target)
        return ()

    return call


def _chakra(value: Sized, target: str, given: Given) -> Notes:
    programs, notes = _programs(value, given)
    write_traces(traces_of(programs, value.schedule.name), prefix_of(target))
    return notes


def _chakra_workload(value: Graph, target: str, _: Given) -> Notes:
    traces, groups = traces_of_graph(value)
    prefix = prefix_of(target)
    write_traces(traces, prefix, groups)
    return (f"process groups are in {prefix}{GROUPS}",) if groups else ()


def _msccl(value: Sized, target: str, given: Given) -> Notes:
    algorithm, notes = algorithm_of(value.schedule, min_bytes=given.min_bytes, max_bytes=given.max_bytes)
    write_msccl(algorithm, target)
    return notes


def _system(value: Sized, target: str, given: Given) -> Notes:
    sizes, schedule = sizes_of(given.network), value.schedule
    if math.prod(sizes) != schedule.n_ranks:
        raise InputError(f"{schedule.name} has {schedule.n_ranks} ranks, and {given.network} {math.prod(sizes)} hosts")
    system, operation = system_of(schedule.name, sizes)
    back = schedule_of_system(system, operation, sizes)[0]
    write_system(system, target)
    if back == schedule:
        return ()
    return (f"the file cannot say the parameters of {schedule.name}; read back it is another {operation}",)


def _flows(value: Sized, target: str, given: Given) -> Notes:
    n = value.schedule.n_participants
    n_hosts = n if given.network is None else len(any_network(given.network).endpoints)
    return write_flows(value.schedule, value.messages(given), target, tuple(range(n)), n_hosts)


def _simai(value: Network, target: str, given: Given) -> Notes:
    write_simai(value, target, given.gpu_type)
    return ()


WRITERS: dict[tuple[str, str], Writer] = {
    ("commsim", NETWORK): _plain(save),
    ("commsim", SCHEDULE): _schedule,
    ("commsim", WORKLOAD): _plain(write_graph),
    ("astra-network", NETWORK): _plain(write_astra_network),
    ("astra-system", SYSTEM): _plain(write_system),
    ("astra-system", SCHEDULE): _system,
    ("msccl", SCHEDULE): _msccl,
    ("goal", PROGRAM): _program(write_goal_text),
    ("goal-binary", PROGRAM): _program(write_goal_binary),
    ("chakra", PROGRAM): _program(lambda value, target: write_traces(traces_of(value), prefix_of(target))),
    ("goal", SCHEDULE): _goal(write_goal_text),
    ("goal-binary", SCHEDULE): _goal(write_goal_binary),
    ("chakra", SCHEDULE): _chakra,
    ("chakra", WORKLOAD): _chakra_workload,
    ("node-link", NETWORK): _plain(lambda value, target: write_json(target, node_link_of(value))),
    ("graphml", NETWORK): _plain(write_graphml),
    ("ns3", NETWORK): _plain(write_ns3),
    ("simai", NETWORK): _simai,
    ("htsim", NETWORK): _plain(write_htsim),
    ("htsim-flows", SCHEDULE): _flows,
}

"""How each format is read, as a table: what it is called and what is wanted of it -> function."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.files.network_file import read_node_link
from commsim.files.store import read_network, read_schedule
from commsim.files.whole_files import read_json
from commsim.formats.nccl_topology import read_nccl_topology
from commsim.run.inputs import load_network
from commsim.workload.task_graph import read_graph

from .astra_choice import read_system, schedule_of_system
from .astra_network import read_astra_network
from .astra_recognise import dimensions_of
from .chakra.graphs import graph_of_traces, read_groups
from .chakra.messages import GROUPS
from .chakra.programs import programs_of_traces
from .chakra.traces import prefix_of, read_traces
from .convert import NETWORK, PROGRAM, SCHEDULE, SYSTEM, WORKLOAD, Given, Notes, Sized, format_of_source
from .goal import read_goal_binary, read_goal_text
from .graphml import read_graphml
from .msccl.to_schedule import schedule_of_algorithm
from .msccl.xml import read_msccl
from .ns3 import read_ns3, read_simai
from .programs.operations import Programs, graph_of
from .programs.programs_to_schedule import schedule_of

Reader = Callable[[str, Given], tuple[Any, Notes]]


def _plain(read: Callable[[str], Any]) -> Reader:
    return lambda source, _: (read(source), ())


def _sized(programs: Programs, source: str, given: Given) -> tuple[Sized, Notes]:
    messages = schedule_of(programs, Path(source).stem, given.n_helpers)
    return Sized(messages.schedule, messages.n_bytes, messages.size, messages.gamma), messages.notes


def _node_link(source: str, _: Given) -> tuple[Any, Notes]:
    tree = read_json(source)
    return read_node_link(tree if isinstance(tree, dict) else {}, source), ()


def _msccl(source: str, _: Given) -> tuple[Any, Notes]:
    algorithm, notes = read_msccl(source)
    schedule = schedule_of_algorithm(algorithm)
    proved = f"proved to be {schedule.operation} on {schedule.n_ranks} ranks"
    notes += (
        "'custom' promises nothing, so only that it ends was checked" if schedule.operation == "custom" else proved,
    )
    return Sized(schedule), notes


def _system(source: str, given: Given) -> tuple[Any, Notes]:
    schedule, notes = schedule_of_system(read_system(source), given.operation, sizes_of(given.network))
    return Sized(schedule), notes


def _workload_of_chakra(source: str, _: Given) -> tuple[Any, Notes]:
    groups = Path(f"{prefix_of(source)}{GROUPS}")
    notes = (f"process groups are those of {groups}",) if groups.exists() else ()
    return graph_of_traces(read_traces(source), read_groups(groups) if groups.exists() else None), notes


def _programs(read: Callable[[str], Programs]) -> Reader:
    """Read what ranks do, checking that their sends and receives match, and that it ends."""

    def call(source: str, _: Given) -> tuple[Any, Notes]:
        programs = read(source)
        graph_of(programs)
        return programs, ()

    return call


def _programs_of_chakra(source: str) -> Programs:
    return programs_of_traces(read_traces(source))


READERS: dict[tuple[str, str], Reader] = {
    ("commsim", NETWORK): _plain(read_network),
    ("commsim", SCHEDULE): lambda source, _: (Sized(read_schedule(source)), ()),
    ("commsim", WORKLOAD): _plain(read_graph),
    ("astra-network", NETWORK): _plain(read_astra_network),
    ("astra-system", SYSTEM): _plain(read_system),
    ("astra-system", SCHEDULE): _system,
    ("msccl", SCHEDULE): _msccl,
    ("goal", PROGRAM): _programs(read_goal_text),
    ("goal-binary", PROGRAM): _programs(read_goal_binary),
    ("chakra", PROGRAM): _programs(_programs_of_chakra),
    ("goal", SCHEDULE): lambda source, given: _sized(read_goal_text(source), source, given),
    ("goal", WORKLOAD): lambda source, _: (graph_of(read_goal_text(source)), ()),
    ("goal-binary", SCHEDULE): lambda source, given: _sized(read_goal_binary(source), source, given),
    ("goal-binary", WORKLOAD): lambda source, _: (graph_of(read_goal_binary(source)), ()),
    ("chakra", SCHEDULE): lambda source, given: _sized(_programs_of_chakra(source), source, given),
    ("chakra", WORKLOAD): _workload_of_chakra,
    ("node-link", NETWORK): _node_link,
    ("graphml", NETWORK): _plain(read_graphml),
    ("nccl-topology", NETWORK): _plain(read_nccl_topology),
    ("ns3", NETWORK): _plain(read_ns3),
    ("simai", NETWORK): _plain(read_simai),
}


def sizes_of(network: str | None) -> tuple[int, ...]:
    """Hosts along each dimension of the network that goes with a system layer.

    Raises
    ------
    InputError
        If none is given, or it is no product of dimensions.
    """
    if network is None:
        raise InputError("a system layer needs the network that it is for: say --network")
    return tuple(d.n_hosts for d in dimensions_of(any_network(network))[0])


def any_network(text: str) -> Network:
    """Load a network by name, or from a file of any format."""
    if Path(text).suffix in (".yml", ".yaml", ".graphml"):
        network: Network = READERS[format_of_source(text), NETWORK](text, Given())[0]
        return network
    return load_network(text)

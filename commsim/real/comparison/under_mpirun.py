"""What is run for real under mpirun: schedules for its processes, their network, and the prediction beside them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collectives import COLLECTIVES
from collectives.pieces import sized_parameters
from commsim.core.errors import InputError
from commsim.core.files.store import read_network
from commsim.core.spec import read_arguments
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import collective_entry, load_schedule
from commsim.prediction.plans.dense import Plan
from commsim.real.execute import for_processes
from commsim.real.library_rules import choice_of

if TYPE_CHECKING:
    from commsim.core.network import Network
    from commsim.core.registry import Entry
    from commsim.core.result import Result
    from commsim.core.schedule import Schedule
    from commsim.real.transport import RankTransport

USUAL = (
    "ring_all_reduce", "halving_doubling_all_reduce", "double_tree_all_reduce", "hierarchical_all_reduce",
    "ring_reduce_scatter", "ring_all_gather", "recursive_doubling_all_gather", "binomial_broadcast", "chain_broadcast",
    "direct_all_to_all", "pairwise_all_to_all",
)  # fmt: skip

# Operations whose choice by a library is run.
OF_LIBRARY = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all")


def build_schedules(specs: Sequence[str] | None, n_processes: int) -> list[Callable[[float], Schedule]]:
    """Return for each ``name:key=value,...``, or file, what builds it for `n_processes` and a size, helpers last.

    ``all`` is every registered collective that this leaves a rank.

    Raises
    ------
    InputError
        If a name or a parameter is wrong, helpers leave no process to a rank, or a file is for other processes.
    """
    schedules: list[Callable[[float], Schedule]] = []
    for spec in COLLECTIVES if specs == ["all"] else specs or USUAL:
        if spec.endswith(".npz"):
            schedules.append(_of_file(spec, n_processes))
            continue
        entry, raw = collective_entry(spec)
        parameters = read_arguments(entry.build, raw, names=("n_ranks", "groups", "tree"))
        schedule = for_processes(functools.partial(entry.build, **parameters), n_processes)
        if schedule is not None:
            schedules.append(functools.cache(functools.partial(_schedule_for_size, entry, parameters, schedule)))
        elif specs != ["all"]:
            raise InputError(f"{entry.name} on {n_processes} processes: the helpers leave no process for a rank")
    return schedules


def schedules_of_library(library: str, n_ranks: int) -> list[Callable[[float], Schedule]]:
    """Return for each operation what builds, for a size, the schedule that a library chooses by its published rules.

    Parameters
    ----------
    library : str
        A name of ``LIBRARIES`` in :mod:`commsim.real.library_rules`.
    n_ranks : int
        Ranks.

    Raises
    ------
    InputError
        If the library is unknown.
    """
    choose = choice_of(library, ())

    def build(operation: str, size: float) -> Schedule:
        (chosen,) = build_schedules([choose(operation, size, n_ranks, 0, library)], n_ranks)
        return chosen(size)

    return [functools.cache(functools.partial(build, operation)) for operation in OF_LIBRARY]


def _schedule_for_size(entry: Entry[Schedule], parameters: dict[str, Any], usual: Schedule, size: float) -> Schedule:
    """Return the schedule for a size, which is the usual one unless it is a pipeline that is cut by size."""
    sized = sized_parameters(entry, usual.n_ranks, size, parameters)
    return usual if sized is parameters else entry.build(usual.n_ranks, **sized)


def _of_file(path: str, n_processes: int) -> Callable[[float], Schedule]:
    schedule = load_schedule(path)
    if schedule.n_participants != n_processes:
        wanted = f"mpirun -n {schedule.n_participants}"
        raise InputError(f"{path} is for {schedule.n_participants} processes ({wanted}), and {n_processes} are running")
    return lambda _: schedule


def network_from(path: str, transport: RankTransport) -> Network:
    """Read a calibrated network.

    Raises
    ------
    InputError
        If the file holds no network, or one with too few hosts.
    """
    network = read_network(path)
    if len(network.hosts) < transport.size:
        raise InputError(f"{path} has {len(network.hosts)} hosts, and {transport.size} ranks are running")
    return network


def predictor(
    network: Callable[[], Network | None], *, any_order: bool = True
) -> Callable[[Schedule, float], Result | None]:
    """Return a function that predicts with the flow engine, and lays each schedule out only once.

    Parameters
    ----------
    network : callable
        Called at the first prediction; its value is None for a single rank, which sends no message.
    any_order : bool
        Whether messages of different channels to one rank may overtake each other: not where the executor waits for
        given messages only, and so begins them in the order of the program.
    """
    ready: dict[int, tuple[Schedule, Plan]] = {}  # with the schedule, whose number no other then gets
    known: list[Network | None] = []

    def predict(schedule: Schedule, n_bytes: float) -> Result | None:
        known[:] = known or [network()]
        if known[0] is None or not schedule.n_transfers:
            return None
        if id(schedule) not in ready:
            ready[id(schedule)] = schedule, prepare(schedule if any_order else on_one_channel(schedule), known[0])
        return ready[id(schedule)][1].predict(n_bytes)

    return predict


def on_one_channel(schedule: Schedule) -> Schedule:
    """Return a schedule whose messages between two ranks all follow each other in the order of the program."""
    blocks = []
    for block in schedule.blocks:
        body = block.body.copy()
        body["channel"] = 0
        blocks.append(dataclasses.replace(block, body=body))
    return dataclasses.replace(schedule, blocks=tuple(blocks), weights=np.empty(0))

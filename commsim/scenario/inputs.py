"""What people name on a command line, as values: a network, a placement on it, a schedule."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from collectives import COLLECTIVES, found_parameters
from collectives.pieces import sized_parameters
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.own_files import blamed, is_own_file, own_entry
from commsim.core.placement import STRATEGIES, Placement, is_strategy, place
from commsim.core.registry import Entry
from commsim.core.schedule import Schedule
from commsim.core.services import service
from commsim.core.spec import read_arguments, split_spec
from commsim.files.whole_files import SUFFIXES
from topologies import TOPOLOGIES

PACKED = "packed"  # the placement where none is given

ASTRA_SUFFIXES = (".yml", ".yaml")


def load_network(text: str) -> Network:
    """Build what `text` names, or read a .toml, .json or .npz file.

    Parameters
    ----------
    text : str
        What the user wrote: ``name:key=value,...`` of a topology, a preset or a host type (one machine by itself);
        ``MACHINE@FABRIC``, which puts machines on the hosts of a fabric (``machines=N`` of them); or a path, when it
        ends with .toml, .json or .npz, with .yml or .yaml (a network of ASTRA-sim), or with .xml or .txt for one
        machine; or
        ``FILE.py:function:key=value,...``, which is executed.

    Raises
    ------
    InputError
        If a name is unknown, an argument is wrong, or the file does not hold a network.
    """
    if Path(text).suffix in SUFFIXES and (Path(text).exists() or "@" not in text):
        from commsim.files.store import read_network

        return read_network(text)
    if Path(text).suffix in ASTRA_SUFFIXES and (Path(text).exists() or "@" not in text):
        network: Network = service("network of ASTRA-sim")(text)
        return network
    if is_own_file(text):
        own, given = own_entry(TOPOLOGIES, text)
        return own.build(**read_arguments(own.build, given))
    name = text.partition(":")[0].strip()
    if "@" not in text and name in TOPOLOGIES:
        from topologies.machine_count import with_count

        build = TOPOLOGIES[name].build
        return build(**read_arguments(build, with_count(name, split_spec(text)[1])))
    from commsim.core.machines.attach import attach_machines
    from topologies.hosts.load import build_preset, is_machine, load_machine
    from topologies.presets import PRESETS

    machine, at, fabric = text.partition("@")
    if at:
        from topologies.machine_count import fabric_of

        inside = load_machine(machine)
        joined = attach_machines(load_network(fabric_of(fabric, inside, machine)), inside)
        return dataclasses.replace(joined, name=text)
    if is_machine(text):
        return load_machine(text)
    name, raw = split_spec(text)
    if name in PRESETS:
        return build_preset(name, raw)
    if Path(text).exists() or "/" in name:
        raise InputError(
            f"{text}: a network file ends with {', '.join(SUFFIXES)}; `commsim topo import` makes one of other files"
        )
    build = TOPOLOGIES[name].build  # refuses what it does not know
    return build(**read_arguments(build, raw))


def load_placement(text: str, network: Network, n_participants: int, seed: int = 0, *, n_helpers: int = 0) -> Placement:
    """Place by a named strategy, or as a .toml, .json or .npz file says.

    Parameters
    ----------
    text : str
        A strategy, or a path when it ends with one of the three suffixes.
    network : Network
        Network to place on.
    n_participants : int
        How many ranks and helpers there are.
    seed : int
        Seed of the random strategy.
    n_helpers : int
        How many of the participants, the last ones, are helpers; as in :func:`commsim.core.placement.place`.

    Raises
    ------
    InputError
        If the strategy is unknown, the network has too few hosts, or the file does not place `n_participants`.
    """
    if Path(text).suffix not in SUFFIXES:
        if not is_strategy(text):
            files = f"a file that ends with {', '.join(SUFFIXES)}"
            raise InputError(f"unknown placement {text!r}; known: {', '.join(STRATEGIES)}, or {files}")
        return place(network, n_participants, text, seed, n_helpers=n_helpers)
    from commsim.files.store import read_placement

    placement = read_placement(text, network)
    if len(placement.nodes) != n_participants:
        raise InputError(f"{text}: places {len(placement.nodes)} participants, but there are {n_participants}")
    return placement


def load_schedule(text: str, n_ranks: int | None = None, size: float | None = None) -> Schedule:
    """Build ``name:key=value,...`` from the registered collectives, or read an .npz file.

    Parameters
    ----------
    text : str
        What the user wrote. It is a path when it ends with .npz.
    n_ranks : int, optional
        Needed for a collective that is named.
    size : float, optional, bytes
        Size of the operation, where it is known: a pipeline is then cut into the pieces that suit it.

    Raises
    ------
    InputError
        If the collective is unknown, an argument is wrong or missing, or the file does not hold a schedule.
    """
    if Path(text).suffix in SUFFIXES:
        from commsim.files.schedule_file import read_schedule

        return read_schedule(text)
    build, parameters = read_collective(text, n_ranks)
    if size is not None and n_ranks is not None:
        parameters = sized_parameters(collective_entry(text)[0], n_ranks, size, parameters)
    return build(n_ranks, **parameters)


def read_collective(text: str, n_ranks: int | None) -> tuple[Callable[..., Schedule], dict[str, Any]]:
    """Read ``name:key=value,...`` as the function that builds the collective, and its parameters.

    Raises
    ------
    InputError
        If the collective is unknown, an argument is wrong, or the number of ranks is missing.
    """
    entry, raw = collective_entry(text)
    if n_ranks is None:
        raise InputError(f"{entry.name} needs a number of ranks: --ranks N")
    from .systems import split_system

    raw, _ = split_system(entry, raw)
    return entry.build, read_arguments(entry.build, raw, given=found_parameters(entry.metadata["needs"]))


def check_collective(text: str) -> None:
    """Read ``name:key=value,...`` of a collective, its data and its switch system, as far as that needs no network.

    Raises
    ------
    InputError
        If the collective is unknown or an argument is wrong.
    """
    from commsim.scenario.plans.sparse_data import split_data

    from .systems import split_system

    entry, raw = collective_entry(text)
    raw, _ = split_system(entry, split_data(entry, raw)[0])
    read_arguments(entry.build, raw, given=found_parameters(entry.metadata["needs"]))


def collective_entry(text: str) -> tuple[Entry[Schedule], dict[str, str]]:
    """Look up ``name:key=value,...``, or execute ``FILE.py:function:key=value,...``; the arguments stay text.

    What a file's function builds is checked whenever it is built, as ``commsim schedule check`` does.

    Raises
    ------
    InputError
        If the collective is unknown, or the file does not register it.
    """
    if not is_own_file(text):
        name, raw = split_spec(text)
        return COLLECTIVES[name], raw
    entry, raw = own_entry(COLLECTIVES, text)
    if next(iter(entry.parameters), None) != "n_ranks":
        raise InputError(f"{text}: {entry.name} must take n_ranks first, got ({', '.join(entry.parameters)})")
    return dataclasses.replace(entry, build=_proved(entry.build)), raw


def _proved(build: Callable[..., Schedule]) -> Callable[..., Schedule]:
    """Return a function that builds the same schedule, but refuses one that does not keep its promise."""
    from commsim.core.checking.check_compact import check_builder

    @functools.wraps(build)
    def call(n_ranks: int, **parameters: Any) -> Schedule:
        with blamed(Path(inspect.getfile(inspect.unwrap(build)))):
            check_builder(build, n_ranks, **parameters)
            schedule = build(n_ranks, **parameters)
            if schedule.n_ranks != n_ranks:
                raise InputError(f"{build.__name__} was called for {n_ranks} ranks and made {schedule.n_ranks}")
        return schedule

    return call

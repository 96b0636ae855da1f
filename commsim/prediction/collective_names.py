"""Which collective a text means: a registered one, a file's, a library's; and what runs where none is named."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from collectives import COLLECTIVES, found_parameters
from commsim.core.errors import InputError, Reason, unknown_name
from commsim.core.machines.hardware import maker_of, read_hardware
from commsim.core.network import Network
from commsim.core.network_queries import is_torus
from commsim.core.operations import OPERATIONS
from commsim.core.operations import operation as known_operation
from commsim.core.registry import Entry, usual_spelling
from commsim.core.remark import Remark
from commsim.core.schedule import Schedule
from commsim.core.spec import SUFFIXES, is_own_file, read_arguments, split_spec, with_parameter
from commsim.core.units import write_bandwidth
from commsim.extensions import house
from topologies import TOPOLOGIES

# By who makes the GPUs, what their library and its collectives are called.
LIBRARIES = {"nvidia": "nccl", "amd": "rccl"}
# Libraries that choose a textbook's algorithm by size and ranks, as people write them, and the names of their rules.
CHOOSING = {
    "mpi": "mpich", "mpich": "mpich", "openmpi": "open-mpi", "ompi": "open-mpi", "openmpi4.0": "open-mpi-4.0",
    "gloo": "gloo",
}  # fmt: skip
_BETWEEN = dict.fromkeys(map(ord, "-_ "))
# How what they choose is called: mpich_all_reduce.
OF_CHOOSING = tuple(f"{library}_" for library in dict.fromkeys(CHOOSING.values()))
# Likeness from which on an unknown name is one of a library: three letters of four, as of ncll.
ALIKE = 0.75
OPERATION = "all_reduce"
# Why others than theirs are not ranked.
OF_LIBRARY = "a library's, for GPUs that the network does not have"
# What runs where no library is modelled: of each operation the collective that suits large sizes.
USUAL = {
    "all_reduce": "ring_all_reduce", "all_gather": "ring_all_gather", "reduce_scatter": "ring_reduce_scatter",
    "broadcast": "chain_broadcast", "reduce": "chain_reduce", "all_to_all": "pairwise_all_to_all",
    "send_recv": "ring_send_recv", "gather": "direct_gather", "scatter": "direct_scatter",
    "barrier": "dissemination_barrier",
}  # fmt: skip


def usual_collective(
    network: Network, operation: str = OPERATION, *, textbook: bool = False
) -> tuple[str, Remark | None]:
    """Return what runs on a network unless an algorithm is named, and what to say of it; None if it is a textbook's.

    Parameters
    ----------
    network : Network
        Network that it runs on.
    operation : str
        Name of the operation.
    textbook : bool
        Whether the library of the GPUs is left aside: groups at once, compressed gradients and known errors are of
        textbook algorithms.

    Raises
    ------
    InputError
        If the operation has no usual algorithm.
    """
    known_operation(operation)
    library = "" if textbook else LIBRARIES.get(maker_of(network.hardware), "")
    spec = f"{library}_{operation}"
    if library and spec in COLLECTIVES:
        text = f"{spec}: what {library.upper()} runs on these GPUs; another algorithm can be named"
        return spec, Remark("usual", text)
    if operation not in USUAL:
        raise InputError(f"{operation} has no usual algorithm here; name one")
    usual = "torus_all_reduce" if operation == OPERATION and not textbook and is_torus(network) else USUAL[operation]
    if library:
        return usual, Remark("usual", f"{usual}: {library.upper()} is not modelled for {operation}", needed=True)
    if textbook or not (network.machine > 0).any() or f"nccl_{operation}" not in COLLECTIVES:
        return usual, None
    text = f"{usual}, not NCCL's, since the machines do not name their GPUs (gpu=hopper does)"
    more = "over one NIC of each machine at a time; --collective nccl names NCCL's too"
    return usual, Remark("gpus-unknown", text, needed=True, details=more)


def with_gpus(network: Network) -> str:
    """Return how to say whose GPUs a network has: of plain hosts a line that names the same network with a GPU each."""
    facts = "gpu=hopper,cpu=intel,net=infiniband"
    host, at, fabric = network.name.rpartition("@")
    if at:
        return f"{with_parameter(host, facts)}@{fabric}"
    ports = np.isin(network.src, network.hosts)
    if fabric.partition(":")[0] not in TOPOLOGIES or not ports.any() or network.forwards[network.hosts].any():
        return f"hardware: {facts}"
    nic = write_bandwidth(float(network.bandwidth[ports].max()))
    return f"--topology nvswitch_host:n_gpus=1,nic={nic},{facts}@{fabric} does, of one GPU each"


def spelled_out(spec: str, operation: str | None) -> str:
    """Return a collective by its whole name: ``nccl:version=2.27`` and ``ring`` are spelled out by the operation.

    Parameters
    ----------
    spec : str
        ``name:key=value,...``; any that is no alias of a library, no name or spelling of :mod:`.names_of_papers`, and
        no beginning of a name that ends with the operation, is returned as it is.
    operation : str or None
        Name of the operation; all-reduce by default.

    Raises
    ------
    InputError
        If the library has no such operation.
    """
    name, colon, rest = spec.partition(":")
    library = CHOOSING.get(name.lower().translate(_BETWEEN), name.strip())
    if library not in (*LIBRARIES.values(), *CHOOSING.values()):
        if name.strip() in COLLECTIVES:
            return spec
        from commsim.prediction.names_of_papers import known_as

        if (known := known_as(name.strip())) != name.strip():
            return f"{known}{(',' if ':' in known else colon) if rest else ''}{rest}"
        if (named := f"{name.strip()}_{operation or OPERATION}") in COLLECTIVES:
            return f"{named}{colon}{rest}"
        close = difflib.get_close_matches(name.strip().lower(), LIBRARIES.values(), n=1, cutoff=ALIKE)
        if close:
            raise COLLECTIVES.unknown(name.strip(), close)
        return spec
    parameters = rest.split(",")
    names = [part.partition("=")[2].strip() for part in parameters if part.partition("=")[0].strip() == "operation"]
    if len({*names, *([operation] if operation else ())}) > 1:
        raise InputError(f"{spec!r} names another operation than {operation or names[0]}: give only one")
    if names:
        operation = known_operation(names[0]).name
        rest = ",".join(part for part in parameters if part.partition("=")[0].strip() != "operation")
        colon = colon if rest else ""
    named = f"{library}_{operation or OPERATION}"
    if named not in COLLECTIVES and library in LIBRARIES.values():
        known = ", ".join(name.removeprefix(f"{library}_") for name in COLLECTIVES if name.startswith(f"{library}_"))
        raise InputError(f"{library.upper()} has no {operation}; it has {known}")
    return f"{named}{colon}{rest}"


def _choosing(name: str) -> str:
    """Return the name of the rules of a library that chooses by size, however its name is written; else nothing."""
    return CHOOSING.get(name.lower().translate(_BETWEEN), "")


def chosen_by_library(spec: str) -> tuple[str, str] | None:
    """Return library and operation of what it chooses at each size, such as ``open-mpi_all_reduce``; else None."""
    library, _, operation = spec.partition(":")[0].strip().partition("_")
    if library in CHOOSING.values() and operation in OPERATIONS:
        return library, operation
    return None


def require_operation(spec: str | Schedule, operation: str) -> None:
    """Refuse a collective of another operation.

    Raises
    ------
    InputError
        Naming what it implements, and what would have been right.
    """
    known_operation(operation)
    name = spec if isinstance(spec, str) else spec.name
    if isinstance(spec, Schedule):
        implements = spec.operation
    elif spec.endswith(".npz"):
        implements = load_schedule(spec).operation
    elif chosen := chosen_by_library(spec):
        implements = chosen[1]
    else:
        _require_known(spec, operation)
        implements = collective_entry(spec)[0].metadata["operation"]
    if implements != operation:
        raise InputError(f"{name} implements {implements}, not {operation}")


def why_not_here(metadata: Mapping[str, Any], name: str, network: Network) -> Reason:
    """Return why a collective is not ranked on a network, or "": a library's is ranked only on GPUs of its maker."""
    library = name.partition("_")[0]
    if library == "gloo":
        return Reason("the ring, with gloo's order of sums")
    if "nccl" in metadata["needs"] and LIBRARIES.get(maker_of(network.hardware), "") != library:
        return Reason(OF_LIBRARY, "of-library")
    return Reason("")


def check_library(name: str, network: Network) -> None:
    """Refuse a library's collective on GPUs of another maker, which it does not run on.

    Raises
    ------
    InputError
        If the network's GPUs have another library.
    """
    maker, (library, _, operation) = maker_of(network.hardware), name.partition("_")
    if maker and LIBRARIES.get(maker, library) != library:
        gpu = read_hardware(network.hardware)["gpu"]
        raise InputError(
            f"{library.upper()} does not run on {network.name}'s GPUs ({gpu}): take {LIBRARIES[maker]}_{operation}"
        )


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
        from commsim.core.files.schedule_file import read_schedule

        return read_schedule(text)
    build, parameters = read_collective(text, n_ranks)
    if size is not None and n_ranks is not None:
        from collectives.pieces import sized_parameters

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
    raw = _without_system(entry, raw)
    return entry.build, read_arguments(entry.build, raw, names=found_parameters(entry.metadata["needs"]))


def check_collective(text: str) -> None:
    """Read ``name:key=value,...`` of a collective, its data and its switch system, as far as that needs no network.

    Raises
    ------
    InputError
        If the collective is unknown or an argument is wrong.
    """
    entry, raw = collective_entry(text)
    if entry.metadata.get("sparse") is not None:
        raw, _ = house().services["arguments of data"](entry, raw)
    read_arguments(entry.build, _without_system(entry, raw), names=found_parameters(entry.metadata["needs"]))


def _without_system(entry: Entry[Schedule], raw: dict[str, str]) -> dict[str, str]:
    """Return the arguments of the builder, without those of a switch system."""
    if not entry.metadata["systems"]:
        return raw
    rest: dict[str, str] = house().services["arguments of systems"](entry, raw)[0]
    return rest


def collective_entry(text: str) -> tuple[Entry[Schedule], dict[str, str]]:
    """Look up ``name:key=value,...``, or execute ``FILE.py:function:key=value,...``; the arguments stay text.

    The name of a library alone is that of its all-reduce.
    What a file's function builds is checked whenever it is built, as ``commsim schedule check`` does.

    Raises
    ------
    InputError
        If the collective is unknown, or the file does not register it.
    """
    if not is_own_file(text):
        name, raw = split_spec(spelled_out(text, None))
        if name not in COLLECTIVES:
            if Path(name).suffix in house().schedules:
                raise InputError(
                    f"{name} is a file of another tool; convert it with `commsim schedule import {name} -o FILE.npz`"
                )
            _refuse_operation(name)
        return COLLECTIVES[name], raw
    from commsim.core.files.own_files import own_entry

    entry, raw = own_entry(COLLECTIVES, text)
    if next(iter(entry.parameters), None) != "n_ranks":
        raise InputError(f"{text}: {entry.name} must take n_ranks first, got ({', '.join(entry.parameters)})")
    return dataclasses.replace(entry, build=_proved(entry.build)), raw


def _require_known(spec: str, operation: str) -> None:
    """Refuse a name that is no collective's, with those of the operation that are like it.

    Raises
    ------
    InputError
        If it is unknown; of files nothing is checked.
    """
    if is_own_file(spec) or (name := split_spec(spec)[0]) in COLLECTIVES or Path(name).suffix:
        return
    _refuse_operation(name)
    known = [one for one in COLLECTIVES if COLLECTIVES[one].metadata["operation"] == operation]
    raise unknown_name(f"algorithm of {operation}", name, known, "commsim schedule list")


def _refuse_operation(name: str) -> None:
    """Refuse the name of an operation where a collective is wanted, however its words are joined."""
    if _choosing(name) or chosen_by_library(name):
        raise InputError(
            f"{name!r} chooses an algorithm by size, which `commsim run` and sweeps follow; here name one, such as "
            f"{USUAL[OPERATION]}"
        )
    operation = usual_spelling(name.replace(" ", "_"), OPERATIONS)
    if operation in OPERATIONS:
        usual = {**USUAL, "all_to_all": "direct_all_to_all"}.get(operation, "")
        such = f", such as {usual}," if usual else ""
        raise InputError(f"{name!r} is an operation: name an algorithm{such} or give --operation {operation}")


def _proved(build: Callable[..., Schedule]) -> Callable[..., Schedule]:
    """Return a function that builds the same schedule, but refuses one that does not keep its promise."""
    from commsim.core.checking.check_compact import check_builder
    from commsim.core.files.own_files import blamed

    @functools.wraps(build)
    def call(n_ranks: int, **parameters: Any) -> Schedule:
        with blamed(Path(inspect.getfile(inspect.unwrap(build)))):
            check_builder(build, n_ranks, **parameters)
            schedule = build(n_ranks, **parameters)
            if schedule.n_ranks != n_ranks:
                raise InputError(f"{build.__name__} was called for {n_ranks} ranks and returned {schedule.n_ranks}")
        return schedule

    return call

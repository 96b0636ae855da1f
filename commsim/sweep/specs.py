"""The parameters of a point as the texts that the command line takes: ``name:key=value,...``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.own_file import is_own_file
from commsim.core.spec import read_arguments, split_spec

from .axis import Axis
from .config import Case, Config
from .engine_options import KNOWN as ENGINE_KINDS
from .quantity import write_value

NOT_IN_SPEC = {"topology": ("name", "routing"), "collective": ("name", "ranks", "size")}


def network_spec(parameters: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """Text of the topology of a point."""
    return _spec("topology", parameters, kinds)


def collective_spec(parameters: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """Text of the collective of a point."""
    return _spec("collective", parameters, kinds)


def _spec(table: str, parameters: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    name = parameters.get(f"{table}.name")
    if not isinstance(name, str):
        raise InputError(f"{table}.name is missing: the name of a {table}, such as "
                         f"{'fat_tree' if table == 'topology' else 'ring_all_reduce'}")  # fmt: skip
    written = ",".join(
        f"{key.partition('.')[2]}={write_value(parameters[key], kind)}"
        for key, kind in kinds.items()  # in the order of the file, so that the same point has the same text everywhere
        if key in parameters and key.startswith(f"{table}.") and key.partition(".")[2] not in NOT_IN_SPEC[table]
    )
    fabric = name.rpartition("@")[2]  # arguments of MACHINE@FABRIC:key=value belong to the fabric
    return name if not written else f"{name}{',' if ':' in fabric else ':'}{written}"


KINDS = {
    **{f"engine.{key}": kind for key, kind in ENGINE_KINDS.items()},
    "topology.name": "text",
    "topology.routing": "text",
    "collective.name": "text",
    "collective.ranks": "whole",
    "collective.size": "size",
    "placement.strategy": "text",
}
"""Parameters that are not arguments of a topology or a collective, and the kind of each."""

COUNTS = ("collective.ranks", "engine.iterations", "workload.workers", "workload.iterations")


def check_specs(config: Config) -> None:
    """Refuse a sweep that names what does not exist, before anything runs: parameters, collectives, topologies.

    Raises
    ------
    InputError
        Naming the parameter.
    """
    for number, case in enumerate(config.cases, 1):
        try:
            _check_case(case, config)
        except InputError as error:
            where = f"case {number}: " if len(config.cases) > 1 else ""
            raise InputError(f"{config.path}: {where}{error}") from None


def _check_case(case: Case, config: Config) -> None:
    from .training import KINDS as WORKLOAD_KINDS

    names = {axis.name: axis for axis in case.axes}
    for name, axis in names.items():
        table = name.partition(".")[0]
        known = {**KINDS, **WORKLOAD_KINDS}
        if name not in known and table not in ("topology", "collective"):
            inside = [key for key in known if key.startswith(f"{table}.")]
            close = difflib.get_close_matches(name, inside, n=1)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InputError(f"there is no parameter {name}; {hint}known: {', '.join(inside)}")
        wanted = known.get(name)
        if wanted is not None and axis.kind not in (wanted, "whole" if wanted == "number" else wanted):
            raise InputError(f"{name} must be {_called(wanted)}, got {axis.values[0]!r}")
        if name in COUNTS and min(axis.values) < 1:
            raise InputError(f"{name} must be 1 or more, got {min(axis.values)}")
    _check_words(names)
    first = {name: axis.values[0] for name, axis in names.items()}
    if any(name.startswith("workload.") for name in names):
        from .training import check_workload

        check_workload(first)
    for table in ("topology", "collective"):
        if table == "topology" or not config.is_workload:
            for name in names[f"{table}.name"].values if f"{table}.name" in names else (None,):
                _check_spec(table, {**first, f"{table}.name": name}, config)


def _check_words(axes: Mapping[str, Axis]) -> None:
    """Refuse unknown engines, routings and placements."""
    from commsim.core.formats.store import SUFFIXES
    from commsim.core.network import ROUTINGS
    from commsim.core.placement import STRATEGIES
    from commsim.run import ENGINES

    words = {"engine.name": (*ENGINES, "auto"), "topology.routing": ROUTINGS, "placement.strategy": STRATEGIES}
    for name, known in words.items():
        for value in axes[name].values if name in axes else ():
            if value not in known and not (name == "placement.strategy" and Path(value).suffix in SUFFIXES):
                more = f", or a file that ends with {', '.join(SUFFIXES)}" if name == "placement.strategy" else ""
                raise InputError(f"{name} must be one of {', '.join(known)}{more}, got {value!r}")


def _check_spec(table: str, parameters: Mapping[str, Any], config: Config) -> None:
    """Read a spec as far as that costs nothing."""
    if table == "topology" and config.is_workload and parameters.get("topology.name") is None:
        return
    text = _spec(table, parameters, config.kinds)
    if is_own_file(text) or "@" in text:
        return  # what these take is known when they are built
    name, raw = split_spec(text)
    if table == "collective":
        from commsim.inputs import collective_entry
        from commsim.run import GIVEN
        from commsim.sparse_data import split_data

        entry = collective_entry(text)[0]
        read_arguments(entry.build, split_data(entry, raw)[0], given=GIVEN)
        return
    from commsim.core.formats.store import SUFFIXES
    from topologies import TOPOLOGIES
    from topologies.hosts.load import is_machine
    from topologies.presets import PRESETS

    if Path(text).suffix not in SUFFIXES and name not in PRESETS and not is_machine(text):
        read_arguments(TOPOLOGIES[name].build, raw)


def _called(kind: str) -> str:
    examples = {"bandwidth": "a rate such as 400Gbps", "time": "a time such as 1.5us", "size": "a size such as 64MiB",
                "whole": "a whole number", "number": "a number", "truth": "true or false", "text": "text"}  # fmt: skip
    return examples[kind]

"""Parameters of a point as texts of the command line, ``name:key=value,...``, and its ``[engine]`` as options."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.spec import derived, is_own_file, read_arguments, split_spec
from commsim.packets.packet_options import ALL
from commsim.prediction.options import COSTS

from .axis import Axis
from .config import SweepCase, SweepConfig
from .quantities import write_value

WIRE = {"payload": "size", "header": "size"}
PLAIN = {"name": "text", "method": "text", "start_jitter": "time", "iterations": "whole",
         "hashes": "whole", "tolerance": "number"}  # fmt: skip
PACKETS = {key: kind for key, kind in ALL.items() if kind != "list"}
# Keys of ``[engine]``, and the kind of each.
KNOWN = {**PLAIN, **COSTS, **WIRE, **PACKETS}
# Keys of ``[topology]`` and ``[collective]`` that are no arguments of a topology or a collective.
FAULTS = {"topology.fail": "fail", "topology.scale": "scale"}
IN_TIME = {"flap": "text", "detection": "time", "rto": "time"}

# Parameters that change a prediction, and nothing that is planned before it.
LATE = frozenset((
    "collective.size", *(f"engine.{key}" for key in KNOWN if key not in COSTS), *(f"topology.{key}" for key in IN_TIME),
))  # fmt: skip
# Keys that are no parameters of a table, and what sets them.
_ELSEWHERE = {"seed": "seeds are drawn by repeats and seed of [sweep]", "routing": "did you mean topology.routing?",
              "fail": "did you mean topology.fail?", "scale": "did you mean topology.scale?",
              "flap": "did you mean topology.flap?"}  # fmt: skip
NOT_IN_SPEC = {
    "topology": ("name", "routing", "fail", "scale", *IN_TIME),
    "collective": ("name", "ranks", "size", "compressor"),
}

# Parameters that are not arguments of a topology or a collective, and the kind of each.
KINDS = {
    **{f"engine.{key}": kind for key, kind in KNOWN.items()},
    "topology.name": "text",
    "topology.routing": "text",
    "topology.fail": "text",
    "topology.scale": "text",
    **{f"topology.{key}": kind for key, kind in IN_TIME.items()},
    "collective.name": "text",
    "collective.compressor": "text",
    "collective.ranks": "whole",
    "collective.size": "size",
    "placement.strategy": "text",
}
COUNTS = ("collective.ranks", "engine.iterations", "engine.hashes", "workload.workers", "workload.ranks",
          "workload.iterations")  # fmt: skip


def network_costs_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the costs of messages, as :func:`commsim.prediction.read.network_of` takes them."""
    return {key: parameters.get(f"engine.{key}") for key in COSTS}


def faults_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the faults of the network; a text has several, with ``;`` between them."""
    return {key: _several(parameters.get(name)) for name, key in FAULTS.items()}


def _several(text: Any) -> tuple[str, ...]:
    """Split what a text names."""
    return tuple(part.strip() for part in str(text or "").split(";") if part.strip())


def scenario_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`commsim.prediction.read.scenario_of` takes beside collective, network and seed.

    Raises
    ------
    InputError
        If an option belongs to another engine.
    """
    options = {key: parameters[f"engine.{key}"] for key in KNOWN if f"engine.{key}" in parameters and key not in COSTS}
    engine = options.pop("name", "flow")
    packets = {key: options.pop(key) for key in PACKETS if key in options}
    if (engine == "auto") != ("tolerance" in options):
        raise InputError('engine.tolerance, such as 0.1, and engine.name = "auto" need each other')
    if "payload" in options and "header" not in options:
        raise InputError("engine.payload has no effect without engine.header")
    if packets and engine != "packet":
        raise InputError(f"engine.{next(iter(packets))} belongs to the packet engine, got {engine}")
    return {
        "engine": engine, "packets": packets, "n_ranks": parameters.get("collective.ranks"),
        "placement": parameters.get("placement.strategy"), "routing": parameters.get("topology.routing"),
        "compressor": parameters.get("collective.compressor"), "flap": _several(parameters.get("topology.flap")),
        **{key: parameters.get(f"topology.{key}") for key in ("detection", "rto")}, **options,
    }  # fmt: skip


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
    return name if not written else derived(name, f"{name}{',' if ':' in fabric else ':'}{written}")


def check_specs(config: SweepConfig) -> None:
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


def _hint(name: str, inside: list[str], known: Iterable[str]) -> str:
    """Return what was probably meant: the same key in another table, or a similar one in this."""
    key = name.partition(".")[2]
    if key in _ELSEWHERE:
        return f"{_ELSEWHERE[key]}{'' if _ELSEWHERE[key].endswith('?') else ';'} "
    same = [other for other in known if other.partition(".")[2] == key]
    close = same or difflib.get_close_matches(name, inside, n=1)
    return f"did you mean {close[0]}? " if close else ""


def _check_case(case: SweepCase, config: SweepConfig) -> None:
    from .compute import KINDS as WORKLOAD_KINDS

    names = {axis.name: axis for axis in case.axes}
    for name, axis in names.items():
        table = name.partition(".")[0]
        known = {**KINDS, **WORKLOAD_KINDS}
        if name not in known and table not in ("topology", "collective"):
            inside = [key for key in known if key.startswith(f"{table}.")]
            hint = _hint(name, inside, known)
            raise InputError(f"no parameter {name}; {hint}known: {', '.join(inside)}")
        wanted = known.get(name)
        if wanted is not None and axis.kind not in (wanted, "whole" if wanted == "number" else wanted):
            raise InputError(f"{name} must be {_called(wanted)}, got {axis.values[0]!r}")
        if name in COUNTS and min(axis.values) < 1:
            raise InputError(f"{name} must be 1 or more, got {min(axis.values)}")
    _check_words(names)
    first = {name: axis.values[0] for name, axis in names.items()}
    if any(name.startswith("workload.") for name in names):
        from .compute import check_workload

        check_workload(first)
    for table in ("topology", "collective"):
        if table == "topology" or not config.is_workload:
            for name in names[f"{table}.name"].values if f"{table}.name" in names else (None,):
                _check_spec(table, {**first, f"{table}.name": name}, config)


def _check_words(axes: Mapping[str, Axis]) -> None:
    """Refuse unknown engines, routings and placements."""
    from commsim.core.files.store import SUFFIXES
    from commsim.core.network import ROUTINGS
    from commsim.core.placement import STRATEGIES, is_strategy
    from commsim.prediction.scenario import ENGINES

    words: dict[str, Iterable[str]] = {
        "engine.name": (*ENGINES, "auto"),
        "topology.routing": ROUTINGS,
        "placement.strategy": STRATEGIES,
    }
    for name, known in words.items():
        for value in axes[name].values if name in axes else ():
            if name == "placement.strategy" and (Path(value).suffix in SUFFIXES or is_strategy(value)):
                continue
            if value not in known:
                more = f", or a file that ends with {', '.join(SUFFIXES)}" if name == "placement.strategy" else ""
                raise InputError(f"{name} must be one of {', '.join(known)}{more}, got {value!r}")


def _check_spec(table: str, parameters: Mapping[str, Any], config: SweepConfig) -> None:
    """Check a spec as far as that costs no time."""
    if table == "topology" and config.is_workload and parameters.get("topology.name") is None:
        return
    text = _spec(table, parameters, config.kinds)
    if is_own_file(text) or "@" in text:
        return  # what these take is known when they are built
    name, raw = split_spec(text)
    if table == "collective":
        from commsim.prediction.collective_names import check_collective
        from commsim.ranking.synthesis.ready import operation_of

        if operation_of(text) is None:
            check_collective(text)
        return
    from commsim.core.files.store import SUFFIXES
    from topologies import TOPOLOGIES
    from topologies.hosts.load import is_machine
    from topologies.presets import PRESETS

    if Path(text).suffix not in SUFFIXES and name not in PRESETS and not is_machine(text):
        from topologies.machine_count import with_count

        read_arguments(TOPOLOGIES[name].build, with_count(name, raw) if name in TOPOLOGIES else raw)


def _called(kind: str) -> str:
    examples = {"bandwidth": "a rate such as 400Gbps", "time": "a time such as 1.5us", "size": "a size such as 64MiB",
                "whole": "a whole number", "number": "a number", "truth": "true or false", "text": "text"}  # fmt: skip
    return examples[kind]

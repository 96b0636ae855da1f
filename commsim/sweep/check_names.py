"""Whether a sweep names what there is: parameters, collectives, topologies, engines, routings and placements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError, alike, did_you_mean
from commsim.core.spec import is_own_file, read_arguments, split_spec

from .axis import Axis
from .compute import KINDS as WORKLOAD_KINDS
from .compute import check_workload
from .config import SweepCase, SweepConfig
from .point_parameters import KINDS, spec_of
from .quantities import UNITS, write_value

# Keys that are no parameters of a table, and what sets them.
_ELSEWHERE = {"seed": "seeds are drawn by repeats and seed of [sweep]", "routing": "did you mean topology.routing?",
              "fail": "did you mean topology.fail?", "scale": "did you mean topology.scale?",
              "flap": "did you mean topology.flap?"}  # fmt: skip
COUNTS = ("collective.ranks", "engine.iterations", "engine.hashes", "workload.workers", "workload.ranks",
          "workload.iterations")  # fmt: skip


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
    return did_you_mean(same[:1] or alike(name, inside))


def _check_case(case: SweepCase, config: SweepConfig) -> None:
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
            raise InputError(f"{name} must be {_called(wanted)}, got {_given(axis)!r}")
        if name in COUNTS and min(axis.values) < 1:
            raise InputError(f"{name} must be 1 or more, got {min(axis.values)}")
    _check_words(names)
    first = {name: axis.values[0] for name, axis in names.items()}
    if any(name.startswith("workload.") for name in names):
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
    text = spec_of(table, parameters, config.kinds)
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


def _given(axis: Axis) -> Any:
    """Return the first value of an axis with its unit, as a file has it."""
    return write_value(axis.values[0], axis.kind) if axis.kind in UNITS else axis.values[0]


def _called(kind: str) -> str:
    examples = {"bandwidth": "a rate such as 400Gbps", "time": "a time such as 1.5us", "size": "a size such as 64MiB",
                "whole": "a whole number", "number": "a number", "truth": "true or false", "text": "text"}  # fmt: skip
    return examples[kind]

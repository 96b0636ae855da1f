"""Parameters of a point as texts of the command line, ``name:key=value,...``, and its ``[engine]`` as options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commsim.core.errors import InputError
from commsim.core.spec import derived, network_with, with_parameter
from commsim.packets.packet_options import ALL
from commsim.prediction.options import COSTS

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
    return spec_of("topology", parameters, kinds)


def collective_spec(parameters: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """Text of the collective of a point."""
    return spec_of("collective", parameters, kinds)


def spec_of(table: str, parameters: Mapping[str, Any], kinds: Mapping[str, str]) -> str:
    """Write the topology or the collective of parameters as on the command line; refused where they name none."""
    name = parameters.get(f"{table}.name")
    if not isinstance(name, str):
        raise InputError(f"{table}.name is missing: the name of a {table}, such as "
                         f"{'fat_tree' if table == 'topology' else 'ring_all_reduce'}")  # fmt: skip
    written = ",".join(
        f"{key.partition('.')[2]}={write_value(parameters[key], kind)}"
        for key, kind in kinds.items()  # in the order of the file, so that the same point has the same text everywhere
        if key in parameters and key.startswith(f"{table}.") and key.partition(".")[2] not in NOT_IN_SPEC[table]
    )
    with_it = network_with if table == "topology" else with_parameter
    return derived(name, with_it(name, written)) if written else name

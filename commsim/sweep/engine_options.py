"""The table ``[engine]`` of a point as the options of a prediction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError

if TYPE_CHECKING:
    from commsim.core.network import Network

COSTS = {"overhead": "time", "recv_overhead": "time", "reduce_rate": "bandwidth"}
WIRE = {"payload": "size", "header": "size"}
PLAIN = {"name": "text", "method": "text", "start_jitter": "time", "iterations": "whole",
         "tolerance": "number"}  # fmt: skip
TRANSPORT = {"transport": "text", "window": "size", "ack_every": "whole"}
FABRIC = {
    "buffer": "size", "shared_buffer": "size", "alpha": "number", "ecn_min": "size", "ecn_max": "size",
    "ecn_probability": "number", "pause_at": "size", "resume_at": "size", "loss": "number", "loss_burst": "number",
}  # fmt: skip
KNOWN = {**PLAIN, **COSTS, **WIRE, **TRANSPORT, **FABRIC}
"""Keys of ``[engine]``, and the kind of each."""

LATE = frozenset(("collective.size", *(f"engine.{key}" for key in KNOWN if key not in COSTS)))
"""Parameters that change a prediction, and nothing that is prepared before it."""


def network_costs_of(parameters: Mapping[str, Any]) -> dict[str, float | None]:
    """Return what :func:`commsim.run.with_costs` takes."""
    rate = parameters.get("engine.reduce_rate")
    return {
        "overhead": parameters.get("engine.overhead"),
        "recv_overhead": parameters.get("engine.recv_overhead"),
        "gamma": None if rate is None else 1 / rate,
    }


def prediction_options(parameters: Mapping[str, Any], network: Network) -> dict[str, Any]:
    """Return what :meth:`commsim.run.Prepared.predict` takes beside the size and the seed.

    Raises
    ------
    InputError
        If an option belongs to another engine.
    """
    given = {key: parameters[f"engine.{key}"] for key in KNOWN if f"engine.{key}" in parameters}
    engine = given.get("name", "flow")
    options: dict[str, Any] = {
        "engine": engine,
        **{k: given[k] for k in PLAIN if k in given and k not in ("name", "tolerance")},
    }
    if (engine == "auto") != ("tolerance" in given):
        raise InputError('engine.tolerance goes with engine.name = "auto", and that needs one, such as 0.1')
    if "header" in given:
        from commsim.core.cost import Wire

        options["wire"] = Wire(given.get("payload", float("inf")), given["header"])
    elif "payload" in given:
        raise InputError("engine.payload changes nothing without engine.header")
    packet = [key for key in given if key in TRANSPORT or key in FABRIC]
    if engine != "packet":
        if packet:
            raise InputError(f"engine.{packet[0]} belongs to the packet engine, got {engine}")
        return options
    return options | _packets(given, float(network.bandwidth.max(initial=1.0)))


def _packets(given: Mapping[str, Any], fastest: float) -> dict[str, Any]:
    from commsim.engine.packet.transport import TRANSPORTS

    name = given.get("transport", "window")
    if name not in TRANSPORTS:
        raise InputError(f"engine.transport must be one of {', '.join(TRANSPORTS)}, got {name!r}")
    build = TRANSPORTS[name]
    options = {key: given[key] for key in TRANSPORT if key in given and key != "transport"}
    known = {field.name for field in dataclasses.fields(build)}
    for key in options:
        if key not in known:
            raise InputError(f"engine.{key} is nothing that {name} has; known: {', '.join(sorted(known))}")
    transport = build(**options)
    fabric = transport.fabric(fastest)
    return {"transport": transport,
            "fabric": dataclasses.replace(fabric, **{key: given[key] for key in FABRIC if key in given})}  # fmt: skip

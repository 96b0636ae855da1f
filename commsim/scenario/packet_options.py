"""Options of the packet engine, as every door has them: framing, transport, balancing, queues, marks and losses.

A message goes over one path with the transports of :mod:`commsim.engine.packet.transport`, and over many with those of
:mod:`commsim.engine.fabric.transports`. The names ``window``, ``dctcp`` and ``dcqcn`` are of both: the message goes
over many paths where an option of ``SPRAYING`` is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import parse_size, parse_time
from commsim.scenario import checks
from commsim.scenario.packet_presets import preset_options

if TYPE_CHECKING:
    from commsim.engine.fabric.spraying import Spraying
    from commsim.engine.packet.transport import Fabric, Transport

# Keys of the transport, of spraying, and of queues and losses, with the kind of each.
TRANSPORT = {"transport": "text", "window": "size", "ack_every": "whole"}
FABRIC = {
    "buffer": "size", "shared_buffer": "size", "alpha": "number", "ecn_min": "size", "ecn_max": "size",
    "ecn_probability": "number", "pause_at": "size", "resume_at": "size", "loss": "number", "loss_burst": "number",
    "class_weights": "list",
}  # fmt: skip
# Keys of messages over many paths.
SPRAYING = {"balancing": "text", "entropies": "whole", "flowlet_gap": "time", "trimming": "truth"}
ALL = {"preset": "text"} | TRANSPORT | SPRAYING | FABRIC
# Keys of switches that sprayed packets do not meet.
NOT_SPRAYED = {
    "ack_every": "ack-every", "shared_buffer": "shared-buffer", "alpha": "buffer-alpha", "pause_at": "pause",
    "resume_at": "pause", "loss_burst": "loss-burst", "class_weights": "class-weights",
}  # fmt: skip
USUAL = "window"
# Balancing by the name that routing has for it: each packet takes a path at random.
BALANCING_NAMES = {"spray": "oblivious"}
PATHS = ("window", "dctcp", "dcqcn")  # transports with one path for each message
__all__ = [
    "ALL", "checked_packets", "framing_of", "is_sprayed", "name_of", "packet_notes", "packets_of", "told_transport",
]  # fmt: skip


# How values of each kind are checked.
CHECKS = {
    "text": checks.text("dctcp"), "size": checks.quantity("64KiB"), "whole": checks.whole(1),
    "number": checks.part("1%"), "list": checks.numbers_of("[3, 1]"), "time": checks.quantity("2us"),
    "truth": checks.flag(),
}  # fmt: skip


def checked_packets(
    given: Mapping[str, Any], transport: Transport | Spraying | str | None, fabric: Fabric | None
) -> dict[str, Any]:
    """Return the options of packets in SI units; None is the same as not given.

    Parameters
    ----------
    given : mapping of str to value
        Values of some keys of ``ALL``.
    transport, fabric
        What is given beside them, and must not contradict them.

    Raises
    ------
    InputError
        If there is no such option, a value is wrong, or something is given twice.
    """
    kinds = ALL
    given = {key: value for key, value in given.items() if value is not None}
    if unknown := given.keys() - kinds.keys():
        raise InputError(f"the packet engine has no option {min(unknown)}; known: {', '.join(kinds)}")
    read = {key: _read(key, CHECKS[kinds[key]](key, value)) for key, value in given.items()}
    for name, value, keys in (("transport", transport, TRANSPORT | SPRAYING), ("fabric", fabric, FABRIC)):
        twice = [key for key in keys if key in read and value is not None]
        if name == "fabric" and is_sprayed(transport if not isinstance(transport, str) else None):
            twice, value = [key for key in keys if key in read], transport
        if isinstance(value, str):
            twice = [key for key in twice if key == name and read[key] != value]
        if twice:
            raise InputError(f"{twice[0]} is given in packets and by {name}={value!r}: leave one of the two out")
    if "preset" not in read:
        return read
    return {**preset_options(read.pop("preset")), **read}


def _read(key: str, value: Any) -> Any:
    """Return an option in SI units."""
    parse = {"size": parse_size, "time": parse_time}.get(ALL[key])
    if parse is not None and isinstance(value, str):
        value = parse(value, key)
    if key == "window" and not value > 0:
        raise InputError(f"window must be above 0, got {value:g}")
    return value


def framing_of(payload: float | str | None, header: float | str | None) -> Framing | None:
    """Return how messages are cut into packets; None where neither is given.

    Parameters
    ----------
    payload, header : float, bytes, or str, optional
        Bytes of each packet, as numbers or text such as ``4096B``.

    Raises
    ------
    InputError
        If a payload is given without a header: it changes nothing.
    """
    if header is None:
        if payload is not None:
            raise InputError("payload changes nothing without header")
        return None
    sizes = [
        parse_size(value, name) if isinstance(value, str) else value
        for value, name in ((payload, "payload"), (header, "header"))
    ]
    return Framing(*(float("inf") if size is None else float(size) for size in sizes))


def packets_of(given: Mapping[str, Any], network: Network) -> tuple[Transport | Spraying, Fabric | None]:
    """Return the transport and what packets meet; None where the transport says that, too.

    Parameters
    ----------
    given : mapping of str to value
        Values of some keys of ``ALL`` but for the preset, in SI units.
    network : Network
        Network whose fastest link decides the usual marks.

    Raises
    ------
    InputError
        If the transport is unknown, or has no such parameter.
    """
    from commsim.engine.packet.transport import TRANSPORTS

    name = given.get("transport", USUAL)
    if name not in TRANSPORTS or SPRAYING.keys() & given.keys():
        return _sprayed(name, given), None
    options = {key: given[key] for key in TRANSPORT if key in given and key != "transport"}
    known = {field.name for field in dataclasses.fields(TRANSPORTS[name])}
    for key in options.keys() - known:
        if key == "ack_every":
            raise InputError(f"--ack-every: {name} acknowledges every packet")
        raise InputError(f"the transport {name} has no parameter {key}; known: {', '.join(sorted(known))}")
    transport = TRANSPORTS[name](**options)
    fabric = transport.fabric(float(network.bandwidth.max(initial=1.0)))
    return transport, dataclasses.replace(fabric, **{key: given[key] for key in FABRIC if key in given})


def _sprayed(name: str, given: Mapping[str, Any]) -> Spraying:
    """Return how messages are sent over many paths."""
    from commsim.engine.fabric.spraying import Spraying

    for key, flag in NOT_SPRAYED.items():
        if key in given:
            raise InputError(f"--{flag} is of transports with one path; leave it out with {name} over many paths")
    more = {key: given[key] for key in ("balancing", "entropies", "flowlet_gap", "window", "loss") if key in given}
    if "balancing" in more:
        more["balancing"] = BALANCING_NAMES.get(more["balancing"], more["balancing"])
    if "buffer" in given:
        more["queue"] = given["buffer"]
    if "ecn_min" in given or "ecn_max" in given:
        low = given.get("ecn_min", 0.0)
        more["ecn"] = (low, given.get("ecn_max", low), given.get("ecn_probability", 1.0))
    if "flowlet_gap" in given and given.get("balancing") != "flowlet":
        raise InputError("flowlet_gap changes nothing without the balancing flowlet")
    return Spraying(name, trims=given.get("trimming", True), **more)


def is_sprayed(transport: Transport | Spraying | None) -> bool:
    """Tell whether a transport sends messages over many paths."""
    from commsim.engine.fabric.spraying import Spraying

    return isinstance(transport, Spraying)


def told_transport(transport: Transport | Spraying | None) -> str:
    """Return how packets are sent, for the heading of a table: the transport, and the balancing over many paths."""
    from commsim.engine.fabric.spraying import Spraying

    if isinstance(transport, Spraying):
        return f"transport {transport.transport}, balancing {transport.balancing}"
    return f"transport {name_of(transport)}"


def name_of(transport: Transport | Spraying | None) -> str:
    """Return the name of a transport; the usual one where none is given."""
    from commsim.engine.packet.transport import TRANSPORTS

    return next((name for name, build in TRANSPORTS.items() if isinstance(transport, build)), USUAL)


def packet_notes(given: Mapping[str, Any], framing: Framing | None) -> list[str]:
    """Describe what was assumed of packets, and which options change nothing."""
    lines = []
    sprays = bool(SPRAYING.keys() & given.keys()) or given.get("transport", USUAL) not in PATHS
    if framing is None and sprays:
        lines.append("packets: 4096 bytes of payload and 64 of headers; payload and header change that")
    elif framing is None:
        lines.append(
            "packets, but those of switches that aggregate: 4096 bytes of payload and 82 of RoCE and Ethernet; "
            "payload and header change that"
        )
    if "ecn_min" in given and given.get("transport", USUAL) == USUAL and not sprays:
        lines.append("--ecn: no effect, the transport `window` ignores marks")
    if "alpha" in given and "shared_buffer" not in given:
        lines.append("--buffer-alpha: no effect without --shared-buffer")
    if "loss_burst" in given and not given.get("loss"):
        lines.append("--loss-burst: no effect without --loss, unless the network loses packets")
    return lines

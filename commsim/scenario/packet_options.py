"""Options of the packet engine, as every door has them: framing, transport, queues, marks, pauses and losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.units import parse_size
from commsim.scenario import checks

if TYPE_CHECKING:
    from commsim.engine.packet.transport import Fabric, Transport

# Keys of the transport, and those of queues and losses, with the kind of each.
TRANSPORT = {"transport": "text", "window": "size", "ack_every": "whole"}
FABRIC = {
    "buffer": "size", "shared_buffer": "size", "alpha": "number", "ecn_min": "size", "ecn_max": "size",
    "ecn_probability": "number", "pause_at": "size", "resume_at": "size", "loss": "number", "loss_burst": "number",
    "class_weights": "list",
}  # fmt: skip
USUAL = "window"
__all__ = ["FABRIC", "TRANSPORT", "checked_packets", "framing_of", "name_of", "packet_notes", "packets_of"]


# How values of each kind are checked.
CHECKS = {
    "text": checks.text("dctcp"), "size": checks.quantity("64KiB"), "whole": checks.whole(1),
    "number": checks.part("1%"), "list": checks.numbers_of("[3, 1]"),
}  # fmt: skip


def checked_packets(
    given: Mapping[str, Any], transport: Transport | str | None, fabric: Fabric | None
) -> dict[str, Any]:
    """Return the options of packets in SI units; None is the same as not given.

    Parameters
    ----------
    given : mapping of str to value
        Values of some keys of ``TRANSPORT`` and ``FABRIC``.
    transport, fabric
        What is given beside them, and must not contradict them.

    Raises
    ------
    InputError
        If there is no such option, a value is wrong, or something is given twice.
    """
    kinds = TRANSPORT | FABRIC
    given = {key: value for key, value in given.items() if value is not None}
    if unknown := given.keys() - kinds.keys():
        raise InputError(f"the packet engine has no option {min(unknown)}; known: {', '.join(kinds)}")
    read = {key: _read(key, CHECKS[kinds[key]](key, value)) for key, value in given.items()}
    for name, value, keys in (("transport", transport, TRANSPORT), ("fabric", fabric, FABRIC)):
        twice = [key for key in keys if key in read and value is not None]
        if isinstance(value, str):
            twice = [key for key in twice if key == name and read[key] != value]
        if twice:
            raise InputError(f"{twice[0]} is given in packets and by {name}={value!r}: leave one of the two out")
    return read


def _read(key: str, value: Any) -> Any:
    """Return an option in SI units."""
    if (TRANSPORT | FABRIC)[key] == "size" and isinstance(value, str):
        value = parse_size(value, key)
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


def packets_of(given: Mapping[str, Any], network: Network) -> tuple[Transport, Fabric]:
    """Return the transport and what packets meet.

    Parameters
    ----------
    given : mapping of str to value
        Values of some keys of ``TRANSPORT`` and ``FABRIC``, in SI units.
    network : Network
        Network whose fastest link decides the usual marks.

    Raises
    ------
    InputError
        If the transport is unknown, or has no such parameter.
    """
    from commsim.engine.packet.transport import TRANSPORTS

    name = given.get("transport", USUAL)
    if name not in TRANSPORTS:
        raise InputError(f"engine.transport must be one of {', '.join(TRANSPORTS)}, got {name!r}")
    options = {key: given[key] for key in TRANSPORT if key in given and key != "transport"}
    known = {field.name for field in dataclasses.fields(TRANSPORTS[name])}
    for key in options.keys() - known:
        if key == "ack_every":
            raise InputError(f"--ack-every: {name} acknowledges every packet")
        raise InputError(f"the transport {name} has no parameter {key}; known: {', '.join(sorted(known))}")
    transport = TRANSPORTS[name](**options)
    fabric = transport.fabric(float(network.bandwidth.max(initial=1.0)))
    return transport, dataclasses.replace(fabric, **{key: given[key] for key in FABRIC if key in given})


def name_of(transport: Transport | None) -> str:
    """Return the name of a transport; the usual one where none is given."""
    from commsim.engine.packet.transport import TRANSPORTS

    return next((name for name, build in TRANSPORTS.items() if isinstance(transport, build)), USUAL)


def packet_notes(given: Mapping[str, Any], framing: Framing | None) -> list[str]:
    """Describe what was assumed of packets, and which options change nothing."""
    lines = []
    if framing is None:
        lines.append(
            "packets, but those of switches that aggregate: 4096 bytes of payload and 82 of RoCE and Ethernet; "
            "payload and header change that"
        )
    if "ecn_min" in given and given.get("transport", USUAL) == USUAL:
        lines.append("--ecn: no effect, the transport `window` ignores marks")
    if "alpha" in given and "shared_buffer" not in given:
        lines.append("--buffer-alpha: no effect without --shared-buffer")
    if "loss_burst" in given and not given.get("loss"):
        lines.append("--loss-burst: no effect without --loss, unless the network loses packets")
    return lines

"""Options of the packet engine, as every door has them: framing, transport, balancing, queues, marks and losses.

With the transports ``window``, ``dctcp`` and ``dcqcn`` a message goes over one path unless an option of ``SPREADING``
says otherwise, and full queues trim only where that is asked for. With all others full queues trim, and a message goes
over many paths; with ``hpcc``, which reads the links of its path, over one.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from commsim.core.cost import Framing
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.network_queries import fabric_switches
from commsim.core.remark import Remark
from commsim.core.units import format_bandwidth, format_time, parse_size, parse_time
from commsim.packets.packet_presets import preset_options
from commsim.prediction import checks

if TYPE_CHECKING:
    from commsim.packets.links.queues import Fabric
    from commsim.packets.transports.control_constants import Dcqcn
    from commsim.packets.transports.spraying import Spraying

# Keys of the transport, of spraying, and of queues and losses, with the kind of each.
TRANSPORT = {"transport": "text", "window": "size", "ack_every": "whole", "recovery": "text"}
FABRIC = {
    "buffer": "size", "shared_buffer": "size", "alpha": "number", "ecn_min": "size", "ecn_max": "size",
    "ecn_probability": "number", "pause_at": "size", "resume_at": "size", "loss": "number", "loss_burst": "number",
    "class_weights": "list",
}  # fmt: skip
# Keys of messages over many paths.
SPRAYING = {"balancing": "text", "entropies": "whole", "flowlet_gap": "time", "trimming": "truth"}
SPREADING = {*SPRAYING} - {"trimming"}
ALL = {"preset": "text"} | TRANSPORT | SPRAYING | FABRIC
USUAL = "window"
# Balancing by the name that routing has for it: each packet takes a path at random.
BALANCING_NAMES = {"spray": "oblivious"}
PAPERS_RATE = 5e9  # bytes/s of the links for which DCQCN's constants were chosen
__all__ = ["ALL", "checked_packets", "name_of", "packet_notes", "packets_of", "queues_of",
           "told_briefly", "told_queues", "told_transport", "transport_of"]  # fmt: skip


# How values of each kind are checked.
CHECKS = {
    "text": checks.text("dctcp"), "size": checks.quantity("64KiB"), "whole": checks.whole_number(1),
    "number": checks.fraction("1%"), "list": checks.numbers_of("[3, 1]"), "time": checks.quantity("2us"),
    "truth": checks.flag(),
}  # fmt: skip


def checked_packets(
    packets: Mapping[str, Any], transport: Spraying | str | None, fabric: Fabric | None
) -> dict[str, Any]:
    """Return the options of packets in SI units; None is the same as not given.

    Parameters
    ----------
    packets : mapping of str to value
        Values of some keys of ``ALL``.
    transport, fabric
        What is given beside them, and must not contradict them.

    Raises
    ------
    InputError
        If there is no such option, a value is wrong, or something is given twice.
    """
    kinds = ALL
    packets = {key: value for key, value in packets.items() if value is not None}
    if unknown := packets.keys() - kinds.keys():
        raise InputError(f"the packet engine has no option {min(unknown)}; known: {', '.join(kinds)}")
    read = {key: _read_option(key, CHECKS[kinds[key]](key, value)) for key, value in packets.items()}
    for name, value, keys in (("transport", transport, TRANSPORT | SPRAYING), ("fabric", fabric, FABRIC)):
        twice = [key for key in keys if key in read and value is not None]
        if name == "fabric" and not isinstance(transport, str) and transport is not None:
            twice, value = [key for key in keys if key in read], transport
        if isinstance(value, str):
            twice = [key for key in twice if key == name and read[key] != value]
        if twice:
            raise InputError(f"{twice[0]} is given in packets and by {name}={value!r}: leave one of the two out")
    if "preset" not in read:
        return read
    return {**preset_options(read.pop("preset")), **read}


def transport_of(
    options: Mapping[str, Any], engine: str, framing: Framing | None, network: Network
) -> tuple[Spraying | None, list[Remark]]:
    """Return how packets are sent, by the options of a scenario, and what to say of it.

    Parameters
    ----------
    options : mapping of str to value
        Options of a scenario, of which ``transport``, ``fabric`` and ``packets`` are read.
    engine : str
        Name of the engine.
    framing : Framing or None
        Packets that messages are cut into.
    network : Network
        Network, whose hardware may say how packets are sent.

    Raises
    ------
    InputError
        If an option is unknown or wrong, is given twice, or belongs to another engine.
    """
    packets, transport, fabric = (options.get(name) for name in ("packets", "transport", "fabric"))
    given = checked_packets(packets, transport, fabric) if packets else {}
    if isinstance(transport, str):
        given, transport = {"transport": transport, **given}, None
    notes: list[Remark] = []
    if engine == "packet":
        notes = packet_notes(given, framing)
        transport = transport or packets_of(given, network)
        transport = transport if fabric is None else transport.with_fabric(fabric)
    elif given and (engine, *given) != ("auto", "transport"):
        raise InputError(f"{min(given).replace('_', ' ')} needs engine packet, got engine {engine}")
    elif given:
        transport = packets_of(given, network)
    if fabric is not None and engine not in ("packet", "auto"):
        raise InputError(f"transports and queues are the packet engine's, got engine {engine}")
    return transport, notes


def _read_option(key: str, value: Any) -> Any:
    """Return an option in SI units."""
    parse = {"size": parse_size, "time": parse_time}.get(ALL[key])
    if parse is not None and isinstance(value, str):
        value = parse(value, key)
    if key == "window" and not value > 0:
        raise InputError(f"window must be above 0, got {value:g}")
    return value


def packets_of(packets: Mapping[str, Any], network: Network) -> Spraying:
    """Return how packets are sent, and what they meet.

    Parameters
    ----------
    packets : mapping of str to value
        Values of some keys of ``ALL`` but for the preset, in SI units.
    network : Network
        Network whose fastest link decides the usual marks of messages that keep to a path.

    Raises
    ------
    InputError
        If the transport is unknown, or has no such parameter.
    """
    from commsim.packets.links.queues import RESUME
    from commsim.packets.transports.spraying import Spraying, usual_path
    from commsim.packets.transports.transports import transport_of

    transport = packets.get("transport", USUAL)
    name = transport.split(":")[0]
    fabric = {key: packets[key] for key in FABRIC if key in packets}
    if name == "dctcp" and "ack_every" in packets:
        raise InputError("--ack-every: dctcp acknowledges every packet")
    if "pause_at" in fabric:
        fabric.setdefault("resume_at", RESUME * fabric["pause_at"])
    if "flowlet_gap" in packets and packets.get("balancing") != "flowlet":
        raise InputError("flowlet_gap changes nothing without the balancing flowlet")
    keys = ("balancing", "entropies", "flowlet_gap", "window", "ack_every", "recovery")
    sent = {key: packets[key] for key in keys if key in packets}
    if "balancing" in sent:
        sent["balancing"] = BALANCING_NAMES.get(sent["balancing"], sent["balancing"])
    rules = transport_of(transport)[0]
    if rules.usual_path:
        trims = packets.get("trimming", False)
        if trims:  # such switches do not pause
            fabric = {"pause_at": 0.0, "resume_at": 0.0} | fabric
        alone = {key: sent[key] for key in ("window", "ack_every", "recovery") if key in sent}
        usual = usual_path(transport, network, **alone, **fabric)
        if sent.get("balancing", None if SPREADING & sent.keys() else "path") == "path":
            return dataclasses.replace(usual, trims=trims)
        return _spread(usual, Spraying(transport, trims=trims, **sent))
    if "buffer" in fabric:
        fabric["queue"] = fabric.pop("buffer")
    if "ecn_min" in fabric or "ecn_max" in fabric:
        low = fabric.pop("ecn_min", 0.0)
        fabric["ecn"] = (low, fabric.pop("ecn_max", low), fabric.pop("ecn_probability", 1.0))
    if rules.one_path and not SPREADING & sent.keys():
        sent["balancing"] = "path"
    return Spraying(transport, trims=packets.get("trimming", True), **sent, **fabric)


def _spread(usual: Spraying, sent: Spraying) -> Spraying:
    """Return packets over many paths, with the queues, marks and pauses that the transport usually meets.

    Queues have no end, unless a size is given, or switches trim, or drop what others would pause for.
    """
    drops = sent.trims or (sent.settled[0].depth > 0 and not usual.pause_at)
    queue = math.inf if usual.queue is None and not drops else usual.queue
    return dataclasses.replace(sent, queue=queue, ecn=usual.ecn, **usual.fabric.conditions)


def told_transport(transport: Spraying | None) -> str:
    """Return how packets are sent, for the heading of a table: the transport, and the balancing over many paths."""
    if transport is None or transport.on_path:
        return f"transport {name_of(transport)}"
    return f"transport {transport.transport}, balancing {transport.balancing}"


def queues_of(transport: Spraying | None) -> dict[str, float]:
    """Return where queues of switches mark and pause, with those that a preset or transport chose, in bytes.

    Empty where none are given: sprayed transports then mark by the round trip of the network, others not at all.
    """
    if transport is None or not ((transport.ecn and transport.ecn[1]) or transport.pause_at):
        return {}
    keys = ("ecn_min", "ecn_max", "ecn_probability", "pause_at", "resume_at")
    return {key: float(getattr(transport.fabric, key)) for key in keys}


def told_queues(transport: Spraying | None, network: Network, *, marked: bool = True) -> list[str]:
    """Describe :func:`queues_of`, and where packets were marked, why DCQCN's rates stay low on links of today.

    A threshold that a queue of the network cannot reach is said to have no effect.
    """
    if not (queues := queues_of(transport)) or transport is None:
        return []
    from commsim.packets.links.queues import least_buffer

    low, high, chance, pause, resume = queues.values()
    marks = f"mark from {low / 1e3:.4g} kB" if high else "mark nothing"
    marks += f" (up to {chance:.3g} of packets) to {high / 1e3:.4g} kB (all)" if high > low else ""
    pauses = f"pause a link (PFC) from {pause / 1e3:.4g} kB to {resume / 1e3:.4g} kB" if pause else "never pause (PFC)"
    lines = [f"queues of switches {marks}, and {pauses}; --ecn and --pause change that"]
    room = least_buffer(network, transport.queue)
    for at, begin, flag in ((pause, "pauses (PFC)", "--pause"), (low, "marks", "--ecn")):
        if at > room:
            lines.append(
                f"{begin} cannot begin before the queue is full: the threshold of {at / 1e3:.4g} kB ({flag}) is larger "
                f"than the queue of {room / 1e3:.4g} kB"
            )
    if marked and name_of(transport) == "dcqcn":
        lines.append(_told_rises(cast("Dcqcn", transport.settled[1]), network))
    return lines


def _told_rises(rates: Dcqcn, network: Network) -> str:
    """Describe how DCQCN's rates rise, which constants of that are the paper's, and that they follow no link's rate."""
    told = (
        f"dcqcn: a rate that marks have cut rises every {format_time(rates.rise_time)}, first half-way back, then by "
    )
    told += format_bandwidth(rates.additive)
    usual = type(rates)()
    papers = [name for name in ("rise_time", "additive") if getattr(rates, name) == getattr(usual, name)]
    if not papers:
        return told
    told += f"; {' and '.join(papers)} {'are' if len(papers) > 1 else 'is'} a paper's, for links of 40 Gb/s"
    fabric = fabric_switches(network)
    cabled = fabric[network.src] | fabric[network.dst]
    rate = float(network.bandwidth[cabled].max(initial=0.0) or network.bandwidth.max(initial=0.0))
    if rate != PAPERS_RATE:
        told += f", and not scaled to the {format_bandwidth(rate)} here: this may decide the time"
    other = {"rise_time": "5us", "additive": "100Mbps"}[papers[0]]
    return f"{told}; dcqcn:{papers[0]}={other} gives another"


def told_briefly(transport: Spraying | None) -> str:
    """Return how packets are sent, for a column: the transport, and the balancing over many paths."""
    if transport is None or transport.on_path:
        return name_of(transport)
    return f"{transport.transport} {transport.balancing}"


def name_of(transport: Spraying | None) -> str:
    """Return the name of a transport; the usual one where none is given."""
    return USUAL if transport is None else transport.transport.split(":")[0]


def packet_notes(packets: Mapping[str, Any], framing: Framing | None) -> list[Remark]:
    """Describe what was assumed of packets, and which options change nothing."""
    remarks: list[Remark] = []
    from commsim.packets.transports.transports import transport_of

    transport = packets.get("transport", USUAL)
    name = transport.split(":")[0]
    spread = packets.get("balancing", None if SPREADING & packets.keys() else "path") != "path"
    sprays = spread or not transport_of(transport)[0].usual_path
    if framing is None and sprays:
        remarks.append(
            Remark("packets", "packets: 4096 bytes of payload and 64 of headers; payload and header change that")
        )
    elif framing is None:
        text = "packets: 4096 bytes of payload and 82 of RoCE and Ethernet; payload and header change that"
        remarks.append(Remark("packets", text, details="those of switches that aggregate have their own"))
    if "ecn_min" in packets and name == USUAL and not sprays:
        remarks.append(Remark("option-unused", "--ecn: no effect, the transport `window` ignores marks", needed=True))
    if "alpha" in packets and "shared_buffer" not in packets:
        remarks.append(Remark("option-unused", "--buffer-alpha: no effect without --shared-buffer", needed=True))
    if "loss_burst" in packets and not packets.get("loss"):
        text = "--loss-burst: no effect without --loss, unless the network loses packets"
        remarks.append(Remark("option-unused", text, needed=True))
    return remarks

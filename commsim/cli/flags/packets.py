"""Flags of an engine, of packet headers, and of the packet engine's transport and switches."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.core.errors import InputError
from commsim.core.units import parse_size, share

from . import Flags, flag

if TYPE_CHECKING:
    from commsim.core.cost import Framing
    from commsim.core.network import Network

PACKET_FLAGS = (
    "transport", "window", "ack_every", "buffer", "shared_buffer", "buffer_alpha", "class_weights", "ecn", "pause",
    "loss", "loss_burst",
)  # fmt: skip


class Packets(Flags):
    """Engine, packet headers, and the transport and switches of the packet engine."""

    TITLE: ClassVar[str] = "packets"
    # Empty: the usual one of the collective, which :func:`commsim.cli.run.config.resolved` puts in its place.
    engine: str = flag(
        default="", metavar="NAME",
        help="flow, packet, alpha-beta, closed-form or auto (default: flow; of NCCL's collectives closed-form)",
    )  # fmt: skip
    payload: str | None = flag(metavar="SIZE", help="payload bytes of a packet, such as 4096B (with --header)")
    header: str | None = flag(metavar="SIZE", help="header bytes of each packet, beside the payload")
    transport: str | None = flag(
        choices=("window", "dctcp", "dcqcn"), help="ideal window, DCTCP, or RoCE with DCQCN (default: window)"
    )
    window: str | None = flag(
        metavar="SIZE", help="payload outstanding per flow (default of window: 2 bandwidth-delay products)"
    )
    ack_every: int | None = flag(metavar="N", help="packets per acknowledgement (default: 1)")
    buffer: str | None = flag(metavar="SIZE", help="queue of each switch port (default: the network's)")
    shared_buffer: str | None = flag(
        metavar="SIZE", help="buffer that all queues of a switch share (default: infinite)"
    )
    buffer_alpha: float | None = flag(
        metavar="A", help="part of the free shared buffer that one queue may take (default: 1)"
    )
    class_weights: str | None = flag(
        metavar="W,W,...", help="links are shared by weight among priorities of jobs, the first one's first (default: "
        "the first one goes first)",
    )  # fmt: skip
    ecn: str | None = flag(
        metavar="MIN[:MAX[:P]]",
        help="marking: from MIN queued bytes with a probability up to P, from MAX always; 0B: never",
    )
    pause: str | None = flag(
        metavar="AT[:RESUME]",
        help="PFC: pause a link, for each priority, when AT bytes from it wait in a switch; 0B: never",
    )
    loss: float | None = flag(
        type=share, metavar="P", help="probability that a link loses a packet, such as 1%% (default: the network's)"
    )
    loss_burst: float | None = flag(metavar="N", help="mean length of a burst of losses, in packets (default: 1)")


def read_framing(payload: str | None, header: str | None) -> Framing | None:
    """Read ``--payload`` and ``--header``; None where neither is given.

    Raises
    ------
    InputError
        If one is no size, or a payload changes nothing.
    """
    from commsim.core.cost import Framing

    if header is None:
        if payload is not None:
            raise InputError("--payload changes nothing without --header")
        return None
    return Framing(
        float("inf") if payload is None else parse_size(payload, "--payload"), parse_size(header, "--header")
    )


def packet_options(config: Packets, network: Network) -> dict[str, Any]:
    """Return what ``Prepared.predict`` takes for a simulation on `network`.

    Raises
    ------
    InputError
        If a flag is wrong, or belongs to another engine or transport.
    """
    if config.engine != "packet":  # auto is compared with one transport
        given = [name for name in config.given(*PACKET_FLAGS) if (config.engine, name) != ("auto", "--transport")]
        if given:
            raise InputError(f"{given[0]} needs --engine packet, got --engine {config.engine or 'flow'}")
        return {}
    transport = _transport(config)
    fastest = float(network.bandwidth.max(initial=1.0))
    return {"transport": transport, "fabric": dataclasses.replace(transport.fabric(fastest), **_changes(config))}


def packet_notes(config: Packets) -> list[str]:
    """Say what was assumed, and which flags change nothing."""
    if config.engine != "packet":
        return []
    lines = []
    if config.header is None:
        lines.append(
            "packets, but those of switches that aggregate: 4096 bytes of payload and 82 of RoCE and Ethernet; "
            "--payload and --header change that"
        )
    if config.ecn is not None and config.transport in (None, "window"):
        lines.append("--ecn: no effect, the transport `window` ignores marks")
    if config.buffer_alpha is not None and config.shared_buffer is None:
        lines.append("--buffer-alpha: no effect without --shared-buffer")
    if config.loss_burst is not None and not config.loss:
        lines.append("--loss-burst: no effect without --loss, unless the network loses packets")
    return lines


def _transport(config: Packets) -> Any:
    from commsim.engine.packet.transport import TRANSPORTS

    build = TRANSPORTS[config.transport or "window"]
    options: dict[str, Any] = {}
    if config.window is not None:
        options["window"] = parse_size(config.window, "--window")
    if config.ack_every is not None:
        if "ack_every" not in {field.name for field in dataclasses.fields(build)}:
            raise InputError(f"--ack-every: {config.transport} acknowledges every packet")
        options["ack_every"] = config.ack_every
    return build(**options)


def _changes(config: Packets) -> dict[str, Any]:
    """Return what differs from the transport's own assumptions of switches."""
    changes: dict[str, Any] = {}
    for name in ("buffer", "shared_buffer"):
        if getattr(config, name) is not None:
            changes[name] = parse_size(getattr(config, name), f"--{name.replace('_', '-')}")
    if config.buffer_alpha is not None:
        changes["alpha"] = config.buffer_alpha
    if config.ecn is not None:
        changes |= _ecn(config.ecn)
    if config.pause is not None:
        sizes = _sizes(config.pause, "--pause", 2)
        changes |= {"pause_at": sizes[0], "resume_at": sizes[1] if len(sizes) == 2 else 0.8 * sizes[0]}
    if config.class_weights is not None:
        changes["class_weights"] = _weights(config.class_weights)
    for name in ("loss", "loss_burst"):
        if getattr(config, name) is not None:
            changes[name] = getattr(config, name)
    return changes


def _weights(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InputError(f"--class-weights is a number for each priority, such as 4,1; got {text!r}") from None


def _ecn(text: str) -> dict[str, float]:
    sizes, _, chance = text.rpartition(":") if text.count(":") == 2 else (text, "", "1")
    low, high = (_sizes(sizes, "--ecn", 2) * 2)[:2]
    try:
        return {"ecn_min": low, "ecn_max": high, "ecn_probability": float(chance)}
    except ValueError:
        raise InputError(f"--ecn is MIN, MIN:MAX or MIN:MAX:P, such as 100KB:400KB:0.2, got {text!r}") from None


def _sizes(text: str, flag: str, most: int) -> list[float]:
    parts = text.split(":")
    if len(parts) > most:
        raise InputError(f"{flag} has at most {most} sizes, got {text!r}")
    return [parse_size(part, flag) for part in parts]

"""The flags of ``commsim run --engine packet``: the transport, and what its packets meet."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from commsim.core.errors import InputError
from commsim.core.units import parse_size, share

if TYPE_CHECKING:
    from commsim.core.network import Network

FLAGS = (
    "transport", "window", "ack_every", "buffer", "shared_buffer", "buffer_alpha", "ecn", "pause", "loss", "loss_burst",
)  # fmt: skip


def add_packet_arguments(parser: argparse.ArgumentParser) -> None:
    """Add them."""
    group = parser.add_argument_group("with --engine packet")
    add = group.add_argument
    add("--transport", choices=("window", "dctcp", "dcqcn"), help="ideal window, DCTCP or RoCE with DCQCN (window)")
    add("--window", metavar="SIZE", help="payload outstanding per flow (window: 2 bandwidth-delay products)")
    add("--ack-every", type=int, metavar="N", help="packets per acknowledgement (1)")
    add("--buffer", metavar="SIZE", help="queue of each port of a switch (the network's)")
    add("--shared-buffer", metavar="SIZE", help="of each switch, for all its queues together (infinite)")
    add("--buffer-alpha", type=float, metavar="A", help="part of the free shared buffer that a queue may take (1)")
    add("--ecn", metavar="MIN[:MAX[:P]]", help="mark from MIN bytes queued with up to P, from MAX all; 0B: never")
    add("--pause", metavar="AT[:RESUME]", help="PFC: pause a link when AT bytes of it wait in a switch; 0B: never")
    add("--loss", type=share, metavar="P", help="chance that a packet is lost on any link, such as 1%% (the network's)")
    add("--loss-burst", type=float, metavar="N", help="packets that a burst of losses lasts (1)")


def packet_options(args: argparse.Namespace, network: Network) -> dict[str, Any]:
    """Return what ``Prepared.predict`` takes for a simulation on `network`.

    Raises
    ------
    InputError
        If a flag is wrong, or belongs to another engine or transport.
    """
    given = [name for name in FLAGS if getattr(args, name) is not None]
    if args.engine == "auto":  # which transport it is compared with is all that it can choose by
        given = [name for name in given if name != "transport"]
    if args.engine != "packet":
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} needs --engine packet, got --engine {args.engine}")
        return {}
    transport = _transport(args)
    fastest = float(network.bandwidth.max(initial=1.0))
    return {"transport": transport, "fabric": dataclasses.replace(transport.fabric(fastest), **_changes(args))}


def packet_notes(args: argparse.Namespace) -> list[str]:
    """Say what was assumed, and which flags change nothing."""
    if args.engine != "packet":
        return []
    lines = []
    if args.header is None:
        lines.append("packets: 4096 bytes of payload and 82 of RoCE and Ethernet; --payload and --header change that")
    if args.ecn is not None and args.transport in (None, "window"):
        lines.append("--ecn: no effect, the transport `window` does not heed marks")
    if args.buffer_alpha is not None and args.shared_buffer is None:
        lines.append("--buffer-alpha: no effect without --shared-buffer")
    if args.loss_burst is not None and not args.loss:
        lines.append("--loss-burst: no effect without --loss, unless the network loses packets")
    return lines


def _transport(args: argparse.Namespace) -> Any:
    from commsim.engine.packet.transport import TRANSPORTS

    build = TRANSPORTS[args.transport or "window"]
    options: dict[str, Any] = {}
    if args.window is not None:
        options["window"] = parse_size(args.window, "--window")
    if args.ack_every is not None:
        if "ack_every" not in {field.name for field in dataclasses.fields(build)}:
            raise InputError(f"--ack-every: {args.transport} acknowledges every packet")
        options["ack_every"] = args.ack_every
    return build(**options)


def _changes(args: argparse.Namespace) -> dict[str, Any]:
    """Return what differs from the transport's own assumptions of switches."""
    changes: dict[str, Any] = {}
    for flag in ("buffer", "shared_buffer"):
        if getattr(args, flag) is not None:
            changes[flag] = parse_size(getattr(args, flag), f"--{flag.replace('_', '-')}")
    if args.buffer_alpha is not None:
        changes["alpha"] = args.buffer_alpha
    if args.ecn is not None:
        changes |= _ecn(args.ecn)
    if args.pause is not None:
        sizes = _sizes(args.pause, "--pause", 2)
        changes |= {"pause_at": sizes[0], "resume_at": sizes[1] if len(sizes) == 2 else 0.8 * sizes[0]}
    for flag in ("loss", "loss_burst"):
        if getattr(args, flag) is not None:
            changes[flag] = getattr(args, flag)
    return changes


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

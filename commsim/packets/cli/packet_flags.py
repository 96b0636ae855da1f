"""Flags of the packet engine's transport and switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from commsim.cli.flags import DefaultOf, Flags, flag, switched
from commsim.cli.flags.engine import EngineFlags, FlagGroup
from commsim.core.errors import InputError
from commsim.core.spec import as_number
from commsim.core.units import parse_size, share, write_bandwidth, write_size

PACKET_FLAGS = (
    "preset", "transport", "balancing", "entropies", "flowlet_gap", "no_trimming", "window", "ack_every", "recovery",
    "buffer", "shared_buffer", "buffer_alpha", "class_weights", "ecn", "pause", "loss", "loss_burst",
)  # fmt: skip


class SprayingFlags(Flags):
    """How hosts spread the packets of a message over paths."""

    TITLE: ClassVar[str] = "engine and packets"
    balancing: str | None = flag(
        metavar="NAME",
        help="how packets choose paths: path (one, by the routing), ecmp, spray (oblivious), bitmap, reps or mixed; "
        "adaptive or flowlet, where switches choose (default: mixed; window, dctcp and dcqcn: path)",
    )
    entropies: int | None = flag(
        metavar="E",
        help="number of paths that a message tries, a power of two (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.packets.transports.spraying:Spraying.entropies")},
    )
    flowlet_gap: str | None = flag(metavar="TIME", help="pause that ends a flowlet (default: a round trip)")
    no_trimming: bool = switched(help="full queues drop packets instead of trimming them")


class Packets(SprayingFlags, EngineFlags):
    """Transport and switches of the packet engine."""

    TITLE: ClassVar[str] = "engine and packets"
    RARE: ClassVar[Mapping[str, str | None]] = dict.fromkeys(PACKET_FLAGS, "packet")
    preset: str | None = flag(
        metavar="NAME",
        help="transport and balancing: uec (NSCC, sender windows), uec-credit (RCCC, receiver credits), roce, "
        "roce-adaptive, swift or ideal",
    )
    transport: str | None = flag(
        metavar="NAME|FILE.py",
        help="window (ideal), dctcp or dcqcn: no trimming, and one path unless --balancing is given. Others: nscc, "
        "rccc, eqds, ndp, swift, hpcc, timely, patched_timely, or a congestion control in FILE.py. NAME:key=value "
        "sets parameters (default: window; in commsim traffic: nscc)",
    )
    window: str | None = flag(
        metavar="SIZE",
        help="payload outstanding per flow (default with --transport window: 2 bandwidth-delay products)",
    )
    ack_every: int | None = flag(
        metavar="N",
        help="packets per acknowledgement (default: 1; dcqcn: %(roce)s; nscc, rccc, eqds: %(bytes)s)",
        shown={
            "roce": DefaultOf("commsim.packets.transports.transports:ROCE_ACKS"),
            "bytes": DefaultOf("commsim.packets.transports.transports:CREDIT_ACKS", write_size),
        },
    )
    recovery: str | None = flag(
        metavar="NAME", help="what is sent again after a loss: selective: the missing packets; go-back-n: these and "
        "all after them (only window, dctcp, dcqcn on one path) (default: selective)",
    )  # fmt: skip
    buffer: str | None = flag(
        "--buffer", "--queue", metavar="SIZE",
        help="queue size of each switch port (default: the network's; with spraying, rate times round trip)",
    )  # fmt: skip
    shared_buffer: str | None = flag(
        metavar="SIZE", help="buffer that all queues of a switch share (default: infinite)"
    )
    buffer_alpha: float | None = flag(
        metavar="A",
        help="limit of a queue, as a fraction of the free shared buffer (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.packets.links.queues:Conditions.alpha", "{:g}".format)},
    )
    class_weights: str | None = flag(
        metavar="W,W,...", help="weights by which the priorities of jobs share a link, in the order of the priorities "
        "(default: strict priority)",
    )  # fmt: skip
    ecn: str | None = flag(
        metavar="MIN[:MAX[:P]]",
        help="ECN: mark packets with a probability that rises to P between MIN and MAX queued bytes, and always above "
        "MAX; 0B: never",
    )
    pause: str | None = flag(
        metavar="AT[:RESUME]",
        help="PFC: pause a link, separately for each priority, when AT bytes from it wait in a switch; 0B: never "
        "(default for dcqcn: %(pause)s at %(rate)s, less where queues are shallow)",
        shown={
            "pause": DefaultOf("commsim.packets.links.queues:DCQCN_PAUSE", "{:g}B".format),
            "rate": DefaultOf("commsim.packets.links.queues:DCQCN_RATE", write_bandwidth),
        },
    )
    loss: float | None = flag(
        type=share, metavar="P", help="probability that a link loses a packet, such as 1%% (default: the network's)"
    )
    loss_burst: float | None = flag(
        metavar="N",
        help="mean length of a burst of losses, in packets (default: %(usual)s)",
        shown={"usual": DefaultOf("commsim.packets.links.queues:Conditions.loss_burst", "{:g}".format)},
    )


def packet_values(config: Packets) -> dict[str, Any]:
    """Return what the flags of transport and switches say, by the keys of :mod:`commsim.packets.packet_options`.

    Raises
    ------
    InputError
        If a flag is wrong, or belongs to another engine.
    """
    if config.engine != "packet":  # auto is compared with one transport
        flags = [name for name in config.given(*PACKET_FLAGS) if (config.engine, name) != ("auto", "--transport")]
        if flags:
            engine = config.engine or "flow"
            raise InputError(f"{flags[0]} needs engine packet, got engine {engine}: add --engine packet")
    plain = ("preset", "transport", "balancing", "entropies", "flowlet_gap", "ack_every", "recovery", "loss")
    values: dict[str, Any] = {name: getattr(config, name) for name in (*plain, "loss_burst")}
    if config.no_trimming:
        values["trimming"] = False
    for name in ("window", "buffer", "shared_buffer"):
        if getattr(config, name) is not None:
            values[name] = parse_size(getattr(config, name), f"--{name.replace('_', '-')}")
    if config.buffer_alpha is not None:
        values["alpha"] = config.buffer_alpha
    if config.ecn is not None:
        values |= _ecn(config.ecn)
    if config.pause is not None:
        sizes = _sizes(config.pause, "--pause", 2)
        values |= dict(zip(("pause_at", "resume_at"), sizes, strict=False))
    if config.class_weights is not None:
        values["class_weights"] = _weights(config.class_weights)
    return {name: value for name, value in values.items() if value is not None}


def _weights(text: str) -> tuple[float, ...]:
    try:
        return tuple(map(as_number, text.split(",")))
    except ValueError:
        raise InputError(f"--class-weights is a number for each priority, such as 4,1; got {text!r}") from None


def _ecn(text: str) -> dict[str, float]:
    sizes, _, chance = text.rpartition(":") if text.count(":") == 2 else (text, "", "1")
    low, high = (_sizes(sizes, "--ecn", 2) * 2)[:2]
    try:
        return {"ecn_min": low, "ecn_max": high, "ecn_probability": share(chance)}
    except ValueError:
        raise InputError(f"--ecn is MIN, MIN:MAX or MIN:MAX:P, such as 100KB:400KB:0.2, got {text!r}") from None


def _sizes(text: str, flag: str, most: int) -> list[float]:
    parts = text.split(":")
    if len(parts) > most:
        raise InputError(f"{flag} has at most {most} sizes, got {text!r}")
    return [parse_size(part, flag) for part in parts]


def _options(config: Packets) -> dict[str, Any]:
    return {"packets": packet_values(config)}


PACKETS = FlagGroup(Packets, PACKET_FLAGS, _options)

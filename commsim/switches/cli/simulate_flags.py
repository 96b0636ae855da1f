"""Flags of ``commsim switch simulate``, and what is asked without them."""

from __future__ import annotations

from commsim.cli.flags import TOPOLOGY, DefaultOf, WithJson, flag, repeated, switched
from commsim.core.units import share, write_bandwidth, write_time

# What is asked where nothing else is said; also of ``switch budget``.
SYSTEM, HARDWARE, SIZE = "switchml_rdma", "tofino_1", "64MiB"
WORKERS = DefaultOf("switch_model.system:N_WORKERS", str)
BANDWIDTH = DefaultOf("topologies:LINK_BANDWIDTH", write_bandwidth)
LATENCY = "1us"  # of a link of a star, by default


class SwitchSimulateConfig(WithJson):
    """All flags of ``commsim switch simulate``."""

    system: str = flag(
        default=SYSTEM, metavar="NAME[:key=value,...]", help="system, such as atp or omnireduce:density=0.1"
    )
    workers: str = flag(default=WORKERS, metavar="N[,N...]", help="workers of a job")
    jobs: int = flag(default=1, metavar="N", help="jobs that share the switches, each on its own hosts")
    bandwidth: str | None = flag(
        metavar="RATE[,RATE...]", help="rate of each link of a star (default: %(usual)s)", shown={"usual": BANDWIDTH}
    )
    latency: str | None = flag(
        metavar="TIME",
        help=f"one-way latency of each link of a star (default: {LATENCY}; --topology star has %(usual)s)",
        shown={"usual": DefaultOf("topologies:LINK_LATENCY", write_time)},
    )
    topology: str | None = flag(metavar=TOPOLOGY, help="network, in place of a star")
    size: str = flag("-b", default=SIZE, metavar="SIZE", help="size of each worker's tensor")
    tensors: int = flag(default=1, metavar="N", help="number of tensors of that size, one after the other")
    elements_per_packet: int | None = flag(metavar="K", help="elements in a packet, in place of the system's own")
    packets_per_message: int | None = flag(metavar="N", help="packets in a message, in place of the system's own")
    pool_size: str | None = flag(
        metavar="N[,N...]", help="slots of a job, or of all jobs if they share them (atp); default: the system's own"
    )
    hardware: str = flag(default=HARDWARE, metavar="NAME[:key=value,...]|none", help="switch with the slots")
    window: int | None = flag(metavar="N", help="packets that a worker may have outstanding (default: the pool size)")
    header: str | None = flag(metavar="SIZE", help="header bytes of a packet, in place of the system's own")
    rto: str | None = flag(metavar="TIME", help="time after which a worker retransmits a packet")
    loss: str = flag(default="0", metavar="P[,P...]", help="probability that a link loses a packet, such as 1%%")
    loss_up: float | None = flag(type=share, metavar="P", help="probability on links from hosts, in place of --loss")
    loss_down: float | None = flag(type=share, metavar="P", help="probability on links to hosts, in place of --loss")
    loss_burst: float = flag(
        default=DefaultOf("commsim.packets.links.queues:Conditions.loss_burst"),
        metavar="N",
        help="mean length of a burst of losses, in packets",
    )
    buffer: str | None = flag(metavar="SIZE", help="capacity of each queue (default: infinite)")
    ecn: str | None = flag(metavar="SIZE", help="queue length from which packets are marked")
    start_jitter: str | None = flag(metavar="TIME", help="workers start late by up to this time")
    floats: bool = switched(help="tensors of floats: send the exponent of each block one window ahead of its values")
    seed: str = flag(default="0", metavar="N[,N...]", help="seed of losses, values and jitter")
    engine: str = flag(
        choices=("auto", "event", "recurrence"),
        default="event",
        help="event: event by event; recurrence: by formulas, which need no losses and --no-values; auto: recurrence "
        "where it applies",
    )
    no_values: bool = switched(help="sum no tensors; `exact` is then null")
    versions: int | None = flag(
        metavar="1|2", help="versions of each slot; with 1, errors occur that 2 versions prevent"
    )
    without: tuple[str, ...] = repeated(
        metavar="RULE",
        help="omit a rule of the protocol, to show the errors without it: seen_check, continued_slots; repeatable",
    )
    sample_every: str | None = flag(metavar="TIME", help="write slots in use and bytes queued over time into the JSON")
    pcap: str | None = flag(metavar="FILE", help="write the packets on the workers' links")
    pcap_values: bool = switched(help="with --pcap: write whole packets, not only headers")
    draw: str | None = flag(
        metavar="FILE", help="draw results over the varied parameter, or slots in use over time: .svg or .png"
    )

"""Flags of what communication costs, for the verbs of ``commsim workload``: a bandwidth, or a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.cli.flags import OVERHEAD, TOPOLOGY, DefaultOf, WithJson, flag
from commsim.cli.flags.faults import Faults, Hashes
from commsim.core.errors import InputError
from commsim.core.placement import PACKED
from commsim.core.remark import Remark
from commsim.core.units import parse_bandwidth, parse_time
from commsim.prediction.inputs import framing_of
from commsim.prediction.options import COSTS

if TYPE_CHECKING:
    from commsim.training.exchanges import ExchangesOnLinks
    from commsim.training.task_graph import Task

# Flags of what only a network has.
ON_NETWORK = (*(cost for cost in COSTS if cost != "overhead"), "fail", "scale", "hashes")


class Communication(Hashes, Faults, WithJson):
    """What communication costs."""

    TITLE: ClassVar[str] = "cost of communication"
    bandwidth: str | None = flag(metavar="RATE", help="rate of each worker in each direction, such as 100Gbps")
    latency: str | None = flag(
        metavar="TIME", help="latency of a message, and of each step of a collective (default: 0s)"
    )
    overhead: str | None = flag(
        metavar="TIME",
        help="time per message at the sender (default: %(usual)s; with --bandwidth 0s)",
        shown={"usual": OVERHEAD},
    )
    recv_overhead: str | None = flag(metavar="TIME", help="with --network: time per message at the receiver")
    reduce_rate: str | None = flag(metavar="RATE", help="with --network: rate at which a rank reduces, such as 10GB/s")
    payload: str | None = flag("--payload", "--mtu", metavar="SIZE", help="payload bytes of a packet, such as 4096B")
    header: str | None = flag(
        metavar="SIZE",
        help="header bytes of each packet, in addition to the payload (default: none; with --payload: %(usual)s)",
        shown={"usual": DefaultOf("commsim.core.cost:ROCE_HEADER", "{:g}B".format)},
    )
    network: str | None = flag(metavar=TOPOLOGY, help="in place of --bandwidth: simulate each exchange on this network")
    software: str | None = flag(
        metavar="NAME", help="with --network: communication library whose measured rate per port is used"
    )
    placement: str | None = flag(metavar="NAME|FILE", help="placement of the workers on the network (default: packed)")


def costs(
    config: Communication,
    n_ranks: int | None,
    algorithm: Sequence[str] = (),
    compressor: str | None = None,
) -> Callable[[Task], float]:
    """Return what a communication costs; without a bandwidth or a network, one that has to be paid is refused.

    Parameters
    ----------
    config : Communication
        The flags.
    n_ranks : int, optional
        Number of ranks to place; by default as many as the network has hosts.
    algorithm : sequence of str
        ``OPERATION=NAME`` of collectives that are not the usual ones.
    compressor : str, optional
        Compressor of gradients.

    Raises
    ------
    InputError
        If flags contradict each other.
    """
    from commsim.training.cost_by_formula import closed_form_costs
    from commsim.training.cost_by_simulation import network_costs

    if config.bandwidth is not None and config.network is not None:
        raise InputError("--bandwidth and --network both set the cost of communication; give one of them")
    for name in config.given("placement", *ON_NETWORK) if config.network is None else ():
        raise InputError(f"{name} goes with --network")
    for name, value in (("algorithm", algorithm), ("compressor", compressor)):
        if value and config.network is None:
            raise InputError(f"--{name} goes with --network")
    framing = framing_of(config.payload, config.header)
    if config.network is not None:
        if config.latency is not None:
            raise InputError("--latency goes with --bandwidth: the network already has latencies")
        options: dict[str, Any] = {name: getattr(config, name) for name in ("overhead", *ON_NETWORK)}
        return network_costs(
            config.network, config.placement or PACKED, n_ranks=n_ranks, seed=config.seed or 0,
            algorithms=dict(map(_algorithm, algorithm)), framing=framing, compressor=compressor, **options,
        )  # fmt: skip
    if config.bandwidth is None:
        return _unknown
    latency = 0.0 if config.latency is None else parse_time(config.latency, "--latency")
    step = latency + (0.0 if config.overhead is None else parse_time(config.overhead, "--overhead"))
    return closed_form_costs(step, parse_bandwidth(config.bandwidth, "--bandwidth"), framing=framing)


def notes_of(time_of: Callable[[Task], float]) -> tuple[Remark, ...]:
    """Return what was drawn and derived for exchanges on a network; nothing without one."""
    from commsim.training.cost_by_simulation import NetworkCosts

    return time_of.notes() if isinstance(time_of, NetworkCosts) else ()


def exchanges_of(time_of: Callable[[Task], float]) -> ExchangesOnLinks | None:
    """Return the links that exchanges on a network share; None without a network."""
    from commsim.training.cost_by_simulation import NetworkCosts
    from commsim.training.exchanges import ExchangesOnLinks

    return ExchangesOnLinks(time_of) if isinstance(time_of, NetworkCosts) else None


def shared_note(links: ExchangesOnLinks | None) -> list[Remark]:
    """Describe how many exchanges shared links, where some did."""
    text = f"{links.n_shared} exchanges overlapped others on shared links" if links else ""
    return [Remark("sharing", text)] if links and links.n_shared else []


def _unknown(task: Task) -> float:
    raise InputError(f"{task.name}: give what communication costs, --bandwidth RATE or --network SPEC")


def _algorithm(text: str) -> tuple[str, str]:
    operation, equals, name = text.partition("=")
    if not (operation and equals and name):
        raise InputError(f"--algorithm must be OPERATION=NAME, such as all_reduce=double_tree_all_reduce, got {text!r}")
    return operation, name

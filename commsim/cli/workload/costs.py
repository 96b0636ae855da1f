"""What communication costs, for the verbs of ``commsim workload`` that play a graph: a bandwidth, or a network."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.units import parse_bandwidth, parse_size, parse_time

if TYPE_CHECKING:
    from commsim.workload.task_graph import Task


def add_costs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what communication costs, and where the results go."""
    add = parser.add_argument
    add("--bandwidth", metavar="RATE", help="of each worker, each way, such as 100Gbps")
    add("--latency", metavar="TIME", help="of each step of a collective, and of a message (0 s)")
    add("--network", metavar="NAME:key=value,...|FILE", help="instead of --bandwidth: simulate each exchange on it")
    add("--placement", metavar="NAME|FILE", help="of the workers on the network (packed)")
    add("--json", metavar="FILE", help="also write the results as JSON")


def costs(args: argparse.Namespace, n_ranks: int | None) -> Callable[[Task], float]:
    """Return what a communication costs; without a bandwidth or a network, one that has to be paid is refused.

    Parameters
    ----------
    args : argparse.Namespace
        With the flags of :func:`add_costs`; of verbs that have them, also ``--algorithm`` and ``--seed``.
    n_ranks : int, optional
        To be placed; by default as many as the network has seats.

    Raises
    ------
    InputError
        If flags contradict each other.
    """
    from commsim.workload.cost_of import closed_form_costs, network_costs

    if args.bandwidth is not None and args.network is not None:
        raise InputError("--bandwidth and --network both say what communication costs: give one of them")
    for name in ("placement", "algorithm"):
        if getattr(args, name, None) is not None and args.network is None:
            raise InputError(f"--{name} goes with --network")
    if args.network is not None:
        if args.latency is not None:
            raise InputError("--latency goes with --bandwidth: the network has latencies of its own")
        algorithms, seed = (getattr(args, name, None) for name in ("algorithm", "seed"))
        return network_costs(args.network, args.placement or "packed", n_ranks=n_ranks, seed=seed or 0,
                             algorithms=dict(map(_algorithm, algorithms or [])))  # fmt: skip
    if args.bandwidth is None:
        return _unknown
    latency = 0.0 if args.latency is None else parse_time(args.latency, "--latency")
    return closed_form_costs(latency, parse_bandwidth(args.bandwidth, "--bandwidth"))


def seconds(args: argparse.Namespace, name: str) -> float:
    """Time of a flag, 0 when it was not given."""
    text = getattr(args, name)
    return 0.0 if text is None else parse_time(text, _flag(name))


def n_bytes(args: argparse.Namespace, name: str) -> float:
    """Size of a flag, 0 when it was not given."""
    text = getattr(args, name)
    return 0.0 if text is None else parse_size(text, _flag(name))


def config(args: argparse.Namespace) -> dict[str, object]:
    """Return the flags that were given, for the JSON."""
    return {k: v for k, v in vars(args).items() if k not in ("json", "what") and v is not None}


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _unknown(task: Task) -> float:
    raise InputError(f"{task.name}: give what communication costs, --bandwidth RATE or --network SPEC")


def _algorithm(text: str) -> tuple[str, str]:
    operation, equals, name = text.partition("=")
    if not (operation and equals and name):
        raise InputError(f"--algorithm must be OPERATION=NAME, such as all_reduce=double_tree_all_reduce, got {text!r}")
    return operation, name

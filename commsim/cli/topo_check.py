"""``commsim topo check``: is the network whole, and how fast can collectives be on it at best."""

from __future__ import annotations

import argparse
from typing import Any

from commsim.core.errors import InputError
from commsim.core.units import format_bandwidth
from commsim.report.table import print_facts, print_table, write_results

LARGE = 2.0**60
"""Bytes of which no latency counts."""
_NO_SCIPY = "unknown (pip install 'commsim[opt]')"
_TOO_LARGE = "not computed: the linear program is for small networks"


def check(args: argparse.Namespace) -> int:
    """Read the network, refuse it if endpoints are cut off, and print its bounds."""
    from commsim.core.network import PLURALS
    from commsim.routing.network_metrics import bisection_bandwidth, measure
    from commsim.run.inputs import load_network
    from commsim.synthesis import lower_bound
    from commsim.synthesis.optimal import all_to_all_rate, tree_all_reduce_rate

    network = load_network(args.topology)
    metrics = measure(network)
    if metrics.no_path is not None:
        raise InputError(f"{args.topology}: no path from {metrics.no_path[0]} to {metrics.no_path[1]}")
    found = lower_bound("all_reduce", network)
    rates = {
        "bisection": (bisection_bandwidth(network), "max-flow between halves"),
        "all_reduce, any schedule": (found.rate, found.why(LARGE)),
        "all_reduce, trees": (tree_all_reduce_rate(network), "linear program, reducing and broadcasting along trees"),
        "all_to_all": (all_to_all_rate(network), "linear program, maximum concurrent flow"),
    }
    print_facts({
        "name": network.name,
        "ranks": f"{len(network.endpoints)} {PLURALS[network.seat_kind]}",
        "connected": "yes" if metrics.is_exact else "as far as looked at",
        **_warnings(network),
    })  # fmt: skip
    missing = _NO_SCIPY if not _has_scipy() else _TOO_LARGE
    print_table(
        ["bound", "at most", "why"],
        [[name, missing if rate is None else format_bandwidth(rate), why] for name, (rate, why) in rates.items()],
        "algorithm bandwidth that no schedule exceeds, whatever the routing, unless switches reduce",
    )
    if args.json:
        row = {name: None if rate is None or rate == float("inf") else rate for name, (rate, _) in rates.items()}
        write_results(args.json, {"topology": args.topology}, [{"topology": network.name, "bounds_Bps": row}])
    return 0


def _warnings(network: Any) -> dict[str, str]:
    """Things that are legal and rarely meant."""
    import numpy as np

    pairs = {(int(a), int(b)) for a, b in zip(network.src, network.dst, strict=True)}
    one_way = [(a, b) for a, b in sorted(pairs) if (b, a) not in pairs]
    linked = np.isin(np.arange(network.n_nodes), np.concatenate((network.src, network.dst)))
    warnings = {}
    if one_way:
        a, b = one_way[0]
        warnings["one way"] = f"{len(one_way)} links, such as {network.nodes[a]}->{network.nodes[b]}, have no way back"
    if not linked.all() and network.n_nodes > 1:
        warnings["unused"] = (
            f"{int((~linked).sum())} nodes without links, such as {network.nodes[int((~linked).argmax())]}"
        )
    return warnings


def _has_scipy() -> bool:
    import importlib.util

    return importlib.util.find_spec("scipy") is not None

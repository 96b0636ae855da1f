"""``commsim topo``: list, show, check, save, import and export topologies."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from commsim.core.units import format_bandwidth, format_time
from commsim.report.table import print_facts, print_table, write_results

from .convert import add_format_arguments, run
from .flags.faults import add_damage_arguments, damaged
from .flags.outputs import check_draw_arguments, draw_loads

if TYPE_CHECKING:
    from commsim.core.network import Network


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="list|show|check|save|import|export")
    listing = verbs.add_parser("list", help="the topologies, with their parameters")
    show = verbs.add_parser("show", help="counts, link rates, bisection bandwidth, diameter, oversubscription")
    save = verbs.add_parser("save", help="write a network to a file that can be edited")
    check = verbs.add_parser("check", help="errors with their line, bisection bandwidth, bounds on collectives")
    taking = verbs.add_parser("import", help="read ASTRA-sim, GraphML, ns-3, SimAI or NCCL, and write a file of ours")
    giving = verbs.add_parser("export", help="write ASTRA-sim, GraphML, node-link, ns-3, SimAI or htsim")
    taking.add_argument("source", metavar="FILE")
    for one, source in ((taking, True), (giving, False)):
        add_format_arguments(one, source=source, target=not source)
        one.add_argument("-o", "--output", required=True, metavar="FILE", help="its suffix says the format")
    for one in (show, check, save, giving):
        one.add_argument("topology", metavar="NAME:key=value,...|FILE")
    show.add_argument("--draw", metavar="FILE", help="draw the network: .svg or .png")
    show.add_argument("--load", metavar="FILE", help="result whose loads colour the links: .json or .npz (with --draw)")
    collapsing = argparse.BooleanOptionalAction
    show.add_argument("--collapse", action=collapsing, help="draw hosts with the same switches as one box (if many)")
    for one in (listing, show, check):
        one.add_argument("--json", metavar="FILE", help="also write the results as JSON")
    for one in (show, save):
        add_damage_arguments(one)
        one.add_argument("--seed", type=int, help="of what fails at random (0)")
    save.add_argument("-o", "--output", required=True, metavar="FILE", help=".toml, .json or .npz")


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    from .topo_check import check

    if args.what in ("import", "export"):
        return run(args, args.source if args.what == "import" else args.topology, args.output)
    return {"list": _list, "show": _show, "check": check, "save": _save}[args.what](args)


def _list(args: argparse.Namespace) -> int:
    from topologies import TOPOLOGIES

    rows = []
    for name in TOPOLOGIES:
        entry = TOPOLOGIES[name]
        rows.append({"topology": name, "parameters": ",".join(entry.parameters), "summary": entry.summary})
    for row in rows:
        print(f"{row['topology']}:{row['parameters']}\n    {row['summary']}")
    if args.json:
        write_results(args.json, {"what": "topologies"}, rows)
    return 0


def _draw(args: argparse.Namespace, network: Network) -> None:
    from commsim.files.store import read_result

    result = None if args.load is None else read_result(args.load)
    draw_loads(network, result, args.draw, args.collapse)


def _show(args: argparse.Namespace) -> int:
    check_draw_arguments(args)
    from commsim.core.network_queries import locality_levels
    from commsim.routing.network_metrics import HALVES, bisection_bandwidth, measure
    from commsim.run.inputs import load_network

    network, notes = damaged(load_network(args.topology), args)
    for note in notes:
        print(f"# {note}")
    if args.draw:
        _draw(args, network)
    metrics = measure(network)
    bisection = bisection_bandwidth(network)
    facts = {
        "name": network.name,
        "nodes": ", ".join(f"{n} {_kind_of(n, kind)}" for kind, n in metrics.counts.items()),
        "links": f"{network.n_links} directed",
        "routing": network.routing,
        "locality": ", ".join(f"{level.group.max() + 1} {level.name}s" for level in locality_levels(network)),
        "tiers": ", ".join(f"{n} at {tier}" for tier, n in enumerate(metrics.tier_sizes)),
        "degree": ", ".join(f"{kind} {low}..{high}" for kind, (low, high) in metrics.degrees.items()),
        "diameter": ("" if metrics.is_exact else "at least ") + f"{metrics.diameter} links",
        "oversubscription": ", ".join(f"{r:.4g}:1 at tier {t}" for t, r in metrics.oversubscription.items()) or "none",
        "bisection": "unknown (pip install 'commsim[opt]')" if bisection is None else
                     f"{format_bandwidth(bisection)} one way ({HALVES})",
    }  # fmt: skip
    if metrics.no_path is not None:
        facts["disconnected"] = f"no path from {metrics.no_path[0]} to {metrics.no_path[1]}"
    print_facts(facts)
    latencies = sorted({float(v) for v in network.latency})
    span = " to ".join(format_time(v) for v in dict.fromkeys((latencies[0], latencies[-1]))) if latencies else "none"
    print_table(
        ["links", "bandwidth"],
        [[str(n), format_bandwidth(rate)] for rate, n in metrics.link_rates.items()],
        f"link rates; latency {span} a link",
    )
    if args.json:
        row = {
            "topology": network.name,
            "n_links": network.n_links,
            "routing": network.routing,
            "nodes": dict(metrics.counts),
            "tier_sizes": list(metrics.tier_sizes),
            "degrees": {k: list(v) for k, v in metrics.degrees.items()},
            "diameter": metrics.diameter,
            "diameter_is_exact": metrics.is_exact,
            "oversubscription": {str(k): v for k, v in metrics.oversubscription.items()},
            "bisection_Bps": bisection if bisection is None or bisection < float("inf") else None,
            "link_rates": [{"bandwidth_Bps": rate, "n_links": n} for rate, n in metrics.link_rates.items()],
            "no_path": metrics.no_path,
        }
        write_results(args.json, {"topology": args.topology}, [row])
    return 0


def _save(args: argparse.Namespace) -> int:
    from commsim.files.store import save
    from commsim.run.inputs import load_network

    network, notes = damaged(load_network(args.topology), args)
    for note in notes:
        print(f"# {note}")
    save(network, args.output)
    print(f"{args.output}: {network.n_nodes} nodes, {network.n_links} links")
    return 0


def _kind_of(n: int, kind: str) -> str:
    from commsim.core.network import KINDS, PLURALS

    return kind if n == 1 else PLURALS[KINDS.index(kind)]

"""``commsim presets``: machines and networks that exist, with the rates that they are sold and taken to have."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from commsim.report.table import print_facts, print_table, write_results

if TYPE_CHECKING:
    from topologies.presets import Preset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of this verb."""
    verbs = parser.add_subparsers(dest="what", required=True, metavar="list|show")
    listing = verbs.add_parser("list", help="the presets; each may be used wherever a topology or a machine is named")
    show = verbs.add_parser("show", help="counts, rates and sources of one preset")
    show.add_argument("preset", metavar="NAME")
    for one in (listing, show):
        one.add_argument("--json", metavar="FILE", help="also write the results as JSON")


def main(args: argparse.Namespace) -> int:
    """Do what was asked for."""
    from topologies.presets import PRESETS

    if args.what == "show":
        return _show(PRESETS[args.preset], args.json)
    rows = [_row(PRESETS[name]) for name in PRESETS]
    for row in rows:
        print(f"{row['preset']} ({row['kind']})\n    {row['summary']}")
    if args.json:
        write_results(args.json, {"what": "presets"}, rows)
    return 0


def _show(preset: Preset, json: str | None) -> int:
    from topologies.hosts.load import build_preset

    network = build_preset(preset.name)
    print_facts({
        "name": preset.name,
        "what": preset.summary,
        "kind": _row(preset)["kind"],
        "size": f"{len(network.endpoints)} places for ranks, {network.n_nodes} nodes, {network.n_links} directed links",
        "effective": preset.text(),
        "as sold": preset.text("spec"),
    })  # fmt: skip
    rows = [
        [rate.parameter, rate.spec or "unknown", rate.effective or "unknown", rate.used(), rate.source]
        for rate in preset.rates
    ]
    print_table(
        ["rate", "as sold", "effective", "used", "source"], rows, "per direction; rates=spec asks for those as sold"
    )
    for source in preset.sources:
        print(f"# {source}")
    if json:
        write_results(json, {"preset": preset.name}, [_row(preset)])
    return 0


def _row(preset: Preset) -> dict[str, Any]:
    from topologies.hosts.load import is_machine

    return {
        "preset": preset.name,
        "kind": "machine" if is_machine(preset.name) else "network",
        "summary": preset.summary,
        "text": preset.text(),
        "rates": [
            {"parameter": r.parameter, "spec": r.spec, "effective": r.effective, "used": r.used(), "source": r.source}
            for r in preset.rates
        ],
        "sources": list(preset.sources),
    }

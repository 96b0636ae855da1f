"""``commsim presets``: commercial machines and networks, with specified and effective rates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.report.table import print_facts, print_table

from .flags import Verb, WithJson, flag

if TYPE_CHECKING:
    from topologies.presets import Preset


class ShowConfig(WithJson):
    """All flags of ``commsim presets show``."""

    preset: str = flag("preset", metavar="NAME", help="preset")


def list_presets(config: WithJson) -> None:
    """Print all presets."""
    from topologies.presets import PRESETS

    rows = [_row(PRESETS[name]) for name in PRESETS]
    for row in rows:
        print(f"{row['preset']} ({row['kind']})\n    {row['summary']}")
    config.write_json(rows, {"what": "presets"})


def show_preset(config: ShowConfig) -> None:
    """Print counts, rates and sources of one preset."""
    from topologies.hosts.load import build_preset
    from topologies.presets import PRESETS

    preset = PRESETS[config.preset]
    network = build_preset(preset.name)
    print_facts({
        "name": preset.name,
        "what": preset.summary,
        "kind": _row(preset)["kind"],
        "size": f"{len(network.endpoints)} places for ranks, {network.n_nodes} nodes, {network.n_links} directed links",
        "effective": preset.text(),
        "specified": preset.text("spec"),
    })  # fmt: skip
    rows = [
        [rate.parameter, rate.spec or "unknown", rate.effective or "unknown", rate.used(), rate.source]
        for rate in preset.rates
    ]
    print_table(
        ["rate", "specified", "effective", "used", "source"],
        rows,
        "per direction; rates=spec: as specified",
    )
    for source in preset.sources:
        print(f"# {source}")
    config.write_json([_row(preset)], {"preset": preset.name})


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


COMMANDS = {
    "presets list": Verb(
        WithJson, list_presets, "print the presets; each may be used wherever a topology or a machine is named"
    ),
    "presets show": Verb(ShowConfig, show_preset, "print counts, rates and sources of one preset"),
}

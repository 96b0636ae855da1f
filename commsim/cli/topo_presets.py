"""``commsim topo presets``: commercial machines and networks, their rates and the sources of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commsim.core.remark import as_remarks
from commsim.core.units import count_text
from commsim.report.answer import Answer, Facts, Lines, Table, remarks

from .flags import WithJson, flag

if TYPE_CHECKING:
    from topologies.presets import Preset


class PresetsConfig(WithJson):
    """All flags of ``commsim topo presets``."""

    preset: str | None = flag("preset", nargs="?", metavar="NAME", help="one preset to show (default: list all)")


def presets(config: PresetsConfig) -> Answer:
    """Return all presets, or one with its counts, rates and sources."""
    from topologies.presets import PRESETS

    if config.preset is not None:
        return show_preset(config.preset)
    rows = [_preset_row(PRESETS[name]) for name in PRESETS]
    lines = [line for row in rows for line in (f"{row['preset']} ({row['kind']})", f"    {row['summary']}")]
    return Answer([Lines(lines)], rows, {"what": "presets"})


def show_preset(name: str) -> Answer:
    """Return counts, rates and sources of one preset."""
    from topologies.hosts.load import build_preset
    from topologies.presets import PRESETS

    preset = PRESETS[name]
    network = build_preset(preset.name)
    facts = {
        "name": preset.name,
        "what": preset.summary,
        "kind": _preset_row(preset)["kind"],
        "size": f"{count_text(len(network.endpoints), 'place')} for ranks, {count_text(network.n_nodes, 'node')}, "
        f"{count_text(network.n_links, 'directed link')}",
        "effective": preset.text(),
        "specified": preset.text("spec"),
    }
    rows = [
        [rate.parameter, rate.spec or "unknown", rate.effective or "unknown", rate.used(), rate.source]
        for rate in preset.rates
    ]
    columns = ["rate", "specified", "effective", "used", "source"]
    rates = Table(columns, rows, "per direction; rates=spec: as specified")
    return Answer(
        [Facts(facts), rates, *remarks(as_remarks(preset.sources, "source"))],
        [_preset_row(preset)],
        {"preset": preset.name},
    )


def _preset_row(preset: Preset) -> dict[str, Any]:
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

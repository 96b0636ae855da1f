"""Presets of fabrics: transport, balancing and full queues as an engineer chooses them, each with its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from commsim.core.errors import unknown_name

_UE, _DCQCN, _SWIFT = "Ultra Ethernet Specification 1.0", "Zhu et al., SIGCOMM 2015", "Kumar et al., SIGCOMM 2020"


@dataclass(frozen=True, slots=True)
class PresetValue:
    """An option of packets that a preset chooses.

    Parameters
    ----------
    value : str, int or bool
        Value of the option.
    source : str
        Publication that says so.
    """

    value: Any
    source: str


_SPRAYED = {
    "balancing": PresetValue("mixed", "default of the Ultra Ethernet simulator, whose tables docs/fabrics.md plays"),
    "entropies": PresetValue(128, "most paths in those tables"),
    "trimming": PresetValue(True, _UE),
}
PRESETS: Mapping[str, Mapping[str, PresetValue]] = {
    "uec": {"transport": PresetValue("nscc", f"{_UE}, 3.6.13"), **_SPRAYED},
    "uec-credit": {"transport": PresetValue("rccc", f"{_UE}, 3.6.14"), **_SPRAYED},
    "roce": {"transport": PresetValue("dcqcn", f"{_DCQCN}, section 5; one path by ECMP, pauses (IEEE 802.1Qbb)")},
    "roce-adaptive": {
        "transport": PresetValue("dcqcn", f"{_DCQCN}, section 5"),
        "balancing": PresetValue("adaptive", "Ghorbani et al., SIGCOMM 2017 (DRILL): the shorter of two random queues"),
        "trimming": PresetValue(False, "RoCEv2 has no trimming (InfiniBand specification, annex A17)"),
        "pause_at": PresetValue(0.0, "no PFC: RoCEv2 (annex A17) does without; queues of 500 kB at 40 Gbit/s drop"),
    },
    "swift": {
        "transport": PresetValue("swift", f"{_SWIFT}, algorithm 1"),
        "balancing": PresetValue("ecmp", f"{_SWIFT}: one path for each flow"),
        "trimming": PresetValue(False, f"{_SWIFT}: what is lost is repeated"),
    },
    "ideal": {"transport": PresetValue("window", "no congestion control, and queues without end")},
}


def preset_options(name: str) -> dict[str, Any]:
    """Return the options that a preset chooses, by the keys of :mod:`commsim.packets.packet_options`.

    Raises
    ------
    InputError
        If the preset is unknown.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return {key: choice.value for key, choice in PRESETS[name].items()}


def preset_sources(name: str) -> str:
    """Describe what a preset chooses, with the source of each choice."""
    return "; ".join(f"{key} {choice.value} ({choice.source})" for key, choice in PRESETS[name].items())

"""``commsim switch``: switches that aggregate, simulated, budgeted, served and captured."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from ..flags import Verb

SUMMARIES = {
    "simulate": "in-network aggregation packet by packet, with losses, in the arithmetic of the hardware",
    "budget": "whether a pool fits into a programmable switch, and what would fit",
    "serve": "be a switch that real workers talk to over UDP",
    "all-reduce": "be a worker of a switch that serves",
    "status": "jobs, slots and counters of a switch that serves",
    "pcap": "reconstruct from a capture what happened",
}


def _verb(name: str, summary: str) -> Verb:
    module = importlib.import_module(f"commsim.cli.switch.{name.replace('-', '_')}")
    flags: Any = SimpleNamespace(add_arguments=module.add_arguments, from_args=lambda args: args)
    return Verb(flags, module.main, summary)


COMMANDS = {f"switch {name}": _verb(name, summary) for name, summary in SUMMARIES.items()}

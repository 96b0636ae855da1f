"""The verbs: under which question the help lists each, what it does, and the modules that have its commands."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from commsim.extensions import house

if TYPE_CHECKING:
    from .flags import Verb

# Verbs under the question that they answer; one whose extension is not there is left out.
GROUPS: dict[str, tuple[str, ...]] = {
    "predict": ("expect", "run", "advise", "nccl", "traffic", "bound", "synthesize"),
    "compare with reality": ("watch", "calibrate", "validate", "emulate", "testbed", "compare", "reproduce", "fit"),
    "in-network aggregation": ("switch",),
    "training and placement": ("workload", "place", "cluster"),
    "many points and figures": ("sweep", "report", "diff", "plot", "trace"),
    "networks, schedules and files": ("topo", "schedule", "export", "examples", "schema"),
    "this machine": ("warmup", "doctor"),
}
# The verbs of the first screen, of which each stands under one of these questions.
FIRST = (
    "expect", "run", "nccl", "compare", "topo", "place", "workload", "emulate", "sweep", "synthesize", "switch",
    "report",
)  # fmt: skip
# What the core's own verbs do, each of which is a module beside this one.
CORE = {
    "run": "predict how long collectives take on a network",
    "topo": "list, show, check, save, import and export topologies; list commercial machines and networks",
    "schedule": "list, show, check, save, import and export schedules",
    "examples": "write the example files that the documentation names",
    "schema": "print the JSON Schema of what a verb writes with --json",
    "warmup": "compile all Numba kernels now, so that no command waits for the compiler",
    "doctor": "print what this machine supports",
}
# Those of them that need no NumPy.
WITHOUT_NUMPY = ("examples", "schema")


def listed_verbs() -> dict[str, str]:
    """Return what each verb of the help does, in its order; verbs of packages that were read already are last."""
    from .parsing.aliases import HIDDEN

    verbs = dict.fromkeys([*(verb for group in GROUPS.values() for verb in group), *house().verbs])
    return {verb: what for verb in verbs if verb not in HIDDEN and (what := summary_of(verb))}


def summary_of(verb: str) -> str:
    """Return what a verb does; empty if nothing that is there brings it."""
    return CORE.get(verb) or house().summaries.get(verb, "")


def modules_of(verb: str) -> list[str]:
    """Return the modules that have commands of a verb; none if nothing brings it."""
    if verb in CORE:
        return [f"commsim.cli.{verb}", *house().verbs.get(verb, ())]
    return house().modules_of(verb)


def commands_of(verb: str) -> dict[str, Verb]:
    """Return the commands of a verb by its words, from every module that brings some."""
    commands: dict[str, Verb] = {}
    for module in modules_of(verb):
        commands |= importlib.import_module(module).COMMANDS
    return {name: one for name, one in commands.items() if name.split()[0] == verb}

"""Examples of each verb, which its help prints; ``tests/cli/test_help.py`` runs those of a verb in their order."""

from __future__ import annotations

import importlib

from commsim.extensions import house

# Those of the program; a verb's are in ``EXAMPLES`` of the module that has its commands.
FIRST = """
        commsim expect dgx-h100 --machines 2
        commsim run ring_all_reduce --topology star:n_hosts=8 -b 1M -e 64M
        commsim run nccl --topology dgx-h100@star:machines=4 -b 1G -e 1G
        commsim workload step --model llama3-8b --gpu h100 --ranks 64 --tp 4 --global-batch 128
        commsim place examples/cluster.toml examples/jobs.json
        commsim help run"""


def examples_of(prog: str) -> list[str]:
    """Return the examples of a verb, or those of one of its verbs.

    Parameters
    ----------
    prog : str
        Command as in its usage, such as ``commsim run`` or ``commsim topo show``.
    """
    verb, _, inner = prog.removeprefix("commsim").strip().partition(" ")
    modules = (importlib.import_module(name) for name in (house().modules_of(verb) if verb else ()))
    texts = [getattr(module, "EXAMPLES", {}).get(verb, "") for module in modules] if verb else [FIRST]
    lines = [" ".join(line.split()) for text in texts for line in text.strip().splitlines()]
    return [line for line in lines if f"commsim {verb} {inner}" in line] if inner else lines

"""Whether a log's GPUs are those of the machines that it is held against."""

from __future__ import annotations

import re

from commsim.core.errors import InputError
from commsim.core.machines.hardware import maker_of, read_hardware
from commsim.core.network import Network
from commsim.diagnosis.log_facts import read_log_facts
from commsim.formats.machines.gpu_models import of_names

_OF_AMD = re.compile(r"\bAMD\b|\bMI\d{3}", re.ASCII)


def require_gpus(path: str, network: Network) -> None:
    """Refuse a log whose table of ranks names GPUs of another generation or maker than the machines have.

    Parameters
    ----------
    path : str
        The log.
    network : Network
        Machines; a generation that is guessed refuses nothing.

    Raises
    ------
    InputError
        If none of the GPUs that the log names is of the machines' generation.
    """
    facts = read_hardware(network.hardware)
    ours = facts.get("gpu", "")
    if not ours or "gpu" in facts.get("guessed", "").split("+"):
        return
    named = read_log_facts(path).gpus
    theirs = [_generation(name, ours, maker_of(network.hardware)) for name in named]
    if named and all(theirs) and ours not in theirs:
        raise InputError(
            f"{path}: its GPUs are {named[0]} ({theirs[0]}), those of {network.name} are {ours}: give the machines of "
            "the log, or --other-gpus to go on"
        )


def _generation(name: str, ours: str, maker: str) -> str:
    """Return the generation of a named GPU; empty where it is not known."""
    if _OF_AMD.search(name):
        return ours if maker == "amd" else "amd"
    found = of_names(name)
    return "" if found is None else found.generation

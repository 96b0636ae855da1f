"""Kind of a file of a scheduler or a machine, by what is in it."""

from __future__ import annotations

import re

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_head

HEAD = 2**16
# What only a file of the kind has, in the order in which it is asked.
_MARKS = {
    "slurm-conf": re.compile(r"^[ \t]*(?:SwitchName|BlockName)[ \t]*=", re.MULTILINE | re.IGNORECASE),
    "slurm-yaml": re.compile(r"^[ \t]*-[ \t]*\{?[ \t]*[\"']?topology[\"']?[ \t]*:", re.MULTILINE),
    "topograph-graph": re.compile(r'"network_layers"[ \t]*:'),
    "kube-nodes": re.compile(r'^\s*\{(?:[^{}]*,)?\s*"items"\s*:|"kind"\s*:\s*"Node"'),
    "topograph-model": re.compile(r"^\{?[ \t]*[\"']?(?:switches|blocks)[\"']?[ \t]*:", re.MULTILINE),
}
# Formats of one machine in `commsim.formats.recognise`, and their names here.
_MACHINES = {"nccl-topology": "nccl-xml", "nvidia-smi": "nvidia-smi"}


def kind_of_file(path: str) -> str:
    """Return the kind of a file, as ``place import --from`` names it.

    Raises
    ------
    InputError
        If it is none of these; says what was found in it.
    """
    from commsim.formats.recognise import format_of_file

    head = read_head(path, HEAD).decode("utf-8-sig", "replace")
    for kind, mark in _MARKS.items():
        if mark.search(head):
            return kind
    found = format_of_file(path)
    if found not in _MACHINES:
        raise InputError(
            f"{path}: the format is {found}, which --topology takes as it is; --from KIND reads another one"
        )
    return _MACHINES[found]

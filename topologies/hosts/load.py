"""A machine by what people call it: a preset, a host type with its arguments, or a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.formats.nccl_topology import read_nccl_topology
from commsim.core.formats.nvidia_smi import read_nvidia_smi
from commsim.core.network import Network
from commsim.core.spec import read_arguments, split_spec

from . import HOST_TYPES

MACHINE_SUFFIXES = (".xml", ".txt")
"""Of files that hold one machine: NCCL's topology, and what ``nvidia-smi topo -m`` prints."""


def is_machine(text: str) -> bool:
    """Whether `text` names a machine rather than a whole network."""
    from topologies.presets import PRESETS

    name = text.partition(":")[0].strip()
    if Path(name).suffix in MACHINE_SUFFIXES:
        return True
    return PRESETS[name].is_host if name in PRESETS else name in HOST_TYPES


def load_machine(text: str) -> Network:
    """Build ``name:key=value,...`` of a preset or a host type, or read a file: .xml, .txt, or a saved network.

    Raises
    ------
    InputError
        If the name is unknown, an argument is wrong, or the file does not hold one machine.
    """
    from commsim.core.formats.network_file import read_network
    from topologies.presets import PRESETS

    if Path(text).suffix in (".toml", ".json", ".npz"):
        return read_network(text)
    name, raw = split_spec(text)
    if Path(name).suffix in MACHINE_SUFFIXES:
        return dataclasses.replace(_read(name, raw), name=text)
    if name in PRESETS:
        if not PRESETS[name].is_host:
            raise InputError(f"preset {name} is a whole network, not a machine")
        return PRESETS[name].build(raw)
    if name not in HOST_TYPES:
        hosts = [preset for preset in PRESETS if PRESETS[preset].is_host]
        files = f"a file ending with {', '.join(MACHINE_SUFFIXES)}"
        raise InputError(f"unknown machine {name!r}; known: {', '.join((*hosts, *HOST_TYPES))}, or {files}")
    build = HOST_TYPES[name].build
    return build(**read_arguments(build, raw))


def _read(path: str, raw: dict[str, str]) -> Network:
    read: Callable[..., Network] = read_nccl_topology if Path(path).suffix == ".xml" else read_nvidia_smi
    return read(**read_arguments(read, raw, given=("path",)), path=path)

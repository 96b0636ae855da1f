"""What a flag that does not exist may mean: a parameter of a collective or a network that the line names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from commsim.core.errors import InputError
from commsim.core.spec import network_with, with_parameter


def parameter_meant(flag: str, words: Sequence[str]) -> str:
    """Return how a parameter is written that was given as a flag; nothing where no name of the line has it.

    Parameters
    ----------
    flag : str
        The flag, such as ``--density`` or ``--density=0.01``.
    words : sequence of str
        All words of the line.
    """
    name, has_value, value = flag.partition("=")
    after = words[words.index(flag) + 1 :] if flag in words else ()
    if not has_value:
        value = next((word for word in after[:1] if not word.startswith("--")), "VALUE")
    key = name.removeprefix("--").replace("-", "_")
    for word in words:
        spec = word.partition("=")[2] if word.startswith("--") else word
        for with_it in _with(spec, key, value):
            return f"; it is a parameter: {with_it}"
    return ""


def _with(spec: str, key: str, value: str) -> Iterator[str]:
    """Yield a spec of a collective, machine or fabric with a parameter that it has."""
    from collectives import COLLECTIVES
    from topologies import TOPOLOGIES
    from topologies.hosts import HOST_TYPES
    from topologies.presets import PRESETS

    if spec.partition(":")[0] in COLLECTIVES:
        from commsim.prediction.collective_names import check_collective

        with contextlib.suppress(InputError):
            check_collective(with_parameter(spec, f"{key}={value}"))
            yield with_parameter(spec, f"{key}={value}")
    machine, at, fabric = spec.rpartition("@")
    name = fabric.partition(":")[0]
    if name in TOPOLOGIES and key in TOPOLOGIES[name].parameters:
        yield network_with(spec, f"{key}={value}")
    machine, name = (machine, machine.partition(":")[0]) if at else (fabric, name)
    host = PRESETS.builder(name)
    if host in HOST_TYPES and key in HOST_TYPES[host].parameters:
        yield f"{with_parameter(machine, f'{key}={value}')}{f'@{fabric}' if at else ''}"

"""Places of a job in a file: names of nodes, each as often as it counts."""

from __future__ import annotations

import re
from collections.abc import Sequence

from commsim.core.files.fields import TableFields
from commsim.core.hostlist import expand_hosts

_LISTED = re.compile(r"([^\[\]]*\[.*\][^\[\]x]*)(?:x([1-9]\d{0,3}))?", re.ASCII)
_COUNT = re.compile(r"(.+)x([1-9]\d{0,4})", re.ASCII)
_RANGE = re.compile(r"(.*?)(0|[1-9]\d{0,8})-(0|[1-9]\d{0,8})(?:x([1-9]\d{0,4}))?", re.ASCII)
_MOST = 100_000  # nodes of one range


def kept_of(n_gpus: int) -> str:
    """Return what to do where a job has more places than GPUs, as one that shrinks has."""
    return f"a job that shrinks lists the {n_gpus} that it keeps, and `commsim place rank` compares choices of these"


def placement_of(fields: TableFields, n_gpus: int) -> tuple[str, ...] | None:
    """Return the node of each rank of a job in a file, None without; a name may count, such as ``h0-3x4``."""
    if fields.raw("placement") is None:
        return None
    nodes: list[str] = fields.items("placement", str, "the name of a node")
    names = nodes
    for read in (_repeated_names, spelled_out):  # a node may have a name such as h2x4 or h1-2: only where they must be
        names = names if len(names) == n_gpus else read(nodes)
    if len(names) != n_gpus:
        wanted = f"{n_gpus} nodes, one per GPU, such as h0 or h0x4 for 4 GPUs, or h0-3x4 for 4 of each"
        more = f": {kept_of(n_gpus)}" if len(names) > n_gpus else ""
        fields.fail("placement", f"must name {wanted}, got {len(names)}{more}")
    return tuple(names)


def placed_of(fields: TableFields, n_gpus: int) -> tuple[str, ...]:
    """Return the nodes that the first ranks of a job in a file keep."""
    if fields.raw("placed") is None:
        return ()
    names: list[str] = fields.items("placed", str, "the name of a node")
    if not all(names):
        fields.refuse("placed", "names of nodes")
    if len(names) > n_gpus:
        fields.fail("placed", f"names {len(names)} GPUs, but the job has {n_gpus}: {kept_of(n_gpus)}")
    return tuple(names)


def _repeated_names(names: Sequence[str]) -> list[str]:
    """Return each name as often as it counts: ``h2x4`` is ``h2`` four times."""
    matches = [(name, _COUNT.fullmatch(name)) for name in names]
    return [one for name, match in matches for one in ([match[1]] * int(match[2]) if match else [name])]


def spelled_out(names: Sequence[str]) -> list[str]:
    """Return a name for each GPU: ``h2x4`` is ``h2`` four times, ``h2-3x2`` is ``h2 h2 h3 h3``.

    Host lists of Slurm are written out, ``n[019-021,027]x2`` too.
    """
    found = []
    for name in names:
        if listed := _LISTED.fullmatch(name):
            found += [host for host in expand_hosts(listed[1]) for _ in range(int(listed[2] or 1))]
            continue
        match = _RANGE.fullmatch(name)
        first, last, times = (int(match[i] or 1) for i in (2, 3, 4)) if match else (0, -1, 1)
        if match and 0 <= last - first < _MOST // times:
            found += [f"{match[1]}{number}" for number in range(first, last + 1) for _ in range(times)]
        else:
            found += _repeated_names([name])
    return found

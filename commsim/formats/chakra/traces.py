"""The files of Chakra traces, one per rank: ``PREFIX.RANK.et``, and process groups in ``PREFIX.groups.json``."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import check_writable, write_json

from .codec import (
    GROUPS,
)
from .trace_file import MAX_NODES, ChakraTrace, read_trace, write_trace

SUFFIX = ".et"
MAX_RANKS = 2**20
MAX_TOTAL_BYTES = 2**28
Groups = dict[str, list[int]]


def write_traces(traces: Iterable[ChakraTrace], prefix: str | Path, groups: Groups | None = None) -> int:
    """Write ``PREFIX.0.et``, ``PREFIX.1.et`` and so on, all of them or none; return how many.

    Parameters
    ----------
    traces : iterable of ChakraTrace
        One per rank.
    prefix : path
        What the names begin with.
    groups : dict of str to list of int, optional
        Ranks of the process groups, for ``PREFIX.groups.json``.

    Raises
    ------
    InputError
        If one cannot be written, or the prefix has traces of more ranks: they would be read together with these.
    """
    prefix = Path(prefix)
    if not prefix.name or "\0" in prefix.name:
        raise InputError(f"{str(prefix)!r} is no prefix of the names of files")
    try:
        held = tempfile.TemporaryDirectory(dir=prefix.parent, prefix=f".{prefix.name}.")
    except OSError as error:
        raise InputError(f"{prefix}: cannot write: {error.strerror}") from None
    with held as folder:
        n = 0
        for n, trace in enumerate(traces, 1):
            write_trace(trace, f"{folder}/{prefix.name}.{n - 1}{SUFFIX}")
        if groups:
            write_json(f"{folder}/{prefix.name}{GROUPS}", groups)
        written = sorted(Path(folder).iterdir())
        for file in written:
            check_writable(prefix.with_name(file.name))
        if any(rank >= n for rank in _ranks_at(prefix)):
            raise InputError(f"{prefix}: there are traces of more than {n} ranks, which would be read with these")
        for file in written:
            file.replace(prefix.with_name(file.name))
    return n


def prefix_of(path: str | Path) -> Path:
    """Return the prefix that ``PREFIX``, ``PREFIX.et`` or ``PREFIX.3.et`` names."""
    path = Path(path)
    if not path.name or "\0" in path.name:
        raise InputError(f"{str(path)!r} is no prefix of the names of files")
    match = re.fullmatch(rf"(.+)\.\d{{1,7}}{re.escape(SUFFIX)}", path.name)
    return path.with_name(match[1] if match else path.name.removesuffix(SUFFIX) or SUFFIX)


def _ranks_at(prefix: Path) -> list[int]:
    """Ranks whose files are there, in order."""
    pattern = re.compile(rf"{re.escape(prefix.name)}\.(0|[1-9]\d{{0,6}}){re.escape(SUFFIX)}")
    try:
        names = [pattern.fullmatch(file.name) for file in prefix.parent.iterdir()]
    except (OSError, ValueError) as error:
        raise InputError(f"{prefix}: {getattr(error, 'strerror', None) or 'not the name of a file'}") from None
    return sorted(int(name[1]) for name in names if name)


def read_traces(path: str | Path) -> list[ChakraTrace]:
    """Read the traces of all ranks.

    Parameters
    ----------
    path : path
        The prefix, or any one of the files.

    Raises
    ------
    InputError
        If the file of rank 0 or of one between two others is missing, or one is damaged.
    """
    path = prefix_of(path)
    prefix, ranks = path.name, _ranks_at(path)
    if not ranks or ranks != list(range(len(ranks))) or len(ranks) > MAX_RANKS:
        there = set(ranks)
        missing = next((r for r in range(len(ranks) + 1) if r not in there), 0)
        raise InputError(f"{path}: {prefix}.{missing}{SUFFIX} is missing: there must be one file per rank, from 0")
    files = [path.parent / f"{prefix}.{rank}{SUFFIX}" for rank in ranks]
    if sum(file.stat().st_size for file in files if file.is_file()) > MAX_TOTAL_BYTES:
        raise InputError(f"{path}: its traces hold more than {MAX_TOTAL_BYTES >> 20} MiB")
    traces, n = [], 0
    for file in files:
        traces.append(read_trace(file))
        n += len(traces[-1].nodes)
        if n > MAX_NODES:
            raise InputError(f"{path}: more than {MAX_NODES} nodes")
    return traces

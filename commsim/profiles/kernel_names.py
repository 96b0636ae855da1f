"""Kernels that exchange data, by their names: a table of those that are known, and before it one of the user's.

A file of the user's has the same form::

    [[kernel]]
    pattern = 'my_moe::exchange<'     # a regular expression, looked for in the name
    operation = "all_to_all"          # or local: a computation
    size = "96MB"                     # bytes of the operation, as nccl-tests counts them; optional
    group = "expert"                  # part of a process group's name or description; optional
    ranks = 64                        # or how many ranks it has; optional

References
----------
DeepEP, NVSHMEM, MSCCL++ and NCCL: the names of their kernels.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.fields import TableFields
from commsim.core.files.whole_files import read_tree
from commsim.core.operations import OPERATIONS
from commsim.core.units import parse_size

LOCAL = "local"
SHIPPED = Path(__file__).with_name("kernels.toml")
# What is looked at of a kernel's name, which templates make as long as they like.
MAX_NAME = 2048
MAX_PATTERNS = 1000
MAX_PATTERN = 500
MAX_RANKS = 2**20


@dataclass(frozen=True, slots=True)
class KernelKind:
    """A kind of kernel.

    Parameters
    ----------
    pattern : re.Pattern
        Pattern that is looked for in a name.
    operation : str
        One of ``commsim.core.operations``, or ``local``.
    size : float or None, bytes
        Size of the operation, where it is always the same.
    group : str
        Part of the name or of the description of the process group; empty for all ranks.
    n_ranks : int or None
        Number of ranks, where no process group says it.
    """

    pattern: re.Pattern[str]
    operation: str
    size: float | None = None
    group: str = ""
    n_ranks: int | None = None


class KernelNames:
    """Tables of kernels, which are asked for one name at a time.

    Parameters
    ----------
    own : path, optional
        Table of the user's, which precedes the shipped one.

    Raises
    ------
    InputError
        Naming file, line and field, if the table is wrong.
    """

    def __init__(self, own: str | Path | None = None) -> None:
        rows = ([] if own is None else _read_kinds(own)) + list(_shipped())
        self.find = functools.lru_cache(maxsize=100_000)(functools.partial(_first, tuple(rows)))


def _first(rows: tuple[KernelKind, ...], name: str) -> KernelKind | None:
    kind = next((row for row in rows if row.pattern.search(name[:MAX_NAME])), None)
    return None if kind is None or kind.operation == LOCAL else kind


@functools.cache
def _shipped() -> tuple[KernelKind, ...]:
    rows = tomllib.loads(SHIPPED.read_text(encoding="utf-8"))["kernel"]
    return tuple(KernelKind(re.compile(row["pattern"]), row["operation"], group=row.get("group", "")) for row in rows)


def _read_kinds(path: str | Path) -> list[KernelKind]:
    top = TableFields(read_tree(path), path)
    top.schema(required=False)
    tables = top.tables("kernel")
    top.finish()
    if not 0 < len(tables) <= MAX_PATTERNS:
        top.fail("kernel", f"must be 1 to {MAX_PATTERNS} tables, got {len(tables)}")
    return [_kernel(table) for table in tables]


def _kernel(table: TableFields) -> KernelKind:
    text = table.text("pattern")
    try:
        pattern = re.compile(text[: MAX_PATTERN + 1])
    except (re.error, RecursionError, OverflowError):
        table.refuse("pattern", "a regular expression")
    if not 0 < len(text) <= MAX_PATTERN:
        table.refuse("pattern", f"1 to {MAX_PATTERN} characters")
    operation = table.one_of("operation", (LOCAL, *OPERATIONS))
    size = table.quantity("size", parse_size, 0.0) if "size" in table else None
    kernel = KernelKind(
        pattern, operation, size, table.text("group", ""),
        table.whole("ranks", minimum=1, maximum=MAX_RANKS) if "ranks" in table else None,
    )  # fmt: skip
    table.finish()
    return kernel


def sizes_by_name(texts: tuple[str, ...]) -> list[tuple[str, float]]:
    """Read ``NAME=SIZE`` texts: bytes of calls whose kernel or group has the name in it.

    Raises
    ------
    InputError
        If a text is of another form.
    """
    sizes = []
    for text in texts:
        name, equals, size = text.rpartition("=")
        if not (name and equals and size):
            raise InputError(f"--size must be NAME=SIZE, such as dispatch=96MB, got {text!r}")
        sizes.append((name, parse_size(size, f"--size {name}")))
    return sizes

"""The check that files which a command writes can be written, and are none that it reads."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from pathlib import Path

from commsim.core.errors import InputError
from commsim.core.files.whole_files import check_writable

from . import WRITTEN, Flags


def check_outputs(config: Flags) -> None:
    """Refuse, before anything is computed, results that cannot be written, and a file that the same command reads.

    Any other file that is named is replaced, when its new contents are complete.

    Raises
    ------
    InputError
        Naming the file.
    """
    for path in (getattr(config, "json", None), getattr(config, "csv", None)):
        if path and isinstance(path, str) and path != "-":
            check_writable(Path(path))
    values = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    others = [value if isinstance(value, tuple) else (value,) for name, value in values.items() if name not in WRITTEN]
    read = [one for one in itertools.chain.from_iterable(others) if isinstance(one, str)]
    check_written([output for name in WRITTEN if isinstance(output := values.get(name), str)], read)


def check_written(written: Iterable[str | None], read: Iterable[str | None]) -> None:
    """Refuse, before anything is computed, to write over a file that is read.

    Raises
    ------
    InputError
        If one is both; None means a file that was not asked for.
    """
    inputs = [Path(name) for name in read if name is not None]
    for name in written:
        if name is not None and any(_is_same(Path(name), path) for path in inputs):
            raise InputError(f"{name}: is read, and would be written over")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # one of them is not there
        return False

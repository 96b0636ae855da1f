"""What a command is asked to write must not be what it reads: measurements are not made again so easily."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from commsim.core.errors import InputError


def check_written(written: Iterable[str | None], read: Iterable[str | None]) -> None:
    """Refuse, before anything is computed, to write over a file that is read.

    Raises
    ------
    InputError
        If one is both; None stands for a file that was not asked for.
    """
    inputs = [Path(name) for name in read if name is not None]
    for name in written:
        if name is not None and any(_is_same(Path(name), path) for path in inputs):
            raise InputError(f"{name}: is read, and would be written over")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them is not there
        return False

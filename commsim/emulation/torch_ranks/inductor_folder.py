"""The folder that importing torch's compiler makes among the temporary files, which is left empty."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["no_empty_folder"]


@contextlib.contextmanager
def no_empty_folder() -> Iterator[None]:
    """Take the folder away at the end, if it was not there before and nothing was compiled into it."""
    folder = _folder()
    was_there = folder is None or folder.exists()
    try:
        yield
    finally:
        if folder is not None and not was_there:
            with contextlib.suppress(OSError):  # something is in it, or it was never made
                folder.rmdir()


def _folder() -> Path | None:
    """Return where torch keeps what it has compiled; None where the user has named another place."""
    if os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return None
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # no such user: torch has another name for it
        return None
    name = re.sub(r'[\\/:*?"<>|]', "_", user)
    return Path(tempfile.gettempdir()) / f"torchinductor_{name}"

"""What no reader of files may open."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commsim.core.errors import InputError

NO_FILES = (
    ("pipe", "not a regular file"), ("zero", "not a regular file"), (".", "is a directory"),
    ("none", "No such file"), ("a\0b", "is not the name of a file"),
)  # fmt: skip


def check_only_files_are_read(read: Callable[[Any], Any], folder: Path) -> None:
    """Check that a reader refuses a pipe, a device, a folder and what is missing, and waits for none of them."""
    os.mkfifo(folder / "pipe")
    (folder / "zero").symlink_to("/dev/zero")
    for name, why in NO_FILES:
        with pytest.raises(InputError, match=why):
            read(folder / name if name != "." else folder)

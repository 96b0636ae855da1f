"""Folders for sockets of this machine, whose paths the system limits to some hundred bytes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from commsim.core.errors import InputError

# Most bytes of the path of a socket, without the zero behind it: `sun_path` of the systems.
MOST_BYTES = 107 if sys.platform == "linux" else 103
# Where a folder goes if the folder of temporary files has too long a name.
SHORT_FOLDERS = ("/tmp", "/var/tmp")
PREFIX, N_DRAWN = "commsim-", 8  # of the name of a folder, with the characters that `tempfile` draws
__all__ = ["has_room_for_socket", "socket_folder"]


def has_room_for_socket(folder: str, name: str) -> bool:
    """Whether a path in a folder is short enough for a socket.

    Parameters
    ----------
    folder, name : str
        The folder, and the path in it.
    """
    return len(os.fsencode(Path(folder, name))) <= MOST_BYTES


def socket_folder(name: str) -> tempfile.TemporaryDirectory[str]:
    """Return a new private folder: among the temporary files, or if the path is too long, in ``/tmp``.

    Parameters
    ----------
    name : str
        Longest name of a socket in it.

    Raises
    ------
    InputError
        If every place is too long or cannot be written to.
    """
    usual = tempfile.gettempdir()
    for place in dict.fromkeys((usual, *SHORT_FOLDERS)):
        if has_room_for_socket(place, f"{PREFIX}{'x' * N_DRAWN}/{name}") and os.access(place, os.W_OK | os.X_OK):
            return tempfile.TemporaryDirectory(prefix=PREFIX, dir=place)
    raise InputError(f"{usual}: too long for sockets; set TMPDIR to a folder with a shorter name")

"""What stand-ins have to know of the emulation beside their rank."""

from __future__ import annotations

import os
from dataclasses import dataclass

DATA = "COMMSIM_EMULATE_DATA"
__all__ = ["DATA", "SETTINGS"]


@dataclass(slots=True)
class ProcessSettings:
    """Settings of this process.

    Parameters
    ----------
    moves_data : bool
        Whether data is moved, or only time goes on.
    """

    moves_data: bool


SETTINGS = ProcessSettings(os.environ.get(DATA) != "none")

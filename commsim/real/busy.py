"""Whether other processes use the cores while ranks are timed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .transport import RankTransport

# Of the cores: what others may use of them in a pass that counts as quiet.
QUIET = 0.1
# Passes that are enough: ten that others disturbed say less than three quiet ones.
ENOUGH = 3

_STAT = Path("/proc/stat")
# Columns of the first line of /proc/stat that are time in use: user, nice, system, irq, softirq, steal.
_USED = (0, 1, 2, 5, 6, 7)


class Busy:
    """Counts, from now on, what of the cores is used by others than the ranks.

    Parameters
    ----------
    transport : RankTransport
        Transport of this rank; all ranks make one.
    """

    def __init__(self, transport: RankTransport) -> None:
        self._transport = transport
        self._began = _core_seconds()

    def share(self) -> float:
        """Part of the cores of a host that others used since then, on the host with most; 0 where nobody counts it."""
        used, own, now = (then - before for then, before in zip(_core_seconds(), self._began, strict=True))
        others = used - own * self._transport.ranks_per_host
        share = max(0.0, others / max(now * (os.cpu_count() or 1), 1e-9)) if used else 0.0
        return float(self._transport.max_over_ranks(np.array([share]))[0])


def quiet_ones(shares: Sequence[float]) -> list[int]:
    """Numbers of the passes that count: of the quiet ones where they are enough, or else of all.

    Parameters
    ----------
    shares : sequence of float
        Part of the cores that others used in each pass.
    """
    quiet = [i for i, share in enumerate(shares) if share <= QUIET]
    return quiet if len(quiet) >= ENOUGH or 2 * len(quiet) >= len(shares) else list(range(len(shares)))


def idle_share(transport: RankTransport, seconds: float = 0.3) -> float:
    """Part of the cores that others use while the ranks sleep.

    Parameters
    ----------
    transport : RankTransport
        All of its ranks call this.
    seconds : float, s
        How long they sleep.
    """
    meter = Busy(transport)
    time.sleep(seconds)
    return meter.share()


def _core_seconds() -> tuple[float, float, float]:
    """Seconds of core time used by all and by this process, and the time of day; nothing by all where it is unknown."""
    own = sum(os.times()[:2])
    try:
        columns = [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:]]
    except (OSError, ValueError):
        return 0.0, own, time.monotonic()
    return sum(columns[i] for i in _USED) / os.sysconf("SC_CLK_TCK"), own, time.monotonic()

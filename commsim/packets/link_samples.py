"""What links did over time, packet by packet: queues, bytes, and packets that met with something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
# What packets of the packet engine meet with, and the fields of its state that count it.
COUNTED: Mapping[str, tuple[str, ...]] = {
    "sent again": ("retransmissions",), "marked": ("marks",), "lost": ("drops_loss",),
    "dropped at full buffers": ("drops_full",),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class LinkSamples:
    """Links, looked at again and again.

    Parameters
    ----------
    times : float64[n], s
        Times of the samples, ascending.
    queued, sent : int64[n, n_links], bytes
        What queued before each link then, and what it had sent until then.
    counts : dict of str to int64[n]
        What happened to packets until then, by the name of what happened.
    room : float64[n_links], bytes
        Capacity of each queue; infinity where it has no limit.
    """

    times: NDArray[np.float64]
    queued: Numbers
    sent: Numbers
    counts: dict[str, Numbers]
    room: NDArray[np.float64]

    def parts(self, most: int) -> Numbers:
        """Divide the samples into at most so many parts of about equal time.

        Parameters
        ----------
        most : int
            Parts.

        Returns
        -------
        int64[n_parts + 1]
            The samples with which parts begin and end; a part has its first sample and not its last.
        """
        if len(self.times) < 2:
            return np.zeros(1, np.int64)
        edges = np.linspace(self.times[0], self.times[-1], min(most, len(self.times) - 1) + 1)
        return np.unique(np.searchsorted(self.times, edges * (1 - 1e-12)))


class LinkWatch:
    """Looks at the links of a packet run at equal intervals.

    Parameters
    ----------
    end : float, s
        End of the run, as an earlier run has shown.
    looks : int
        How many, after the one at the beginning.
    """

    def __init__(self, end: float, looks: int) -> None:
        self._at = np.linspace(0.0, end, looks + 1).tolist()
        self._seen: list[tuple[Numbers, Numbers, Numbers]] = []
        self._room = np.zeros(0)

    @property
    def next(self) -> float:
        """When the next look is due."""
        return float(self._at[len(self._seen)]) if len(self._seen) < len(self._at) else np.inf

    def open(self, room: NDArray[np.float64]) -> None:
        """Begin a run, before anything is sent.

        Parameters
        ----------
        room : float64[n_links], bytes
            Capacity of each queue.
        """
        self._seen, self._room = [], room

    def note(self, queued: Numbers, sent: Numbers, counts: Numbers) -> None:
        """Note what queues before each link and what it has sent, in bytes, and the counts of ``COUNTED``."""
        self._seen.append((queued, sent, counts))

    def samples(self, n_links: int) -> LinkSamples:
        """Return what was seen of the first links, which are the network's.

        Parameters
        ----------
        n_links : int
            Number of links of the network.
        """
        queued, sent, counts = (np.array([seen[k] for seen in self._seen], np.int64) for k in range(3))
        times = np.array(self._at[: len(self._seen)])
        return LinkSamples(
            times, queued[:, :n_links], sent[:, :n_links],
            {name: counts[:, k] for k, name in enumerate(COUNTED)}, self._room[:n_links],
        )  # fmt: skip

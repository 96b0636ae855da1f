"""What links did over time, packet by packet: queues, bytes, and packets that met with something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LinkSamples:
    """Links, looked at again and again.

    Parameters
    ----------
    times : float64[n], s
        When; ascending.
    queued, sent : int64[n, n_links], bytes
        What queued before each link then, and what it had sent until then.
    counts : dict of str to int64[n]
        What happened to packets until then, by the name of what happened.
    room : float64[n_links], bytes
        That each queue can hold; infinity where there is no end.
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

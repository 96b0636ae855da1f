"""When a packet without a result is sent again."""

from __future__ import annotations

from commsim.core.errors import InputError

RTO_S = 0.01  # default of the shortest timeout
THRESHOLD = 100  # packets
LARGEST_RTO_S = 1.0
_GROWTH = 16


class Backoff:
    """How long packets wait for their results: a packet's own timeout doubles each time it is sent again.

    That suits losses, and workers that come late. A switch that cannot keep up answers late, and then every timeout is
    too short: so what packets begin with doubles as well, after 100 needless repetitions, then after 200 more, 300 more
    and so on; those are recognised by their results, which come twice. Every tensor begins with the shortest.

    Parameters
    ----------
    rto : float, s
        Shortest timeout; by default ``RTO_S``.

    Attributes
    ----------
    timeout, longest : float, s
        What packets begin with now, and what no timeout exceeds: 16 times the shortest.

    Raises
    ------
    InputError
        If it is not positive.

    References
    ----------
    p4lang/p4app-switchML, the DPDK worker's callback, which counts every repetition: it slows down under mere losses.
    """

    def __init__(self, rto: float = RTO_S) -> None:
        if not 0 < rto <= LARGEST_RTO_S:
            raise InputError(f"an rto is more than 0 and at most {LARGEST_RTO_S:g} s, got {rto}")
        self._shortest = self.timeout = rto
        self.longest = _GROWTH * rto
        self._needless, self._threshold = 0, THRESHOLD

    def begin(self) -> None:
        """Begin a tensor."""
        self.timeout = self._shortest

    def count(self, needless: int) -> None:
        """Take note of repetitions that were needless."""
        self._needless += needless
        while self._needless >= self._threshold:
            self._needless -= self._threshold
            self._threshold += THRESHOLD
            self.timeout = min(2 * self.timeout, self.longest)

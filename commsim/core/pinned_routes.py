"""Routes that are fixed beforehand: the links that the messages of some connections take, whatever the routing says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError
from .network import Network
from .value import Value, freeze

_NO_LINKS = np.empty(0, np.int32)
# Rows that are copied at once: places are of twice the size of what is copied.
AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class PinnedRoutes(Value):
    """Links of some connections; the others are routed as the network says. Kept in the order of `ends`.

    Parameters
    ----------
    ends : int32[n, 3]
        Sending participant, receiving participant and channel of each connection; none is named twice.
    first : int64[n + 1]
        Links of row r are ``link[first[r]:first[r + 1]]``, nearest to the sender first.
    link : int32[m]
        Directed links.

    Raises
    ------
    InputError
        If a connection is named twice, or the rows do not fit the links.
    """

    ends: NDArray[np.int32]
    first: NDArray[np.int64]
    link: NDArray[np.int32]

    if TYPE_CHECKING:  # what may be given is wider than what is kept

        def __init__(self, ends: ArrayLike, first: ArrayLike, link: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        ends = freeze(np.reshape(self.ends, (-1, 3)), np.int32, name="ends of pinned routes")
        first = freeze(self.first, np.int64, name="rows of pinned routes")
        link = freeze(self.link, np.int32, name="links of pinned routes") if np.size(self.link) else _NO_LINKS
        if first.shape != (len(ends) + 1,) or first[0] or first[-1] != len(link) or (np.diff(first) < 0).any():
            raise InputError(f"pinned routes need rows that rise from 0 to {len(link)}, one per connection")
        order = np.lexsort(ends.T[::-1])  # so that equal routes are equal values, whatever order they were given in
        same = np.flatnonzero((np.diff(ends[order], axis=0) == 0).all(axis=1))
        if same.size:
            raise InputError(f"{_connection(ends[order[same[0]]])} has two pinned routes")
        new_first, link = gathered(first, link, order)
        for field, array in (("ends", ends[order]), ("first", new_first), ("link", link)):
            array.setflags(write=False)
            object.__setattr__(self, field, array)

    def __len__(self) -> int:
        """Count the pinned connections."""
        return len(self.ends)

    @staticmethod
    def of(routes: Iterable[tuple[int, int, int, Sequence[int]]]) -> PinnedRoutes:
        """Make it from ``(src, dst, channel, links)`` of each connection."""
        rows = list(routes)
        first = np.cumsum([0, *(len(links) for *_, links in rows)])
        return PinnedRoutes([row[:3] for row in rows], first, [link for *_, links in rows for link in links])

    @staticmethod
    def joined(several: Sequence[PinnedRoutes | None], n_participants: Sequence[int]) -> PinnedRoutes | None:
        """Put the routes of several placements together, their participants numbered one after the other.

        Parameters
        ----------
        several : sequence of PinnedRoutes or None
            Pinned routes of each placement.
        n_participants : sequence of int
            How many each places.

        Returns
        -------
        PinnedRoutes or None
            None where no placement pins any.
        """
        begin = np.cumsum([0, *n_participants])
        pairs = [(routes, b) for routes, b in zip(several, begin, strict=False) if routes is not None]
        if not pairs:
            return None
        ends = np.concatenate([routes.ends + np.array([b, b, 0]) for routes, b in pairs])
        length = np.concatenate([np.diff(routes.first) for routes, _ in pairs])
        return PinnedRoutes(ends, np.cumsum([0, *length]), np.concatenate([routes.link for routes, _ in pairs]))

    def rows_of(self, ends: NDArray[np.int32], channel: NDArray[np.int64]) -> NDArray[np.int64]:
        """Look up connections.

        Parameters
        ----------
        ends : int32[n, 2]
            Sending and receiving participant of each.
        channel : int64[n]
            Channel of each connection.

        Returns
        -------
        int64[n]
            The row of each; -1 where it is not pinned.
        """
        wanted, known = _keys(np.column_stack((ends, channel))), _keys(self.ends)
        row = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[row] == wanted, row, -1) if len(known) else np.full(len(wanted), -1)

    def check(self, network: Network, nodes: NDArray[np.int32]) -> None:
        """Raise unless each route exists on the network and leads from its sender to its receiver.

        Parameters
        ----------
        network : Network
            Network with the links and nodes in question.
        nodes : int32[n_participants]
            Node of each participant.

        Raises
        ------
        InputError
            If a participant or a link does not exist, two links that follow each other do not meet, or a route begins
            or ends elsewhere, or passes through a node that does not forward. The message names the connection.
        """
        if not len(self):
            return
        bad = (self.ends < 0) | (self.ends >= [len(nodes), len(nodes), 2**15])
        if bad.any():
            row, column = np.argwhere(bad)[0]
            limit = "a channel" if column == 2 else f"one of {len(nodes)} participants"
            raise InputError(f"a pinned route names {self.ends[row, column]}, which is not {limit}")
        if self.link.size and not 0 <= self.link.min() <= self.link.max() < network.n_links:
            worst = self.link.min() if self.link.min() < 0 else self.link.max()
            raise InputError(f"a pinned route takes link {worst}, {network.name} has links 0..{network.n_links - 1}")
        # A route is the nodes that it comes to: where its sender sits, and then the end of each link.
        length = np.diff(self.first)
        row = np.repeat(np.arange(len(self)), length)
        begins = self.first[:-1][length > 0]
        reached = np.empty(len(self.link), np.int32)
        reached[1:] = network.dst[self.link[:-1]]
        reached[begins] = nodes[self.ends[row[begins], 0]]
        apart = np.flatnonzero(network.src[self.link] != reached)
        if apart.size:
            at = int(apart[0])
            raise InputError(
                f"{_connection(self.ends[row[at]])}: its pinned route takes {network.link_name(int(self.link[at]))} "
                f"from {network.nodes[reached[at]]}, where that link does not begin"
            )
        passed = np.ones(len(self.link), np.bool_)
        passed[begins] = False
        barred = np.flatnonzero(passed & ~network.forwards[reached])
        if barred.size:
            at = int(barred[0])
            raise InputError(
                f"{_connection(self.ends[row[at]])}: its pinned route passes through {network.nodes[reached[at]]}, "
                "which does not forward the traffic of others"
            )
        last = nodes[self.ends[:, 0]].copy()
        last[length > 0] = network.dst[self.link[self.first[1:][length > 0] - 1]]
        astray = np.flatnonzero(last != nodes[self.ends[:, 1]])
        if astray.size:
            at = int(astray[0])
            raise InputError(
                f"{_connection(self.ends[at])}: its pinned route ends at {network.nodes[last[at]]}, the receiver is "
                f"on {network.nodes[nodes[self.ends[at, 1]]]}"
            )


def gathered(
    first: NDArray[np.int64], link: NDArray[np.int32], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Copy rows of links in another order.

    Parameters
    ----------
    first, link : int64[n + 1], int32[m]
        Rows, as in :class:`PinnedRoutes`.
    rows : int[k]
        Index of each row of the result.

    Returns
    -------
    first, link : int64[k + 1], int32[m']
    """
    new_first = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.diff(first)[rows], out=new_first[1:])
    found = np.empty(new_first[-1], link.dtype)
    for low in range(0, len(rows), AT_ONCE):
        begin = new_first[low : low + AT_ONCE + 1]
        at = np.repeat(first[rows[low : low + AT_ONCE]] - begin[:-1], np.diff(begin))
        at += np.arange(begin[0], begin[-1])
        found[begin[0] : begin[-1]] = link[at]
    return new_first, found


def _keys(ends: NDArray[np.integer]) -> NDArray[np.int64]:
    """Sender, receiver and channel as one number; 24 bits are enough for participants, 15 for channels."""
    src, dst, channel = ends.astype(np.int64).T
    return np.asarray((src << 39) | (dst << 15) | channel)


def _connection(ends: NDArray[np.int32]) -> str:
    src, dst, channel = ends.tolist()
    return f"{src} -> {dst}, channel {channel}"

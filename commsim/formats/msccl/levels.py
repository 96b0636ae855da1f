"""Numbers for things that come after each other, where some may also come at once."""

from __future__ import annotations

from collections.abc import Iterable

from commsim.core.errors import InputError

ANY, LATER, UNLESS_AROUND = range(3)
"""Of an edge: the later end is not before the earlier one; after it; after it unless it also comes before it."""
Edge = tuple[int, int, int]
"""Earlier, later, and one of these."""


def levels(n: int, edges: Iterable[Edge], name: str) -> list[int]:
    """Return the smallest number of each thing that all edges allow.

    Things that come after each other in a circle get one number.

    Raises
    ------
    InputError
        If one of a circle must be later than another.
    """
    rows = list(edges)
    circle = _circles(n, rows)
    after: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for a, b, kind in rows:
        if circle[a] != circle[b]:
            after[circle[b]].append((circle[a], int(kind != ANY)))
        elif kind == LATER:
            raise InputError(f"{name}: messages overtake each other in a way that no order of hops allows")
    level = [0] * n
    for c in range(n):  # circles are numbered so that what they come after has smaller numbers
        level[c] = max((level[before] + step for before, step in after[c]), default=0)
    return [level[circle[i]] for i in range(n)]


def _circles(n: int, edges: list[Edge]) -> list[int]:
    """Find the circle (strongly connected component) of each thing, numbered after those that it comes after.

    References
    ----------
    Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput. 1(2), 1972.
    """
    before: list[list[int]] = [[] for _ in range(n)]
    for a, b, _ in edges:
        before[b].append(a)
    found, low, circle = [-1] * n, [0] * n, [-1] * n
    waiting: list[int] = []
    n_found = n_circles = 0
    for root in range(n):
        stack = [(root, 0)] if found[root] < 0 else []
        while stack:
            i, k = stack.pop()
            if k == 0:
                found[i] = low[i] = n_found
                n_found += 1
                waiting.append(i)
            if k < len(before[i]):
                stack.append((i, k + 1))
                j = before[i][k]
                if found[j] < 0:
                    stack.append((j, 0))
                elif circle[j] < 0:
                    low[i] = min(low[i], found[j])
                continue
            if low[i] == found[i]:
                while circle[i] < 0:
                    circle[waiting.pop()] = n_circles
                n_circles += 1
            if stack and circle[i] < 0:
                low[stack[-1][0]] = min(low[stack[-1][0]], low[i])
    return circle

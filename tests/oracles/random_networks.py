"""Small random networks with switches, parallel cables and odd rates, on which every rank reaches every other."""

import numpy as np
from hypothesis import strategies as st

from commsim.core.network import HOST, SWITCH, Network, both_ways


@st.composite
def networks(draw, max_ranks=6, max_switches=3, max_rate=12, one_way=True):
    """Draw a network; a ring one way may be added, which makes it asymmetric but keeps switches balanced."""
    n, w = draw(st.integers(2, max_ranks)), draw(st.integers(0, max_switches))
    size = n + w
    rate = st.integers(1, max_rate)
    cables = [(draw(st.integers(0, i - 1)), i, draw(rate)) for i in range(1, size)]  # a tree: connected
    for _ in range(draw(st.integers(0, 2 * size))):
        a, b = draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1))
        if a != b:
            cables.append((a, b, draw(rate)))
    a, b, r = np.array(cables).T
    src, dst = both_ways(a, b)
    rates = np.concatenate((r, r))
    if one_way and size > 2 and draw(st.booleans()):
        order = np.array(draw(st.permutations(range(size))))
        src, dst = np.concatenate((src, order)), np.concatenate((dst, np.roll(order, -1)))
        rates = np.concatenate((rates, np.full(size, draw(rate))))
    names = tuple(f"h{i}" for i in range(n)) + tuple(f"s{i}" for i in range(w))
    return Network("drawn", names, [HOST] * n + [SWITCH] * w, src, dst, rates * 1e9, 1e-9)

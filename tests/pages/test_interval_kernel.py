import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from commsim.pages.interval_kernel import add_to_bins, fill_lanes

INTERVALS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 8)), max_size=40)


@given(INTERVALS)
def test_lanes_never_overlap_and_are_as_few_as_can_be(rows):
    rows = sorted((track, start, start + length) for track, start, length in rows)
    track, start, end = (np.array([r[i] for r in rows], np.int64) for i in range(3))
    lane = np.zeros(len(rows), np.int32)
    fill_lanes(track, start, end, lane, np.zeros(len(rows), np.int64))
    for t in set(track.tolist()):
        mine = [(s, e, k) for u, s, e, k in zip(track, start, end, lane, strict=True) if u == t]
        for k in {m[2] for m in mine}:
            on_lane = sorted((s, e) for s, e, other in mine if other == k)
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(on_lane))
        at_once = max(sum(s <= at < e for s, e, _ in mine) for at in range(30))
        assert max(k for *_, k in mine) + 1 <= max(1, at_once) + any(s == e for s, e, _ in mine)


@example([(0, 5e-324, 5e-324, 1.0)])
@given(st.lists(st.tuples(st.integers(-1, 2), st.floats(-2, 12), st.floats(0, 6), st.floats(0, 5)), max_size=20))
def test_bins_are_those_of_a_fine_grid(rows):
    row = np.array([r[0] for r in rows], np.int64)
    start = np.array([r[1] for r in rows])
    end = start + [r[2] for r in rows]
    amount = np.array([r[3] for r in rows])
    bins = np.zeros((3, 5))
    add_to_bins(row, start, end, amount, 2.0, bins)
    wanted = np.zeros((3, 5))
    for r, a, b, n in zip(row.tolist(), start, end, amount, strict=True):
        for k in range(5):
            inside = min(b, 2.0 * k + 2) - max(a, 2.0 * k)
            if r >= 0 and b / 2.0 > a / 2.0 and inside > 0:
                wanted[r, k] += n * (inside / (b - a))
            elif r >= 0 and b / 2.0 <= a / 2.0 and 0 <= a <= 10 and min(int(a / 2), 4) == k:
                wanted[r, k] += n
    np.testing.assert_allclose(bins, wanted, rtol=1e-6, atol=1e-9)

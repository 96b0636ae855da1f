"""Trees by the widest arcs: each reaches all ranks, and together they take no more of an arc than there is."""

import numpy as np

from commsim.ranking.synthesis.trees.packing_kernel import pack_widest


def test_trees_by_the_widest_arcs_take_what_they_say_of_each_arc_and_no_more() -> None:
    rng, n, units, packed = np.random.default_rng(3), 5, 6, 0
    for _ in range(100):
        room = rng.integers(0, 8, (n, n))
        root, left = int(rng.integers(n)), room.copy()
        batch, parent = np.zeros((12, 5 + n), np.int64), np.zeros((12, n), np.int64)
        done = pack_widest(left, root, units, batch, parent)
        if done < 0:  # others have to be asked what they need
            continue
        packed, used = packed + 1, np.zeros_like(room)
        for row, sender in zip(batch[:done], parent[:done], strict=True):
            assert sorted(row[5:]) == list(range(n))
            assert row[5] == root
            assert [sender[k] in row[5 : 5 + k] for k in range(1, n)] == [True] * (n - 1)
            np.add.at(used, (sender[1:], row[6:]), row[0])
        assert batch[:done, 0].sum() == units
        assert (room - used == left).all()
        assert (left >= 0).all()
    assert packed > 20

"""A kernel asks for rows ahead of time, also for those that there are not: nothing is read or changed."""

import numpy as np

from commsim.core.jit import compile_all, fetch, kernel


@kernel
def summed(table, far):
    total = 0
    for i in range(len(table)):
        fetch(table, i + far)
        total += table[i]["value"]
    return total


def test_rows_beyond_the_table_may_be_asked_for():
    compile_all()
    table = np.zeros(5, np.dtype([("value", np.int64), ("more", np.int64, (15,))]))
    table["value"] = np.arange(5)
    before = table.copy()
    assert [summed(table, far) for far in (0, 3, -7, 1 << 45)] == [10] * 4
    assert (table == before).all()

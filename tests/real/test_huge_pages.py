import gc
from pathlib import Path

import numpy as np
import pytest

from commsim.real.huge_pages import LEAST, PAGE, huge_zeros


@pytest.mark.parametrize("n_bytes", [LEAST, LEAST + 4, PAGE, PAGE + 4, 3 * PAGE])
def test_arrays_begin_with_a_page_and_are_zeros_that_can_be_written(n_bytes: int) -> None:
    first, second = (huge_zeros(n_bytes // 4, "float32") for _ in range(2))
    for array in (first, second):
        assert array.nbytes == n_bytes
        assert not array.any()
        assert array.ctypes.data % PAGE == 0
    first[:] = 1
    assert not second.any()


def test_small_arrays_are_ordinary_ones() -> None:
    assert huge_zeros(5, "int64").tolist() == [0] * 5
    assert huge_zeros(0, "float32").size == 0


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="not Linux")
def test_memory_goes_with_the_last_array_in_it() -> None:
    def pages() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0])

    huge_zeros(PAGE, "uint8")
    gc.collect()
    before = pages()
    part = huge_zeros(64 * PAGE, "uint8")[5:9]
    assert (part == np.zeros(4, np.uint8)).all()
    held = pages()
    del part
    gc.collect()
    assert held - before > 4 * (pages() - before)

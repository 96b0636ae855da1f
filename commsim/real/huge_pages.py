"""Memory of a rank on huge pages, whatever the process had allocated before.

A library copies from the memory of another process page by page, and with pages of 4 KiB finding them takes as long as
the copy: 512 KiB both ways took 113 us on two cores, and 70 us on pages of 2 MiB. NumPy asks for huge pages from 4 MiB
on, and smaller arrays get them where the heap has some left: the same message was fast in one run, slow in another.
"""

from __future__ import annotations

import contextlib
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE = 2 << 20
# Smaller arrays stay on the heap: their messages are copied through a buffer that both processes map.
LEAST = 32 << 10


def huge_zeros(n_elements: int, dtype: str) -> NDArray[Any]:
    """Array of zeros, written once so that its pages exist, that begins with a huge page where the system has them.

    Parameters
    ----------
    n_elements : int
        Elements.
    dtype : str
        Type of an element.
    """
    n_bytes = n_elements * np.dtype(dtype).itemsize
    advice = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
    if advice is None or n_bytes < LEAST:
        return np.full(n_elements, 0, dtype)
    whole = (-(-n_bytes // PAGE) + 1) * PAGE
    area = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # unmapped with the last array in it
    with contextlib.suppress(OSError):  # a kernel without them has ordinary pages, but always
        area.madvise(advice)
    raw = np.frombuffer(area, np.uint8)
    begin = -raw.ctypes.data % PAGE
    array = raw[begin : begin + n_bytes].view(dtype)
    array[:] = 0
    return array

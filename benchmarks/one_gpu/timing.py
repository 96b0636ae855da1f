"""Times of calls on a GPU: by its own events, launched one after the other or within a CUDA graph."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch

GPU = "cuda"


def timed(call: Callable[[], object], least: float = 0.04) -> float:
    """Return the median time of a call, in seconds, of three series that each take at least so long."""
    call()
    call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def series(n: int) -> float:
        begin.record()
        for _ in range(n):
            call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3 / n

    n = int(min(200, max(3, least / max(series(1), 1e-6))))
    return statistics.median(series(n) for _ in range(3))


def graphed(call: Callable[[], object], n: int = 20) -> float:
    """Return the time of a call within a CUDA graph of `n` such calls, in seconds."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
        call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(n):
            call()
    return timed(graph.replay) / n

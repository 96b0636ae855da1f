"""A slow, obvious run of a schedule on NumPy arrays: all reads of a hop first, then its writes in program order."""

from __future__ import annotations

import numpy as np

from commsim.core.schedule import REDUCE, Schedule


def naive_run(schedule: Schedule, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Output buffer of every rank."""
    n, k = len(inputs[0]), schedule.n_chunks
    memory = []
    for values in inputs:
        buffers = {0: values.copy(), 2: np.zeros(schedule.n_scratch * (n // k), values.dtype)}
        buffers[1] = buffers[0] if schedule.in_place else np.zeros(n, values.dtype)
        memory.append(buffers)

    def part(buffer: int, chunk: int, count: int) -> slice:
        if buffer == 2:
            return slice(chunk * (n // k), (chunk + count) * (n // k))
        return slice(chunk * n // k, (chunk + count) * n // k)

    transfers = schedule.expand()
    for hop in np.unique(transfers["hop"]):
        now = transfers[transfers["hop"] == hop]
        read = [
            memory[t["src"]][t["src_buffer"]][part(int(t["src_buffer"]), int(t["src_chunk"]), int(t["count"]))].copy()
            for t in now
        ]
        for t, values in zip(now, read, strict=True):
            where = part(int(t["dst_buffer"]), int(t["dst_chunk"]), int(t["count"]))
            target = memory[t["dst"]][t["dst_buffer"]]
            target[where] = target[where] + values if t["op"] == REDUCE else values
    return [buffers[1] for buffers in memory]

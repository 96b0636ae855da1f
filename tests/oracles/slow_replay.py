"""The value pass written to be read: a log of operations carried out in Python integers or floats, row by row."""

from typing import Any

import numpy as np

from switch_model.payload import Payload
from switch_model.slot_kernel import ADD, OVERWRITE, READ
from switch_model.slot_sequence import RECEIVE
from switch_model.system import System


class IllegalError(Exception):
    """A row makes no sense; its number is the argument."""


def slow_replay(
    log: Any, payload: Payload, system: System, n_registers: int, n_messages: int
) -> tuple[list[int], list[int], int]:
    """Elements wrong and missing for each worker, and elements added; only where every sum must be exact."""
    k = system.elements
    registers = [[0] * k for _ in range(n_registers)]
    messages: dict[int, list[Any]] = {}
    job_of = np.searchsorted(payload.first_worker, np.arange(payload.n_workers), side="right") - 1
    n_chunks = [len(payload.bounds(job, k)) - 1 for job in range(len(payload.n_elements))]
    received: dict[tuple[int, int], int] = {}
    added = 0
    for i, row in enumerate(log):
        action, register, worker, chunk, source, out = (
            int(row[name]) for name in ("action", "register", "worker", "chunk", "in_message", "out_message")
        )
        if action == RECEIVE:
            if (
                source not in messages
                or not 0 <= worker < payload.n_workers
                or not 0 <= chunk < n_chunks[job_of[worker]]
            ):
                raise IllegalError(i)
            mates = np.flatnonzero(job_of == job_of[worker])
            blocks = [payload.block(int(w), chunk, k).tolist() for w in mates]
            exact = [_wrapped(sum(column), system) for column in zip(*blocks, strict=True)]
            received[worker, chunk] = sum(a != b for a, b in zip(messages[source], exact, strict=False))
            continue
        if action not in (OVERWRITE, ADD, READ, OVERWRITE | READ, ADD | READ) or not 0 <= register < n_registers:
            raise IllegalError(i)
        if action != READ:
            if (worker >= 0) == (source >= 0):
                raise IllegalError(i)
            if worker >= 0:
                if worker >= payload.n_workers or not 0 <= chunk < n_chunks[job_of[worker]]:
                    raise IllegalError(i)
                block = payload.block(worker, chunk, k).tolist()
            elif source in messages:
                block = messages[source]
            else:
                raise IllegalError(i)
            added += len(block)
            if action & OVERWRITE:
                registers[register] = block + [0] * (k - len(block))
            else:
                old = registers[register]
                registers[register] = [_held(a + b, system) for a, b in zip(old, block, strict=False)] + old[
                    len(block) :
                ]
        elif source >= 0:
            raise IllegalError(i)
        if action & READ:
            if not 0 <= out < n_messages or out in messages:
                raise IllegalError(i)
            messages[out] = list(registers[register])
    wrong, missing = [0] * payload.n_workers, [0] * payload.n_workers
    for w in range(payload.n_workers):
        for c, length in enumerate(np.diff(payload.bounds(int(job_of[w]), k)).tolist()):
            wrong[w] += received.get((w, c), 0)
            missing[w] += 0 if (w, c) in received else length
    return wrong, missing, added


def _wrapped(total: Any, system: System) -> Any:
    return (total + 2**31) % 2**32 - 2**31 if system.arithmetic == "wrap" else total


def _held(total: Any, system: System) -> Any:
    if system.arithmetic == "saturate":
        return min(max(total, -(2**31)), 2**31 - 1)
    return _wrapped(total, system)

"""How often a ring passes something on, which both its latency and its bandwidth depend on."""

from __future__ import annotations

from .setting import Setting

HALVES = ("all_gather", "reduce_scatter")
"""Operations that are half of an all-reduce."""


def ring_steps(setting: Setting, operation: str) -> int:
    """How often a ring passes something on."""
    if operation == "all_reduce":
        return 2 * (setting.n_ranks - 1)
    return setting.n_ranks - 1 if operation in HALVES else setting.n_ranks

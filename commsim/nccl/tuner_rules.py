"""Rules of NCCL's tuner plugin: which algorithm, protocol and channels an operation takes at which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from commsim.core.errors import InputError

from .nccl_setting import ALGORITHMS, PROTOCOLS

# The plugin's names of our operations.
COLLECTIVES = {
    "broadcast": "broadcast", "reduce": "reduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
    "all_reduce": "allreduce",
}  # fmt: skip
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Rule:
    """One line.

    Parameters
    ----------
    operation : str
        Ours.
    low, high : int, bytes
        Both included.
    algorithm, protocol : str
        Names as NCCL writes them, in lower case.
    channels, n_nodes, n_ranks : int
        -1 for any.
    """

    operation: str
    low: int
    high: int
    algorithm: str
    protocol: str
    channels: int = -1
    n_nodes: int = -1
    n_ranks: int = -1

    def __post_init__(self) -> None:
        if self.operation not in COLLECTIVES or self.algorithm not in ALGORITHMS or self.protocol not in PROTOCOLS:
            raise InputError(f"a tuner rule has {self.operation}, {self.algorithm}, {self.protocol}, not all known")
        if not 0 <= self.low <= self.high <= LARGEST:
            raise InputError(f"a tuner rule is for sizes 0..{LARGEST}, got {self.low} to {self.high}")


def first_rule(rules: Sequence[Rule], operation: str, size: int, n_nodes: int, n_ranks: int) -> Rule | None:
    """Return the first rule for an operation of this size, where -1 means any number."""
    for rule in rules:
        fits = rule.operation == operation and rule.low <= size <= rule.high
        if fits and rule.n_nodes in (-1, n_nodes) and rule.n_ranks in (-1, n_ranks):
            return rule
    return None

"""What groups of ranks exchange in a step, and the copies of a token that experts get."""

from __future__ import annotations

from dataclasses import dataclass


def copies_of_token(top_k: int, n_machines: int, n_ranks: int) -> float:
    """Return the copies of a token for which an all-to-all has the bytes of one copy for each machine.

    Experts are drawn uniformly: of n machines (n-1)(1 - (1-1/n)^k) others get a copy, where k (n-1)/n messages to
    single ranks would leave. Inside of one machine each rank gets one copy, however many of its experts are drawn: the
    rule of DeepEP and of Megatron's flexible dispatcher.

    Parameters
    ----------
    top_k : int
        Experts that a token visits.
    n_machines, n_ranks : int
        Machines and ranks of the expert parallel group.
    """
    n = n_machines if n_machines > 1 else n_ranks
    return n * (1 - (1 - 1 / n) ** top_k)


@dataclass(frozen=True, slots=True)
class StepExchange:
    """Collectives of all groups of a kind at once, or messages from a stage to another.

    Parameters
    ----------
    operation : str
        Operation of one of them, or ``send``.
    kind : str
        Kind of groups, as :meth:`ParallelSizes.groups` names it, or ``pipeline``.
    size : float, bytes
        Size of one, as nccl-tests counts it.
    times : float
        Number of them.
    """

    operation: str
    kind: str
    size: float
    times: float = 1.0

"""The work of the busiest rank of an exchange, counted from the copies that it sends and receives."""

from __future__ import annotations

import numpy as np

from collectives.experts.copies import Copies, Machines

from .kernels import ExchangeWork


def work_of(
    made: Copies, n_ranks: int, machines: Machines, tokens: int, local: int, n_experts: int, n_bytes: float
) -> ExchangeWork:
    """Count what the busiest rank does.

    Parameters
    ----------
    made : Copies
        Copies of all tokens.
    n_ranks, tokens, local, n_experts : int
        Ranks, tokens of each, local accesses of each, and experts.
    machines : tuple of tuple of int
        Ranks of each machine.
    n_bytes : float
        Bytes of a copy.

    Returns
    -------
    ExchangeWork
        With the copies of the rank that sends or receives most; each copy to a machine counts beside those to its
        ranks, also to the sender's own machine.
    """
    run, several = made.run, len(machines) > 1
    sent, got = (np.bincount(run[:, end], run[:, 3], n_ranks) for end in (0, 1))
    away = run[run[:, 0] != run[:, 1]]
    remote = max(float(np.bincount(away[:, end], away[:, 3], n_ranks).max()) for end in (0, 1))
    of_machines = np.zeros(n_ranks)
    if several:
        machine = np.empty(n_ranks, np.int64)
        for m, ranks in enumerate(machines):
            machine[list(ranks)] = m
        for sender, token in enumerate(made.token):
            block = made.block[made.block[:, 0] == sender]
            of = np.repeat(machine[block[:, 1]], block[:, 3])
            of_machines[sender] = len(np.unique(token * len(machines) + of))
    copies = float(np.maximum(sent + of_machines, got + of_machines).max())
    return ExchangeWork(tokens, local, copies, remote, n_ranks, len(machines), n_experts, n_bytes)

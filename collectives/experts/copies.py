"""Copies: what each rank sends for its tokens, to which rank, and over which relay."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .routing import MAX_EXPERTS, routed
from .seats import Ranks, ranks_of_choices

Numbers = NDArray[np.int64]
Machines = tuple[tuple[int, ...], ...]
# Experts that a token takes, and experts, where the user gives none.
TOP_K, EXPERTS = 8, 256
# Tokens of a rank, where nothing else is said.
TOKENS = 16


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """Copies of the tokens of all ranks, as they lie in the send buffers, chunk by chunk.

    A rank has first what goes to the ranks of its own machine (or to all ranks, without relays), block by block; then a
    block for each other machine, whose relay is the rank there with the sender's number.

    Parameters
    ----------
    block : int64[n_blocks, 4]
        Of each block its sender, the rank that it is sent to, its first chunk, and its chunks.
    run : int64[n_runs, 5]
        Of each run of chunks its sender, the rank that needs it, its first chunk in the sender's buffer, its chunks,
        and the number of its block. Runs are in the order in which a receiver keeps them.
    token : tuple of int64[n_chunks]
        For each sender the token of each of its chunks.
    """

    block: Numbers
    run: Numbers
    token: tuple[Numbers, ...]

    @property
    def layout(self) -> tuple[int, ...]:
        """Layout of the operation."""
        return tuple(self.run[:, :4].ravel().tolist())

    @property
    def at_receiver(self) -> Numbers:
        """First chunk of each run in the receiver's buffer, int64[n_runs]."""
        dest, count = self.run[:, 1], self.run[:, 3]
        order = np.argsort(dest, kind="stable")
        before = np.cumsum(count[order]) - count[order]
        start = np.searchsorted(dest[order], dest[order])
        at = np.empty(len(dest), np.int64)
        at[order] = before - before[start]
        return at

    @property
    def relayed(self) -> NDArray[np.bool_]:
        """Whether the chunks of each block are sent on from where the block goes to, bool[n_blocks]."""
        n, block = len(self.block), self.run[:, 4]
        to_end = np.bincount(block, self.run[:, 1] == self.block[block, 1], n)
        relayed: NDArray[np.bool_] = (np.bincount(block, minlength=n) != 1) | (to_end != 1)
        return relayed

    @property
    def n_chunks(self) -> int:
        """Chunks of the rank that sends or receives most."""
        return self.width(0, in_order=False)

    def width(self, tokens: int, in_order: bool) -> int:
        """Chunks of a buffer, where a rank has its copies, or with `in_order` its tokens."""
        has = tokens if in_order else max(map(len, self.token))
        return int(max(has, np.bincount(self.run[:, 1], self.run[:, 3]).max()))

    @property
    def token_runs(self) -> Numbers:
        """Runs of consecutive tokens in the send buffers: sender, first token, first chunk, chunks; int64[n, 4]."""
        runs = []
        for sender, token in enumerate(self.token):
            begin = np.flatnonzero(np.diff(token, prepend=-2) != 1)
            count = np.diff(begin, append=len(token))
            runs.append(np.stack((np.full(len(begin), sender), token[begin], begin, count), axis=1))
        return np.concatenate(runs)

    @property
    def layout_of_tokens(self) -> tuple[int, ...]:
        """Layout of the operation on tokens in their order, each once."""
        runs = []
        for sender, dest, first, count in self.run[:, :4].tolist():
            token = self.token[sender][first : first + count]
            begin = np.flatnonzero(np.diff(token, prepend=-2) != 1)
            runs += [(sender, dest, t, n) for t, n in zip(token[begin], np.diff(begin, append=count), strict=True)]
        return tuple(int(number) for run in runs for number in run)


def numbers_of_experts(n_ranks: int, n_experts: int | None, top_k: int | None) -> tuple[int, int]:
    """Return the experts, 256 where that divides by the ranks, else 8 of each rank; and the experts of a token."""
    if n_experts is None:
        n_experts = EXPERTS if EXPERTS % n_ranks == 0 else TOP_K * n_ranks
    return n_experts, min(TOP_K, n_experts) if top_k is None else top_k


def copies_for(
    n_ranks: int, tokens: int = TOKENS, top_k: int | None = None, n_experts: int | None = None, mode: str = "normal",
    routing: str = "uniform", skew: float = 1.0, seed: int = 0, max_machines: int = 0, replicas: int = 0,
    balance: bool = False, machines: Machines | None = None,
) -> Copies:  # fmt: skip
    """Return what is sent, the same for a dispatch and the combine after it; parameters as in ``ep_dispatch``.

    Raises
    ------
    InputError
        If a number is out of range, or numbers do not fit each other.
    """
    options = (n_ranks, tokens, top_k, n_experts, mode, routing, skew, seed, max_machines, replicas, balance, machines)
    if routing.endswith(".csv"):  # the file may change
        return _laid_out.__wrapped__(*options)
    return _laid_out(*options)


@functools.lru_cache(maxsize=4)
def _laid_out(
    n_ranks: int, tokens: int, top_k: int | None, n_experts: int | None, mode: str, routing: str, skew: float,
    seed: int, max_machines: int, replicas: int, balance: bool, machines: Machines | None,
) -> Copies:  # fmt: skip
    """Return what is sent; drawn once for a dispatch, its combine and its bounds."""
    whole: Machines = (tuple(range(n_ranks)),)
    machines = machines or whole
    n_experts, top_k = numbers_of_experts(n_ranks, n_experts, top_k)
    for name, value, low, high in (
        ("tokens", tokens, 1, 2**20), ("n_experts", n_experts, 1, MAX_EXPERTS), ("top_k", top_k, 1, n_experts),
        ("max_machines", max_machines, 0, len(machines)), ("seed", seed, 0, 2**63),
    ):  # fmt: skip
        if not low <= value <= high:
            raise InputError(f"{name} must be {low} to {high}, got {value}")
    if n_experts % n_ranks:
        raise InputError(f"n_experts must be a multiple of {n_ranks} ranks, got {n_experts}")
    limited = 0 < max_machines < len(machines)
    if limited and (len({len(m) for m in machines}) > 1 or [r for m in machines for r in m] != [*range(n_ranks)]):
        raise InputError("max_machines needs machines of as many ranks each, numbered machine by machine")
    group = n_experts // len(machines) if limited else n_experts
    if limited and group * max_machines < top_k:
        raise InputError(f"max_machines={max_machines} machines have {group * max_machines} experts, got top_k={top_k}")
    experts = routed(n_ranks * tokens, n_experts, top_k, routing, skew, seed, group, max_machines)
    ranks = ranks_of_choices(experts, n_experts, machines if limited else whole, replicas, balance)
    return copies_of(ranks, n_ranks, machines, per_expert=mode == "low_latency")


def copies_of(ranks: Ranks, n_ranks: int, machines: Machines, per_expert: bool) -> Copies:
    """Lay out the copies of all tokens.

    Parameters
    ----------
    ranks : int32[n_ranks * n_tokens, top_k]
        Rank that each choice of a token goes to.
    n_ranks : int
        Number of ranks.
    machines : tuple of tuple of int
        Ranks of each machine.
    per_expert : bool
        Whether a token is sent once for each of its experts, straight to their ranks; else once to each other machine,
        and from there once to each rank.
    """
    each = len(ranks) // n_ranks
    blocks, runs, tokens = list[tuple[int, int, int, int]](), list[Numbers](), []
    here = {rank: (m, place) for m, machine in enumerate(machines) for place, rank in enumerate(machine)}
    for sender in range(n_ranks):
        mine = ranks[sender * each : (sender + 1) * each]
        counts = np.zeros((each, n_ranks), np.int64)
        np.add.at(counts, (np.arange(each)[:, np.newaxis], mine), 1)
        machine, place = here[sender]
        direct = range(n_ranks) if per_expert else machines[machine]
        first, token = 0, []
        for dest in direct:
            times = counts[:, dest] if per_expert else np.minimum(counts[:, dest], 1)
            if n := int(times.sum()):
                runs.append(np.array([[sender, dest, first, n, len(blocks)]], np.int64))
                blocks.append((sender, dest, first, n))
                token.append(np.repeat(np.arange(each), times))
                first += n
        for m, others in enumerate(machines):
            if per_expert or m == machine:
                continue
            needed = counts[:, list(others)] > 0
            sent = np.flatnonzero(needed.any(axis=1))
            if len(sent):
                order, found = _runs(needed[sent])
                found[:, 0] = np.array(others)[found[:, 0]]
                fixed = np.full((len(found), 1), sender), np.full((len(found), 1), len(blocks))
                runs.append(np.hstack((fixed[0], found[:, :1], found[:, 1:2] + first, found[:, 2:], fixed[1])))
                blocks.append((sender, others[place % len(others)], first, len(sent)))
                token.append(sent[order])
                first += len(sent)
        tokens.append(np.concatenate(token) if token else np.empty(0, np.int64))
    return Copies(np.reshape(np.array(blocks, np.int64), (-1, 4)), np.concatenate(runs), tuple(tokens))


def _runs(needed: NDArray[np.bool_]) -> tuple[NDArray[np.intp], Numbers]:
    """Order tokens so that those of each rank are few runs, as in a Gray code; return the order, and the runs.

    Parameters
    ----------
    needed : bool[n_tokens, n_ranks]
        Whether a rank needs a token.

    Returns
    -------
    intp[n_tokens], int64[n_runs, 3]
        Tokens in their order; number of a rank, first place and number of places of each run, place by place.
    """
    order = np.lexsort((np.cumsum(needed, axis=1) % 2).T[::-1])
    edges = np.diff(needed[order].astype(np.int8), axis=0, prepend=0, append=0)
    rank, begin = np.nonzero(edges.T == 1)
    _, end = np.nonzero(edges.T == -1)
    runs = np.stack((rank, begin, end - begin), axis=1)
    return order, runs[np.argsort(begin, kind="stable")].astype(np.int64)

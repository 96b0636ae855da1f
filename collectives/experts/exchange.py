"""Dispatch and combine of a mixture of experts: tokens go to the ranks of their experts, and their sums come back."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from collectives import collective
from commsim.core.cost import LogGP
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.schedule import INPUT, OUTPUT, SCRATCH, Schedule

from .copies import TOKENS, Copies, Machines, Numbers, copies_for

Mode = Literal["normal", "low_latency"]
Precision = Literal["fp8", "bf16", "nvfp4"]
Library = Literal["none", "deepep", "trtllm_one_sided", "trtllm_two_sided"]
# Elements of a token, and pieces of a copy that is summed, where nothing else is said.
HIDDEN, PIECES = 7168, 32
# Parameters that change nothing of what is sent.
NOT_ROUTING = ("hidden", "precision", "in_order", "zero_copy", "library", "sms")


def token_bytes(hidden: int, precision: str) -> float:
    """Bytes of a token on the wire: FP8 has a scale of 4 bytes for 128 values, NVFP4 one of 1 byte for 16."""
    return hidden * {"fp8": 1 + 4 / 128, "bf16": 2.0, "nvfp4": 0.5 + 1 / 16}[precision]


def combine_bounds(n_ranks: int, size: float, link: LogGP, pieces: int = PIECES, **value: Any) -> tuple[float, float]:
    """Bounds on the time on an idle star: the busiest port; and two rounds of two ports one after the other.

    Returns
    -------
    lower, upper : float, s
    """
    of_routing = functools.partial(copies_for, n_ranks)
    bounds = of_routing(**{key: value for key, value in value.items() if key not in NOT_ROUTING})
    chunk, relayed = size / bounds.n_chunks, bounds.relayed[bounds.run[:, 4]]
    on = np.stack((bounds.block[bounds.run[relayed, 4], 1], bounds.run[relayed, 1], bounds.run[relayed, 3]), axis=1)
    messages = np.concatenate((bounds.block[:, [0, 1, 3]], on))
    src, dst, count = messages[messages[:, 0] != messages[:, 1]].T
    if not len(src):
        return 0.0, 0.0
    n_messages = np.bincount(src, minlength=n_ranks).max() * pieces
    out, into = (chunk * np.bincount(end, count, n_ranks).max() for end in (src, dst))
    upper = (out + into) / link.B + link.o * 2 * n_messages + link.gamma * (out + into) + link.L
    return float(max(out, into) / link.B + link.o + link.L), float((2 if relayed.any() else 1) * upper)


def dispatch_bounds(n_ranks: int, size: float, link: LogGP, **value: Any) -> tuple[float, float]:
    """Bounds of :func:`combine_bounds` without sums; returns lower and upper, float, s."""
    return combine_bounds(n_ranks, size, LogGP(link.L, link.o, link.B), **value)


@collective("ep_dispatch", bounds=dispatch_bounds, needs=("machines",))
def ep_dispatch(
    n_ranks: int, tokens: int = TOKENS, top_k: int | None = None, n_experts: int | None = None, hidden: int = HIDDEN,
    precision: Precision = "fp8", mode: Mode = "normal", routing: str = "uniform", skew: float = 1.0, seed: int = 0,  # noqa: ARG001
    max_machines: int = 0, pieces: int = PIECES, replicas: int = 0, balance: bool = False, in_order: bool = False,
    zero_copy: bool = False, library: Library = "none", sms: int | None = None, machines: Machines | None = None,  # noqa: ARG001
) -> Schedule:  # fmt: skip
    """Dispatch of tokens to the ranks of their experts: the busiest port's copies of S/(kB) each, + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    tokens : int
        Tokens of each rank.
    top_k : int, optional
        Experts of a token. Default: 8, or all where there are fewer.
    n_experts : int, optional
        Experts, a multiple of p. Default: 256 where that divides by p, else 8 p.
    hidden : int
        Values of a token.
    precision : {"fp8", "bf16", "nvfp4"}
        Type of the values on the wire; scales are counted.
    mode : {"normal", "low_latency"}
        ``normal``: one copy to each other machine, to the rank there of the sender's number, which sends one copy on to
        each rank that needs it. ``low_latency``: a copy for each expert, straight to its rank.
    routing : str
        ``uniform``, ``balanced``, ``zipf``, or a CSV file of the experts of each token, or of each expert's weight.
    skew : float
        Exponent of ``zipf``.
    seed : int
        Seed of the routing; dispatch and combine with the same one belong together.
    max_machines : int
        Machines that a token may go to; 0 for all.
    pieces : int
        Messages of a block between machines; with 1 a relay begins when it has received all, in two phases.
    replicas : int
        Seats of popular experts beside one for each, a multiple of p.
    balance : bool
        Whether experts are seated by how many tokens they get.
    in_order : bool
        Whether local transfers of the schedule copy tokens from their order, and sum them up again.
    zero_copy : bool
        Whether experts use the library's buffers; it changes what the library costs only.
    library : {"none", "deepep", "trtllm_one_sided", "trtllm_two_sided"}
        Library whose costs ``commsim run`` adds; with ``none`` only links cost time.
    sms : int, optional
        SMs of the library's kernel; they change what the library costs only.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.

    Returns
    -------
    Schedule
        A chunk is a copy of a token; k of them make S, as many as the rank has that sends or receives most. A rank's
        input is a block of copies for each rank of its machine, then one for each other machine, and its output is
        the copies for its experts, by senders. With `in_order` its input is its tokens.

    Raises
    ------
    InputError
        If a number is out of range, numbers do not fit each other, or the file does not fit them.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 technical report", 2024, section 3.2.2; Zhao et al., "DeepEP", 2025, for both modes.
    """
    copies = copies_for(
        n_ranks, tokens, top_k, n_experts, mode, routing, skew, seed, max_machines, replicas, balance, machines
    )
    _check_numbers(hidden, pieces, sms, library, mode)
    p, places, base = _begin_program(copies, n_ranks, tokens, in_order)
    source = SCRATCH if in_order else INPUT
    if in_order:
        rank, token, place, count = copies.token_runs.T
        p.copy(src=rank, dst=rank, src_chunk=token, dst_chunk=base + place, count=count, dst_buffer=SCRATCH)
    at, straight = copies.at_receiver, ~copies.relayed[copies.run[:, 4]]
    src, dst, first, count, _ = copies.run[straight].T
    p.copy(
        src=src, dst=dst, src_chunk=base + first, dst_chunk=at[straight], count=count, src_buffer=source,
        dst_buffer=OUTPUT,
    )  # fmt: skip
    for block, begin, count in _pieces(copies, pieces):
        src, dst, first, _ = copies.block[block].T
        p.copy(
            src=src, dst=dst, src_chunk=base + first + begin, dst_chunk=places[block] + begin, count=count,
            src_buffer=source, dst_buffer=SCRATCH,
        )  # fmt: skip
    block, dst, first, to, count = _sent_on(copies, pieces)
    p.copy(
        src=copies.block[block, 1], dst=dst, src_chunk=places[block] + first, dst_chunk=to, count=count,
        src_buffer=SCRATCH, dst_buffer=OUTPUT, channel=1,
    )  # fmt: skip
    return p.build(layout=copies.layout_of_tokens if in_order else copies.layout)


@collective("ep_combine", bounds=combine_bounds, needs=("machines",))
def ep_combine(
    n_ranks: int, tokens: int = TOKENS, top_k: int | None = None, n_experts: int | None = None, hidden: int = HIDDEN,
    precision: Precision = "bf16", mode: Mode = "normal", routing: str = "uniform", skew: float = 1.0, seed: int = 0,  # noqa: ARG001
    max_machines: int = 0, pieces: int = PIECES, replicas: int = 0, balance: bool = False, in_order: bool = False,
    zero_copy: bool = False, library: Library = "none", sms: int | None = None, machines: Machines | None = None,  # noqa: ARG001
) -> Schedule:  # fmt: skip
    """Combine of what experts make of tokens, the way back: the busiest port's copies of S/(kB) each, + L seconds.

    Parameters
    ----------
    n_ranks : int
        p, at least 1.
    tokens : int
        Tokens of each rank.
    top_k : int, optional
        Experts of a token. Default: 8, or all where there are fewer.
    n_experts : int, optional
        Experts, a multiple of p. Default: 256 where that divides by p, else 8 p.
    hidden : int
        Values of a token.
    precision : {"fp8", "bf16", "nvfp4"}
        Type of the values on the wire; scales are counted.
    mode : {"normal", "low_latency"}
        ``normal``: ranks of another machine send to the relay of the dispatch, which sends one sum back.
        ``low_latency``: what each expert makes comes back by itself.
    routing : str
        ``uniform``, ``balanced``, ``zipf``, or a CSV file of the experts of each token, or of each expert's weight.
    skew : float
        Exponent of ``zipf``.
    seed : int
        Seed of the routing; dispatch and combine with the same one belong together.
    max_machines : int
        Machines that a token may go to; 0 for all.
    pieces : int
        Messages of a block between machines; with 1 a relay begins when it has received all, in two phases.
    replicas : int
        Seats of popular experts beside one for each, a multiple of p.
    balance : bool
        Whether experts are seated by how many tokens they get.
    in_order : bool
        Whether local transfers of the schedule copy tokens from their order, and sum them up again.
    zero_copy : bool
        Whether experts use the library's buffers; it changes what the library costs only.
    library : {"none", "deepep", "trtllm_one_sided", "trtllm_two_sided"}
        Library whose costs ``commsim run`` adds; with ``none`` only links cost time.
    sms : int, optional
        SMs of the library's kernel; they change what the library costs only.
    machines : tuple of tuple of int, optional
        Ranks of each machine; ``commsim run`` takes them from the network. Default: all in one.

    Returns
    -------
    Schedule
        Input and output are the output and the input of :func:`ep_dispatch`: a copy becomes the sum of what it was
        sent on as, and with `in_order` a token the sum of all.

    Raises
    ------
    InputError
        If a number is out of range, numbers do not fit each other, or the file does not fit them.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 technical report", 2024, section 3.2.2; Zhao et al., "DeepEP", 2025, for both modes.
    """
    copies = copies_for(
        n_ranks, tokens, top_k, n_experts, mode, routing, skew, seed, max_machines, replicas, balance, machines
    )
    _check_numbers(hidden, pieces, sms, library, mode)
    p, places, base = _begin_program(copies, n_ranks, tokens, in_order)
    target = SCRATCH if in_order else OUTPUT
    at, straight = copies.at_receiver, ~copies.relayed[copies.run[:, 4]]
    src, dst, first, count, _ = copies.run[straight].T
    p.copy(src=dst, dst=src, src_chunk=at[straight], dst_chunk=base + first, count=count, dst_buffer=target)
    block, dst, first, to, count = _sent_on(copies, pieces)
    p.reduce(
        src=dst, dst=copies.block[block, 1], src_chunk=to, dst_chunk=places[block] + first, count=count,
        dst_buffer=SCRATCH, channel=1,
    )  # fmt: skip
    for block, begin, count in _pieces(copies, pieces):
        src, dst, first, _ = copies.block[block].T
        p.copy(
            src=dst, dst=src, src_chunk=places[block] + begin, dst_chunk=base + first + begin, count=count,
            src_buffer=SCRATCH, dst_buffer=target,
        )  # fmt: skip
    if in_order:
        rank, token, place, count = copies.token_runs.T
        p.reduce(
            src=rank, dst=rank, src_chunk=base + place, dst_chunk=token, count=count, src_buffer=SCRATCH,
            dst_buffer=OUTPUT,
        )  # fmt: skip
    return p.build(layout=copies.layout_of_tokens if in_order else copies.layout)


def _check_numbers(hidden: int, pieces: int, sms: int | None, library: str, mode: str) -> None:
    if library.startswith("trtllm") and mode != "normal":
        raise InputError(f"library={library} needs mode=normal, got mode={mode}")
    for name, value, high in (("hidden", hidden, 2**20), ("pieces", pieces, 2**10), ("sms", sms, 2**10)):
        if value is not None and not 1 <= value <= high:
            raise InputError(f"{name} must be 1 to {high}, got {value}")


def _begin_program(copies: Copies, n_ranks: int, tokens: int, in_order: bool) -> tuple[Program, Numbers, int]:
    """Return an empty program, the places of relayed blocks, and the first chunk of the copies in their buffer."""
    places, n_scratch = _relay_places(copies)
    p = Program(n_ranks, copies.width(tokens, in_order), n_scratch=n_scratch + in_order * max(map(len, copies.token)))
    return p, places, n_scratch if in_order else 0


def _relay_places(copies: Copies) -> tuple[Numbers, int]:
    """Return the first chunk of each relayed block in the relay's scratch, int64[n_blocks], and the most of a relay."""
    place, used = np.zeros(len(copies.block), np.int64), dict[int, int]()
    for number in np.flatnonzero(copies.relayed):
        relay, count = copies.block[number, 1], copies.block[number, 3]
        place[number] = used.get(relay, 0)
        used[relay] = used.get(relay, 0) + int(count)
    return place, max(used.values(), default=0)


def _sent_on(copies: Copies, pieces: int) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Return what relays send on, in the order in which it gets to them: runs, cut where pieces of a block end.

    Returns
    -------
    int64[n], five times
        Block, rank that it is for, first chunk in the block, its chunk in the receiver's buffer, and chunks.
    """
    run, at = copies.run, copies.at_receiver
    of = np.flatnonzero(copies.relayed[run[:, 4]])
    chunks, begin = copies.block[run[of, 4], 3], run[of, 2] - copies.block[run[of, 4], 2]
    end = begin + run[of, 3]
    first = ((begin + 1) * pieces - 1) // chunks  # the piece that has a chunk c is the last that begins at c or before
    last = (end * pieces - 1) // chunks
    n = last - first + 1
    part = np.repeat(first, n) + np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    of, chunks, begin, end = (np.repeat(column, n) for column in (of, chunks, begin, end))
    low, high = np.maximum(begin, chunks * part // pieces), np.minimum(end, chunks * (part + 1) // pieces)
    order = np.lexsort((low, part))
    order = order[(high > low)[order]]
    block = run[of, 4]
    columns = (block, run[of, 1], low, at[of] + low - begin, high - low)
    ordered = tuple(column[order] for column in columns)
    return ordered[0], ordered[1], ordered[2], ordered[3], ordered[4]


def _pieces(copies: Copies, pieces: int) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """Piece by piece the relayed blocks that have it, where it begins in each, and its chunks."""
    block = np.flatnonzero(copies.relayed)
    chunks = copies.block[block, 3]
    for piece in range(pieces):
        begin, end = chunks * piece // pieces, chunks * (piece + 1) // pieces
        yield block[end > begin], begin[end > begin], (end - begin)[end > begin]

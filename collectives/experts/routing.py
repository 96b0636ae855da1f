"""Routing: which experts each token goes to, drawn or read from a file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.files.whole_files import read_text

Experts = NDArray[np.int32]
DRAWN = ("uniform", "balanced", "zipf")
# Tokens times experts, and tokens times experts of each, of all ranks: some seconds, and some hundred megabytes.
MAX_SCORES, MAX_CHOICES = 2**31, 2**25
MAX_EXPERTS = 2**16
# Tokens whose scores are drawn at once.
EACH = 4096


def routed(
    n_tokens: int, n_experts: int, top_k: int, routing: str, skew: float, seed: int, group: int, max_groups: int
) -> Experts:
    """Draw the experts of each token, or read them; dispatch and combine of one layer take the same.

    Parameters
    ----------
    n_tokens : int
        Tokens of all ranks, rank by rank.
    n_experts, top_k : int
        Experts, and how many of them a token takes.
    routing : str
        ``uniform``: every choice is as likely. ``balanced``: all experts get as many tokens, and those of a token are
        as far apart as they can be. ``zipf``: an expert's weight is ``1 / place ** skew``, in an order that is drawn.
        Or a CSV file: with the header ``expert,weight`` it has the weight of each expert, else a line for each token,
        its number and its experts, under a header that begins with ``token``.
    skew : float
        Exponent of ``zipf``.
    seed : int
        Seed of all that is drawn.
    group, max_groups : int
        Experts of a machine, which are numbered together, and the most machines that a token may go to; 0 for all. As
        in DeepSeek-V3 those machines are taken whose best two experts have the largest scores.

    Returns
    -------
    int32[n_tokens, top_k]
        Experts of each token, all different.

    Raises
    ------
    InputError
        If the numbers do not fit each other, or the file is none for them.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V3 technical report", 2024, section 2.1.2: node-limited routing.
    """
    if n_tokens * n_experts > MAX_SCORES or n_tokens * top_k > MAX_CHOICES:
        raise InputError(f"tokens of all ranks must be fewer, got {n_tokens} with {n_experts} experts, {top_k} of each")
    if not math.isfinite(skew) or not 0 <= skew <= 8:
        raise InputError(f"skew must be 0 to 8, got {skew}")
    weights = np.ones(n_experts)
    draw = np.random.default_rng(seed)
    if routing == "zipf":
        weights = draw.permutation(np.arange(1, n_experts + 1, dtype=np.float64) ** -skew)
    elif routing.endswith(".csv"):
        header, rows = _read_rows(routing)
        if header[0] == "token":
            return _experts_of_file(routing, header, rows, n_tokens, n_experts, top_k)
        weights = _weights(routing, header, rows, n_experts)
    elif routing not in DRAWN:
        raise InputError(f"routing must be {', '.join(DRAWN)} or a FILE.csv, got {routing!r}")
    able = int((weights > 0).sum())
    if able < top_k:
        raise InputError(f"{routing}: top_k={top_k} needs as many experts with a weight, got {able}")
    if routing == "balanced":
        return _balanced(n_tokens, n_experts, top_k, group, max_groups)
    parts = [_choose_experts(part, top_k, group, max_groups) for part in _scores(draw, n_tokens, weights)]
    return np.concatenate(parts)


def _scores(draw: np.random.Generator, n_tokens: int, weights: NDArray[np.float64]) -> Iterator[NDArray[np.float32]]:
    """Scores of some tokens after the other; the largest k of each are k experts drawn by weight (Gumbel)."""
    with np.errstate(divide="ignore"):
        base = np.log(weights).astype(np.float32)
    for first in range(0, n_tokens, EACH):
        noise = draw.random((min(EACH, n_tokens - first), len(weights)), np.float32)
        yield base - np.log(-np.log(np.clip(noise, 1e-7, 1 - 1e-7)))


def _choose_experts(scores: NDArray[np.float32], top_k: int, group: int, max_groups: int) -> Experts:
    """Experts with the largest scores, of the groups that a token may go to."""
    n_tokens, n_experts = scores.shape
    n_groups = n_experts // group
    if 0 < max_groups < n_groups:
        by_group = scores.reshape(n_tokens, n_groups, group)
        best = np.partition(by_group, max(0, group - 2), axis=2)[:, :, -2:].sum(axis=2)
        worst = np.argpartition(best, n_groups - max_groups, axis=1)[:, : n_groups - max_groups]
        by_group[np.arange(n_tokens)[:, np.newaxis], worst] = -np.inf
    if top_k == n_experts:
        return np.broadcast_to(np.arange(n_experts, dtype=np.int32), (n_tokens, n_experts))
    return np.argpartition(scores, n_experts - top_k, axis=1)[:, n_experts - top_k :].astype(np.int32)


def _balanced(n_tokens: int, n_experts: int, top_k: int, group: int, max_groups: int) -> Experts:
    """Experts as far apart as they can be, those of the next token each one further."""
    token, place = np.arange(n_tokens)[:, np.newaxis], np.arange(top_k)
    n_groups = n_experts // group
    if not 0 < max_groups < n_groups:
        return np.asarray((token + place * n_experts // top_k) % n_experts, np.int32)
    allowed = max_groups * group
    inside = (token // n_groups + place * allowed // top_k) % allowed
    return np.asarray((token % n_groups + inside // group) % n_groups * group + inside % group, np.int32)


def _read_rows(path: str) -> tuple[list[str], list[list[str]]]:
    """Read a CSV file: its header, and its lines."""
    lines = [line.split(",") for line in read_text(Path(path)).splitlines() if line.strip()]
    header = [word.strip() for word in lines[0]] if lines else [""]
    if header[0] not in ("token", "expert"):
        raise InputError(f"{path}: the header must begin with token or expert, got {header[0]!r}")
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(header):
            raise InputError(f"{path}: line {number} must have {len(header)} fields, got {len(line)}")
    return header, lines[1:]


def _numbers(path: str, rows: list[list[str]], kind: type[int] | type[float], what: str) -> NDArray[np.float64]:
    for number, row in enumerate(rows, 2):
        for word in row:
            try:
                good = math.isfinite(kind(word))
            except (ValueError, OverflowError):
                good = False
            if not good:
                raise InputError(f"{path}: line {number} must have {what}, got {word.strip()[:40]!r}")
    return np.array([[kind(word) for word in row] for row in rows], np.float64)


def _experts_of_file(
    path: str, header: list[str], rows: list[list[str]], n_tokens: int, n_experts: int, top_k: int
) -> Experts:
    """Experts of each token as a file names them."""
    if len(header) != top_k + 1:
        raise InputError(f"{path}: must have {top_k} experts of each token, got {len(header) - 1}")
    if len(rows) != n_tokens:
        raise InputError(f"{path}: must have {n_tokens} tokens, those of all ranks, got {len(rows)}")
    table = _numbers(path, rows, int, "whole numbers")
    if not np.array_equal(table[:, 0], np.arange(n_tokens)):
        wrong = int(np.flatnonzero(table[:, 0] != np.arange(n_tokens))[0])
        raise InputError(f"{path}: line {wrong + 2} must be of token {wrong}, got {table[wrong, 0]:.0f}")
    if table.min() < 0 or table[:, 1:].max() >= n_experts:
        low, high = table[:, 1:].min(), table[:, 1:].max()
        raise InputError(f"{path}: experts must be 0..{n_experts - 1}, got {low:.6g}..{high:.6g}")
    experts = table[:, 1:].astype(np.int64)
    twice = np.flatnonzero((np.diff(np.sort(experts, axis=1), axis=1) == 0).any(axis=1))
    if twice.size:
        raise InputError(f"{path}: line {twice[0] + 2} must have different experts, got {experts[twice[0]].tolist()}")
    return experts.astype(np.int32)


def _weights(path: str, header: list[str], rows: list[list[str]], n_experts: int) -> NDArray[np.float64]:
    """Weight of each expert as a file says."""
    if header != ["expert", "weight"] or len(rows) != n_experts:
        raise InputError(f"{path}: must have {n_experts} lines of expert,weight, got {len(rows)} of {','.join(header)}")
    table = _numbers(path, rows, float, "a number, and weights of 0 or more")
    if not np.array_equal(table[:, 0], np.arange(n_experts)) or table[:, 1].min() < 0:
        raise InputError(f"{path}: must have experts 0..{n_experts - 1} in this order, and weights of 0 or more")
    return table[:, 1]

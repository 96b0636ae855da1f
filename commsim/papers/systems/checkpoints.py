"""Checkpoint traffic: only the rows that changed (Check-N-Run), and copies behind the next iteration (DataStates-LLM).

References
----------
Eisenman et al., "Check-N-Run: a checkpointing system for training deep learning recommendation models", NSDI 2022,
sections 4 and 5: differential checkpoints of embedding rows, quantised.
Maurya et al., "DataStates-LLM: lazy asynchronous checkpointing for large language models", HPDC 2024, section 5:
weights do not change in forward and backward passes, so copies may go on until the next update.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds

from . import Answer, training_system

MAX_ROWS, MAX_CHECKPOINTS = 10_000_000, 1_000
MAX_WORK = 100_000_000  # rows times checkpoints: a few seconds
RANGE_BYTES = 8  # smallest value and step of a quantised row, in float32


def row_shares(n_rows: int, skew: float) -> NDArray[np.float64]:
    """Share of the look-ups that each row has: 1 / rank ** skew, so 0 is uniform.

    Raises
    ------
    InputError
        Without a row, with more than `MAX_ROWS`, or if the skew is not 0 to 4.
    """
    if not (1 <= n_rows <= MAX_ROWS and 0 <= skew <= 4):
        raise InputError(f"rows must be 1 to {MAX_ROWS} and skew 0 to 4, got {n_rows} and {skew}")
    weight = np.arange(1, n_rows + 1, dtype=np.float64) ** -skew
    return np.asarray(weight / weight.sum())


def changed_share(shares: NDArray[np.float64], lookups: float) -> float:
    """Mean share of rows that so many independent look-ups touch: the mean of 1 - (1 - share) ** lookups."""
    with np.errstate(divide="ignore"):  # a single row has share 1: its logarithm is minus infinity, as it should be
        return float(-np.expm1(lookups * np.log1p(-shares)).mean()) if lookups else 0.0


@training_system("Eisenman et al., NSDI 2022")
def check_n_run(
    *,
    n_rows: int = 1_000_000,
    dimension: int = 64,
    lookups: int = 2000,
    skew: float = 1.0,
    bits: int = 4,
    interval_iterations: int = 1000,
    iteration: Seconds = 0.1,
    n_checkpoints: int = 12,
) -> Answer:
    """Check-N-Run: bytes and bandwidth of checkpoints of the embedding rows that changed, quantised.

    Parameters
    ----------
    n_rows, dimension : int
        Number of rows of all tables, and float32 elements of a row.
    lookups : int
        Rows that one iteration uses and updates, repeats included.
    skew : float
        Exponent of the rows' popularity; 0 is uniform.
    bits : int
        Bits of an element as stored; 32 is not quantised.
    interval_iterations, n_checkpoints : int
        Iterations between checkpoints, and checkpoints after the first, full one.
    iteration : float, s
        Time of a training iteration.

    Returns
    -------
    dict
        For full checkpoints, those of what changed since the full one (one_shot) and since the last (consecutive):
        mean and largest size, mean bandwidth, and what must be kept to recover. Then by what factor the bandwidth
        falls beside full ones of float32.
    """
    if not (1 <= bits <= 32 and 1 <= n_checkpoints <= MAX_CHECKPOINTS and iteration > 0):
        raise InputError(
            f"bits must be 1 to 32, checkpoints 1 to {MAX_CHECKPOINTS} and an iteration positive, got {bits}, "
            f"{n_checkpoints} and {iteration}"
        )
    if min(dimension, lookups, interval_iterations) < 1:
        raise InputError(
            f"dimension, lookups and interval must be at least 1, got {dimension}, {lookups}, {interval_iterations}"
        )
    if n_rows * n_checkpoints > MAX_WORK:
        raise InputError(f"rows times checkpoints must be at most {MAX_WORK}, got {n_rows} x {n_checkpoints}")
    row = dimension * bits / 8 + (RANGE_BYTES if bits < 32 else 0)
    full, seconds = n_rows * row, interval_iterations * iteration
    shares = row_shares(n_rows, skew)
    since_first = [changed_share(shares, lookups * interval_iterations * i) for i in range(1, n_checkpoints + 1)]
    sizes = {
        "full": [full] * n_checkpoints,
        "one_shot": [share * full for share in since_first],
        "consecutive": [since_first[0] * full] * n_checkpoints,
    }
    kept = {"full": full, "one_shot": full + sizes["one_shot"][-1], "consecutive": full + sum(sizes["consecutive"])}
    plain = n_rows * dimension * 4
    return {
        "float32_B": float(plain),
        "checkpoints": [
            {
                "policy": policy,
                "mean_B": float(np.mean(size)),
                "largest_B": max(size),
                "bandwidth_B_per_s": float(np.mean(size)) / seconds,
                "kept_B": kept[policy],
                "reduction": plain / float(np.mean(size)),
            }
            for policy, size in sizes.items()
        ],
    }


@training_system("Maurya et al., HPDC 2024")
def datastates(
    *,
    size: Bytes = 10e9,
    forward_backward: Seconds = 2.0,
    update: Seconds = 0.2,
    interval_iterations: int = 1,
    n_checkpoints: int = 10,
    host_bandwidth: Bandwidth = 25e9,
    storage_bandwidth: Bandwidth = 2e9,
) -> Answer:
    """DataStates-LLM: a checkpoint is copied behind the next forward and backward pass, then flushed to storage.

    Parameters
    ----------
    size : float, bytes
        Size of one GPU's checkpoint; the host's memory has room for one of them.
    forward_backward, update : float, s
        Parts of an iteration; weights change in the second only.
    interval_iterations, n_checkpoints : int
        Iterations between checkpoints, and how many are taken.
    host_bandwidth, storage_bandwidth : float, bytes/s
        Bandwidth from a GPU to the host, and from there to storage.

    Returns
    -------
    dict
        Stall per checkpoint in seconds: with writing before training goes on (synchronous), with copying to the host
        before it does (snapshot), and with copies behind the next passes (lazy). Time of all iterations with the last.
    """
    if not (size > 0 and forward_backward > 0 and update >= 0 and host_bandwidth > 0 and storage_bandwidth > 0):
        raise InputError("size, bandwidths and passes must be positive, and the update 0 or more")
    if not (interval_iterations >= 1 and 1 <= n_checkpoints <= MAX_CHECKPOINTS):
        raise InputError(
            f"the interval must be at least 1 and checkpoints 1 to {MAX_CHECKPOINTS}, got {interval_iterations} and "
            f"{n_checkpoints}"
        )
    copy, flush = size / host_bandwidth, size / min(host_bandwidth, storage_bandwidth)
    passes = interval_iterations * (forward_backward + update)

    def stalls(hidden: float) -> tuple[float, float]:
        """Mean stall, and seconds of all, with so much time behind which a copy goes unnoticed."""
        now = empty = waited = 0.0  # empty: when the host's room is free again
        for _ in range(n_checkpoints):
            start = max(now, empty)
            stall = max(0.0, start + copy - now - hidden)
            empty = start + flush
            waited += stall
            now += passes + stall
        return waited / n_checkpoints, now

    lazy, time = stalls(forward_backward)
    return {
        "synchronous_stall_s": flush,
        "snapshot_stall_s": stalls(0.0)[0],
        "lazy_stall_s": lazy,
        "time_s": time,
        "slow_down": time / (n_checkpoints * passes),
    }

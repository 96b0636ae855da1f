"""Lina's inference: popular experts get several GPUs, unpopular ones share one; median and tail of a layer's time.

References
----------
Li et al., "Accelerating distributed MoE training and inference with Lina", USENIX ATC 2023, section 5.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds

from . import Answer, training_system

MAX_GPUS, MAX_BATCHES = 1024, 10_000
EVEN = 100.0  # concentration of a batch's topics: batches differ little above, and are of few topics far below
STEPS = 32  # loads of the busiest GPU that are tried


@training_system("Li et al., USENIX ATC 2023")
def lina(
    *,
    n_gpus: int = 16,
    skew: float = 0.5,
    tokens: int = 16384,
    token: Bytes = 2048.0,
    expert: Seconds = 1e-3,
    bandwidth: Bandwidth = 12.5e9,
    batches: int = 200,
    topics: float = EVEN,
    memory: float = 0.0,
    seed: int = 0,
) -> Answer:
    """Lina: experts of a layer on GPUs by their popularity, beside one expert per GPU; times at inference.

    Popularity is that of the whole service, or is estimated for each batch from the experts that its tokens took in the
    layer before, with shares that were counted over earlier batches.

    Parameters
    ----------
    n_gpus : int
        GPUs, and experts.
    skew : float
        Exponent of the experts' popularity, 1 / rank ** skew; 0 is uniform.
    tokens, token : int and float, bytes
        Number of tokens of all GPUs in a batch, and size of each.
    expert : float, s
        Time that an even share of the tokens takes on its GPU.
    bandwidth : float, bytes/s
        Bandwidth of a GPU, one way: tokens go to their experts and back.
    batches, seed : int
        Drawn from the popularity; the first half is counted where popularity is estimated, the other half timed.
    topics : float
        How even batches are: the concentration of a Dirichlet distribution around the popularity in the layer before.
    memory : float
        Probability that the layer before decides which expert a token takes; else it is drawn from the popularity.

    Returns
    -------
    dict
        Median and 95th percentile of the layer's time with one expert per GPU, planned from the service's popularity,
        and planned from each batch's estimate, and the load of the busiest GPU in the mean over an even one.
    """
    if not (2 <= n_gpus <= MAX_GPUS and 2 <= batches <= MAX_BATCHES and tokens >= 1 and 0 <= skew <= 4):
        raise InputError(
            f"GPUs must be 2 to {MAX_GPUS}, batches 2 to {MAX_BATCHES}, tokens at least 1 and skew 0 to 4, got "
            f"{n_gpus}, {batches}, {tokens} and {skew}"
        )
    if not (0 <= memory <= 1 and 0 < topics < float("inf")):
        raise InputError(f"memory must be 0 to 1 and topics above 0, got {memory} and {topics}")
    popularity = zipf(n_gpus, skew)
    before, now, counted = _draw(popularity, tokens, batches, topics, memory, seed)
    # An expert that no token took before says nothing: those that take it now count as any others.
    taken = counted.sum(axis=1, keepdims=True)
    estimated = before @ np.where(taken > 0, counted / np.maximum(taken, 1), popularity)
    # The busiest GPU receives, computes and sends back while the others wait for it.
    whole = n_gpus * expert + 2 * (n_gpus - 1) / n_gpus * tokens * token / bandwidth
    loads = {
        "one_each": now.max(axis=1),
        "planned": (now @ plan(popularity)).max(axis=1),
        "estimated": np.array([(n @ plan(e)).max() for n, e in zip(now, estimated, strict=True)]),
    }
    answer: Answer = {}
    for name, load in loads.items():
        answer[f"{name}_busiest"] = float(load.mean()) * n_gpus
        answer[f"{name}_median_s"], answer[f"{name}_p95_s"] = map(float, np.percentile(load * whole, (50, 95)))
    return answer


def zipf(n_experts: int, skew: float) -> NDArray[np.float64]:
    """Share of tokens of each expert, 1 / rank ** skew."""
    weights = np.arange(1, n_experts + 1, dtype=np.float64) ** -skew
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _draw(
    popularity: NDArray[np.float64], tokens: int, batches: int, topics: float, memory: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Draw batches: shares of tokens by expert in the layer before and in this one, and earlier tokens by both.

    A token that the layer before decides about takes the expert of the same number; which one it is does not matter.
    """
    n, draw = len(popularity), np.random.default_rng(seed)
    mixed = draw.dirichlet(np.maximum(topics * n * popularity, 1e-9), batches)
    chosen = np.array([draw.multinomial(tokens, batch) for batch in mixed])
    earlier, timed = chosen[: batches // 2].sum(axis=0), chosen[batches // 2 :]
    kept = draw.binomial(timed, memory)
    now = kept + np.array([draw.multinomial(tokens - k, popularity) for k in kept.sum(axis=1)])
    stayed = draw.binomial(earlier, memory)
    counted = np.diag(stayed) + np.array([draw.multinomial(k, popularity) for k in earlier - stayed])
    return timed / tokens, now / tokens, counted


def plan(popularity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place experts so that the busiest GPU has little: popular ones get several GPUs, small ones share one.

    With a load of t in mind an expert gets p / t GPUs, rounded up, and all parts go to the least busy GPU, the largest
    first. Of several t the one whose busiest GPU has least is taken; t = 1 / n is the paper's number of GPUs, rounded
    up.

    Parameters
    ----------
    popularity : float64[n_experts]
        Share of tokens of each; there are as many GPUs as experts.

    Returns
    -------
    float64[n_experts, n_gpus]
        Part of each expert's tokens that each GPU takes.
    """
    n = len(popularity)
    best, least = np.eye(n), float(popularity.max())
    for aim in np.linspace(1 / n, least, STEPS, endpoint=False):
        if aim < least:
            shares = _packed(popularity, aim)
            if (load := float((popularity @ shares).max())) < least:
                best, least = shares, load
    return best


def _packed(popularity: NDArray[np.float64], aim: float) -> NDArray[np.float64]:
    """Cut experts into parts of at most `aim`, and put each on the least busy GPU, the largest first."""
    n = len(popularity)
    pieces = np.maximum(np.ceil(popularity / aim - 1e-9).astype(np.int64), 1)
    expert = np.repeat(np.arange(n), pieces)
    size = (popularity / pieces)[expert]
    shares, loads = np.zeros((n, n)), [(0.0, gpu) for gpu in range(n)]
    for i in np.argsort(-size, kind="stable"):
        load, gpu = loads[0]
        shares[expert[i], gpu] += 1 / pieces[expert[i]]
        heapq.heapreplace(loads, (load + size[i], gpu))
    return shares

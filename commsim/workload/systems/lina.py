"""Lina's inference: popular experts get several GPUs, unpopular ones share one; median and tail of a layer's time.

References
----------
Li et al., "Accelerating distributed MoE training and inference with Lina", USENIX ATC 2023, section 5.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError
from commsim.core.units import Bandwidth, Bytes, Seconds

from . import Answer, training_system

MAX_GPUS, MAX_BATCHES = 1024, 10_000


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
    seed: int = 0,
) -> Answer:
    """Lina: experts of a layer on GPUs by their popularity, beside one expert per GPU; times at inference.

    Parameters
    ----------
    n_gpus : int
        GPUs, and experts.
    skew : float
        Exponent of the experts' popularity, 1 / rank ** skew; 0 is uniform.
    tokens, token : int and float, bytes
        Of all GPUs in a batch, and size of each.
    expert : float, s
        That an even share of the tokens takes on its GPU.
    bandwidth : float, bytes/s
        Of a GPU, each way: tokens go to their experts and back.
    batches, seed : int
        Drawn from the popularity, which is known to the plan.

    Returns
    -------
    dict
        Median and 95th percentile of the layer's time, one expert per GPU and planned, and the share of tokens of the
        busiest GPU over an even one.
    """
    if not (2 <= n_gpus <= MAX_GPUS and 1 <= batches <= MAX_BATCHES and tokens >= 1 and 0 <= skew <= 4):
        raise InputError(
            f"GPUs must be 2 to {MAX_GPUS}, batches 1 to {MAX_BATCHES}, tokens at least 1 and skew 0 to 4, got "
            f"{n_gpus}, {batches}, {tokens} and {skew}"
        )
    popularity = np.arange(1, n_gpus + 1, dtype=np.float64) ** -skew
    popularity /= popularity.sum()
    drawn = np.random.default_rng(seed).multinomial(tokens, popularity, batches) / tokens
    # The busiest GPU receives, computes and sends back while the others wait for it.
    whole = n_gpus * expert + 2 * (n_gpus - 1) / n_gpus * tokens * token / bandwidth
    answer: Answer = {}
    for name, shares in (("one_each", np.eye(n_gpus)), ("planned", plan(popularity))):
        times = (drawn @ shares).max(axis=1) * whole
        answer[f"{name}_busiest"] = float((popularity @ shares).max()) * n_gpus
        answer[f"{name}_median_s"], answer[f"{name}_p95_s"] = map(float, np.percentile(times, (50, 95)))
    return answer


def plan(popularity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Place experts: those with whole even shares get a GPU for each, the others are packed, the largest first.

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
    shares = np.zeros((n, n))
    replicas = np.floor(popularity * n + 1e-9).astype(np.int64)
    if not replicas.all() and replicas.sum() >= n:  # the experts that are left need a GPU
        replicas[np.argmax(replicas)] -= 1
    first = 0
    for i in np.flatnonzero(replicas):
        shares[i, first : first + replicas[i]] = 1 / replicas[i]
        first += replicas[i]
    load = np.zeros(n - first)
    for i in sorted(np.flatnonzero(replicas == 0), key=lambda i: -popularity[i]):
        gpu = int(np.argmin(load))
        shares[i, first + gpu], load[gpu] = 1.0, load[gpu] + popularity[i]
    worse = (popularity @ shares).max() > popularity.max()
    return np.eye(n) if worse else shares

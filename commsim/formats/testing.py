"""For tests of programs that read benchmarks, on machines without GPUs: tables as real runs would print them.

>>> from commsim.formats.testing import fake_nccl_tests
>>> table = fake_nccl_tests("dgx-h100", sizes=["1MiB", "1GiB"], noise=0.02, seed=1)
>>> table.splitlines()[0]
'# Collective test starting: all_reduce_perf'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from commsim.api import predict
from commsim.core.errors import InputError
from commsim.core.result import Result
from commsim.formats.benchmark_output import nccl_tests_text, osu_text
from commsim.prediction.inputs import NetworkLike, SizeLike

SIZES = tuple(2**i for i in range(10, 31, 2))


def fake_nccl_tests(
    network: NetworkLike,
    collective: str | None = None,
    *,
    operation: str = "all_reduce",
    sizes: SizeLike | Sequence[SizeLike] = SIZES,
    n_ranks: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> str:
    """Return what nccl-tests would print on a network, as predicted, with noise if asked for.

    Parameters
    ----------
    network : str, Network or NetworkBuilder
        Network to predict for.
    collective : str, optional
        Algorithm; by default what runs on such machines.
    operation : str
        Operation of the algorithm, where none is given.
    sizes : float or str, or a sequence of them
        Bytes or text such as ``64MiB``.
    n_ranks : int, optional
        Default: all GPUs or hosts.
    noise : float
        Standard deviation of the logarithm of the times; out of place and in place are drawn apart.
    seed : int
        Seed of the noise: the same seed gives the same table.

    Raises
    ------
    InputError
        If a name is unknown, or the noise is negative or not finite.

    Examples
    --------
    >>> from commsim.formats.testing import fake_nccl_tests
    >>> fake_nccl_tests("star:n_hosts=4", sizes=["1MiB"]).splitlines()[-2].startswith("# Avg bus bandwidth")
    True
    """
    results = _results(network, collective, operation, sizes, n_ranks)
    draws = _noise(len(results) * 2, noise, seed)
    return nccl_tests_text(_scaled(results, draws[::2]), _scaled(results, draws[1::2]))


def fake_osu(
    network: NetworkLike,
    collective: str | None = None,
    *,
    operation: str = "all_reduce",
    sizes: SizeLike | Sequence[SizeLike] = SIZES,
    n_ranks: int | None = None,
    noise: float = 0.0,
    seed: int = 0,
) -> str:
    """Return what a latency test of the OSU micro-benchmarks would print; parameters are those of the table above.

    Parameters
    ----------
    network, collective, operation, sizes, n_ranks, noise, seed
        Same as in :func:`fake_nccl_tests`.
    """
    results = _results(network, collective, operation, sizes, n_ranks)
    return osu_text(_scaled(results, _noise(len(results), noise, seed)))


def _results(
    network: NetworkLike,
    collective: str | None,
    operation: str,
    sizes: SizeLike | Sequence[SizeLike],
    n_ranks: int | None,
) -> list[Result]:
    from commsim.prediction.collective_names import usual_collective
    from commsim.prediction.inputs import network_of, sizes_of

    where = network_of(network)
    spec = collective or usual_collective(where, operation)[0]
    return [predict(spec, where, size, n_ranks=n_ranks) for size in sizes_of(sizes)]


def _noise(n: int, noise: float, seed: int) -> Sequence[float]:
    if not 0 <= noise < float("inf"):
        raise InputError(f"noise must be 0 or more, got {noise}")
    factors: list[float] = np.exp(noise * np.random.default_rng(seed).standard_normal(n)).tolist()
    return factors


def _scaled(results: Sequence[Result], factors: Sequence[float]) -> list[Result]:
    fields = [field.name for field in dataclasses.fields(Result)]
    out = []
    for result, factor in zip(results, factors, strict=True):
        values = {name: getattr(result, name) for name in fields} | {"time": result.time * factor}
        out.append(Result(**values))
    return out

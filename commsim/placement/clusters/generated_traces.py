"""Made-up traces: Poisson arrivals, and jobs whose sizes and durations are spread as in two public clusters.

What is known of Philly and Helios (from the summary in the Acme trace): their mean and largest numbers of GPUs per job.
**Assumed**: arrivals are Poisson; counts are powers of two, ``P(2^k)`` proportional to ``2^(-a k)`` with `a` such that
the mean is the published one; durations are lognormal with the medians and spreads below; all models are equally
likely.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from commsim.core.errors import InputError

from .models import MODELS, profile
from .trace_job import MAX_SECONDS, TraceJob

MAX_JOBS = 1_000_000
# Port of CASSINI's testbed, at which the load of its trace is counted.
TESTBED_PORT = 6.25e9
PARALLEL: Mapping[str, tuple[str, ...]] = {
    "data": ("vgg11", "vgg16", "vgg19", "wideresnet101", "resnet50", "bert", "roberta", "camembert", "xlm"),
    "model": ("gpt1", "gpt2", "gpt3", "dlrm"),
    "mixed": ("vgg11", "vgg16", "vgg19", "wideresnet101", "resnet50", "bert", "roberta", "camembert", "xlm", "dlrm"),
}


def poisson(
    n_gpus: int, models: tuple[str, ...], jobs: int, load: float, seed: int = 0, days: float = 0.0,
    median: float = 3600.0, sigma: float = 1.0, mean_gpus: float = 8.0, max_gpus: int = 64, deadlines: float = 0.0,
    elastic: float = 0.0,
) -> tuple[TraceJob, ...]:  # fmt: skip
    """Jobs of eight GPUs on average that come at random.

    Parameters
    ----------
    n_gpus : int
        Number of GPUs of the cluster that is to be loaded.
    models : tuple of str
        Models to draw from.
    jobs : int
        How many.
    load : float
        GPU seconds that arrive per GPU of the cluster and second.
    days : float
        Days in which they arrive; durations are then stretched to meet `load`. Otherwise the rate of arrival follows.
    median, sigma : float, s
        Median and sigma of the lognormal duration.
    mean_gpus, max_gpus : float, int
        Mean and largest of the powers of two; the largest is also at most the cluster.
    deadlines : float
        Share of jobs with a deadline, uniform between 1.2 and 3 durations after submission.
    elastic : float
        Share of jobs that may run on up to twice the GPUs, and on half.

    Raises
    ------
    InputError
        If a number is out of its range.
    """
    _check(jobs=jobs, load=load, days=days, median=median, sigma=sigma, deadlines=deadlines, elastic=elastic, seed=seed)
    random = np.random.default_rng(seed)
    counts = power_of_two_counts(random, jobs, mean_gpus, min(max_gpus, n_gpus))
    durations = median * np.exp(sigma * random.standard_normal(jobs))
    gaps = random.exponential(1.0, jobs)
    work = float((counts * durations).sum())
    span = days * 86400.0 or work / (load * n_gpus)
    durations *= load * n_gpus * span / work
    submit = np.cumsum(gaps) * span / gaps.sum()
    drawn = random.integers(len(models), size=jobs)
    due = np.where(random.random(jobs) < deadlines, random.uniform(1.2, 3.0, jobs), np.nan)
    scales = random.random(jobs) < elastic
    if max(submit[-1], durations.max()) * 4 > MAX_SECONDS:
        raise InputError(f"a trace lasts at most {MAX_SECONDS:g} s, got {submit[-1] + durations.max():.3g} s")
    width = len(str(jobs - 1))
    return tuple(
        TraceJob(
            f"job{i:0{width}}",
            float(submit[i] - submit[0]),
            n := int(counts[i]),
            float(durations[i]),
            model=models[drawn[i]],
            deadline=None if math.isnan(due[i]) else float(submit[i] - submit[0] + due[i] * durations[i]),
            min_gpus=max(1, n // 2) if scales[i] else n,
            max_gpus=min(2 * n, n_gpus) if scales[i] else n,
        )
        for i in range(jobs)
    )


def philly(
    n_gpus: int, models: tuple[str, ...], jobs: int, load: float, seed: int = 0, days: float = 0.0,
    median: float = 900.0, sigma: float = 2.0, deadlines: float = 0.0, elastic: float = 0.0,
) -> tuple[TraceJob, ...]:  # fmt: skip
    """Jobs like those of Microsoft's Philly: 1.93 GPUs on average, 128 at most. Parameters as for ``poisson``."""
    return poisson(n_gpus, models, jobs, load, seed, days, median, sigma, 1.93, 128, deadlines, elastic)


def helios(
    n_gpus: int, models: tuple[str, ...], jobs: int, load: float, seed: int = 0, days: float = 0.0,
    median: float = 300.0, sigma: float = 2.2, deadlines: float = 0.0, elastic: float = 0.0,
) -> tuple[TraceJob, ...]:  # fmt: skip
    """Jobs like those of SenseTime's Helios: 3.72 GPUs on average, 2048 at most. Parameters as for ``poisson``."""
    return poisson(n_gpus, models, jobs, load, seed, days, median, sigma, 3.72, 2048, deadlines, elastic)


def cassini(
    n_gpus: int, models: tuple[str, ...], jobs: int, load: float, seed: int = 0, parallel: str = "mixed"
) -> tuple[TraceJob, ...]:
    """Jobs as in CASSINI's Poisson traces: 1 to 12 GPUs, 200 to 1000 iterations, all models equally likely.

    Parameters
    ----------
    n_gpus : int
        Number of GPUs of the cluster that is to be loaded.
    models : tuple of str
        Models to draw from; those that `parallel` does not name are left out.
    jobs : int
        How many.
    load : float
        GPU seconds that arrive per GPU of the cluster and second, with iterations of single jobs on ports of 50 Gb/s;
        the paper has 0.8 to 1.
    parallel : str
        Data (its Table 3's data-parallel models), model (GPT and DLRM), or mixed (the first and DLRM).

    Raises
    ------
    InputError
        If a number is out of its range, or `parallel` is none of these.

    References
    ----------
    Rajasekaran et al., "CASSINI", NSDI 2024, section 5.1
    """
    _check(jobs=jobs, load=load, seed=seed)
    if parallel not in PARALLEL:
        raise InputError(f"parallel must be {', '.join(PARALLEL)}, got {parallel!r}")
    names = [name for name in PARALLEL[parallel] if name in models]
    random = np.random.default_rng(seed)
    counts = random.integers(1, min(12, n_gpus) + 1, jobs)
    iterations = random.integers(200, 1001, jobs)
    drawn = [MODELS[names[i]] for i in random.integers(len(names), size=jobs)]
    alone = [
        profile(model, model.name, int(n), int(n), TESTBED_PORT).period for model, n in zip(drawn, counts, strict=True)
    ]
    span = float((counts * iterations * np.array(alone)).sum()) / (load * n_gpus)
    gaps = random.exponential(1.0, jobs)
    submit = np.concatenate(([0.0], np.cumsum(gaps[1:]) * span / gaps.sum()))
    width = len(str(jobs - 1))
    return tuple(
        TraceJob(
            f"job{i:0{width}}",
            float(submit[i]),
            int(counts[i]),
            iterations=float(iterations[i]),
            model=drawn[i].name,
        )
        for i in range(jobs)
    )


GENERATORS: dict[str, Callable[..., tuple[TraceJob, ...]]] = {
    "poisson": poisson, "philly": philly, "helios": helios, "cassini": cassini,
}  # fmt: skip


def power_of_two_counts(random: np.random.Generator, n: int, mean: float, largest: int) -> NDArray[np.int64]:
    """Draw powers of two up to `largest` with ``P(2^k)`` proportional to ``2^(-a k)``, `a` such that the mean is right.

    Raises
    ------
    InputError
        If no `a` gives that mean.
    """
    if not 1 <= mean <= max(largest, 1):
        raise InputError(f"mean_gpus must be 1..{largest}, the largest number of GPUs of a job, got {mean}")
    counts = np.exp2(np.arange(int(math.log2(largest)) + 1, dtype=np.float64))
    if not mean <= counts[-1]:
        raise InputError(f"mean_gpus must be at most {counts[-1]:.0f}, the largest power of two, got {mean}")
    low, high = -64.0, 64.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean(counts, middle) > mean else (low, middle)
    shares = counts**-low
    return random.choice(counts.astype(np.int64), size=n, p=shares / shares.sum())


def _mean(counts: NDArray[np.float64], a: float) -> float:
    shares = (counts / counts[-1 if a < 0 else 0]) ** -a
    return float((counts * shares).sum() / shares.sum())


def _check(**numbers: float) -> None:
    limits = {"jobs": (1, MAX_JOBS), "load": (1e-6, 1e3), "days": (0, 1e4), "median": (1e-3, 1e7), "sigma": (0, 4)}
    limits["seed"] = (0, 2**63)
    for name, value in numbers.items():
        low, high = limits.get(name, (0, 1))
        if not low <= value <= high:
            raise InputError(f"{name} must be {low:g}..{high:g}, got {value:g}")

"""Several periodic jobs on one network: a fluid model of contention, iteration after iteration; MLTCP's weights.

Every job has one rate at a time, its phase's or what the links leave it: a ring moves as fast as its slowest link. A
phase that is slowed down takes longer; computing times stay, so that all that follows comes later. Rates are max-min
fair among the jobs that are sending, by weights or priorities where these are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commsim.core.errors import InputError, PhysicsError, unknown_name
from commsim.core.network import Network

from .periodic import PeriodicJob
from .shared_links_tables import SharedLinks, lay_out
from .shared_run import SharedRun as SharedRun

MAX_VALUE = 1e9  # weights, uses and the ratio of two jobs' times stay within it, so that no rounding can stop the clock
MAX_ITERATIONS = 1_000_000
MAX_SHORT_ITERATIONS = 5_000_000  # of the fastest job; a second or so for each million and job
SHARINGS = ("fair", "weighted", "priority", "mltcp")


@dataclass(frozen=True, slots=True)
class Mltcp:
    """A job's weight is ``slope * f + intercept``, where f is the part of this iteration's bytes that it has sent.

    Weights move between events, so we move them in steps: whenever a job begins or ends a phase all that share with it
    get the weights of that time, and so they do whenever the weight of one of them has grown by the n-th root of what
    it grows by in an iteration. The error is of the first order in 1 / n_steps. The check is two jobs of equal bytes on
    one full link: the ratio of their weights stays as it is while both send, since d ln(weight) is equal.

    Parameters
    ----------
    slope, intercept : float
        Slope and intercept of the weight. The usual ones are those of an ns-3 implementation by one of the authors,
        where they multiply the additive increase of Reno; here they are the ratio of rates itself.
    n_steps : int
        Number of steps per iteration.

    Raises
    ------
    InputError
        If the intercept is not positive, the slope is negative, or without a step.

    References
    ----------
    Rajasekaran, Narang, Zabreyko and Ghobadi, "MLTCP: congestion control for DNN training", arXiv 2402.09589.
    """

    slope: float = 4.0
    intercept: float = 0.25
    n_steps: int = 24

    def __post_init__(self) -> None:
        if not (1e-9 <= self.intercept <= 1e9 and 0 <= self.slope <= 1e9):
            raise InputError(
                f"MLTCP needs a slope of 0 or more and a positive intercept, got {self.slope} and {self.intercept}"
            )
        if self.n_steps < 1:
            raise InputError(f"MLTCP needs at least 1 step per iteration, got {self.n_steps}")


def simulate_jobs(
    network: Network,
    jobs: Sequence[PeriodicJob],
    use: Sequence[ArrayLike],
    *,
    shifts: ArrayLike = 0.0,
    iterations: int = 100,
    sharing: str = "fair",
    weights: ArrayLike | None = None,
    priorities: ArrayLike | None = None,
    mltcp: Mltcp | None = None,
    jitter: float = 0.0,
    adjust: float | None = None,
    seed: int = 0,
) -> SharedRun:
    """Run jobs together until each has done its iterations; those that are faster go on until then, unrecorded.

    Parameters
    ----------
    network : Network
        Network whose bandwidth is shared.
    jobs : sequence of PeriodicJob
        Placements are not looked at: `use` says where the traffic goes.
    use : sequence of float64[n_links]
        How many times its rate each job puts on every link.
    shifts : float64[n_jobs] or float, s
        Time at which each job's first iteration starts.
    iterations : int
        How many of each job are recorded.
    sharing : {"fair", "weighted", "priority", "mltcp"}
        How rates are shared on a full link.
    weights : float64[n_jobs], optional
        Weights for ``weighted``: rates of jobs on one full link are to each other as their weights.
    priorities : int[n_jobs], optional
        Priorities for ``priority``: jobs of 0 go first, and 1 gets what they leave over; equals share fairly.
    mltcp : Mltcp, optional
        Parameters of ``mltcp``; by default the usual ones.
    jitter : float
        Standard deviation of the logarithm of a factor of mean 1, drawn per job and iteration, for its computing times.
    adjust : float, optional
        A job whose communication starts by more than this part of its period before or after its time (start, plus
        whole periods, plus offset) waits until the next such time; 0.05 in CASSINI. Only jobs that do not slow each
        other down much can keep their times: others wait in every iteration.
    seed : int
        Seed of the jitter.

    Returns
    -------
    SharedRun

    Raises
    ------
    InputError
        If something is out of its range, has no effect with this sharing, or a job starves.

    References
    ----------
    CASSINI, NSDI 2024, section 4.2: time shifts and their adjustment. Crux, SIGCOMM 2024: priorities.
    """
    n = len(jobs)
    if not n:
        raise InputError("sharing needs at least one job, got none")
    if not (1 <= iterations <= MAX_ITERATIONS and 0 <= jitter <= 10):
        limits = f"1..{MAX_ITERATIONS}, and jitter 0..10"
        raise InputError(f"iterations must be {limits}, got {iterations} and {jitter}")
    if adjust is not None and not 0 < adjust <= 0.5:
        raise InputError(f"adjust must be a part of an iteration, more than 0 and at most 0.5, got {adjust}")
    loads = _uses(network, jobs, use)
    starts = _starts(jobs, shifts)
    ranks, classes = _sharing(sharing, weights, priorities, mltcp, n)
    tables = lay_out(network.bandwidth, jobs, loads, starts, ranks, classes)
    rule = mltcp or Mltcp()
    steps = (rule.slope, rule.intercept, rule.n_steps if sharing == "mltcp" and rule.slope else 0)
    factor = np.ones((n, 1))
    if jitter:
        factor = np.random.default_rng(seed).lognormal(-(jitter**2) / 2, jitter, (n, iterations))
    time, took = _play(tables, jobs, factor, steps, np.inf if adjust is None else adjust, iterations)
    return _run(network, jobs, loads, tables, time, took)


def fair_times(
    jobs: Sequence[PeriodicJob], parts: NDArray[np.float64], starts: NDArray[np.float64], iterations: int
) -> NDArray[np.float64]:
    """Mean iteration times of jobs on a few links, shared max-min, in the second half of their iterations.

    Parameters
    ----------
    jobs : sequence of PeriodicJob
        Jobs that are known to be within the limits of :func:`simulate_jobs`.
    parts : float64[n_jobs, n_links], s/byte
        Factor that turns a rate of each job into a share of each link.
    starts : float64[n_jobs], s
        Time at which each job's first iteration starts.
    iterations : int
        Number of iterations of each job.

    Returns
    -------
    float64[n_jobs], s
    """
    n = len(jobs)
    tables = lay_out(np.ones(parts.shape[1]), jobs, parts, starts, np.ones(n), np.zeros(n, np.int32))
    took = _play(tables, jobs, np.ones((n, 1)), (0.0, 0.0, 0), np.inf, iterations)[1]
    return np.asarray(took[0, :, iterations // 2 :].mean(axis=1))


def _play(
    tables: SharedLinks,
    jobs: Sequence[PeriodicJob],
    factor: NDArray[np.float64],
    mltcp: tuple[float, float, int],
    adjust: float,
    iterations: int,
) -> tuple[float, NDArray[np.float64]]:

    from .shared_links_kernel import simulate

    took = np.zeros((2, len(jobs), iterations))
    slowest, short = max(job.period for job in jobs), min(jobs, key=lambda job: job.period)
    n_short = iterations * slowest / short.period  # what is faster goes on until all others have done theirs
    if n_short > MAX_SHORT_ITERATIONS:
        raise InputError(f"{short.name} does {n_short:.3g} iterations until all jobs have done {iterations}: at most "
                         f"{MAX_SHORT_ITERATIONS:,} are simulated")  # fmt: skip
    expected = sum((2 * len(job.phases) + 3 + 2 * mltcp[2]) * (iterations * slowest / job.period + 1) for job in jobs)
    most = int(min(1e6 + 100 * expected, 1e9))
    time, n_events = simulate(tables, factor, mltcp, adjust, took, most)
    if n_events > most:
        done = tables.job["iteration"]
        last, first = int(done.argmin()), int(done.argmax())
        raise InputError(
            f"given up after {time:.4g} s: {jobs[last].name} has done {done[last]} of {iterations} iterations while"
            f" {jobs[first].name} did {done[first]}; it starves, or is too much slower than the others"
        )
    return time, took


def _run(
    network: Network,
    jobs: Sequence[PeriodicJob],
    loads: NDArray[np.float64],
    tables: SharedLinks,
    time: float,
    took: NDArray[np.float64],
) -> SharedRun:
    job = tables.job
    carried = (job["sent_before"] + job["sent"]) @ loads
    if (carried > network.bandwidth * time * (1 + 1e-9)).any():
        k = int((carried / network.bandwidth).argmax())
        raise PhysicsError(f"{network.link_name(k)} carried {carried[k]} bytes in {time} s, more than it can")
    contended, excess = np.zeros(network.n_links), np.zeros(network.n_links)
    contended[tables.number], excess[tables.number] = tables.link["contended"], tables.link["excess"]
    return SharedRun(
        network,
        tuple(jobs),
        loads,
        job["start"],
        time,
        took[0],
        took[1],
        carried,
        contended,
        excess,
        job["contended"],
        job["n_adjusted"],
    )


def _uses(network: Network, jobs: Sequence[PeriodicJob], use: Sequence[ArrayLike]) -> NDArray[np.float64]:
    if len(use) != len(jobs):
        raise InputError(f"{len(jobs)} jobs need as many uses of links, got {len(use)}")
    loads = np.zeros((len(jobs), network.n_links))
    for j, (job, row) in enumerate(zip(jobs, use, strict=True)):
        row = np.asarray(row, np.float64)
        if row.shape != (network.n_links,) or not ((row == 0) | ((row >= 1 / MAX_VALUE) & (row <= MAX_VALUE))).all():
            raise InputError(f"{job.name}: the use of links is {network.n_links} numbers of 0 or more, got {row}")
        loads[j] = row
    return loads


def _starts(jobs: Sequence[PeriodicJob], shifts: ArrayLike) -> NDArray[np.float64]:
    """Read starting times, and refuse what would be lost in the rounding of the clock."""
    starts = _per_job("shifts", shifts, len(jobs))
    short = min(jobs, key=lambda job: job.period)
    if not ((starts >= 0) & (starts <= MAX_VALUE * short.period)).all():
        raise InputError(
            f"shifts must be 0 or more, and at most {MAX_VALUE:g} iterations of {short.name}, got {starts.tolist()}"
        )
    long = max(jobs, key=lambda job: job.period)
    if long.period > MAX_VALUE * short.period:
        raise InputError(
            f"an iteration of {long.name} is more than {MAX_VALUE:g} of {short.name}: too different to simulate"
        )
    for job in jobs:
        if job.n_bytes > 1e30 or job.peak_rate > 1e30:
            raise InputError(f"{job.name}: rates and bytes of an iteration must be at most 1e30")
    return starts


def _sharing(
    sharing: str, weights: ArrayLike | None, priorities: ArrayLike | None, mltcp: Mltcp | None, n: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Weights and priorities of all jobs; what the sharing does not look at is refused."""
    if sharing not in SHARINGS:
        raise unknown_name("sharing", sharing, SHARINGS)
    for name, value, belongs in (
        ("weights", weights, "weighted"), ("priorities", priorities, "priority"), ("mltcp", mltcp, "mltcp"),
    ):  # fmt: skip
        if value is not None and sharing != belongs:
            raise InputError(f"{name} go with {belongs} sharing, got {sharing}")
        if value is None and sharing == belongs and name != "mltcp":
            raise InputError(f"{sharing} sharing needs {name}, one per job")
    ranks = _per_job("weights", 1.0 if weights is None else weights, n)
    if not ((ranks >= 1 / MAX_VALUE) & (ranks <= MAX_VALUE)).all():
        raise InputError(f"weights must be positive, {1 / MAX_VALUE:g} to {MAX_VALUE:g}, got {ranks.tolist()}")
    classes = _per_job("priorities", 0 if priorities is None else priorities, n)
    if not ((classes == np.floor(classes)) & (classes >= 0) & (classes < 2**31 - 1)).all():
        raise InputError(f"priorities must be whole numbers of 0 or more, got {classes.tolist()}")
    return ranks, classes.astype(np.int32)


def _per_job(name: str, values: ArrayLike, n: int) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    if array.shape not in ((), (n,)):
        raise InputError(f"{name} must be one number per job, {n}, got {array.size}")
    return np.broadcast_to(array, n)

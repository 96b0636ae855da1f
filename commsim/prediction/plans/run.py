"""A run: one collective of one size on a network, and how an engine plays it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import BLOCKING, COLLECTIVES
from commsim.core.cost import Framing
from commsim.core.errors import InputError, NoClosedFormError
from commsim.core.network import Network
from commsim.core.result import Result
from commsim.core.schedule import Schedule
from commsim.engine.flow_paths import FlowPaths
from commsim.prediction.scenario import Wish
from commsim.prediction.work_plan import Outcome, WorkPlan

Starts = NDArray[np.float64]
# Function from ``(size, *, starts, framing)`` to a result.
Simulation = Callable[..., Result]
__all__ = ["Run", "Simulation", "Starts", "closed_form_of", "over_hashes", "played", "start_draws", "starts_of"]


@dataclass(frozen=True, slots=True)
class Run:
    """One collective of one size, placed on a network.

    Parameters
    ----------
    size : float, bytes
        Size of the operation, as nccl-tests counts it.
    sent : float or None, bytes
        Size that the schedule's chunks are parts of, where it is not the operation's.
    schedule, parameters : Schedule, mapping of str to value
        Transfers, and the arguments of the schedule's builder.
    network : Network
        Network, as it was asked for.
    paths : FlowPaths
        Tables of a simulation, on the network as messages see it.
    framing, in_packets : Framing, optional
        Packets that the software makes of messages, for engines without packets and for those with them.
    before : float, s
        Time outside of all messages: of a launch, of host and aggregation units.
    spread : (float, float)
        Factors of the time, for its interval; both 1 where none is known.
    with_software : callable, optional
        Function from the result of the messages to that with what the software does at the same time, in place of
        `before` and `spread`.
    slots : callable, optional
        Function from starts and a wish to the result where the packet engine simulates the slots of a switch system,
        and no messages.
    on_paper : callable, optional
        Function from the run and a wish to the closed form, where it is not that of the registered collective.
    count : callable, optional
        Function to the counters that a result has beside the engine's.
    """

    size: float
    sent: float | None
    schedule: Schedule
    parameters: Mapping[str, Any]
    network: Network
    paths: FlowPaths
    framing: Framing | None = None
    in_packets: Framing | None = None
    before: float = 0.0
    spread: tuple[float, float] = (1.0, 1.0)
    with_software: Callable[[Result], Result] | None = None
    slots: Callable[[Starts, Wish], Result] | None = None
    on_paper: Callable[[Run, Wish], Result] | None = None
    count: Callable[[], Mapping[str, float]] | None = None
    bounds: dict[str, FlowPaths] = field(default_factory=dict, repr=False, compare=False)

    def hashed_by(self, seed: int) -> Run:
        """Return the run with routes that another seed draws; all else is the same."""
        paths = self.paths.hashed_by(seed)
        return self if paths is self.paths else dataclasses.replace(self, paths=paths, bounds={})

    def with_launch(self, result: Result) -> Result:
        """Return the result of the operation's size, with the time outside of all messages."""
        more = self.before
        return dataclasses.replace(
            result, size=self.size, time=result.time + more, time_from_last_start=result.time_from_last_start + more,
            samples=result.samples + more,
        )  # fmt: skip

    def finished(self, result: Result) -> Result:
        """Return the result of messages with what no message shows: the launch, the software, and the interval."""
        if self.with_software is not None:
            return self.with_software(result)
        done = self.with_launch(result) if self.before or result.size != self.size else result
        low, high = self.spread
        return dataclasses.replace(done, interval=(done.time * low, done.time * high)) if low < high else done


def played(run: Run, wish: Wish) -> Result:
    """Predict a run: the median of all draws of the starts.

    Raises
    ------
    InputError
        If the engine cannot predict this.
    """
    if wish.engine == "closed-form":
        return run.finished(closed_form_of(run, wish)) if run.on_paper is None else run.on_paper(run, wish)
    draws = start_draws(run.schedule, wish)
    if run.slots is not None and wish.engine == "packet":
        return _of_draws([run.slots(starts, wish) for starts in draws])
    framing = wish.framing or (run.in_packets if wish.engine == "packet" else run.framing)
    sent = run.size if run.sent is None else run.sent
    simulation = wish.model.simulation(run.paths, wish)
    results = [simulation(sent, starts=starts, framing=framing) for starts in draws]
    found = _of_draws(results) if wish.start_jitter else results[0]
    if run.network.curves is not None and wish.engine != "packet":
        found = dataclasses.replace(found, interval=_interval(run, sent, wish, framing))
    found = run.finished(found)
    return found if run.count is None else dataclasses.replace(found, counters={**found.counters, **run.count()})


def over_hashes(plan: WorkPlan, size: float, wish: Wish, *, is_ratio: bool = False) -> Outcome:
    """Predict one size: the median over the wish's number of hashes, where two draws differ.

    Parameters
    ----------
    plan : WorkPlan
        Plan of the work.
    size : float, bytes
        Size of the operation.
    wish : Wish
        Engine and its options.
    is_ratio : bool
        Whether the time is divided by another median: of few messages more hashes are then the default.

    Returns
    -------
    Outcome
        That of the draw with the median time, the lower one of an even number; of several results that with the
        median of the mean over results of their times relative to those of the first draw. `hashes` of a result is
        None where the draws are equal within 1 %, or there is one.

    Raises
    ------
    InputError
        If the engine cannot predict this.
    """
    if wish.hashes == 1 or not plan.may_collide or wish.sprays:
        return plan.outcome(size, wish)
    from commsim.prediction.plans.draws import median_draw

    return median_draw(plan, size, wish, is_ratio=is_ratio)


def start_draws(schedule: Schedule, wish: Wish) -> list[Starts]:
    """Return when each participant starts, float64[n_participants], s, in each draw."""
    if not wish.start_jitter:
        return [np.zeros(schedule.n_participants)]
    helpers = np.zeros(schedule.n_helpers)
    n = max(1, wish.iterations)
    draw = np.random.default_rng(wish.seed).uniform(0.0, wish.start_jitter, (n, schedule.n_ranks))
    return [np.concatenate((starts, helpers)) for starts in draw]


def starts_of(schedule: Schedule, result: Result, wish: Wish) -> Starts:
    """Return when each rank of a result started: in the draw that has the median time."""
    draws, samples = start_draws(schedule, wish), result.samples if len(result.samples) else np.zeros(1)
    return draws[_middle(samples)][: schedule.n_ranks]


def closed_form_of(run: Run, wish: Wish) -> Result:
    """Return the closed form of a registered collective, without what no message shows."""
    from commsim.engine.closed_form import closed_form

    if wish.start_jitter:
        raise InputError("the closed form does not model ranks that start late; use engine flow")
    if wish.framing is not None and run.sent is None:
        raise InputError("the closed form does not model packet headers; use engine flow")
    if run.schedule.name not in COLLECTIVES:
        raise NoClosedFormError(f"{run.schedule.name} is not a registered collective and has no closed form")
    values, paths = dict(run.parameters), run.paths
    if values.pop(BLOCKING, False):
        raise NoClosedFormError(
            f"{run.schedule.name}: the closed form is that of steps that do not wait; use engine flow"
        )
    return closed_form(
        COLLECTIVES[run.schedule.name], paths.network, paths.job, run.size if run.sent is None else run.sent, values,
        framing=wish.framing or run.framing, routing=paths.routing, seed=paths.seed,
    )  # fmt: skip


def _interval(run: Run, sent: float, wish: Wish, framing: Framing | None) -> tuple[float, float]:
    """Predict the same again as if all steps took what only a tenth of those measured went below, and above."""
    curves = run.network.curves
    assert curves is not None
    for which in ("low", "high"):
        if which not in run.bounds:
            run.bounds[which] = run.paths.on(dataclasses.replace(run.paths.network, curves=curves.bound(which)))
    untraced = dataclasses.replace(wish, trace=False)
    simulations = [untraced.model.simulation(run.bounds[which], untraced) for which in ("low", "high")]
    draws = start_draws(run.schedule, wish)
    ends = [
        _of_draws([simulation(sent, starts=starts, framing=framing) for starts in draws]).time
        for simulation in simulations
    ]
    return min(ends), max(ends)


def _of_draws(runs: Sequence[Result]) -> Result:
    """Return the result with the median time, with the times of all draws where there are several."""
    if len(runs) == 1:
        return runs[0]
    times = np.array([run.time for run in runs])
    return dataclasses.replace(runs[_middle(times)], samples=times)


def _middle(times: NDArray[np.float64]) -> int:
    """Return which draw has the median time: the lower one of an even number."""
    return int(np.argsort(times, kind="stable")[(len(times) - 1) // 2])

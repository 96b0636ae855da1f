"""Which algorithm is best for an operation on a network, and from which size on another one is."""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from commsim.core.data_frames import frame_of
from commsim.core.errors import InputError
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import count_text, first_of, format_size, format_time
from commsim.core.value import Shown
from commsim.prediction.build import SYNTHESIZED, plan_collective
from commsim.prediction.collective_names import require_operation, spelled_out
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.unused_faults import of_unused_faults
from commsim.prediction.scenario import Scenario
from commsim.prediction.solve import Solution, plan_of_whole, solve
from commsim.ranking.contenders import (
    about_given,
    algorithms_for,
    blaming,
    launch_in_title,
    launch_of,
    left_to_libraries,
    legal_sizes,
    prepare_all,
    priced_apart,
    skipped,
    with_launch,
)

# How a ranking calls the schedules that are synthesized for the network.
NAME = SYNTHESIZED.removesuffix("_")
# Relative width of the interval of sizes in which a crossover is found.
TOLERANCE = 0.01
# Times that differ by less are equal, and the name decides: they differ by rounding.
TIE = 1e-9
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Crossover:
    """Up to size `low` one algorithm is best, and from `high` on another.

    Parameters
    ----------
    low, high : int, bytes
        Sizes within ``TOLERANCE`` of each other, or neighbours.
    before, after : str
        The two algorithms.
    """

    low: int
    high: int
    before: str
    after: str


@dataclass(frozen=True, slots=True, repr=False)
class Ranking(Shown):
    """What :func:`rank_algorithms` found.

    Parameters
    ----------
    by_size : mapping of int to tuple of (str, Result)
        Algorithms and their results by size in bytes, the fastest first.
    crossovers : tuple of Crossover
        Changes of the best algorithm, in ascending order of sizes, between the smallest and the largest size.
    left_out : mapping of str to str
        Algorithms that cannot run here, and why.
    plans : mapping of str to Plan
        Plan of each algorithm, by name.
    derived, remarks : tuple of Remark
        What was derived, and what the times assume.
    launch : float, s
        Launch of a call that all times have, where one way is a call of the GPUs' library; else 0.
    """

    by_size: Mapping[int, tuple[tuple[str, Result], ...]]
    crossovers: tuple[Crossover, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    plans: Mapping[str, Plan] = field(default_factory=dict)
    derived: tuple[Remark, ...] = ()
    remarks: tuple[Remark, ...] = ()
    launch: float = 0.0

    @property
    def said(self) -> tuple[Remark, ...]:
        """All remarks, each once."""
        return tuple(dict.fromkeys((*self.derived, *self.remarks)))

    def __repr__(self) -> str:
        best = [f"{format_size(size)} {ranked[0][0]} {format_time(ranked[0][1].time)}"
                for size, ranked in self.by_size.items()]  # fmt: skip
        costs = {format_time(self._overhead(name)) for name in self.plans}
        text = f", {costs.pop()} of overhead per message" if len(costs) == 1 else ""
        text += launch_in_title(self.launch)
        return f"Ranking({count_text(len(self.plans), 'algorithm')}{text}, the best: {first_of(best)})"

    def _overhead(self, name: str) -> float:
        """Overhead of a message that the times of an algorithm include, given or assumed, s."""
        return float(self.plans[name].network.overhead.max(initial=0.0)) if name in self.plans else 0.0

    def tree(self) -> dict[str, Any]:
        """Return the JSON of ``commsim run --operation`` beside its rows: order of each size, crossovers, left out."""
        rows = [
            {"size_B": size, "algorithms": [
                {"algorithm": name, "time_s": r.time, "times_best": times_best(r.time, order[0][1].time)}
                for name, r in order
            ]}
            for size, order in self.by_size.items()
        ]  # fmt: skip
        crossovers = [{"low_B": c.low, "high_B": c.high, "before": c.before, "after": c.after} for c in self.crossovers]
        beside = {"left_out": dict(self.left_out), "launch_s": self.launch}
        return beside | {"ranking": rows, "crossovers": crossovers}

    def to_frame(self, library: str | None = None) -> Any:
        """Return a row for each algorithm and size, with its place, as a data frame of pandas or polars."""
        return frame_of(
            (
                {
                    "size_B": size,
                    "rank": place,
                    "algorithm": name,
                    "times_best": times_best(result.time, ranked[0][1].time),
                }
                | {"overhead_s": self._overhead(name)}
                | {key: value for key, value in result.row().items() if key not in ("size_B", "counters")}
                for size, ranked in self.by_size.items()
                for place, (name, result) in enumerate(ranked, 1)
            ),
            library,
        )


def times_best(time: float, best: float) -> float:
    """Return how many times the best a time is; 1 where the best is nothing."""
    return time / best if best else 1.0


def rank(
    scenario: Scenario,
    operation: str,
    sizes: Sequence[int],
    *,
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
    synthesized: bool = False,
) -> Ranking:
    """Rank the algorithms of an operation in a scenario, whose collective is left aside.

    Parameters
    ----------
    scenario : Scenario
        Network, placing and engine.
    operation : str
        Name of the operation.
    sizes : sequence of int, bytes
        Sizes, in ascending order.
    algorithms : sequence of str
        Algorithms to rank. Default: all that implement the operation.
    named : sequence of str
        Further algorithms that were asked for by name: they must run, on switches that are assumed to be programmable.
    synthesized : bool
        Whether the schedules that are synthesized for the network are ranked too.

    Raises
    ------
    InputError
        If the operation is unknown, a named algorithm is one of another operation or cannot run, or none can run.
    PhysicsError
        If the prediction of an algorithm is impossible. This is a bug in commsim.
    """
    scenario.wish.require_engine("a ranking")
    network, (sizes, about_sizes) = scenario.network, legal_sizes(operation, sizes)
    known: dict[tuple[str, int], Result] = {}

    def predict(spec: str, plan: Plan, size: int) -> Result:
        if (spec, size) not in known:
            with blaming(spec):
                known[spec, size] = plan.run(size, scenario.wish)
        return known[spec, size]

    def predict_all(spec: str, plan: Plan) -> None:
        for size in sizes:
            predict(spec, plan, size)

    plans, left_out = contenders(scenario, operation, algorithms, named, predict_all, synthesized=synthesized)
    launch = launch_of(plans.values())
    ranking = rank_algorithms(
        list(plans), sizes, lambda spec, size: with_launch(plans[spec], predict(spec, plans[spec], size), launch)
    )
    derived = dict.fromkeys((*scenario.remarks, *about_sizes, *skipped(left_out)))
    derived |= dict.fromkeys(note for plan in plans.values() for note in plan.notes)
    notes = about_given(plans, network)
    of_plans = {spec: [known[spec, size] for size in sizes] for spec in plans}
    asked = {spec: scenario.with_collective(spec) for spec in plans if scenario.failed}
    missed = of_unused_faults(scenario, plans, of_plans, {spec: plan_of_whole(one) for spec, one in asked.items()})
    own = dict.fromkeys(line for plan in plans.values() for line in plan.remarks_of_sizes(sizes))
    remarks = (*sentences(ranking), *missed, *own, *notes, *priced_apart(plans, sizes[0]))
    found = dataclasses.replace(ranking, left_out=left_out, plans=plans, launch=launch)
    return dataclasses.replace(found, derived=tuple(derived), remarks=remarks)


def solve_each(
    scenario: Scenario,
    operation: str,
    sizes: Sequence[int],
    *,
    algorithms: Sequence[str] = (),
    named: Sequence[str] = (),
    synthesized: bool = False,
) -> tuple[list[Solution], dict[str, str]]:
    """Solve a scenario with each algorithm of an operation, all with the same number of ranks.

    Parameters
    ----------
    scenario, operation, sizes, algorithms, named, synthesized
        Same as in :func:`rank`; messages cost what the network says.

    Returns
    -------
    list of Solution, dict of str to str
        And why algorithms are left out.
    """
    scenario.wish.require_engine("a ranking")
    solutions: list[Solution] = []

    def solved(spec: str, plan: Plan) -> None:
        with blaming(spec):
            solutions.append(solve(scenario.with_collective(spec, remarks=()), sizes, plan=plan))

    return solutions, contenders(scenario, operation, algorithms, named, solved, synthesized=synthesized)[1]


def contenders(
    scenario: Scenario,
    operation: str,
    algorithms: Sequence[str],
    named: Sequence[str],
    probe: Callable[[str, Plan], object],
    *,
    synthesized: bool = False,
) -> tuple[dict[str, Plan], dict[str, str]]:
    """Prepare and probe the algorithms of an operation; the parameters are those of :func:`rank` and `prepare_all`."""
    algorithms, named = ([spelled_out(spec, operation) for spec in specs] for specs in (algorithms, named))
    every = algorithms or algorithms_for(operation, scenario.network)  # before one's own file adds what it holds
    for spec in (*algorithms, *named):
        require_operation(spec, operation)
    plans, left_out = prepare_all(
        dict.fromkeys((*every, *named)), scenario.network, n_ranks=scenario.n_ranks, named=named,
        probe=probe, none_is_error=not synthesized, **scenario.placing,
    )  # fmt: skip
    for spec in named:
        if spec in left_out:
            raise InputError(left_out[spec])
    if not algorithms:
        others = left_to_libraries(operation, scenario.network)
        ranked = {spec.partition(":")[0] for spec in plans}
        left_out |= {name: why for name, why in others.items() if name not in ranked}
    if synthesized:
        # synthesized schedules pin their routes
        asked = scenario.with_collective(f"{SYNTHESIZED}{operation}", routing=None)
        plans[NAME] = plan_collective(asked)
        probe(NAME, plans[NAME])
    return plans, left_out


def sentences(ranking: Ranking) -> list[Remark]:
    """Describe which algorithm is best from which size on."""
    sizes = list(ranking.by_size)
    if all(result.n_ranks == 1 for order in ranking.by_size.values() for _, result in order):
        return [Remark("one-rank", "one rank has nothing to send, so there is no rate, and no best", needed=True)]
    if not ranking.crossovers:
        best = ranking.by_size[sizes[0]][0][0]
        return [Remark("best", f"best: {best}" + (" at every size" if len(sizes) > 1 else ""), needed=len(sizes) > 1)]
    first = f"best: {ranking.crossovers[0].before}"
    then = [f"{crossover.after} from {format_size(crossover.high)}" for crossover in ranking.crossovers]
    exact = [
        f"{crossover.after} from between {crossover.low} and {crossover.high} bytes on"
        for crossover in ranking.crossovers
    ]
    return [Remark("best", ", ".join([first, *then]), needed=True, details="; ".join(exact))]


def rank_algorithms(names: Sequence[str], sizes: Sequence[int], predict: Callable[[str, int], Result]) -> Ranking:
    """Rank algorithms at every size, and find by bisection where the best one changes.

    Parameters
    ----------
    names : sequence of str
        The algorithms.
    sizes : sequence of int, bytes
        Sizes in ascending order.
    predict : callable
        Function from a name and a size to the result.

    Notes
    -----
    Between two sizes with the same best algorithm no crossover is looked for, so that one which is best in between
    only is missed.
    """
    known: dict[int, tuple[tuple[str, Result], ...]] = {}

    def ranked(size: int) -> tuple[tuple[str, Result], ...]:
        if size not in known:
            known[size] = fastest_first([(name, predict(name, size)) for name in names])
        return known[size]

    crossovers: list[Crossover] = []
    for low, high in itertools.pairwise(sizes):
        crossovers += _between(low, high, lambda size: ranked(size)[0][0])
    return Ranking({size: ranked(size) for size in sizes}, tuple(crossovers))


def fastest_first(
    found: Iterable[tuple[str, Found]], time_of: Callable[[Found], float] = operator.attrgetter("time")
) -> tuple[tuple[str, Found], ...]:
    """Sort what was found by name by its time; those within ``TIE`` of the fastest of them by name."""
    left = sorted(found, key=lambda item: (time_of(item[1]), item[0]))
    out: list[tuple[str, Found]] = []
    while left:
        limit = time_of(left[0][1]) * (1 + TIE)
        equal = [item for item in left if time_of(item[1]) <= limit]
        out += sorted(equal, key=lambda item: item[0])
        left = left[len(equal) :]
    return tuple(out)


def _between(low: int, high: int, best: Callable[[int], str]) -> list[Crossover]:
    """Crossovers between two sizes, by halving the interval of their logarithms."""
    if best(low) == best(high):
        return []
    if high <= max(low * (1 + TOLERANCE), low + 1):
        return [Crossover(low, high, best(low), best(high))]
    middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
    return _between(low, middle, best) + _between(middle, high, best)

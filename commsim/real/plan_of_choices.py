"""The plan of a library that chooses an algorithm by size and ranks: MPICH, Open MPI, gloo."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from collectives import COLLECTIVES
from collectives.pieces import sized_parameters
from commsim.core.errors import InputError
from commsim.core.network import Network
from commsim.core.placement import Placement
from commsim.core.remark import Remark
from commsim.core.result import Result
from commsim.core.units import format_size
from commsim.prediction.build import prepare
from commsim.prediction.collective_names import chosen_by_library
from commsim.prediction.plans.dense import Plan

from .library_rules import LIBRARIES

# Size whose choice the plan holds before a size is asked for.
USUAL_SIZE = 32.0 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOfChoices(Plan):
    """A collective that is another algorithm at each size.

    Parameters
    ----------
    library, operation : str
        Rules of :mod:`commsim.real.library_rules`, and what they choose for.
    """

    chooses: ClassVar[bool] = True

    library: str
    operation: str

    def choice_at(self, size: float) -> str:
        """Return the algorithm of a size."""
        return LIBRARIES[self.library][self.operation](size, self.schedule.n_ranks)

    def at(self, size: float) -> Plan:
        """Return the plan of one size."""
        if not 0 <= size < float("inf"):
            return self
        name, n_ranks = self.choice_at(size), self.schedule.n_ranks
        parameters = sized_parameters(COLLECTIVES[name], n_ranks, size, {})
        key = name, parameters.get("n_chunks")
        if key not in self._at:
            schedule = COLLECTIVES[name].build(n_ranks, **parameters)
            self._at[key] = self.with_schedule(schedule, parameters).as_kind(Plan, _at={}, _bounds={})
        plan: Plan = self._at[key]
        return plan

    def in_pieces(self, size: float) -> Plan:
        """Return the plan with the algorithm and the pieces of a size."""
        return self.at(size)

    def remarks(self, results: Sequence[Result], *, has_framing: bool = False, verbose: bool = False) -> list[Remark]:
        """Return what results leave out, assume or depend on, and the algorithms where there are several."""
        sizes = sorted({result.size for result in results})
        runs = [(name, next(run)) for name, run in itertools.groupby(sizes, self.choice_at)]
        remarks = Plan.remarks(self, results, has_framing=has_framing, verbose=verbose)
        if len(runs) > 1:
            text = ", ".join(f"{name} from {format_size(size)}" for name, size in runs)
            remarks.insert(0, Remark("choices", f"{self.library}: {text}", needed=True))
        return remarks

    def checked(self, result: Result) -> Result:
        """Return a result that is no faster than what its own algorithm sends allows."""
        return self.at(result.size).checked(result)


def plan_of_choices(
    spec: str, network: Network, n_ranks: int | None, *, placement: str | Placement, routing: str | None, seed: int
) -> PlanOfChoices:
    """Plan what a library chooses.

    Parameters
    ----------
    spec : str
        Library and operation, as ``open-mpi_all_reduce``.
    network, n_ranks, placement, routing, seed
        Same as in :func:`commsim.prediction.build.prepare`.

    Raises
    ------
    InputError
        If the library has no rule for the operation, or parameters are given.
    """
    chosen = chosen_by_library(spec)
    assert chosen is not None
    library, operation = chosen
    if ":" in spec:
        raise InputError(f"{spec}: {library} chooses by size and ranks, and takes no parameters")
    rules = LIBRARIES[library]
    if operation not in rules:
        raise InputError(f"{library} has no rule for {operation}; it has them for {', '.join(sorted(rules))}")
    if n_ranks is None:
        n_ranks = len(network.endpoints) if isinstance(placement, str) else len(placement.nodes)
    usual = rules[operation](USUAL_SIZE, n_ranks)
    plan = prepare(usual, network, n_ranks=n_ranks, placement=placement, routing=routing, seed=seed)
    return plan.as_kind(PlanOfChoices, library=library, operation=operation)

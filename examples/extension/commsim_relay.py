"""A relay: a message that ranks hand on, each when it has all of it. A work, a way of the flow engine, and a verb.

Imports that cost time are in the functions that need them: `register` runs when commsim meets a name that it lacks.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from commsim.cli.flags import TOPOLOGY, Verb, WithJson, flag
from commsim.core.errors import InputError
from commsim.core.program import Program
from commsim.core.units import parse_size
from commsim.engine.ways.catalog import Simulation, Way, WayCost
from commsim.extensions import House
from commsim.prediction.build import CollectiveWork
from commsim.prediction.scenario import Scenario
from commsim.prediction.work_plan import Work

if TYPE_CHECKING:
    from commsim.engine.flow_paths import FlowPaths
    from commsim.prediction.work_plan import WorkPlan
    from commsim.report.answer import Answer


def register(house: House) -> None:
    """Register the work, the way and the verb."""
    house.works["relay"] = "commsim_relay:RelayWork"
    house.ways["in_turn"] = "commsim_relay:IN_TURN"
    house.commands("commsim_relay", relay="predict a message that ranks pass on")


@dataclass(frozen=True)
class RelayWork(Work):
    """A message that is handed on, as ``--work relay:4`` or ``work="relay:4"`` asks for it.

    Parameters
    ----------
    n_ranks : int
        Number of ranks that have it in the end.
    """

    NAME: ClassVar[str] = "a relay"
    TAKES: ClassVar[frozenset[str]] = CollectiveWork.TAKES  # a schedule honours what a collective does

    n_ranks: int

    @classmethod
    def read(cls, given: str) -> RelayWork:
        """Read the number of ranks.

        Raises
        ------
        InputError
            If it is no number, or below 2.
        """
        if not given.isdecimal() or int(given) < 2:
            raise InputError(f"relay:RANKS needs a number of at least 2, got {given!r}")
        return cls(int(given))

    def plan(self, scenario: Scenario) -> WorkPlan:
        """Plan the schedule of the relay, placed and routed as a collective is."""
        program = Program(self.n_ranks, n_chunks=1)
        for rank in range(self.n_ranks - 1):
            program.copy(0, src=rank, dst=rank + 1)
        return CollectiveWork(program.build("relay")).plan(scenario)

    @property
    def title(self) -> str:
        """The relay, as it was asked for."""
        return f"relay:{self.n_ranks}"


def _plan_in_turn(paths: FlowPaths) -> Simulation | None:
    """Lay out messages that are sent one after the other, so that none shares a link; decline all others."""
    from commsim.engine.alpha_beta import simulate_alpha_beta

    plan = paths.tables
    src, dst = plan.ends[plan.connection_of].T  # of each message, in program order
    if paths.job.schedule.n_chunks != 1 or (src[1:] != dst[:-1]).any():
        return None

    def simulate(size: float, **options: Any) -> Any:
        (result,) = simulate_alpha_beta(plan, size, **options)
        counters = {name: value for name, value in result.counters.items() if name != "link_bound_s"}
        return dataclasses.replace(result, engine="flow", counters=counters)

    return simulate


IN_TURN = Way(
    "in_turn", "messages that are sent one after the other", "one message after the other",
    lambda paths: WayCost(0.0, 1e-6 * paths.n_transfers), _plan_in_turn,
)  # fmt: skip


class RelayConfig(WithJson):
    """Flags of ``commsim relay``."""

    topology: str = flag(required=True, metavar=TOPOLOGY, help="network")
    ranks: int = flag(default=4, metavar="N", help="ranks that have the message in the end")
    size: str = flag("-b", default="1MiB", metavar="SIZE", help="bytes of the message")


def run(config: RelayConfig) -> Answer:
    """Predict the relay."""
    import commsim as cs
    from commsim.report.answer import Answer, Facts

    size = parse_size(config.size, "--size")
    result = cs.predict(None, config.topology, size, work=f"relay:{config.ranks}", method="in_turn")
    shown = {"ranks": str(config.ranks), "time": f"{result.time * 1e6:.2f} us"}
    return Answer([Facts(shown)], [{"ranks": config.ranks, "size_B": size, "time_s": result.time}])


COMMANDS = {"relay": Verb(RelayConfig, run)}

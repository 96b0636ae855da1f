"""Flags of verbs that write an iteration's phases on a link, and the writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from commsim.cli.flags import Flags, flag
from commsim.core.errors import InputError
from commsim.core.files.whole_files import write_json
from commsim.core.units import count_text, format_time, parse_time
from commsim.report.answer import Lines, Part

from .message_flags import Communication

if TYPE_CHECKING:
    from commsim.training.sharing.periodic import JobPhase
    from commsim.training.task_graph import Task
    from commsim.training.timeline import TaskTimeline


def phases_of(
    timeline: TaskTimeline, rank: int, gap: float, time_of: Callable[[Task], float] | None
) -> tuple[tuple[JobPhase, ...], str, float]:
    """Return phases, whose they are, and the iteration time.

    On a network they are demand: the bytes that groups exchange, of the rank that sends most over the busiest link out
    of a machine, and the iteration time without the time that these need. Without a network they are those of a rank's
    link, with its rate.
    """
    from commsim.placement.starts.demand import demand_of
    from commsim.training.cost_by_simulation import NetworkCosts
    from commsim.training.recorded_exchanges import exchanges_of, rank_of_link
    from commsim.training.timeline import link_phases

    if not isinstance(time_of, NetworkCosts):
        phases = link_phases(timeline, rank, gap)
        return phases, f"the link of rank {rank}" if rank else "a link", timeline.iteration_time
    link = time_of.busiest_link(timeline.graph.tasks)
    if link is None:
        whose = f"what rank {rank} sends inside its machine, which nothing leaves"
    else:
        rank = rank_of_link(timeline, time_of, link)
        whose = f"{time_of.network.link_name(link)}, the busiest link out of a machine"
    exchanges = exchanges_of(timeline, time_of, rank)
    nodes = time_of.nodes[: 1 + max(max(task.group, default=0) for task in timeline.graph.tasks)]
    phases, period = demand_of(time_of.cables, nodes, exchanges, timeline.iteration_time, gap)
    return phases, whose, period


class PhaseFlags(Flags):
    """Flags of the phases, and their file."""

    TITLE: ClassVar[str] = "demand on a link"
    phases: str | None = flag(metavar="FILE.json", help="write the link's demand over time as a jobs.json")
    phase_gap: str | None = flag(metavar="TIME", help="phases at most this far apart are merged (default: 0 s)")
    job: str | None = flag(metavar="NAME", help="name of the job in --phases")

    def check_phases(self) -> None:
        """Refuse flags that change nothing.

        Raises
        ------
        InputError
            If what belongs to ``--phases`` is given without it.
        """
        if self.phases is None and (flags := self.given("phase_gap", "job")):
            raise InputError(f"{flags[0]} changes nothing without --phases")

    @property
    def gap(self) -> float:
        """Time between phases that are one, s."""
        return 0.0 if self.phase_gap is None else parse_time(self.phase_gap, "--phase-gap")

    def write_job(self, name: str, n_gpus: int, period: float, phases: Sequence[JobPhase], whose: str) -> list[Part]:
        """Write a job of known phases to the file, and say so.

        Parameters
        ----------
        name : str
            Name of the job; ``--job`` takes precedence.
        n_gpus : int
            Number of GPUs of the job.
        period : float, s
            Iteration time.
        phases : sequence of JobPhase
            Phases of the link.
        whose : str
            The link.
        """
        from commsim.training.timeline import job_row

        row = job_row(self.job or name, n_gpus, period, phases)
        write_json(str(self.phases), [row])
        return [Lines([f"{self.phases}: {count_text(len(phases), 'phase')} of {whose}, period {format_time(period)}"])]


class WithPhases(Communication, PhaseFlags):
    """Flags of the phases, after those of communication costs."""

    def write_phases(
        self,
        timeline: TaskTimeline,
        n_gpus: int,
        name: str,
        rank: int = 0,
        time_of: Callable[[Task], float] | None = None,
    ) -> list[Part]:
        """Write the phases of one rank's link, if they are asked for, and say so.

        Parameters
        ----------
        timeline : TaskTimeline
            One iteration.
        n_gpus : int
            Number of GPUs of the job.
        name : str
            Name of the job; ``--job`` takes precedence.
        rank : int
            Rank of the link, where there is no network.
        time_of : callable, optional
            Costs of the exchanges, which on a network say what its links carry. Default: the least for its operation.
        """
        if self.phases is None:
            return []
        phases, whose, period = phases_of(timeline, rank, self.gap, time_of)
        return self.write_job(name, n_gpus, period, phases, whose)

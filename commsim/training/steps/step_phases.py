"""Exchanges of a step, of the stage that sends most over the busiest link out of a machine: its demand for ``place``.

Passes, messages and exchanges are those that the step was predicted from. What a pass exchanges itself, such as tensor
parallel pieces, is at its beginning.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from commsim.core.errors import InputError
from commsim.core.network_queries import busiest_link
from commsim.core.operations import operation
from commsim.training.cost_by_simulation import SEND
from commsim.training.sharing.periodic import JobPhase
from commsim.training.timeline import hidden_beside

from .step_graph import worker_of

if TYPE_CHECKING:
    from commsim.placement.starts.demand import RecordedExchange
    from commsim.training.task_graph import Task

    from .exchange_of_step import StepExchange
    from .parallel_sizes import Groups
    from .predicted_step import Step
    from .step_costs import StepCosts

# Passes of a step that is simulated as a whole.
MAX_PASSES = 200_000
# What sends: its kind, the part of the model or the stage, and the stage that it is sent to, for messages.
Sender = tuple[str, int, int]


def step_phases(step: Step, gap: float = 0.0) -> tuple[tuple[JobPhase, ...], float, str | None]:
    """Return the demand of a step: the bytes that each kind of groups exchanges, and when.

    Parameters
    ----------
    step : Step
        Step as predicted.
    gap : float, s
        Exchanges at most this far apart are one phase.

    Returns
    -------
    tuple of JobPhase, float (s), str or None
        The phases in a step, the time of a step without what these need on its network, and the name of the busiest
        link that leaves a machine; none if nothing does.

    Raises
    ------
    InputError
        If the step was not predicted here, or has too many passes.
    """
    from commsim.placement.starts.demand import demand_of

    costs = step.costs
    if costs is None:
        raise InputError("a step has phases only where it was predicted, not where it was put together")
    m, p = costs.setting.micro_batches, costs.setting.layout.pipeline
    m = m if costs.n_parts == p else -(-m // p) * p  # the interleaved schedule takes whole rounds of stages
    if 2 * m * costs.n_parts > MAX_PASSES:
        raise InputError(f"phases are found of at most {MAX_PASSES} passes, a step has {2 * m * costs.n_parts}")
    timeline, disturbed, added = costs.timeline(m, costs.kinds)
    sent = _StepBytes(costs)
    senders = [_sender(task) for task in timeline.graph.tasks]
    last = [("replicas", w, w) for w in range(p)]
    count = Counter([*senders, *last])
    link = busiest_link(costs.traffic.network, ((sent.by(one), n) for one, n in count.items()))
    stage = 0 if link is None else _stage_of(link, sent, count, p)
    spans = list(zip(timeline.graph.tasks, timeline.start.tolist(), timeline.end.tolist(), strict=True))
    computing = [(start, end) for task, start, end in spans if f"gpu{stage}.compute" in task.resources]
    # more micro-batches than were simulated, or fewer, take that much longer
    stretch = (step.time - disturbed - added) / timeline.iteration_time
    exchanges = []
    for sender, (_, start, end) in zip(senders, spans, strict=True):
        if sender[0] and (sender[1] if sender[0] == SEND else sender[2]) == stage:
            exchanges += sent.exchanged(sender, (start * stretch, end * stretch), stretch, computing)
    exchanges += sent.exchanged(last[stage], (step.time - added, step.time), 1.0, [])
    nodes = costs.traffic.nodes[: costs.setting.layout.n_ranks]
    phases, period = demand_of(costs.traffic.cables, nodes, exchanges, step.time, gap)
    return phases, period, None if link is None else costs.traffic.network.link_name(link)


def _sender(task: Task) -> Sender:
    """Return what a task of the pipeline's graph is, by the words of its name."""
    words = task.name.split()
    if words[0] in ("forward", "backward", "gather", "reduce"):
        part = int(words[-1])
        return words[0], part, worker_of(task)
    return (SEND, task.group[0], task.group[1]) if task.operation else ("", 0, 0)


class _StepBytes:
    """Bytes on links of what a step does."""

    def __init__(self, costs: StepCosts) -> None:
        self._costs = costs

    @functools.cache  # noqa: B019 - lives as long as one step's phases are sought
    def by(self, sender: Sender) -> dict[int, float]:
        """Return the bytes by link."""
        what, part, stage = sender
        costs, message = self._costs, self._costs.message
        match what:
            case "forward" | "backward":
                link_bytes = self._of(costs.in_pass(part, backward=what == "backward"), stage)
                way = -1 if what == "backward" else 1
                is_sent = "pipeline" in costs.kinds and "pipeline" not in costs.setting.overlap
                if is_sent and 0 <= part + way < costs.n_parts:
                    p = costs.setting.layout.pipeline
                    to = (stage + (way if stage == part % p else -way)) % p
                    link_bytes = _sum_of(link_bytes, self._between(message, stage, to), 1.0)
                return link_bytes
            case "gather" | "reduce":
                return self._of(costs.around(part, after=what == "reduce"), stage)
            case "replicas":
                return self._of(costs.of_replicas(), stage)
            case "":
                return {}
        return self._between(message, part, stage)

    def exchanged(
        self, sender: Sender, span: tuple[float, float], stretch: float, computing: Sequence[tuple[float, float]]
    ) -> list[RecordedExchange]:
        """Return what a task exchanges in a span of time, s, one after the other, by the kinds of groups."""
        what, part, stage = sender
        found: list[RecordedExchange] = []
        costs = self._costs
        start, end = span
        if what in ("forward", "backward"):
            for exchange, exposed in costs.exposed_in_pass(part, backward=what == "backward"):
                took = self._time(exchange) * stretch
                found.append(self._recorded(exchange, stage, (start, start + took), max(took - exposed * stretch, 0.0)))
                start += max(took, 0.0)
            return found
        if what == SEND:
            hidden = hidden_beside(computing, start / stretch, end / stretch) * stretch
            return [self._recorded(costs.message, part, span, hidden, to=stage)]
        exchanges = costs.of_replicas() if what == "replicas" else costs.around(part, after=what == "reduce")
        for exchange in exchanges:
            took = self._time(exchange) * stretch
            hidden = hidden_beside(computing, start / stretch, (start + took) / stretch) * stretch if computing else 0.0
            found.append(self._recorded(exchange, stage, (start, start + took), hidden))
            start += took
        return found

    def _time(self, exchange: StepExchange) -> float:
        return self._costs.seconds(exchange) * exchange.times

    def _recorded(
        self, exchange: StepExchange, stage: int, span: tuple[float, float], hidden: float, to: int = -1
    ) -> RecordedExchange:
        from commsim.placement.starts.demand import RecordedExchange, pattern_of

        lay = self._costs.setting.layout
        if exchange.operation == SEND:
            to = to if to >= 0 else (stage + 1) % lay.pipeline
            links, groups, factor = self._between(exchange, stage, to), lay.pairs(stage, to), 1.0
            together = groups
        else:
            links, groups = self._of([exchange], stage), self._costs.setting.groups(exchange.kind)
            together = self._of_stage(exchange, stage)
            factor = operation(exchange.operation).busbw_factor(len(groups[0]))
        n_bytes = factor * exchange.size * exchange.times
        seed = self._costs.traffic.hash_seed(exchange.operation, together, exchange.size)
        kind, seeds = (pattern_of(exchange.operation), groups), (seed,) * len(groups)
        return RecordedExchange(*span, kind, n_bytes, hidden, links, seeds)

    def _of(self, exchanges: Sequence[StepExchange], stage: int) -> dict[int, float]:
        """Bytes of what the ranks of one stage exchange."""
        link_bytes = dict[int, float]()
        for exchange in exchanges:
            groups = self._of_stage(exchange, stage)
            link_bytes = _sum_of(
                link_bytes, self._costs.traffic.link_bytes(exchange.operation, groups, exchange.size), exchange.times
            )
        return link_bytes

    def _of_stage(self, exchange: StepExchange, stage: int) -> Groups:
        n = self._costs.setting.layout.stage_ranks
        return tuple(of for of in self._costs.setting.groups(exchange.kind) if stage in (of[0] // n, of[-1] // n))

    def _between(self, message: StepExchange, stage: int, to: int) -> dict[int, float]:
        """Bytes of the messages from all ranks of a stage to those of another."""
        if stage == to:
            return {}
        pairs = self._costs.setting.layout.pairs(stage, to)
        return self._costs.traffic.link_bytes(message.operation, pairs, message.size)


def _sum_of(link_bytes: dict[int, float], more: dict[int, float], times: float) -> dict[int, float]:
    return link_bytes | {link: link_bytes.get(link, 0.0) + times * n_bytes for link, n_bytes in more.items()}


def _stage_of(link: int, sent: _StepBytes, count: Counter[Sender], n_stages: int) -> int:
    """Return the stage that sends most over a link."""
    by_stage = [0.0] * n_stages
    for (what, part, stage), n in count.items():
        by_stage[part if what == SEND else stage] += n * sent.by((what, part, stage)).get(link, 0.0)
    return by_stage.index(max(by_stage))

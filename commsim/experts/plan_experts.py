"""The plan of an exchange of experts, whose size is that of its tokens, with the costs of a library's kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from collectives.experts.copies import Copies, copies_for, numbers_of_experts
from collectives.experts.exchange import token_bytes
from commsim.core.errors import NoClosedFormError
from commsim.core.remark import SIZE_UNUSED, Remark
from commsim.core.result import Result
from commsim.core.units import count_text, format_size
from commsim.engine.flow_paths import FlowPaths
from commsim.experts.kernels import ExchangeWork, ExpertKernel, gpu_of, kernel_for, name_of, seconds, seen_by
from commsim.experts.work import work_of
from commsim.prediction.build import CollectiveRequest, build_collective, laid_out
from commsim.prediction.plans.dense import Plan
from commsim.prediction.plans.run import Run
from commsim.prediction.scenario import Wish

# Parameters that decide what is sent.
ROUTING = ("tokens", "top_k", "n_experts", "mode", "routing", "skew", "seed", "max_machines", "replicas", "balance",
           "machines")  # fmt: skip
__all__ = ["ExpertPlan", "plan_experts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertPlan(Plan):
    """An exchange of tokens among the ranks of their experts.

    Parameters
    ----------
    work : ExchangeWork
        What the busiest rank does.
    kernel : ExpertKernel, optional
        Costs of the library's kernel; None where only links cost time.
    """

    chooses: ClassVar[bool] = True

    work: ExchangeWork
    kernel: ExpertKernel | None

    def choice_at(self, size: float) -> str:  # noqa: ARG002
        """Return the tokens of a rank, the values of each, and its experts, which the size follows from."""
        given = self.parameters
        n_experts, top_k = numbers_of_experts(self.schedule.n_ranks, given["n_experts"], given["top_k"])
        tokens = f"{count_text(given['tokens'], 'token')} of {given['hidden']} {given['precision']} values a rank"
        return f"{tokens} to {top_k} of {n_experts} experts"

    def sizes(self, sizes: Sequence[float]) -> tuple[list[float], list[Remark]]:
        """Return the size of the tokens' copies; others that are asked for have no effect."""
        own = [float(self.sent or 0.0)]
        text = f"sizes have no effect, the tokens have copies of {format_size(int(own[0]))} at the busiest rank"
        return own, [Remark(SIZE_UNUSED, text)] if list(sizes) not in ([], own) else []

    def run_of(self, size: float, wish: Wish) -> Run:
        """Return what an engine plays: the same at every size, which the tokens decide."""
        if self.kernel is not None and wish.engine == "closed-form":
            raise NoClosedFormError(f"{self.schedule.name}: the closed form has no library; use engine flow")
        return dataclasses.replace(Plan.run_of(self, size, wish), with_software=self._with_kernel_beside)

    def _with_kernel_beside(self, result: Result) -> Result:
        """Return the result with what the kernel takes beside its links; they run at the same time."""
        result = dataclasses.replace(result, size=float(self.sent or 0.0))
        if self.kernel is None:
            return result
        low_latency = self.parameters["mode"] == "low_latency"
        whole = seconds(self.kernel, self.work, result.time, self.parameters["sms"], per_expert=low_latency)
        more = whole - result.time
        return dataclasses.replace(
            result, time=whole, time_from_last_start=result.time_from_last_start + more, samples=result.samples + more
        )

    def with_kernel(self, kernel: ExpertKernel | None) -> ExpertPlan:
        """Return the same exchange with the costs of another kernel, or of links only."""
        seen = self.network if kernel is None else seen_by(kernel, self.network)
        paths = FlowPaths(seen, self.paths.job, self.paths.routing, self.paths.seed)
        return dataclasses.replace(self, paths=paths, kernel=kernel, _at={}, _bounds={})

    def links(self) -> float:
        """Return the time in which links carry all copies, at the rates that the kernel reaches, s."""
        return float(self.paths.simulate(float(self.sent or 0.0)).time)


def routing_of(parameters: dict[str, Any], n_ranks: int) -> Copies:
    """Return the copies of a collective with these parameters."""
    return copies_for(n_ranks, **{key: value for key, value in parameters.items() if key in ROUTING})


def plan_experts(request: CollectiveRequest) -> ExpertPlan:
    """Plan a dispatch or a combine, with the costs of its library on this network's GPUs."""
    collective, entry = build_collective(request), request.entry
    defaults = {name: p.default for name, p in entry.parameters.items() if name not in ("n_ranks", "blocking")}
    arguments: dict[str, Any] = {**defaults, **collective.parameters}
    n_ranks, n_bytes = collective.schedule.n_ranks, token_bytes(arguments["hidden"], arguments["precision"])
    n_experts, top_k = numbers_of_experts(n_ranks, arguments["n_experts"], arguments["top_k"])
    machines = arguments["machines"] or (tuple(range(n_ranks)),)
    what = entry.metadata["operation"].removeprefix("ep_")
    local = arguments["tokens"] * (top_k if what == "combine" else 1)
    work = work_of(routing_of(arguments, n_ranks), n_ranks, machines, arguments["tokens"], local, n_experts, n_bytes)
    plan = laid_out(collective, request)
    plan = dataclasses.replace(
        plan, parameters={**arguments, **plan.parameters}, sent=n_bytes * collective.schedule.n_chunks
    )
    found = plan.as_kind(ExpertPlan, work=work, kernel=None)
    if arguments["library"] == "none":
        return found
    name = name_of(arguments["library"], arguments["mode"], what, arguments["precision"])
    kernel, text = kernel_for(name, gpu_of(request.network))
    remark = Remark("exchange-costs", f"{entry.name}: costs of {name}, fitted on {kernel.fitted}")
    if arguments["zero_copy"]:
        kernel = dataclasses.replace(kernel, copy=0.0, copy_rate=float("inf"), fill=0.0)
    priced = found.with_kernel(kernel)
    return dataclasses.replace(
        priced, notes=(*plan.notes, remark, *([Remark("exchange-costs-of-other", text, needed=True)] if text else []))
    )

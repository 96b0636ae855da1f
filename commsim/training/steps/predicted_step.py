"""One step of training: a pipeline of stages whose passes take compute and exposed traffic, sharded data parallelism.

Passes of micro-batches are tasks of :func:`commsim.training.parallel.pipeline.pipeline_graph`. Before the first pass
of a part of the model its parameters are gathered, after its last one its gradients are reduced and scattered, and the
optimizer comes last. Tensor parallel exchanges are cut into as many pieces as there are ranks, and hide behind their
matrix product but for one piece; context parallel ones hide behind attention; those of experts hide behind nothing,
unless the setting says so. What is exposed by a kind is what the step loses with it against the same step without it.

References
----------
Narayanan et al., SC 2021 (interleaved pipelines); Korthikanti et al., MLSys 2023 (sequence parallelism); Rajbhandari et
al., SC 2020 (sharded optimizer); Liu et al., "Ring attention", 2023 (context parallelism).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from commsim.core.data_frames import frame_of
from commsim.core.remark import Remark
from commsim.core.result import OverHashes
from commsim.core.units import parse_time
from commsim.training.hash_ends import FASTEST, SLOWEST, ends_of
from commsim.training.sharing.periodic import PeriodicJob

from .step_costs import StepCosts
from .step_setting import KINDS, StepSetting
from .step_traffic import StepTraffic

# Share of a step below which a bubble is the rounding of sums.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Step:
    """One step as predicted.

    Parameters
    ----------
    setting : StepSetting
        What was asked.
    time, compute, bubble : float, s
        The step; computation of the busiest stage; time in which that stage waits for others without any traffic.
    exposed : dict of str to float, s
        What the step would be shorter without a kind of traffic.
    hidden : dict of str to float, s
        Rest of each kind's exchanges, of the stage with most: behind computation, or behind other traffic.
    notes : tuple of Remark
        What was assumed.
    costs : StepCosts, optional
        What the step was predicted from, for :meth:`job`.
    hashes : OverHashes, optional
        The step with each collective at the fastest and the slowest hash of its routes.
    """

    setting: StepSetting
    time: float
    compute: float
    bubble: float
    exposed: dict[str, float]
    hidden: dict[str, float]
    notes: tuple[Remark, ...] = ()
    costs: StepCosts | None = field(default=None, repr=False, compare=False)
    hashes: OverHashes | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Ends between which 80 % of published steps like it lie, s; None where that is not known.

        No published step tells what its traffic exposes, so `exposed` has none.
        """
        spread = self.setting.spread
        return None if spread is None else (spread[0] * self.time, spread[1] * self.time)

    def job(self, name: str | None = None, *, gap: float | str = 0.0) -> PeriodicJob:
        """Return the step as a job to be placed: its GPUs, and the bytes that each kind of its groups exchanges.

        Parameters
        ----------
        name : str, optional
            Name of the job. Default: the model's.
        gap : float, s, or str
            Phases at most this far apart are one; text such as ``1ms``.

        Returns
        -------
        PeriodicJob
            As :func:`commsim.place_jobs` takes it: phases of demand, and a period without the time that these need on
            the step's own network.

        Raises
        ------
        InputError
            If the step has too many passes.

        Examples
        --------
        >>> import commsim as cs
        >>> step = cs.training_step("llama3-8b", "h100", ranks=16, tp=8, global_batch=8)
        >>> job = step.job("eight", gap="1ms")
        >>> job.n_gpus, job.is_demand, job.period < step.time
        (16, True, True)
        """
        from .step_phases import step_phases

        seconds = parse_time(gap, "gap") if isinstance(gap, str) else gap
        phases, period, _ = step_phases(self, seconds)
        return PeriodicJob(name or self.setting.model.name, self.setting.layout.n_ranks, period, phases)

    def to_frame(self, library: str | None = None) -> Any:
        """Return the row as a data frame of pandas or polars."""
        return frame_of([self.row()], library)

    def row(self) -> dict[str, Any]:
        """Return the JSON row."""
        setting = self.setting
        tokens = setting.global_batch * setting.sequence
        flops = setting.model.flops(setting.sequence) * tokens / setting.layout.n_ranks / self.time
        drawn = {} if self.hashes is None else self.hashes.row()
        return {
            "model": setting.model.name,
            "gpu": setting.gpu.name,
            "ranks": setting.layout.n_ranks,
            **dataclasses.asdict(setting.layout),
            "schedule": setting.order,
            "micro_batches": setting.micro_batches,
            "precision": setting.precision,
            "factor": setting.factor,
            "step_s": self.time,
            **drawn,
            **dict(zip(("low_s", "high_s"), self.interval or (None, None), strict=True)),
            "compute_s": self.compute,
            "bubble_s": self.bubble,
            **{f"exposed_{kind}_s": self.exposed[kind] for kind in KINDS},
            **{f"hidden_{kind}_s": self.hidden[kind] for kind in KINDS},
            "tokens_per_s_per_gpu": tokens / self.time / setting.layout.n_ranks,
            "model_tflops_per_gpu": flops * 1e-12,
            "mfu": flops / setting.gpu.peak(setting.precision),
        }


def predict_step(setting: StepSetting, traffic: StepTraffic, *, by_kind: bool = True) -> Step:
    """Predict a step, and what each kind of traffic exposes.

    Parameters
    ----------
    setting : StepSetting
        What is computed.
    traffic : StepTraffic
        Times of collectives on a network.
    by_kind : bool
        Whether the exposed time of each kind is found; it takes a run of the pipeline for each.

    Raises
    ------
    InputError
        If the network is too small, or the pipeline too large.
    """
    costs = StepCosts(setting, traffic)
    kinds = [kind for kind in KINDS if costs.has(kind)]
    time = costs.step(frozenset(kinds))
    compute, exposed, alone = costs.busiest(), dict.fromkeys(KINDS, 0.0), time
    if by_kind:
        for kind in kinds:
            exposed[kind] = max(0.0, time - costs.step(frozenset(kinds) - {kind}))
        alone = costs.step(frozenset())
    bubble = alone - compute
    hidden = {kind: max(0.0, sent - exposed[kind]) for kind, sent in costs.sent().items()} if by_kind else exposed
    bubble = bubble if bubble > ROUNDING * time else 0.0
    hashes = None
    if traffic.n_drawn:
        ends = [StepCosts(setting, traffic.at(which)).step(frozenset(kinds)) for which in (FASTEST, SLOWEST)]
        hashes = ends_of(traffic.n_drawn, time, ends)
    return Step(setting, time, compute, bubble, exposed, hidden, costs.notes(), costs, hashes)

"""One published step as a question: model, GPU, parallelism, batch, and the measured time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from commsim.training.steps.parallel_sizes import ParallelSizes


@dataclass(frozen=True, slots=True)
class Setup:
    """One published step.

    Parameters
    ----------
    file, system, text, software, source : str
        File, and what it says; `software` is the release that a calibration is for, empty where releases share one.
    model, gpu, precision : str
        In our names; empty where they are not known. `variant` is the kind of the precision (MX and others).
    layout : ParallelSizes, optional
        Parallelism.
    micro_batch, global_batch, sequence : int
        Batch.
    measured : float, s
        Time of a step.
    sharding, recompute, frozen, attention, graphs
        As in :class:`commsim.training.steps.step_setting.StepSetting`.
    hides_experts : bool
        Whether exchanges of experts hide behind computation.
    gradient_bytes : int
        Bytes of a gradient that is sent; 0 for the usual ones.
    exposes : str
        Kinds of traffic that do not hide, separated by commas.
    slices : int
        Slices of TPUs, over which data parallelism goes.
    assumed : tuple of str
        What the row does not say.
    left_out : str
        Why it is not predicted, or empty.
    """

    file: str
    system: str
    text: str
    source: str
    model: str = ""
    gpu: str = ""
    precision: str = "bf16"
    variant: str = ""
    software: str = ""
    layout: ParallelSizes | None = None
    micro_batch: int = 1
    global_batch: int = 0
    sequence: int = 0
    measured: float = 0.0
    sharding: str = "optimizer"
    recompute: float = 0.0
    frozen: bool = False
    attention: str = ""
    graphs: bool = False
    hides_experts: bool = False
    gradient_bytes: int = 0
    exposes: str = ""
    slices: int = 1
    assumed: tuple[str, ...] = ()
    left_out: str = ""
    given: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What one calibration is for."""
        return self.model, self.gpu, self.variant or self.precision, self.software

"""The flag ``--compute``: where the time of a program's own work comes from, and what came from where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from commsim.core.errors import InputError
from commsim.core.spec import as_number
from commsim.profiles.kineto_operators import KernelTimes, read_kernel_times
from commsim.training.gpus import Gpu, gpu

from .operator_cost import OperatorCost, is_free, roofline

WHAT = "none, measured[:factor], roofline:GPU[:factor] or a Kineto trace, such as roofline:h100"


@dataclass(frozen=True, slots=True)
class Compute:
    """Where the time of operators comes from.

    Parameters
    ----------
    kind : str
        ``none``, ``measured``, ``roofline`` or ``file``.
    factor : float
        What times are multiplied with.
    gpu : Gpu or None
        Accelerator of a roofline; beside a file, that of operators which it lacks.
    times : KernelTimes or None
        Times of the kernels of a trace.
    text : str
        What the user wrote.
    """

    kind: str
    factor: float = 1.0
    gpu: Gpu | None = None
    times: KernelTimes | None = None
    text: str = ""

    def cost(self, func: Any, args: Any, kwargs: Mapping[str, Any], out: Any) -> OperatorCost:
        """Return the time of one call of an operator."""
        name = func.overloadpacket.__name__
        if self.kind == "none" or is_free(func, name):
            return OperatorCost(0.0, "none")
        if self.times is not None:
            known = self.times.of(name, args)
            if known is not None:
                return OperatorCost(known * self.factor, "file")
        if self.gpu is None:
            return OperatorCost(0.0, "unknown")
        cost = roofline(self.gpu, func, args, kwargs, out)
        return OperatorCost(cost.seconds * self.factor, cost.bound, cost.operations, cost.moved)

    def source_lines(self) -> list[str]:
        """One line for each source of times."""
        lines = [] if self.gpu is None else [self.gpu.told_usual()]
        if self.times is not None:
            lines.append(self.times.source_line())
        if self.factor != 1:
            lines.append(f"times of computation are multiplied with {self.factor:g}, as asked")
        return lines


@dataclass(slots=True)
class Spent:
    """Time of computation by operator, and by what it is bound by.

    Parameters
    ----------
    by_bound, by_operator : counter, s
        Seconds.
    calls : counter
        Calls of each operator that took time.
    operations : float
        Floating-point operations.
    """

    by_bound: Counter[str] = field(default_factory=Counter)
    by_operator: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    operations: float = 0.0

    def add(self, name: str, cost: OperatorCost) -> None:
        """Count one call."""
        if cost.bound == "none":
            return
        self.by_bound[cost.bound] += cost.seconds  # type: ignore[assignment]
        self.by_operator[name] += cost.seconds  # type: ignore[assignment]
        self.calls[name] += 1
        self.operations += cost.operations


def compute_of(text: str) -> Compute:
    """Read ``--compute``.

    Raises
    ------
    InputError
        If it is none of the known forms, the GPU is unknown, or the file is no trace with kernels.
    """
    kind, _, rest = text.partition(":")
    if text == "none":
        return Compute("none", text=text)
    if kind == "measured":
        return Compute("measured", _factor(rest or "1", text), text=text)
    if kind == "roofline":
        name, _, factor = rest.partition(":")
        if not name:
            raise InputError(f"--compute roofline needs a GPU, such as roofline:h100, got {text!r}")
        return Compute("roofline", _factor(factor or "1", text), gpu(name), text=text)
    path, _, beside = text.partition("+")
    if Path(path).suffix in (".json", ".gz"):
        other = compute_of(beside) if beside else Compute("none")
        if beside and other.kind != "roofline":
            raise InputError(f"--compute {text}: beside a trace stands roofline:GPU, got {beside!r}")
        return Compute("file", other.factor, other.gpu, read_kernel_times(path), text)
    raise InputError(f"--compute must be {WHAT}, got {text!r}")


def _factor(text: str, whole: str) -> float:
    try:
        factor = as_number(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < 1e6:
        raise InputError(f"--compute: the factor must be a number above 0, got {text!r} in {whole!r}")
    return factor

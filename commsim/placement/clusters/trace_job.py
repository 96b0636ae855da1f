"""A job of a trace: when it comes, how many GPUs it wants, and how much work it brings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from commsim.core.errors import InputError
from commsim.training.sharing.periodic import JobPhase

MAX_GPUS = 2**20
# The model of a job whose log names none: one is drawn.
DRAWN = "?"
# Of any time in a trace: some 300 years.
MAX_SECONDS = 1e10


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One line of a trace.

    Parameters
    ----------
    name : str
        Printable.
    submit : float, s
        Time from the start of the trace.
    n_gpus : int
        Number of GPUs that it asks for: `gpus` of the file.
    duration : float, s, optional
        Run time without other jobs on as many reference GPUs, packed; instead of `iterations`.
    iterations : float, optional
        Number of iterations on as many GPUs as it asks for.
    model : str
        A name of the model table; empty if `period` and `phases` say what it does.
    period : float, s
        Iteration time without other jobs, where no model is named.
    phases : tuple of JobPhase
        Communication in that iteration.
    cpu : float
        CPUs that it needs to run at full speed, all workers together; 0 for a job that does not mind.
    memory : float, bytes
        Likewise.
    deadline : float, s, optional
        Deadline, from the start of the trace.
    min_gpus, max_gpus : int
        Smallest and largest number of GPUs for policies that scale jobs; by default `n_gpus`.
    own : mapping of str to str
        Columns of the user's own, `own_NAME` of the file, by NAME: for policies of the user's own.
    gpus_per_host : int, optional
        Number of GPUs that it has on each of its hosts; policies that scale jobs leave its number of GPUs.

    Raises
    ------
    InputError
        If a number is out of its range, or work or traffic is given twice or not at all.
    """

    name: str
    submit: float
    n_gpus: int
    duration: float | None = None
    iterations: float | None = None
    model: str = ""
    period: float = 0.0
    phases: tuple[JobPhase, ...] = ()
    cpu: float = 0.0
    memory: float = 0.0
    deadline: float | None = None
    min_gpus: int = 0
    max_gpus: int = 0
    own: Mapping[str, str] = field(default_factory=dict, hash=False)
    gpus_per_host: int | None = None

    def __post_init__(self) -> None:
        for name in ("min_gpus", "max_gpus"):
            object.__setattr__(self, name, getattr(self, name) or self.n_gpus)
        if not (self.name and self.name.isprintable()):
            raise InputError(f"job must be printable text, got {self.name!r}")
        self._require("submit_s", 0 <= self.submit <= MAX_SECONDS, f"0..{MAX_SECONDS:g}", self.submit)
        self._require("gpus", 1 <= self.n_gpus <= MAX_GPUS, f"1..{MAX_GPUS}", self.n_gpus)
        self._require("min_gpus", 1 <= self.min_gpus <= self.n_gpus, f"1..{self.n_gpus}", self.min_gpus)
        self._require("max_gpus", self.n_gpus <= self.max_gpus <= MAX_GPUS, f"{self.n_gpus}..{MAX_GPUS}", self.max_gpus)
        if (k := self.gpus_per_host) is not None:
            self._require("gpus_per_host", k >= 1 and self.n_gpus % k == 0, f"a divisor of {self.n_gpus} GPUs", k)
            if not self.min_gpus == self.n_gpus == self.max_gpus:
                raise InputError(f"{self.name}: gpus_per_host goes with one number of GPUs, not min_gpus and max_gpus")
        for name in ("cpu", "memory"):
            value = getattr(self, name)
            self._require(name, 0 <= value < math.inf, "0 or more", value)
        if self.deadline is not None:
            late = self.submit < self.deadline <= MAX_SECONDS
            self._require("deadline_s", late, f"later than submit_s and at most {MAX_SECONDS:g}", self.deadline)
        self._check_work()

    @property
    def gpus(self) -> int:
        """Old name of `n_gpus`, until the next version."""
        warnings.warn("the number of GPUs of a job is job.n_gpus", DeprecationWarning, stacklevel=2)
        return self.n_gpus

    def _check_work(self) -> None:
        if (self.duration is None) == (self.iterations is None):
            raise InputError(f"{self.name}: give duration_s or iterations, one of the two")
        work = self.duration if self.duration is not None else self.iterations
        name = "duration_s" if self.duration is not None else "iterations"
        self._require(name, work is not None and 0 < work <= MAX_SECONDS, f"more than 0, at most {MAX_SECONDS:g}", work)
        if bool(self.model) == (self.period > 0):
            raise InputError(f"{self.name}: give a model or iter_time_ms, one of the two")
        if any(phase.is_demand for phase in self.phases):
            raise InputError(f"{self.name}: phases of a trace have dur_ms and rate_Gbps; `place` takes bytes")
        if self.model and self.phases:
            raise InputError(f"{self.name}: phases come with iter_time_ms, not with a model")

    def _require(self, field: str, good: bool, wanted: str, got: object) -> None:
        if not good:
            raise InputError(f"{self.name}: {field} must be {wanted}, got {got}")

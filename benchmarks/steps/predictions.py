"""Predictions of published steps, their calibrations, and the fit of a line through micro-batches beside them."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.steps.setup import Setup
from commsim.core.errors import CommsimError, InputError
from commsim.prediction.inputs import network_of
from commsim.training.gpus import gpu
from commsim.training.steps.ask import network_for, traffic_on
from commsim.training.steps.calibration import CalibrationFactor, calibration_for, calibrations
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.predicted_step import Step, predict_step
from commsim.training.steps.step_setting import StepSetting, hidden_kinds
from commsim.training.steps.step_traffic import StepTraffic
from commsim.training.steps.transformer import transformer

# Row that the one constant beside the calibrations is from.
INTERFERENCE_ROW = "eos-dfw_n512_ngc23.09_nemo/gpt3"

# Share of the peak in the rule of thumb beside the predictions: "40 to 50 %".
NAIVE = 0.45
# Models of SC 2021 but one: they show what one calibration of a GPU and a release is worth for other shapes.
NOT_CALIBRATED = tuple(
    f"megatron-{n}b" for n in ("1.7", "3.6", "7.5", "18.4", "39.1", "76.1", "310.1", "529.6", "1008")
)


@dataclass(frozen=True, slots=True)
class Predicted:
    """One row.

    Parameters
    ----------
    setup : Setup
        What was measured.
    time : float, s
        Predicted step; 0 where it is left out.
    fitted : bool
        Whether something was calibrated on the row.
    kind : str
        What differs from the row that was calibrated: release, scale, parallelism, precision, gpu, model; unseen where
        the files do not have that row.
    told : tuple of str
        What was assumed.
    blind : float, s
        Predicted step when no row of the model is calibrated, nor of the model anything known but its shape.
    foreign : float, s
        The same when no row of its file is calibrated either: a publisher that nobody calibrated.
    """

    setup: Setup
    time: float
    fitted: bool
    kind: str
    told: tuple[str, ...]
    step: Step | None = None
    blind: float = 0.0
    foreign: float = 0.0

    @property
    def error(self) -> float:
        """Relative error of the time."""
        return self.time / self.setup.measured - 1 if self.time and self.setup.measured else 0.0

    @property
    def blind_error(self) -> float:
        """Relative error of what is predicted without any row of the model."""
        return self.blind / self.setup.measured - 1 if self.blind and self.setup.measured else 0.0

    @property
    def foreign_error(self) -> float:
        """Relative error of what is predicted without any row of the model or of the file."""
        return self.foreign / self.setup.measured - 1 if self.foreign and self.setup.measured else 0.0

    @property
    def naive_error(self) -> float:
        """Relative error of a step that takes the model's operations at :data:`NAIVE` of the peak, and no traffic."""
        if self.step is None:
            return 0.0
        of = self.step.setting
        work = of.model.flops(of.sequence) * of.global_batch * of.sequence / of.layout.n_ranks
        return work / (NAIVE * of.gpu.peak(of.precision)) / self.setup.measured - 1

    def row(self) -> dict[str, Any]:
        """Return the JSON row, with the columns of the file."""
        one = self.setup
        return {
            **one.given, "file": one.file, "model": one.model, "gpu_name": one.gpu,
            "precision": one.variant or one.precision,
            "measured_s": one.measured or None, "predicted_s": self.time or None,
            "blind_s": self.blind or None, "foreign_s": self.foreign or None, "fitted": self.fitted,
            "bridges": self.kind, "assumed": "; ".join(self.told), "left_out": one.left_out,
        }  # fmt: skip


@functools.cache
def traffic_of(gpu_name: str, n_ranks: int) -> StepTraffic:
    """Return the times of collectives on the machines of a GPU behind one switch."""
    return traffic_on(network_of(network_for(gpu(gpu_name), n_ranks)), n_ranks)


def step_of(setup: Setup, factor: float, *, by_kind: bool = False) -> Step:
    """Predict one step.

    Raises
    ------
    InputError
        If the row cannot be predicted.
    """
    if setup.layout is None:
        raise InputError("the row has no parallelism")
    setting = StepSetting(
        transformer(setup.model), gpu(setup.gpu), setup.layout, setup.micro_batch, setup.global_batch, setup.sequence,
        setup.precision, factor, setup.sharding, setup.recompute, setup.frozen,
        hidden_kinds(setup.exposes, setup.hides_experts), kernels=setup.attention, graphs=setup.graphs,
        gradient_bytes=setup.gradient_bytes,
    )  # fmt: skip
    return predict_step(setting, traffic_of(setup.gpu, setup.layout.n_ranks), by_kind=by_kind)


def fitted_factor(setup: Setup) -> float:
    """Factor with which the row is predicted as it was measured, by secants."""
    factors = [1.0, 1.5]
    times = [step_of(setup, factor).time for factor in factors]
    for _ in range(8):
        slope = (times[-1] - times[-2]) / (factors[-1] - factors[-2])
        factor = factors[-1] + (setup.measured - times[-1]) / slope
        if factor <= 0.05:
            raise InputError(f"traffic alone takes longer than the measured {setup.measured:.3g} s")
        if abs(factor / factors[-1] - 1) < 1e-5:
            break
        factors.append(factor)
        times.append(step_of(setup, factor).time)
    return factors[-1]


def calibrated(setups: Iterable[Setup]) -> list[CalibrationFactor]:
    """Calibrate each model, GPU, precision and release on one of its rows: of MLPerf the fewest ranks, else the middle.

    The middle row is the one with the median factor of the setup that occurs most often.
    """
    by_key: dict[tuple[str, str, str, str], list[Setup]] = defaultdict(list)
    for one in setups:
        if not one.left_out and not one.frozen and one.model not in NOT_CALIBRATED:
            by_key[one.key].append(one)
    found = []
    for (model, name, precision, software), rows in sorted(by_key.items()):
        try:
            chosen = _one_of(rows)
            found.append(
                CalibrationFactor(
                    model, name, precision, software, float(f"{fitted_factor(chosen):.4g}"), _named(chosen)
                )
            )
        except InputError as error:
            print(f"{model} {name} {precision}: {error}")
    return found


def _one_of(rows: list[Setup]) -> Setup:
    if rows[0].file == "mlperf_steps.csv":
        return min(rows, key=lambda one: one.layout.n_ranks if one.layout else 0)
    usual: dict[Any, list[Setup]] = defaultdict(list)
    for one in rows:
        usual[one.layout, one.global_batch, one.micro_batch, one.sequence].append(one)
    most = max(usual.values(), key=len)
    return sorted(most, key=lambda one: one.measured)[(len(most) - 1) // 2]


def _named(one: Setup) -> str:
    tail = one.source.rsplit("(", 1)[-1].rstrip(")") if one.file == "megatron_bridge.csv" else one.source[:90]
    what = one.text if one.file != "mlperf_steps.csv" else one.system
    return f"{one.file}: {one.system}, {what}, {tail}"[:230]


def predictions(
    setups: list[Setup], known: tuple[CalibrationFactor, ...] | None = None, *, by_kind: bool = False
) -> list[Predicted]:
    """Predict all rows with the calibrations of the package, or others."""
    done: dict[Any, Step] = {}
    return [_predicted(one, setups, known, done, by_kind) for one in setups]


def with_blind(rows: list[Predicted]) -> list[Predicted]:
    """Add what each row is predicted as without any calibration of its model, and of its model and file."""
    done: dict[Any, float] = {}

    def time(one: Setup, others: tuple[CalibrationFactor, ...]) -> float:
        question = (question_of(one), calibration_for(*one.key, others).factor)
        if question not in done:
            done[question] = step_of(one, question[1]).time
        return done[question]

    found = []
    for one in rows:
        if one.step is None:
            found.append(one)
            continue
        others = tuple(c for c in calibrations() if c.model != one.setup.model)
        strangers = tuple(c for c in others if not c.row.startswith(f"{one.setup.file}: "))
        found.append(replace(one, blind=time(one.setup, others), foreign=time(one.setup, strangers)))
    return found


def question_of(one: Setup) -> tuple[Any, ...]:
    """Return all that a prediction depends on."""
    sizes = (one.micro_batch, one.global_batch, one.sequence)
    program = (one.attention, one.graphs, one.hides_experts, one.exposes, one.gradient_bytes)
    return (one.key, one.layout, *sizes, one.sharding, one.recompute, one.frozen, *program)


def _predicted(
    one: Setup, setups: list[Setup], known: tuple[CalibrationFactor, ...] | None, done: dict[Any, Step], by_kind: bool
) -> Predicted:
    if one.left_out:
        return Predicted(one, 0.0, False, "left out", one.assumed)
    model, name, precision, software = one.key
    found = calibration_for(model, name, precision, software, known)
    question = question_of(one)
    try:
        step = done.get(question) or step_of(one, found.factor, by_kind=by_kind)
    except CommsimError as error:
        return Predicted(replace(one, left_out=str(error)), 0.0, False, "left out", one.assumed)
    done[question] = step
    row = found.text.partition(": ")[2]
    fitted = row == _named(one) or INTERFERENCE_ROW in one.source
    return Predicted(
        one,
        step.time,
        fitted,
        "calibrated" if fitted else _bridged(one, found.of, row, setups),
        (*one.assumed, found.text),
        step,
    )


def _bridged(one: Setup, of: str, row: str, setups: list[Setup]) -> str:
    """Say what differs between a row and the one that it was calibrated on."""
    if of != "setup":
        return {"software": "release", "precision": "precision"}.get(of, "model")
    base = next((other for other in setups if _named(other) == row), None)
    if base is None or base.layout is None or one.layout is None:
        return "unseen"
    if one.frozen:
        return "adapters"
    if _parallelism(base) != _parallelism(one):
        return "parallelism"
    same = (base.layout.data, base.global_batch, base.sequence) == (one.layout.data, one.global_batch, one.sequence)
    return "release" if same else "scale"


def _parallelism(one: Setup) -> tuple[Any, ...]:
    """All but data parallelism."""
    lay = one.layout or ParallelSizes()
    return lay.tensor, lay.pipeline, lay.context, lay.expert, lay.chunks, one.sharding, one.recompute


def line_errors(rows: list[Predicted]) -> dict[int, float]:
    """Error of `a + b x micro-batches` on each row, fitted to the rows of its model, GPU, precision and release.

    The line takes two rows, so it is fitted to all rows of a setup but the one that it predicts; without a second
    number of micro-batches a is 0.
    """
    by_key: dict[Any, list[int]] = defaultdict(list)
    for i, one in enumerate(rows):
        if one.time and one.setup.layout is not None:
            by_key[one.setup.key].append(i)
    found = {}
    for members in by_key.values():
        for i in members:
            others = [rows[j] for j in members if j != i]
            if others:
                found[i] = _line(rows[i], others)
    return found


def _line(one: Predicted, others: list[Predicted]) -> float:
    m = np.array([_passes(o) for o in others])
    t = np.array([o.setup.measured for o in others])
    if len(set(m.tolist())) > 1:
        b, a = np.polyfit(m, t, 1)
    else:
        a, b = 0.0, float(np.mean(t / m))
    return float((a + b * _passes(one)) / one.setup.measured - 1)


def _passes(one: Predicted) -> float:
    setup = one.setup
    return setup.global_batch / (setup.layout.data if setup.layout else 1)

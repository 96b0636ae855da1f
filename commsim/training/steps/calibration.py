"""Calibrations of training steps: how much longer compute takes than the roofline, by model, GPU and precision.

Each factor of ``calibrations.toml`` is from one published step, which is named there. Where a setup has none, the model
on that GPU with another release or precision stands in; else what programs lose in the median of all models. No other
model's factor stands in for one: what differs between shapes is in the roofline.
"""

from __future__ import annotations

import functools
import importlib.resources
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from commsim.training.gpus import gpu as gpu_named

from .transformer import known_transformers, transformer

# Where nothing is calibrated.
NOTHING = 1.5
# Other models that make a generation's own median.
MIN_MODELS = 3


@dataclass(frozen=True, slots=True)
class CalibrationFactor:
    """One factor.

    Parameters
    ----------
    model, gpu, precision : str
        Setup.
    software : str
        Release of the software, where several releases of a setup are calibrated; else empty.
    factor : float
        Compute time over the roofline's.
    row : str
        Published step that it was taken from.
    """

    model: str
    gpu: str
    precision: str
    software: str
    factor: float
    row: str


@dataclass(frozen=True, slots=True)
class SetupFactor:
    """Factor for a setup.

    Parameters
    ----------
    factor : float
        Compute time over the roofline's.
    of : {"setup", "software", "precision", "usual", "nothing"}
        What the calibration has in another way than the setup: nothing, the software's release, the precision; or it
        is what programs lose with all other models; or nothing is calibrated.
    text : str
        One line on it.
    """

    factor: float
    of: str
    text: str

    @property
    def is_own(self) -> bool:
        """Whether it is from a step of the same model on the same GPU."""
        return self.of in ("setup", "software", "precision")


@functools.cache
def calibrations() -> tuple[CalibrationFactor, ...]:
    """Read all of them."""
    import tomllib

    text = importlib.resources.files("commsim.training").joinpath("calibrations.toml").read_text("utf-8")
    return tuple(CalibrationFactor(**{"software": "", **row}) for row in tomllib.loads(text).get("calibrations", ()))


def calibration_for(
    model: str, gpu: str, precision: str, software: str = "", known: tuple[CalibrationFactor, ...] | None = None
) -> SetupFactor:
    """Return the factor of the nearest setup.

    Parameters
    ----------
    model, gpu, precision, software : str
        Setup; a release of software may be empty.
    known : tuple of CalibrationFactor, optional
        Calibrations. Default: those of the package.
    """
    every = calibrations() if known is None else known
    tries: tuple[tuple[str, Callable[[CalibrationFactor], bool]], ...] = (
        ("setup", lambda c: (c.model, c.gpu, c.precision, c.software) == (model, gpu, precision, software)),
        ("software", lambda c: (c.model, c.gpu, c.precision) == (model, gpu, precision)),
        ("precision", lambda c: (c.model, c.gpu) == (model, gpu)),
    )
    for of, fits in tries:
        if found := [c for c in every if fits(c)]:
            factor = statistics.median(c.factor for c in found)
            rows = found[0].row if len(found) == 1 else f"the median of {len(found)} calibrations"
            other = "" if of == "setup" else f", calibrated with another {of}"
            if of == "precision":
                other += f" than {precision} ({', '.join(sorted({c.precision for c in found}))})"
            return SetupFactor(factor, of, f"compute is {factor:.3g} times the roofline's{other}: {rows}")
    factor, n, where = usual_factor(model, gpu, every)
    if not n:
        return SetupFactor(
            NOTHING, "nothing", f"compute is assumed to be {NOTHING:g} times the roofline's: nothing is calibrated"
        )
    kind = "with" if transformer(model).experts else "without"
    text = f"compute is {factor:.3g} times the roofline's, as in the median of {n} models {kind} experts{where}"
    return SetupFactor(factor, "usual", text)


def usual_factor(model: str, gpu: str, every: tuple[CalibrationFactor, ...]) -> tuple[float, int, str]:
    """Return what programs usually lose beside the roofline: the median of other models, of each its median.

    Models with and without experts are apart: grouped products, permutations and idle experts are in no roofline. Where
    none of the one kind is calibrated, those of the other stand in. On accelerators whose products nobody measured, the
    factor also has the error of their curve, so that the median is that of their generation if enough models are
    calibrated there.

    Parameters
    ----------
    model, gpu : str
        Model whose own calibrations are left out, and the accelerator.
    every : tuple of CalibrationFactor
        Calibrations.

    Returns
    -------
    float, int, str
        Factor, the number of models, and on which GPUs; empty for all.
    """
    shapes, accelerator = known_transformers(), gpu_named(gpu)
    others = [row for row in every if row.model != model and row.model in shapes]
    alike = [row for row in others if bool(shapes[row.model].experts) == bool(shapes[model].experts)] or others
    near = [row for row in alike if gpu_named(row.gpu).generation == accelerator.generation]
    medians, where = _of_models(near), f" on {accelerator.generation} GPUs"
    if accelerator.is_measured or len(medians) < MIN_MODELS:
        medians, where = _of_models(alike), ""
    return (statistics.median(medians) if medians else NOTHING), len(medians), where


def _of_models(rows: list[CalibrationFactor]) -> list[float]:
    """Return the median of each model."""
    by_model: dict[str, list[float]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row.factor)
    return [statistics.median(of) for of in by_model.values()]

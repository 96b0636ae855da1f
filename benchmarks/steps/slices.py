"""MaxText's table: parameters sharded over the chips of a TPU slice, gradients added up over the data-centre network.

One factor per model and chip is from its row with one slice; rows with more slices are predicted. What is compared is
the share of the throughput of one slice that is lost.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from commsim.core.errors import CommsimError, InputError
from commsim.prediction.inputs import network_of
from commsim.training.gpus import gpu
from commsim.training.steps.ask import traffic_on
from commsim.training.steps.parallel_sizes import ParallelSizes
from commsim.training.steps.predicted_step import predict_step
from commsim.training.steps.step_setting import StepSetting
from commsim.training.steps.step_traffic import StepTraffic
from commsim.training.steps.transformer import known_transformers, transformer

# Sequences of a chip in a step, and tokens of each, as the configurations of MaxText have them.
BATCH = {"16b": (6, 2048), "32b": (4, 2048), "64b": (2, 2048), "128b": (1, 2048), "22b": (16, 1024), "52b": (10, 1024)}
# Tensor parallel chips, where these are not one.
TENSOR = {"128b": 16}
# Chips of a slice along its sides, by its number of chips.
SIDES = {256: "16x16", 64: "4x4x4", 192: "4x4x12"}


@dataclass(frozen=True, slots=True)
class Slices:
    """One row: TFLOP/s per chip as measured and predicted, and the losses in points against one slice."""

    model: str
    chip: str
    slices: int
    measured: float
    predicted: float
    lost: float
    predicted_lost: float
    source: str

    def row(self) -> dict[str, Any]:
        """Return the JSON row; a step has the operations of the model for the sequences of a chip."""
        batch, sequence = BATCH[self.model.removeprefix("maxtext-")]
        work = transformer(self.model).flops(sequence) * batch * sequence * 1e-12
        return {
            "measured_s": work / self.measured, "predicted_s": work / self.predicted,
            "file": "published.csv", "model": self.model, "gpu_name": self.chip, "slices": self.slices,
            "measured_tflops": self.measured, "predicted_tflops": self.predicted, "measured_loss": self.lost,
            "predicted_loss": self.predicted_lost, "fitted": self.slices == 1, "source": self.source,
        }  # fmt: skip


def slice_rows(folder: str) -> tuple[list[Slices], list[str]]:
    """Predict the rows of MaxText in ``published.csv``, and say which are left out."""
    path = Path(folder) / "published.csv"
    if not path.is_file():
        return [], []
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if "MaxText" in (row.get("setup") or "")]
    found: list[Slices] = []
    left: list[str] = []
    by_model: dict[tuple[str, str, int], list[tuple[int, float, str]]] = {}
    for row in rows:
        try:
            key, one = _read(row)
            by_model.setdefault(key, []).append(one)
        except (InputError, ValueError, KeyError, TypeError, AttributeError) as error:
            left.append(f"{row.get('system')}, {row.get('setup')}: {error}")
    for (size, chip, chips), members in by_model.items():
        members.sort()
        if members[0][0] != 1:
            left.append(f"{chip} {size}: without a row of one slice")
            continue
        try:
            found += _predicted(size, chip, chips, members)
        except CommsimError as error:
            left.append(f"{chip} {size}: {error}")
    return found, left


def _read(row: dict[str, str]) -> tuple[tuple[str, str, int], tuple[int, float, str]]:
    chip = re.search(r"TPU v\d+\w*", row["system"])
    count = re.search(r"x (\d+) (?:slices|pods)", row["system"])
    size = row["setup"].split(",")[0].strip().lower()
    if chip is None or count is None or size not in BATCH or f"maxtext-{size}" not in known_transformers():
        raise InputError("chip, number of slices or batch are not known")
    n = int(count[1])
    return (size, chip[0].lower().replace(" ", "-"), int(row["ranks"]) // n), (n, float(row["value"]), row["source"])


def _predicted(size: str, chip: str, chips: int, members: list[tuple[int, float, str]]) -> list[Slices]:
    _, first, _ = members[0]
    low, high = 0.2, 20.0
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _rate(size, chip, chips, 1, middle) > first else (low, middle)
    rates = {n: _rate(size, chip, chips, n, middle) for n, _, _ in members}
    return [
        Slices(f"maxtext-{size}", chip, n, value, rates[n], 1 - value / first, 1 - rates[n] / rates[1], source)
        for n, value, source in members
    ]


def _rate(size: str, chip: str, chips: int, n: int, factor: float) -> float:
    """TFLOP/s of a chip."""
    batch, sequence = BATCH[size]
    model = transformer(f"maxtext-{size}")
    tensor = TENSOR.get(size, 1)
    batch *= tensor  # a tensor parallel group computes the sequences of all of its chips
    layout = ParallelSizes(tensor=tensor, data=n * chips // tensor, replicas=n)
    setting = StepSetting(
        model, gpu(chip), layout, batch, batch * n * chips // tensor, sequence, "bf16", factor, recompute=True,
        gradient_bytes=4,
    )  # fmt: skip
    time = predict_step(setting, _traffic(chip, chips, n), by_kind=False).time
    return model.flops(sequence) * batch / tensor * sequence / time * 1e-12


@functools.cache
def _traffic(chip: str, chips: int, n: int) -> StepTraffic:
    if chips not in SIDES:
        raise InputError(f"the sides of a slice of {chips} chips are not known")
    links = 2 * len(SIDES[chips].split("x"))
    text = f"{chip}-slices:dims={SIDES[chips]},n_slices={n}"
    one = network_of(text)
    # XLA's collectives in a slice use all links of a chip; one ring over links of all their rates stands for them.
    inside = np.isin(one.src, one.endpoints) & np.isin(one.dst, one.endpoints)
    return traffic_on(
        dataclasses.replace(one, bandwidth=np.where(inside, links * one.bandwidth, one.bandwidth)), n * chips
    )

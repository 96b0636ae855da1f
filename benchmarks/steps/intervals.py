"""Intervals of predicted steps, from published steps on which nothing of the prediction was calibrated."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from benchmarks.steps.predictions import Predicted, question_of
from commsim.training.steps.step_interval import StepInterval
from commsim.training.steps.transformer import transformer

# Ends of the interval, as shares of the published steps.
ENDS = (10, 90)


def intervals_of(rows: Iterable[Predicted]) -> list[StepInterval]:
    """Return where 80 % of measured over predicted steps lie, of models with and without experts.

    Of models that somebody calibrated: rows that no calibration is from. Of others: all rows, predicted with their
    model left out. Rows of one setup, such as several releases or submitters, count once, by their median.
    """
    ratios: dict[tuple[bool, bool], dict[object, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in rows:
        if one.step is None or not one.setup.measured:
            continue
        experts, setup = bool(transformer(one.setup.model).experts), question_of(one.setup)
        ratios[False, experts][setup].append(one.setup.measured / one.blind)
        if not one.fitted and one.kind != "model":
            ratios[True, experts][setup].append(one.setup.measured / one.time)
    found = []
    for (calibrated, experts), setups in sorted(ratios.items()):
        low, high = np.percentile([float(np.median(of)) for of in setups.values()], ENDS)
        found.append(StepInterval(calibrated, experts, round(float(low), 3), round(float(high), 3), len(setups)))
    return found

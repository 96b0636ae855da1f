"""Published KV transfers, exchanges over rails and weight updates (``point_to_point.csv``) beside our prediction.

KV caches are predicted by ``commsim workload kv`` on two machines with the software ``mooncake-rdma``, whose two
numbers are from two of the rows. Exchanges and weight updates are a line through two rows, a fixed time and a rate,
since what the transfers do beside the network (staging, pinning, loading) is not published.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.steps.setups import model_of
from commsim.core.errors import CommsimError
from commsim.training.parallel.transfer_times import transfer_rows
from commsim.training.parallel.transfers import kv_side
from commsim.training.steps.transformer import transformer

# Rows that the software is fitted to.
FITTED = (("qwen3-8b", "1024"), ("qwen3-8b", "8192"))
NETWORK, SOFTWARE = "h800@star:machines=2", "mooncake-rdma"


@dataclass(frozen=True, slots=True)
class Push:
    """One row: seconds, or bytes/s, as measured and predicted."""

    what: str
    measured: float
    predicted: float
    fitted: bool
    given: dict[str, str]

    @property
    def error(self) -> float:
        """Relative error."""
        return self.predicted / self.measured - 1

    def row(self) -> dict[str, Any]:
        """Return the JSON row, with the columns of the file."""
        seconds = "rate" not in self.what
        return {**self.given, "measured_s": self.measured if seconds else None,
                "predicted_s": self.predicted if seconds else None, "file": "point_to_point.csv",
                "measured": self.measured, "predicted": self.predicted, "fitted": self.fitted}  # fmt: skip


def push_rows(folder: str) -> tuple[list[Push], list[str]]:
    """Predict ``point_to_point.csv`` of a folder, or of its neighbour ``experts``, and say what is left out."""
    paths = (Path(folder) / "point_to_point.csv", Path(folder).parent / "experts" / "point_to_point.csv")
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return [], []
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    found: list[Push] = []
    left: list[str] = []
    lines: dict[str, list[tuple[float, float, dict[str, str]]]] = defaultdict(list)
    for row in rows:
        try:
            if one := _kv(row):
                found.append(one)
            if point := _of_line(row):
                lines[point[0]].append((point[1], point[2], row))
        except (CommsimError, ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
            left.append(f"{path.name}: {row.get('setup')}: {error}")
    for what, points in lines.items():
        found += _on_line(what, points)
    return found, left


def _kv(row: dict[str, str]) -> Push | None:
    tokens, name = re.search(r"(\d+) tokens", row["setup"]), model_of(row["setup"].split(",")[0])
    sizes = re.search(r"TP(\d+) prefill -> TP(\d+) decode", row["setup"])
    if not (tokens and name and sizes) or row["metric"] not in ("transfer_time", "bandwidth"):
        return None
    model = transformer(name)
    size = model.kv_bytes * model.layers * int(tokens[1])
    sides = kv_side(int(sizes[1]), model.kv_heads, "--from"), kv_side(int(sizes[2]), model.kv_heads, "--to")
    time = transfer_rows(NETWORK, *sides, size, software=SOFTWARE)[0][0]["time_s"]
    value = float(row["value"])
    if row["metric"] == "transfer_time":
        return Push(f"KV, {tokens[1]} tokens, time", value * 1e-3, time, (name, tokens[1]) in FITTED, row)
    return Push(f"KV, {tokens[1]} tokens, rate", value * 2**30, size / time, False, row)


def _of_line(row: dict[str, str]) -> tuple[str, float, float] | None:
    """Return kind, bytes and seconds of a row that a line predicts."""
    if row["metric"] == "throughput" and (size := re.match(r"(\d+) KB", row["size"])):
        n_bytes = float(size[1]) * 1024
        return row["operation"], n_bytes, n_bytes / (float(row["value"]) * 1e9)
    name, _, precision = row["setup"].rpartition(" ")
    called = {"GLM-4.5-Air": "glm-4.5-air", "DeepSeek-V3.1": "deepseek-v3", "Kimi-K2": "kimi-k2"}.get(name) or model_of(
        name
    )
    if row["operation"].startswith("weight update") and called:
        n_bytes = transformer(called).total * (1 if precision == "FP8" else 2)
        return row["operation"], n_bytes, float(row["value"])
    return None


def _on_line(what: str, points: Sequence[tuple[float, float, dict[str, str]]]) -> list[Push]:
    """Predict by the line through the smallest and the largest; without two sizes there is none."""
    low, high = min(points, key=lambda p: p[0]), max(points, key=lambda p: p[0])
    if low[0] == high[0]:
        return []
    rate = (high[0] - low[0]) / (high[1] - low[1])
    fixed = low[1] - low[0] / rate
    return [
        Push(f"{what}, {n_bytes / 1024:.0f} KiB", seconds, fixed + n_bytes / rate, n_bytes in (low[0], high[0]), row)
        for n_bytes, seconds, row in points
    ]
